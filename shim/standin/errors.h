/*
 * Errors: one that is thrown ends the check.
 */
#ifndef ERRORS_H
#define ERRORS_H

#include <setjmp.h>
#include <stdbool.h>

/*
 * Where an ERROR goes, to be set before any of the extension's functions is
 * called, on the stack whose depth counts from there.
 */
extern sigjmp_buf standin_errors_border;
extern void standin_errors_begin(void);

/* The text of the last one, for as long as no other comes. */
extern const char *standin_errors_text(void);

#endif							/* ERRORS_H */
