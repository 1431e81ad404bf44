/*
 * Time: how late it is, and a pause.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Microseconds of a clock that never goes back. */
extern uint64_t now_micros(void);

/* Sleep for a moment. */
extern void sleep_ms(int milliseconds);

#endif							/* CLOCK_H */
