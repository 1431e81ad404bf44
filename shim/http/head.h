/*
 * The head of a request: what its headers mean to the shim, and nothing
 * ambiguous.
 *
 * Everything about a head that two readers could understand differently is
 * refused: lengths, framing, repeated credentials.  How its bytes have to look
 * is parse.h's.
 */
#ifndef HEAD_H
#define HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"
#include "base/refusal.h"

/* No configuration allows more. */
#define HEAD_HEADERS 64

#define METHOD_SIZE 33

/* Which rules a target falls under, by its first segment. */
enum request_area
{
	AREA_API,
	AREA_ACCOUNTS,				/* /auth and /manage */
	AREA_OTHER
};

/* The headers that mean something to the shim. */
enum known_header
{
	HEADER_HOST,
	HEADER_CONTENT_LENGTH,
	HEADER_CONTENT_ENCODING,
	HEADER_TRANSFER_ENCODING,
	HEADER_EXPECT,
	HEADER_UPGRADE,
	HEADER_CONNECTION,
	HEADER_REQUEST_ID,
	KNOWN_HEADER_COUNT,
	HEADER_OTHER
};

/* One header, its value without the blanks around it; neither ends in NUL. */
struct header
{
	const char *name;
	const char *value;
	size_t		name_length;
	size_t		value_length;
};

/* A head as far as it was read; it points into the bytes of its client. */
struct head
{
	char		method[METHOD_SIZE];	/* empty: it is not known */
	const char *target;			/* path and query; NULL: not known */
	size_t		target_length;
	const char *authority;		/* of the absolute form, or NULL */
	size_t		authority_length;
	size_t		size;			/* in bytes */
	bool		is_http_11;
	enum request_area area;
	int			count;
	struct header headers[HEAD_HEADERS];
	const struct header *known[KNOWN_HEADER_COUNT];
	bool		repeated[KNOWN_HEADER_COUNT];
	bool		is_chunked;
	bool		expects;		/* a word before it sends the body */
	size_t		length;			/* of the body, unless it is chunked */
	size_t		limit;			/* of that */
};

/* Begins with nothing known. */
extern void head_start(struct head *head);

/*
 * Whether a path is the beginning of a target's, and what follows it, of
 * "length" bytes; NULL: it is not.  Percent-escapes count as what they stand
 * for, because they do so behind entityapi.handle(), too.
 */
extern const char *head_path_rest(const char *target, size_t length,
								  const char *path);

/*
 * Looks what the headers say: whose request it is to be, how long its body is
 * and may be.  Returns why they are refused, or NULL.
 */
extern const struct refusal *head_check(struct head *head,
										const struct config *config);

/* Whether client and framing allow another request on the connection. */
extern bool head_allows_reuse(const struct head *head);

/* Whether a header has that name, or that value, in any case. */
extern bool header_is_named(const struct header *header, const char *name);
extern bool header_is(const struct header *header, const char *value);

#endif							/* HEAD_H */
