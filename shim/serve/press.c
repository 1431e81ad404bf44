/*
 * Large answers are compressed by threads of their own, beside the loop.
 *
 * A thread is begun when an answer comes and none is free, up to a few.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"
#include "serve/press.h"

/* What is shorter is done at once. */
#define LEAST_BYTES (16 * 1024)

#define MOST_THREADS 4

struct line
{
	struct exchange *first;
	struct exchange *last;
};

struct press
{
	void		(*pressed) (void *argument);
	void	   *argument;
	pthread_mutex_t mutex;
	pthread_cond_t given;
	pthread_t	threads[MOST_THREADS];
	int			count;
	int			idle;
	bool		stopping;
	struct line todo;
	struct line done;
};

static void
add(struct line *line, struct exchange *exchange)
{
	exchange->next = NULL;
	*(line->last ? &line->last->next : &line->first) = exchange;
	line->last = exchange;
}

static struct exchange *
take(struct line *line)
{
	struct exchange *exchange = line->first;

	if (exchange == NULL)
		return NULL;
	line->first = exchange->next;
	if (line->first == NULL)
		line->last = NULL;
	return exchange;
}

static void *
run(void *argument)
{
	struct press *press = argument;

	pthread_mutex_lock(&press->mutex);
	for (;;)
	{
		struct exchange *exchange;

		press->idle++;
		while (press->todo.first == NULL && !press->stopping)
			pthread_cond_wait(&press->given, &press->mutex);
		press->idle--;
		if (press->stopping)
			break;
		exchange = take(&press->todo);
		pthread_mutex_unlock(&press->mutex);
		exchange_compress(exchange, &exchange->compressed);
		pthread_mutex_lock(&press->mutex);
		add(&press->done, exchange);
		press->pressed(press->argument);
	}
	pthread_mutex_unlock(&press->mutex);
	return NULL;
}

struct press *
press_create(void (*pressed) (void *argument), void *argument)
{
	struct press *press = calloc(1, sizeof(*press));

	if (press == NULL)
		return NULL;
	press->pressed = pressed;
	press->argument = argument;
	pthread_mutex_init(&press->mutex, NULL);
	pthread_cond_init(&press->given, NULL);
	return press;
}

bool
press_give(struct press *press, struct exchange *exchange)
{
	bool		taken;

	if (exchange->answer.length < LEAST_BYTES ||
		!extra_prefers_gzip(&exchange->request.extra,
							exchange->answer.length))
		return false;
	pthread_mutex_lock(&press->mutex);
	if (press->idle == 0 && press->count < MOST_THREADS &&
		thread_begin(&press->threads[press->count], run, press))
		press->count++;
	taken = press->count > 0;
	if (taken)
	{
		add(&press->todo, exchange);
		pthread_cond_signal(&press->given);
	}
	pthread_mutex_unlock(&press->mutex);
	return taken;
}

struct exchange *
press_take(struct press *press)
{
	struct exchange *exchange;

	pthread_mutex_lock(&press->mutex);
	exchange = take(&press->done);
	pthread_mutex_unlock(&press->mutex);
	return exchange;
}

void
press_destroy(struct press *press, void (*rest) (struct exchange *exchange))
{
	struct exchange *exchange;

	if (press == NULL)
		return;
	pthread_mutex_lock(&press->mutex);
	press->stopping = true;
	pthread_cond_broadcast(&press->given);
	pthread_mutex_unlock(&press->mutex);
	while (press->count > 0)
		pthread_join(press->threads[--press->count], NULL);
	while ((exchange = take(&press->todo)) != NULL)
		rest(exchange);
	while ((exchange = take(&press->done)) != NULL)
		rest(exchange);
	pthread_cond_destroy(&press->given);
	pthread_mutex_destroy(&press->mutex);
	free(press);
}
