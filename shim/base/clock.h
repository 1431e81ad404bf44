/*
 * Time: how late it is, and a pause.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * Microseconds of a clock that never goes back.  It is past any span of time
 * that can be taken from it, on a machine that was just booted, too.
 */
extern uint64_t now_micros(void);

/* The same moment for a condition whose clock is CLOCK_MONOTONIC. */
extern struct timespec clock_time(uint64_t micros);

/* Sleep for a moment. */
extern void sleep_ms(int milliseconds);

#endif							/* CLOCK_H */
