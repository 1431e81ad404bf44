/*
 * The bytes of a client's connection, as they come.
 *
 * civetweb reads chunked bodies each version in another way (1.15 refuses
 * extensions of a chunk and leaves trailers behind, 1.16 skips both unseen)
 * and gives no way to the bytes.  It gets them by recv(), though, and its
 * threads have that from here.  So we see which socket a thread serves, where
 * the buffer for heads begins, and how much has come.  And we see how lines of
 * a head end, before civetweb overwrites that.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/calls.h"
#include "base/clock.h"
#include "connections/wire.h"

/* The connection that this thread serves. */
static _Thread_local struct
{
	bool		open;
	int			socket;			/* -1: nothing has come yet */
	const char *buffer;			/* where civetweb puts heads */
	uint64_t	received;
	uint64_t	consumed;		/* by requests before this one */
	bool		known;			/* that holds */
	uint64_t	checked;		/* so much has been looked at for line ends */
	bool		broken;			/* and the last of it is a wrong one */
	char		last;			/* byte of that */
	uint64_t	line;			/* where the line begins that is looked at */
	bool		begun;			/* a line before it was not empty */
	uint64_t	head;			/* where the head ends; 0: not known yet */
	size_t		place;			/* of a value that is not whole */
	const char *value;			/* all of it; NULL: there is none */
	size_t		value_length;
} wire;

/* The first CR or LF, or the end. */
static const char *
next_end(const char *at, const char *end)
{
	const char *feed = memchr(at, '\n', (size_t) (end - at));
	const char *stop = feed != NULL ? feed : end;
	const char *back = memchr(at, '\r', (size_t) (stop - at));

	return back != NULL ? back : stop;
}

/*
 * A line has ended here.  The first empty one is the end of the head, but for
 * those that come before the request itself (RFC 9112, section 2.2).
 */
static void
end_line(uint64_t here)
{
	bool		is_empty = here == wire.line + 2;

	if (is_empty && wire.begun && wire.head == 0)
		wire.head = here;
	wire.begun = wire.begun || !is_empty;
	wire.line = here;
}

/*
 * Looks how lines end.  Stops at the first CR or LF that has not the other at
 * its side: if that is not in the head, nothing in the head is.
 */
static void
check_lines(const char *bytes, size_t size)
{
	const uint64_t before = wire.checked;
	const char *end = bytes + size;
	const char *at = bytes;

	while (at < end && !wire.broken)
	{
		if (wire.last != '\r')
			at = next_end(at, end);
		if (at == end)
		{
			wire.last = end[-1];
			break;
		}
		wire.broken = (wire.last == '\r') != (*at == '\n');
		wire.last = *at++;
		if (wire.last == '\n' && !wire.broken)
			end_line(before + (uint64_t) (at - bytes));
	}
	wire.checked = before + (uint64_t) (at - bytes);
}

/* Lines are looked at from here on. */
static void
start_lines(uint64_t here)
{
	wire.checked = here;
	wire.broken = false;
	wire.last = '\0';
	wire.line = here;
	wire.begun = false;
	wire.head = 0;
}

/*
 * The first bytes that a thread gets for a connection are those of a head; no
 * other socket is read from before it has come.
 */
void
wire_received(int socket, const char *bytes, size_t size)
{
	if (!wire.open)
		return;
	if (wire.socket < 0)
	{
		wire.socket = socket;
		wire.buffer = bytes;
	}
	if (wire.socket == socket)
	{
		/* not before the head has come, and not of a body that came later */
		if (wire.known)
			check_lines(bytes, size);
		wire.received += (uint64_t) size;
	}
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
	wire.value = NULL;
	start_lines(0);
}

void
wire_shorten(size_t place, const char *value, size_t length)
{
	wire.place = place;
	wire.value = value;
	wire.value_length = length;
}

bool
wire_is_shortened(void)
{
	return wire.value != NULL;
}

bool
wire_lengthen(const char **value, size_t *length)
{
	if (wire.value == NULL || *value != wire.buffer + wire.place)
		return false;
	*value = wire.value;
	*length = wire.value_length;
	return true;
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

	/* What there is already of the next one lies behind this one. */
	start_lines(wire.consumed);
	if (wire.known && wire.received > wire.consumed)
		check_lines(head_end + body_length,
					(size_t) (wire.received - wire.consumed));
}

bool
wire_lines_are_good(const char *head_end)
{
	uint64_t	head;

	if (!wire.open || wire.socket < 0 || head_end < wire.buffer)
		return false;
	head = wire.consumed + (uint64_t) (head_end - wire.buffer);
	return wire.head == head;
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

bool
wire_unparsed(size_t *bytes)
{
	*bytes = wire.known && wire.received > wire.consumed ?
		(size_t) (wire.received - wire.consumed) : 0;
	return wire.open && wire.known;
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
		got = calls_real.recv(wire.socket, bytes, size, MSG_DONTWAIT);
		if (got > 0)
			wire_received(wire.socket, bytes, (size_t) got);
		if (got >= 0)
			return got;
		if (errno != EAGAIN && errno != EINTR)
			return 0;
	}
}
