/*
 * The head of a request: its lines and headers, nothing ambiguous.
 *
 * Everything about a head that two readers could understand differently is
 * refused: lengths, framing, repeated credentials, folded lines, more headers
 * than the server library keeps.
 */
#ifndef HEAD_H
#define HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include <civetweb.h>

#include "base/config.h"
#include "base/refusal.h"

/* The headers that mean something to the shim. */
enum known_header
{
	HEADER_HOST,
	HEADER_CONTENT_LENGTH,
	HEADER_TRANSFER_ENCODING,
	HEADER_EXPECT,
	HEADER_UPGRADE,
	HEADER_CONNECTION,
	HEADER_REQUEST_ID,
	KNOWN_HEADER_COUNT,
	HEADER_OTHER
};

/* One header, its value without the spaces at its end. */
struct header
{
	const char *name;
	const char *value;
	size_t		name_length;
	size_t		value_length;
};

/* All of them; they point into civetweb's buffer. */
struct head
{
	struct header headers[MG_MAX_HEADERS];
	int			count;
	const struct header *known[KNOWN_HEADER_COUNT];
	bool		repeated[KNOWN_HEADER_COUNT];
	bool		is_chunked;
	long long	length;			/* of the body, unless it is chunked */
};

/*
 * Reads the lines of a head that civetweb has parsed and wire.h has seen.
 * Returns why they are refused, or NULL.
 */
extern const struct refusal *head_read(struct head *head,
									   const struct mg_request_info *info,
									   const struct config *config);

/* Where a head ends that has been read without a refusal. */
extern const char *head_end(const struct mg_request_info *info);

/* RFC 9112, section 3.2: exactly one host, a name and perhaps a port. */
extern const struct refusal *head_check_host(const struct head *head,
											 bool is_http_11);

/*
 * RFC 9112, section 6: how the body is framed.  Sets is_chunked and length.
 */
extern const struct refusal *head_check_framing(struct head *head,
												const char *method,
												bool is_http_11);

/* Whether client and framing allow another request on the connection. */
extern bool head_allows_reuse(const struct head *head, bool is_http_11);

/* Whether a header has that value, in any case. */
extern bool header_is(const struct header *header, const char *value);

#endif							/* HEAD_H */
