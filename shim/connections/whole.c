/*
 * Whether what a client has sent is one request, and all of it.
 *
 * Nothing is decided here but which thread gets it: what is wrong with a
 * request, those find who read it (head.c).
 */
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "connections/whole.h"

/* Of what the shim answers by itself this is not. */
#define HEALTH "/actuator/health"

/* Digits of the length of a body that may come here. */
#define LENGTH_DIGITS 6

/* So much of a credential stays. */
#define KEPT_OF_CREDENTIAL 8

/* A piece of the text. */
struct piece
{
	const char *start;
	size_t		length;
};

/* Of which headers there has been one, and what the first says. */
struct seen
{
	bool		length;
	bool		connection;
	size_t		body;			/* so long */
};

static bool
is(struct piece piece, const char *word)
{
	return piece.length == strlen(word) &&
		strncasecmp(piece.start, word, piece.length) == 0;
}

static bool
is_among(struct piece piece, const char *const *words)
{
	while (*words != NULL && !is(piece, *words))
		words++;
	return *words != NULL;
}

/* Whether a target is, or begins with, that path. */
static bool
is_below(const char *target, size_t length, const char *path)
{
	const size_t size = strlen(path);

	return length > size && memcmp(target, path, size) == 0 &&
		strchr("/? ", target[size]) != NULL;
}

/*
 * A method with an answer that is not the shim's own, and a target whose
 * requests wait for nothing but the database: passwords are hashed, files of
 * the console are large.
 */
static bool
is_plain_line(struct piece line)
{
	static const char *const methods[] =
	{"GET", "POST", "PATCH", "PUT", "DELETE", NULL};
	static const char *const others[] =
	{"", "auth", "manage", "actuator", "console", NULL};
	static const char version[] = " HTTP/1.1";
	const size_t tail = sizeof(version) - 1;
	const char *space = memchr(line.start, ' ', line.length);
	struct piece method;
	struct piece folder;

	if (space == NULL || line.length < tail ||
		memcmp(line.start + line.length - tail, version, tail) != 0)
		return false;
	method = (struct piece) {line.start, (size_t) (space - line.start)};
	if (!is_among(method, methods) || line.length < method.length + 2 + tail ||
		space[1] != '/')
		return false;
	folder.start = space + 2;
	folder.length = 0;
	while (strchr("/? %", folder.start[folder.length]) == NULL)
		folder.length++;
	return is_below(space + 1, line.length - method.length - 1, HEALTH) ||
		(folder.start[folder.length] != '%' && folder.start[0] != '.' &&
		 !is_among(folder, others));
}

/* Takes the length of the body from a value; false if it is no plain one. */
static bool
read_length(struct piece value, size_t *length)
{
	size_t		i;

	*length = 0;
	for (i = 0; i < value.length; i++)
	{
		if (value.start[i] < '0' || value.start[i] > '9')
			return false;
		*length = *length * 10 + (size_t) (value.start[i] - '0');
	}
	return value.length > 0 && value.length <= LENGTH_DIGITS;
}

/* Two of a kind are for who reads them. */
static bool
take_once(bool *taken)
{
	bool		again = *taken;

	*taken = true;
	return !again;
}

/* Its end can be left out if all of it is as it looks. */
static void
find_rest(struct piece value, struct whole_rest *rest)
{
	if (value.length <= KEPT_OF_CREDENTIAL || *value.start == ' ' ||
		!text_is_printable(value.start, value.length))
		return;
	rest->value = value.start;
	rest->value_length = value.length;
	rest->length = value.length - KEPT_OF_CREDENTIAL;
}

/* Reads a header; false if it says that this is no plain request. */
static bool
read_header(struct piece line, struct seen *seen, struct whole_rest *rest)
{
	static const char *const odd[] =
	{"transfer-encoding", "expect", "upgrade", NULL};
	const char *colon = memchr(line.start, ':', line.length);
	struct piece name;
	struct piece value;

	if (colon == NULL)
		return false;
	name = (struct piece) {line.start, (size_t) (colon - line.start)};
	value = (struct piece) {colon + 1, line.length - name.length - 1};
	while (value.length > 0 && *value.start == ' ')
	{
		value.start++;
		value.length--;
	}
	if (is(name, "content-length"))
		return take_once(&seen->length) && read_length(value, &seen->body);
	if (is(name, "connection"))
		return take_once(&seen->connection) && is(value, "keep-alive");
	if (is(name, "authorization") && rest->length == 0)
		find_rest(value, rest);
	return !is_among(name, odd);
}

/* The line at a place, without its end; false if it has no good one. */
static bool
next_line(const char *at, const char *end, struct piece *line)
{
	const char *feed = memchr(at, '\n', (size_t) (end - at));

	if (feed == NULL || feed == at || feed[-1] != '\r')
		return false;
	*line = (struct piece) {at, (size_t) (feed - at) - 1};
	return memchr(at, '\r', line->length) == NULL;
}

bool
whole_request(const char *bytes, size_t size, struct whole_rest *rest)
{
	const char *end = bytes + size;
	const char *at = bytes;
	struct piece line;
	struct seen seen = {0};

	memset(rest, 0, sizeof(*rest));
	if (!next_line(at, end, &line) || !is_plain_line(line))
		return false;
	for (;;)
	{
		at = line.start + line.length + 2;
		if (!next_line(at, end, &line))
			return false;
		if (line.length == 0)
			return (size_t) (end - at - 2) == seen.body;
		if (!read_header(line, &seen, rest))
			return false;
	}
}
