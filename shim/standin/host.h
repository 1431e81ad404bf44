/*
 * The functions that the extension's checks need of a host: here, the shim.
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>

/* Some pattern was taken without a look at it. */
extern bool standin_host_patterns;

/* The check cannot be done, and the program ends. */
extern void standin_host_fail(const char *why) __attribute__((noreturn));

#endif							/* HOST_H */
