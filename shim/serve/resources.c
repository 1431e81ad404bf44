/*
 * What the process takes from the system: memory and descriptors.
 */
#include <malloc.h>
#include <stddef.h>
#include <sys/resource.h>

#include "serve/resources.h"

/* Of the 100 kB that civetweb gives to a thread. */
#define STACK_USE (60 * 1024)

/*
 * Memory that one thread has freed should be of use to the next: a few arenas,
 * and large pieces go back to the system.  Filling what is allocated makes
 * civetweb's buffers, which are out of our reach, take their pages.  The end
 * of that must not meet a calloc() in another thread: it would leave out to
 * clear what malloc() has just filled.
 *
 * Clients and database together may need more than the usual 1024 descriptors.
 */
void
resources_prepare(void)
{
	struct rlimit limit;

	mallopt(M_ARENA_MAX, 4);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	mallopt(M_PERTURB, 1);

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void
resources_settle(void)
{
	mallopt(M_PERTURB, 0);
}

void
resources_touch_stack(void)
{
	volatile char pages[STACK_USE];
	size_t		i;

	for (i = 0; i < sizeof(pages); i += 1024)
		pages[i] = 0;
}
