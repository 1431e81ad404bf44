#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"

/* Events that are read at once. */
#define BATCH 128

struct loop
{
	int			epoll;
	struct loop_source wake;	/* an eventfd, told by the edge, never read */
	struct epoll_event events[BATCH];
	int			next;			/* of these, which is to be called */
	int			count;
};

static void
wake_up(struct loop_source *source, uint32_t events)
{
	(void) source;
	(void) events;
}

struct loop *
loop_create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake.file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->wake.happened = wake_up;
	if (loop->epoll >= 0 && loop->wake.file >= 0 &&
		loop_watch(loop, &loop->wake, EPOLLIN | EPOLLET))
		return loop;
	loop_destroy(loop);
	return NULL;
}

void
loop_destroy(struct loop *loop)
{
	if (loop == NULL)
		return;
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->wake.file >= 0)
		close(loop->wake.file);
	free(loop);
}

bool
loop_watch(struct loop *loop, struct loop_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events,.data.ptr = source};

	return epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->file, &event) == 0 ||
		epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->file, &event) == 0;
}

void
loop_forget(struct loop *loop, struct loop_source *source)
{
	int			i;

	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->file, NULL);
	for (i = loop->next; i < loop->count; i++)
	{
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
	}
}

void
loop_wake(struct loop *loop)
{
	static const uint64_t one = 1;

	if (write(loop->wake.file, &one, sizeof(one)) < 0)
		log_event(LOG_ERROR, "loop", NULL, NULL,
				  "cannot write to an eventfd");
}

void
loop_turn(struct loop *loop, int wait_ms)
{
	loop->count = epoll_wait(loop->epoll, loop->events, BATCH, wait_ms);
	for (loop->next = 0; loop->next < loop->count;)
	{
		const struct epoll_event *event = &loop->events[loop->next++];
		struct loop_source *source = event->data.ptr;

		if (source != NULL)
			source->happened(source, event->events);
	}
	loop->next = loop->count = 0;
}
