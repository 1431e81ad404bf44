#include "base/clock.h"

/*
 * CLOCK_MONOTONIC begins at zero when a machine does: a year is more than any
 * setting.
 */
#define BEGIN_SECONDS 31536000

uint64_t
now_micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t) now.tv_sec + BEGIN_SECONDS) * 1000000 +
		(uint64_t) now.tv_nsec / 1000;
}

struct timespec
clock_time(uint64_t micros)
{
	return (struct timespec)
	{
		(time_t) (micros / 1000000) - BEGIN_SECONDS,
			(long) (micros % 1000000) * 1000
	};
}

void
sleep_ms(int milliseconds)
{
	struct timespec pause = {milliseconds / 1000,
	milliseconds % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}
