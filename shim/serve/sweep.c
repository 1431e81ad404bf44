/*
 * A thread that has the database look after itself.
 *
 * What is over is deleted in short steps, each a transaction of its own, and
 * nothing in PostgreSQL would start them.  Any number of shims may do so: a
 * step that another one is at does nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "database/call.h"
#include "serve/sweep.h"

/* How often the settings are looked at while it is switched off. */
#define OFF_MS 1000

struct sweeper
{
	_Atomic(struct config *) *config;
	struct pool *pool;
	struct request request;
	pthread_t	thread;
	pthread_mutex_t mutex;
	pthread_cond_t woken;
	bool		stopping;
};

/* Waits; false if the thread is to end. */
static bool
rest(struct sweeper *sweeper, uint64_t micros)
{
	struct timespec until;
	int			failure = 0;
	bool		stopping;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t) (micros / 1000000);
	until.tv_nsec += (long) (micros % 1000000) * 1000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&sweeper->mutex);
	while (!sweeper->stopping && failure != ETIMEDOUT)
		failure = pthread_cond_timedwait(&sweeper->woken, &sweeper->mutex,
										 &until);
	stopping = sweeper->stopping;
	pthread_mutex_unlock(&sweeper->mutex);
	return !stopping;
}

/* One step; true if there is more to do. */
static bool
sweep(struct sweeper *sweeper, const struct config *config)
{
	request_start(&sweeper->request);
	return call_housekeeping(sweeper->pool, config, &sweeper->request);
}

static void *
run(void *argument)
{
	struct sweeper *sweeper = argument;
	uint64_t	pause = OFF_MS * 1000;

	do
	{
		const struct config *config = atomic_load(sweeper->config);
		uint64_t	started;

		if (config->sweep_interval_ms == 0)
		{
			pause = OFF_MS * 1000;
			continue;
		}
		started = now_micros();
		pause = (uint64_t) config->sweep_interval_ms * 1000;

		/* requests get at least half of the time */
		if (sweep(sweeper, config))
			pause = now_micros() - started;
	} while (rest(sweeper, pause));
	return NULL;
}

struct sweeper *
sweeper_start(_Atomic(struct config *) *config, struct pool *pool)
{
	struct sweeper *sweeper = calloc(1, sizeof(*sweeper));
	pthread_condattr_t attributes;

	if (sweeper == NULL)
		return NULL;
	sweeper->config = config;
	sweeper->pool = pool;
	pthread_mutex_init(&sweeper->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sweeper->woken, &attributes);
	pthread_condattr_destroy(&attributes);
	if (thread_begin(&sweeper->thread, run, sweeper))
		return sweeper;
	pthread_cond_destroy(&sweeper->woken);
	pthread_mutex_destroy(&sweeper->mutex);
	free(sweeper);
	return NULL;
}

void
sweeper_stop(struct sweeper *sweeper)
{
	if (sweeper == NULL)
		return;
	pthread_mutex_lock(&sweeper->mutex);
	sweeper->stopping = true;
	pthread_cond_signal(&sweeper->woken);
	pthread_mutex_unlock(&sweeper->mutex);
	pthread_join(sweeper->thread, NULL);
	pthread_cond_destroy(&sweeper->woken);
	pthread_mutex_destroy(&sweeper->mutex);
	request_free(&sweeper->request);
	free(sweeper);
}
