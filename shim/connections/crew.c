/*
 * The threads of civetweb, begun when there is work for them.
 *
 * civetweb gets a number for a thread in place of its id, and joins it by
 * that.  A number is an address within an array of ours, so that it is no
 * other thread's id.  The first thread begins at once, as it may be one for
 * something else: the others are those of its kind, or of the second's.
 */
#include <stdlib.h>

#include "base/calls.h"
#include "base/thread.h"
#include "connections/crew.h"

struct hand
{
	void	   *(*routine) (void *);
	void	   *argument;
	pthread_t	thread;
	bool		begun;
};

struct crew
{
	pthread_mutex_t *mutex;
	pthread_cond_t called;
	struct hand *hands;
	long		most;
	long		wanted;
	long		recruited;
	long		begun;			/* the first so many of them */
	long		running;		/* neither rest nor wait for their clients */
	long		busy;			/* of these, those with a client */
	long		resting;
	long		calls;			/* to those who rest, not heard yet */
	bool		dismissed;
};

static _Thread_local struct crew *recruiting = NULL;

struct crew *
crew_create(pthread_mutex_t *mutex, long most, long wanted)
{
	struct crew *crew = calloc(1, sizeof(*crew));

	if (crew == NULL)
		return NULL;
	crew->hands = calloc((size_t) most, sizeof(struct hand));
	if (crew->hands == NULL)
	{
		free(crew);
		return NULL;
	}
	crew->mutex = mutex;
	crew->most = most;
	crew->wanted = wanted < most ? wanted : most;
	pthread_cond_init(&crew->called, NULL);
	return crew;
}

/* civetweb asks for 100 KB of stack. */
static int
begin_roomy(pthread_t *thread, const pthread_attr_t *attributes,
			void *(*routine) (void *), void *argument)
{
	pthread_attr_t roomy;
	int			detached = PTHREAD_CREATE_JOINABLE;
	int			failure;

	thread_attributes(&roomy);
	if (attributes != NULL)
		pthread_attr_getdetachstate(attributes, &detached);
	pthread_attr_setdetachstate(&roomy, detached);
	failure = calls_real.pthread_create(thread, &roomy, routine, argument);
	pthread_attr_destroy(&roomy);
	return failure;
}

static int
recruit(pthread_t *thread, const pthread_attr_t *attributes,
		void *(*routine) (void *), void *argument)
{
	struct crew *crew = recruiting;
	struct hand *hand;
	int			failure;

	/* the first one was another kind */
	if (crew->recruited == 1 && crew->most > 1 &&
		routine != crew->hands[0].routine)
		crew->recruited = crew->begun = crew->running = 0;
	if (crew->recruited == crew->most ||
		(crew->recruited > 0 && routine != crew->hands[0].routine))
		return begin_roomy(thread, attributes, routine, argument);
	hand = &crew->hands[crew->recruited++];
	hand->routine = routine;
	hand->argument = argument;
	*thread = (pthread_t) hand;
	if (crew->recruited > 1)
		return 0;
	crew->begun = crew->running = 1;
	failure = begin_roomy(thread, attributes, routine, argument);
	if (failure != 0)
		crew->recruited = crew->begun = crew->running = 0;
	return failure;
}

void
crew_recruit(struct crew *crew, bool on)
{
	static const struct calls calls = {.pthread_create = recruit};

	recruiting = crew;
	calls_set(on ? &calls : NULL);
}

bool
crew_find(const struct crew *crew, pthread_t number, pthread_t *thread)
{
	const struct hand *hand = (const struct hand *) number;
	bool		is_number = hand >= crew->hands &&
		hand < crew->hands + crew->most;

	*thread = is_number ? hand->thread : number;
	return !is_number || hand->begun;
}

static bool
begin(struct crew *crew)
{
	struct hand *hand = &crew->hands[crew->begun];

	if (crew->begun == crew->recruited)
		return false;
	hand->begun = thread_begin(&hand->thread, hand->routine, hand->argument);
	crew->begun += hand->begun;
	return hand->begun;
}

bool
crew_call(struct crew *crew, bool anyway)
{
	if (crew->dismissed || (crew->running >= crew->wanted && !anyway))
		return false;
	if (crew->resting > crew->calls)
	{
		crew->calls++;
		pthread_cond_signal(&crew->called);
	}
	else if (!begin(crew))
		return false;
	crew->running++;
	return true;
}

void
crew_begin(struct crew *crew)
{
	crew->busy++;
}

void
crew_end(struct crew *crew)
{
	crew->busy--;
}

void
crew_wait(struct crew *crew)
{
	crew->busy--;
	crew->running--;
}

void
crew_resume(struct crew *crew)
{
	crew->busy++;
	crew->running++;
}

long
crew_idle(const struct crew *crew)
{
	return crew->running - crew->busy;
}

bool
crew_has_surplus(const struct crew *crew)
{
	return crew->running > crew->wanted && !crew->dismissed;
}

void
crew_rest(struct crew *crew)
{
	crew->running--;
	crew->resting++;
	while (crew->calls == 0 && !crew->dismissed)
		pthread_cond_wait(&crew->called, crew->mutex);
	if (crew->calls > 0)
		crew->calls--;
	crew->resting--;
}

void
crew_dismiss(struct crew *crew)
{
	crew->dismissed = true;
	pthread_cond_broadcast(&crew->called);
}

void
crew_destroy(struct crew *crew)
{
	if (crew == NULL)
		return;
	pthread_cond_destroy(&crew->called);
	free(crew->hands);
	free(crew);
}
