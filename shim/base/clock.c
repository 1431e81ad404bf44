/*
 * Time: how late it is, and a pause.
 */
#include <time.h>

#include "base/clock.h"

uint64_t
now_micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

void
sleep_ms(int milliseconds)
{
	struct timespec pause = {milliseconds / 1000,
	milliseconds % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}
