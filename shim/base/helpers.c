#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/helpers.h"
#include "base/thread.h"

/* How long one that is at work is waited for at the end. */
#define END_MICROS 1000000

struct line
{
	struct task *first;
	struct task *last;
	int			count;
};

struct helpers
{
	struct loop *loop;
	pthread_mutex_t mutex;
	pthread_cond_t given;
	pthread_cond_t ended;
	int			most;
	int			count;
	int			idle;
	bool		stopping;
	struct line todo;
	struct line done;
};

static void
add(struct line *line, struct task *task)
{
	task->next = NULL;
	*(line->last ? &line->last->next : &line->first) = task;
	line->last = task;
	line->count++;
}

static struct task *
take(struct line *line)
{
	struct task *task = line->first;

	if (task == NULL)
		return NULL;
	line->first = task->next;
	if (line->first == NULL)
		line->last = NULL;
	line->count--;
	return task;
}

static void *
help(void *argument)
{
	struct helpers *helpers = argument;

	pthread_mutex_lock(&helpers->mutex);
	for (;;)
	{
		struct task *task;

		helpers->idle++;
		while (helpers->todo.first == NULL && !helpers->stopping)
			pthread_cond_wait(&helpers->given, &helpers->mutex);
		helpers->idle--;
		if (helpers->stopping)
			break;
		task = take(&helpers->todo);
		pthread_mutex_unlock(&helpers->mutex);
		task->run(task);
		pthread_mutex_lock(&helpers->mutex);
		add(&helpers->done, task);
		if (!helpers->stopping)
			loop_wake(helpers->loop);
	}
	helpers->count--;
	pthread_cond_signal(&helpers->ended);
	pthread_mutex_unlock(&helpers->mutex);
	return NULL;
}

struct helpers *
helpers_create(struct loop *loop, int most)
{
	struct helpers *helpers = calloc(1, sizeof(*helpers));
	pthread_condattr_t attributes;

	if (helpers == NULL)
		return NULL;
	helpers->loop = loop;
	helpers->most = most;
	pthread_mutex_init(&helpers->mutex, NULL);
	pthread_cond_init(&helpers->given, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&helpers->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	return helpers;
}

/*
 * Sees to it that there is somebody for one more task.  An idle thread that
 * was called, but has not come yet, has its task among those that wait.  The
 * mutex is held.
 */
static bool
has_hands(struct helpers *helpers)
{
	pthread_t	thread;

	if (helpers->todo.count >= helpers->idle &&
		helpers->count < helpers->most &&
		thread_begin(&thread, help, helpers))
	{
		pthread_detach(thread);
		helpers->count++;
	}
	return helpers->count > 0;
}

bool
helpers_give(struct helpers *helpers, struct task *task)
{
	bool		given;

	pthread_mutex_lock(&helpers->mutex);
	given = has_hands(helpers);
	if (given)
	{
		add(&helpers->todo, task);
		pthread_cond_signal(&helpers->given);
	}
	pthread_mutex_unlock(&helpers->mutex);
	return given;
}

static struct task *
take_done(struct helpers *helpers)
{
	struct task *task;

	pthread_mutex_lock(&helpers->mutex);
	task = take(&helpers->done);
	pthread_mutex_unlock(&helpers->mutex);
	return task;
}

void
helpers_collect(struct helpers *helpers)
{
	struct task *task;

	while ((task = take_done(helpers)) != NULL)
		task->done(task);
}

bool
helpers_destroy(struct helpers *helpers)
{
	struct timespec until = clock_time(now_micros() + END_MICROS);
	struct task *task;
	int			failure = 0;

	if (helpers == NULL)
		return true;
	pthread_mutex_lock(&helpers->mutex);
	helpers->stopping = true;
	pthread_cond_broadcast(&helpers->given);
	while (helpers->count > 0 && failure == 0)
		failure = pthread_cond_timedwait(&helpers->ended, &helpers->mutex,
										 &until);
	pthread_mutex_unlock(&helpers->mutex);
	if (failure != 0)
		return false;
	while ((task = take(&helpers->todo)) != NULL ||
		   (task = take(&helpers->done)) != NULL)
		task->done(task);
	pthread_cond_destroy(&helpers->given);
	pthread_cond_destroy(&helpers->ended);
	pthread_mutex_destroy(&helpers->mutex);
	free(helpers);
	return true;
}
