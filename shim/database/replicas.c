/*
 * Each standby has a thread that compares it with the primary, over two
 * connections of its own.  The order is what makes it right: first it notes
 * the time and how many requests to /auth and /manage have been answered, then
 * it asks the primary for the end of its log, and when the standby has
 * replayed that, it knows all that was committed before.  Requests only read
 * what the thread has noted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "database/replica_watch.h"
#include "database/replicas.h"

/* Marks of sessions; two that share one are both sent to the primary. */
#define MARKS 65536

/* How often a standby is compared, and after a failure. */
#define WATCH_MS 100
#define WATCH_FAILED_MS 1000

/* How long those that compare are waited for at the end. */
#define END_MICROS 1000000

/* A personal key's use is written down by the primary, once a minute. */
#define KEY_MICROS 50000000

struct replica
{
	struct replicas *owner;
	int			number;			/* in the configuration, from 1 */
	char	   *conninfo;
	struct pool *pool;
	atomic_bool usable;
	atomic_uint_fast64_t fresh_at;	/* it has what was committed then */
	atomic_uint_fast64_t applied;	/* ... and these account requests */
};

struct replicas
{
	const struct config *config;	/* as it was at the start */
	int			count;
	struct replica list[MAX_REPLICAS];
	unsigned	next;			/* whose turn it is */
	atomic_uint_fast64_t accounts;	/* /auth and /manage, answered */
	atomic_uint_fast64_t *marks;	/* until when to ask the primary */
	atomic_uint_fast64_t *keys; /* when a key last asked the primary */
	pthread_mutex_t mutex;		/* guards all below */
	pthread_cond_t wake;
	pthread_cond_t ended;
	int			watching;		/* threads */
	bool		ending;
};

/* Waits for the time, or less if there is something to look at. */
static bool
pause_watch(struct replicas *replicas, const struct replica *replica,
			long milliseconds)
{
	struct timespec until;
	int			failure = 0;
	bool		ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += milliseconds % 1000 * 1000000;
	until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&replicas->mutex);
	while (!replicas->ending && failure == 0 &&
		   (!atomic_load(&replica->usable) ||
			atomic_load(&replica->applied) ==
			atomic_load(&replicas->accounts)))
		failure = pthread_cond_timedwait(&replicas->wake, &replicas->mutex,
										 &until);
	ending = replicas->ending;
	pthread_mutex_unlock(&replicas->mutex);
	return !ending;
}

/* The life of a thread: compare, note, wait. */
static void *
watch(void *argument)
{
	struct replica *replica = argument;
	struct replicas *replicas = replica->owner;
	struct replica_watch *state = replica_watch_create(replicas->config,
													   replica->conninfo,
													   replica->number);
	long		wait_ms = WATCH_MS;

	while (state != NULL && pause_watch(replicas, replica, wait_ms))
	{
		uint64_t	now = now_micros();
		uint64_t	accounts = atomic_load(&replicas->accounts);
		enum watch_outcome outcome = replica_watch_compare(state);

		if (outcome == WATCH_REACHED)
		{
			atomic_store(&replica->fresh_at, now);
			atomic_store(&replica->applied, accounts);
		}
		if (outcome != WATCH_BEHIND)
			atomic_store(&replica->usable, outcome == WATCH_REACHED);
		/* what lags is asked again soon, but not all the time */
		wait_ms = outcome == WATCH_FAILED ? WATCH_FAILED_MS : WATCH_MS;
	}
	atomic_store(&replica->usable, false);
	replica_watch_free(state);
	pthread_mutex_lock(&replicas->mutex);
	replicas->watching--;
	pthread_cond_signal(&replicas->ended);
	pthread_mutex_unlock(&replicas->mutex);
	return NULL;
}

/* One item of the list, cut at newlines and semicolons. */
static bool
add_replica(struct replicas *replicas, struct loop *loop, const char *start,
			size_t length, pool_happened happened, void *argument)
{
	struct replica *replica = &replicas->list[replicas->count];

	if (replicas->count == MAX_REPLICAS)
		return false;
	replica->owner = replicas;
	replica->number = replicas->count + 1;
	replica->conninfo = strndup(start, length);
	if (replica->conninfo == NULL)
		return false;
	replicas->count++;
	replica->pool = pool_create(loop, replicas->config, SESSION_STANDBY,
								replica->conninfo, happened, argument);
	return replica->pool != NULL;
}

struct replicas *
replicas_create(struct loop *loop, const struct config *config,
				pool_happened happened, void *argument)
{
	struct replicas *replicas = calloc(1, sizeof(*replicas));
	pthread_condattr_t attributes;
	const char *p = config->replicas;

	if (replicas == NULL)
		return NULL;
	replicas->config = config;
	pthread_mutex_init(&replicas->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&replicas->wake, &attributes);
	pthread_cond_init(&replicas->ended, &attributes);
	pthread_condattr_destroy(&attributes);

	for (p += strspn(p, REPLICA_SEPARATORS); *p != '\0';
		 p += strspn(p, REPLICA_SEPARATORS))
	{
		size_t		length = strcspn(p, ";\n");

		if (!add_replica(replicas, loop, p, length, happened, argument))
		{
			replicas_destroy(replicas, NULL, NULL);
			return NULL;
		}
		p += length;
	}
	if (replicas->count == 0)
		return replicas;

	replicas->marks = calloc(MARKS, sizeof(*replicas->marks));
	replicas->keys = calloc(MARKS, sizeof(*replicas->keys));
	if (replicas->marks == NULL || replicas->keys == NULL)
	{
		replicas_destroy(replicas, NULL, NULL);
		return NULL;
	}
	return replicas;
}

void
replicas_start(struct replicas *replicas)
{
	pthread_t	thread;
	int			i;

	pthread_mutex_lock(&replicas->mutex);
	for (i = 0; i < replicas->count; i++)
	{
		if (!thread_begin(&thread, watch, &replicas->list[i]))
			continue;
		pthread_detach(thread);
		replicas->watching++;
	}
	pthread_mutex_unlock(&replicas->mutex);
}

int
replicas_count(const struct replicas *replicas)
{
	return replicas->count;
}

struct pool *
replicas_pool(const struct replicas *replicas, int number)
{
	return replicas->list[number].pool;
}

/*
 * Ends the threads that compare.  False if one is at work that may never end:
 * a name server that hangs keeps to no limit.
 */
static bool
stop_watching(struct replicas *replicas)
{
	struct timespec until = clock_time(now_micros() + END_MICROS);
	int			failure = 0;

	pthread_mutex_lock(&replicas->mutex);
	replicas->ending = true;
	pthread_cond_broadcast(&replicas->wake);
	while (replicas->watching > 0 && failure == 0)
		failure = pthread_cond_timedwait(&replicas->ended, &replicas->mutex,
										 &until);
	pthread_mutex_unlock(&replicas->mutex);
	return failure == 0;
}

bool
replicas_destroy(struct replicas *replicas, pool_rest rest, void *argument)
{
	bool		ended;
	int			i;

	if (replicas == NULL)
		return true;
	ended = stop_watching(replicas);
	for (i = 0; i < replicas->count; i++)
		ended &= pool_destroy(replicas->list[i].pool, rest, argument);
	if (!ended)
		return false;
	for (i = 0; i < replicas->count; i++)
		free(replicas->list[i].conninfo);
	pthread_cond_destroy(&replicas->wake);
	pthread_cond_destroy(&replicas->ended);
	pthread_mutex_destroy(&replicas->mutex);
	free(replicas->marks);
	free(replicas->keys);
	free(replicas);
	return true;
}

static bool
is_read(const struct request *request)
{
	return request->is_head || strcmp(request->method, "GET") == 0;
}

/*
 * A key that has not asked the primary for a while does so, because a standby
 * cannot write down that it was used.
 */
static bool
key_is_due(struct replicas *replicas, const struct request *request,
		   uint64_t now)
{
	atomic_uint_fast64_t *asked =
		&replicas->keys[request->credential % MARKS];

	if (!request->has_key ||
		(atomic_load(asked) != 0 && now < atomic_load(asked) + KEY_MICROS))
		return false;
	atomic_store(asked, now);
	return true;
}

int
replicas_choose(struct replicas *replicas, const struct request *request)
{
	const struct config *config = replicas->config;
	uint64_t	lag = (uint64_t) config->replica_max_lag_ms * 1000;
	uint64_t	now = now_micros();
	uint64_t	accounts = atomic_load(&replicas->accounts);
	unsigned	first;
	int			i;

	if (replicas->count == 0 || request->area != AREA_API ||
		!is_read(request) ||
		now < atomic_load(&replicas->marks[request->credential % MARKS]) ||
		key_is_due(replicas, request, now))
		return -1;
	first = replicas->next++;
	for (i = 0; i < replicas->count; i++)
	{
		int			number = (int) ((first + (unsigned) i) %
									(unsigned) replicas->count);
		const struct replica *replica = &replicas->list[number];

		if (atomic_load(&replica->usable) &&
			now <= atomic_load(&replica->fresh_at) + lag &&
			atomic_load(&replica->applied) >= accounts)
			return number;
	}
	return -1;
}

void
replicas_lost(struct replicas *replicas, int number)
{
	atomic_store(&replicas->list[number].usable, false);
}

/*
 * Whether a request may have ended what a credential can do.  A login that
 * fails does not; anybody can make any number of these, and would have the
 * standbys left out by them.
 */
static bool
may_revoke(const struct request *request, const struct refusal *refusal,
		   const struct answer *answer)
{
	bool		failed = refusal == NULL && answer->status >= 400 &&
		answer->status < 500;

	return request->area == AREA_ACCOUNTS &&
		!(request->lane == LANE_LOGIN && failed);
}

/*
 * Something was written, or may have been: this session reads it from the
 * primary, and if it was about accounts, everybody does until the standbys
 * have it.  This comes before the answer goes out.
 */
static void
note_write(struct replicas *replicas, const struct request *request,
		   bool revokes)
{
	atomic_store(&replicas->marks[request->credential % MARKS],
				 now_micros() +
				 (uint64_t) replicas->config->read_your_writes_ms * 1000);
	if (!revokes)
		return;
	pthread_mutex_lock(&replicas->mutex);
	atomic_fetch_add(&replicas->accounts, 1);
	pthread_cond_broadcast(&replicas->wake);
	pthread_mutex_unlock(&replicas->mutex);
}

void
replicas_note(struct replicas *replicas, const struct request *request,
			  const struct refusal *refusal, const struct answer *answer)
{
	if (replicas->count > 0 && !is_read(request))
		note_write(replicas, request,
				   may_revoke(request, refusal, answer));
}
