/*-------------------------------------------------------------------------
 *
 * wire.c
 *	  The bytes of a client's connection, as they come.
 *
 * civetweb reads chunked bodies each version in another way (1.15 refuses
 * extensions of a chunk and leaves trailers behind, 1.16 skips both unseen) and
 * gives no way to the bytes.  It gets them by recv(), though, and that of the
 * program goes before that of the C library.  So we see which socket a thread
 * serves, where the buffer for heads begins, and how much has come.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "log.h"
#include "wire.h"

/* The connection that this thread serves. */
static _Thread_local struct
{
	bool		open;
	int			socket;			/* -1: nothing has come yet */
	const char *buffer;			/* where civetweb puts heads */
	uint64_t	received;
	uint64_t	consumed;		/* by requests before this one */
	bool		known;			/* that holds */
} wire;

/*
 * The first bytes that a thread gets for a connection are those of a head; no
 * other socket is read from before it has come.
 */
ssize_t
recv(int socket, void *bytes, size_t size, int flags)
{
	ssize_t		got = recvfrom(socket, bytes, size, flags, NULL, NULL);

	if (got > 0 && wire.open)
	{
		if (wire.socket < 0)
		{
			wire.socket = socket;
			wire.buffer = bytes;
		}
		if (wire.socket == socket)
			wire.received += (uint64_t) got;
	}
	return got;
}

void
wire_begin(void)
{
	wire.open = true;
	wire.socket = -1;
	wire.buffer = NULL;
	wire.received = 0;
	wire.consumed = 0;
	wire.known = true;
}

void
wire_next(void)
{
	/* until wire_note() */
	wire.open = wire.known;
	wire.known = false;
}

void
wire_note(const char *head_end, size_t body_length)
{
	wire.consumed += (uint64_t) (head_end - wire.buffer) + body_length;
	wire.known = wire.open;
}

bool
wire_rest(const char *head_end, const char **rest, size_t *length)
{
	uint64_t	head;

	if (!wire.open || wire.socket < 0 || head_end < wire.buffer)
		return false;
	head = wire.consumed + (uint64_t) (head_end - wire.buffer);
	if (head > wire.received)
		return false;
	*rest = head_end;
	*length = (size_t) (wire.received - head);
	return true;
}

long
wire_read(char *bytes, size_t size, uint64_t deadline)
{
	struct pollfd ready = {.fd = wire.socket, .events = POLLIN};

	for (;;)
	{
		uint64_t	now = now_micros();
		ssize_t		got;

		if (now >= deadline)
			return -1;
		if (poll(&ready, 1, (int) ((deadline - now) / 1000) + 1) <= 0)
			continue;
		got = recv(wire.socket, bytes, size, MSG_DONTWAIT);
		if (got >= 0)
			return got;
		if (errno != EAGAIN && errno != EINTR)
			return 0;
	}
}
