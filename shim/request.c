/*-------------------------------------------------------------------------
 *
 * request.c
 *	  One HTTP request, checked, as entityapi.handle() wants it.
 *
 * civetweb 1.15 parses the head in place: it overwrites the ends of words and
 * lines with NULs and leaves everything else where it was.  The distances
 * between its pointers therefore tell what stood between them, which is how
 * folded lines, bare line feeds and spaces before a colon are found.
 *
 *-------------------------------------------------------------------------
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "log.h"
#include "request.h"

/*
 * A call of mg_read() that waits for the network ends only when all bytes
 * asked for are there, however slowly they drip.  Small slices let us look at
 * the clock in between.
 */
#define SLICE 16

/* How much of an unwanted body is read, and for how long. */
#define DISCARD_BYTES (4 * 1024 * 1024)
#define DISCARD_MICROS 1000000

/* Memory of a body that a thread keeps for its next request. */
#define KEEP_BODY (64 * 1024)

#define DEFINE_REFUSAL(name, status, code, title, detail) \
	const struct refusal refusal_##name = {status, code, title, detail}
#define BAD_REQUEST(name, detail) \
	static DEFINE_REFUSAL(name, 400, "BAD_REQUEST", "Bad Request", detail)

DEFINE_REFUSAL(busy, 503, "UNAVAILABLE", "Service Unavailable",
			   "The service is busy. Try again soon.");
DEFINE_REFUSAL(unavailable, 503, "UNAVAILABLE", "Service Unavailable",
			   "The database cannot be reached. Try again soon.");
DEFINE_REFUSAL(timeout, 503, "TIMEOUT", "Service Unavailable",
			   "The request took too long and was given up.");
DEFINE_REFUSAL(internal, 500, "INTERNAL_ERROR", "Internal Server Error",
			   "The request failed for a reason that the log of the service "
			   "holds under the id of the request.");
DEFINE_REFUSAL(malformed, 400, "BAD_REQUEST", "Bad Request",
			   "The request is not well-formed HTTP, or did not arrive in "
			   "time.");
DEFINE_REFUSAL(headers_too_large, 431, "HEADERS_TOO_LARGE",
			   "Request Header Fields Too Large",
			   "The headers are too many or too large.");
DEFINE_REFUSAL(version, 505, "HTTP_VERSION_NOT_SUPPORTED",
			   "HTTP Version Not Supported",
			   "Use HTTP/1.1.");

static DEFINE_REFUSAL(target_too_long, 414, "URI_TOO_LONG", "URI Too Long",
					  "The target of the request is too long.");
static DEFINE_REFUSAL(body_too_large, 413, "BODY_TOO_LARGE",
					  "Content Too Large",
					  "The body of the request is too large.");
static DEFINE_REFUSAL(body_too_slow, 408, "REQUEST_TIMEOUT",
					  "Request Timeout",
					  "The body of the request did not arrive in time.");
static DEFINE_REFUSAL(length_required, 411, "LENGTH_REQUIRED",
					  "Length Required",
					  "The request needs a Content-Length.");
static DEFINE_REFUSAL(expectation, 400, "BAD_REQUEST", "Bad Request",
					  "The only expectation that can be met is "
					  "100-continue.");
BAD_REQUEST(bad_line, "The request line or a header line is not well-formed.");
BAD_REQUEST(bad_target, "The target of the request must be an absolute path.");
BAD_REQUEST(bad_encoding, "A header is not valid UTF-8.");
BAD_REQUEST(bad_host, "The request must have one valid Host header.");
BAD_REQUEST(repeated_header, "A header that must be unique is repeated.");
BAD_REQUEST(bad_length, "The Content-Length is not a plain number.");
BAD_REQUEST(bad_transfer, "The only transfer coding understood is chunked, in "
			"HTTP/1.1 and without a Content-Length.");
BAD_REQUEST(upgrade, "The protocol of the connection cannot be changed.");
BAD_REQUEST(bad_body, "The body of the request is incomplete or its chunks "
			"are not well-formed.");

/* The headers this file looks at, as indexes into "values" below. */
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

/* Headers with a meaning here, and those that must not be repeated. */
static const struct
{
	const char *name;
	enum known_header known;
	bool		unique;
}			header_rules[] =
{
	{"host", HEADER_HOST, true},
	{"content-length", HEADER_CONTENT_LENGTH, true},
	{"transfer-encoding", HEADER_TRANSFER_ENCODING, true},
	{"authorization", HEADER_OTHER, true},
	{"x-api-key", HEADER_OTHER, true},
	{"if-match", HEADER_OTHER, true},
	{"content-type", HEADER_OTHER, true},
	{"expect", HEADER_EXPECT, true},
	{"upgrade", HEADER_UPGRADE, false},
	{"connection", HEADER_CONNECTION, false},
	{"x-request-id", HEADER_REQUEST_ID, false}
};

/* One header, its value without the spaces at its end. */
struct header
{
	const char *name;
	const char *value;
	size_t		name_length;
	size_t		value_length;
	bool		written;		/* is in the JSON object already */
};

/* What the checks below share. */
struct head
{
	struct header headers[MG_MAX_HEADERS];
	int			count;
	const struct header *known[KNOWN_HEADER_COUNT];
	bool		repeated[KNOWN_HEADER_COUNT];
	bool		is_chunked;
	long long	length;			/* of the body, unless it is chunked */
};

void
request_start(struct request *request)
{
	unsigned char random[16];

	buffer_clear(&request->target);
	buffer_clear(&request->headers);
	buffer_trim(&request->body, KEEP_BODY);
	request->remote[0] = '\0';
	request->method = NULL;
	request->is_head = false;
	request->body_unread = false;
	request->keep_alive = false;
	request->area = AREA_OTHER;
	request->lane = LANE_DATA;

	/* A version 4 UUID (RFC 9562, section 5.4); the pool never blocks. */
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memset(random, 0, sizeof(random));
	random[6] = (unsigned char) ((random[6] & 0x0f) | 0x40);
	random[8] = (unsigned char) ((random[8] & 0x3f) | 0x80);
	{
		static const char digits[] = "0123456789abcdef";
		char	   *p = request->id;
		int			i;

		for (i = 0; i < 16; i++)
		{
			if (i == 4 || i == 6 || i == 8 || i == 10)
				*p++ = '-';
			*p++ = digits[random[i] >> 4];
			*p++ = digits[random[i] & 0x0f];
		}
		*p = '\0';
	}
}

void
request_free(struct request *request)
{
	buffer_free(&request->target);
	buffer_free(&request->headers);
	buffer_free(&request->body);
}

/* A character of a token (RFC 9110, section 5.6.2). */
static bool
is_token_char(char c)
{
	return isalnum((unsigned char) c) ||
		(c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/*
 * Checks that the lines of the head are what they must be: single spaces in
 * the request line, every line ended by CR LF, names directly before their
 * colon, no folded line (which would hide all headers after it), and nothing
 * between the last header and the empty line.
 *
 * The last check looks at up to three bytes after the last value.  They lie in
 * civetweb's buffer: server.c makes that larger than a head within the limits
 * checked here.
 */
static const struct refusal *
check_lines(const struct mg_request_info *info, const struct config *config,
			struct head *head)
{
	const char *target_end = info->query_string ? info->query_string :
		info->request_uri;
	const char *line_end = info->http_version + strlen(info->http_version);
	int			i;

	if (info->num_headers >= MG_MAX_HEADERS ||
		info->num_headers > config->max_headers)
		return &refusal_headers_too_large;

	target_end += strlen(target_end);
	if (target_end - info->request_uri > config->max_url)
		return &refusal_target_too_long;
	if (info->request_uri !=
		info->request_method + strlen(info->request_method) + 1 ||
		info->http_version != target_end + 1 + strlen("HTTP/"))
		return &refusal_bad_line;

	head->count = info->num_headers;
	for (i = 0; i < head->count; i++)
	{
		struct header *header = &head->headers[i];
		const char *name_end;
		const char *p;

		header->name = info->http_headers[i].name;
		header->value = info->http_headers[i].value;
		header->name_length = strlen(header->name);
		header->value_length = strlen(header->value);
		header->written = false;
		name_end = header->name + header->name_length;

		if (header->name != line_end + 2)
			return &refusal_bad_line;
		for (p = header->name; p < name_end; p++)
		{
			if (!is_token_char(*p))
				return &refusal_bad_line;
		}
		if (header->value > name_end + 1 && name_end[1] == '\0')
			return &refusal_bad_line;

		line_end = header->value + header->value_length;
		if (line_end - head->headers[0].name > config->max_headers_bytes)
			return &refusal_headers_too_large;
		while (header->value_length > 0 &&
			   header->value[header->value_length - 1] == ' ')
			header->value_length--;
	}
	if (head->count > 0 &&
		(line_end[1] != '\0' || line_end[2] != '\r' || line_end[3] != '\0'))
		return &refusal_bad_line;
	return NULL;
}

/* Notes the known headers, and refuses what must not be repeated. */
static const struct refusal *
find_known(struct head *head)
{
	const int	rule_count = sizeof(header_rules) / sizeof(header_rules[0]);
	unsigned	seen = 0;
	int			i;

	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];
		enum known_header known;
		int			rule;

		if (!utf8_is_valid(header->value, header->value_length))
			return &refusal_bad_encoding;
		for (rule = 0; rule < rule_count; rule++)
		{
			if (strcasecmp(header->name, header_rules[rule].name) == 0)
				break;
		}
		if (rule == rule_count)
			continue;
		if ((seen & (1u << rule)) && header_rules[rule].unique)
			return header_rules[rule].known == HEADER_HOST ?
				&refusal_bad_host : &refusal_repeated_header;
		known = header_rules[rule].known;
		if (known != HEADER_OTHER)
		{
			head->repeated[known] = head->known[known] != NULL;
			head->known[known] = header;
		}
		seen |= 1u << rule;
	}
	return NULL;
}

static bool
value_is(const struct header *header, const char *value)
{
	return header->value_length == strlen(value) &&
		strncasecmp(header->value, value, header->value_length) == 0;
}

/* Whether a comma-separated list of tokens holds one, in any case. */
static bool
list_has(const struct header *header, const char *token)
{
	const char *p = header->value;
	const char *end = p + header->value_length;
	size_t		length = strlen(token);

	while (p < end)
	{
		const char *comma = memchr(p, ',', (size_t) (end - p));
		const char *last = comma ? comma : end;

		while (p < last && *p == ' ')
			p++;
		while (last > p && last[-1] == ' ')
			last--;
		if ((size_t) (last - p) == length && strncasecmp(p, token, length) == 0)
			return true;
		p = comma ? comma + 1 : end;
	}
	return false;
}

/* RFC 9112, section 3.2: exactly one, and nothing but a name and a port. */
static const struct refusal *
check_host(const struct head *head, bool is_http_11)
{
	const struct header *host = head->known[HEADER_HOST];
	size_t		i;

	if (host == NULL)
		return is_http_11 ? &refusal_bad_host : NULL;
	if (host->value_length == 0)
		return &refusal_bad_host;
	for (i = 0; i < host->value_length; i++)
	{
		char		c = host->value[i];

		if (!isalnum((unsigned char) c) && strchr("-._~:[]%", c) == NULL)
			return &refusal_bad_host;
	}
	return NULL;
}

/* How the body is framed (RFC 9112, section 6), with nothing ambiguous. */
static const struct refusal *
check_framing(struct head *head, const char *method, bool is_http_11)
{
	static const char *const need_length[] = {"POST", "PATCH", "PUT"};
	const struct header *length = head->known[HEADER_CONTENT_LENGTH];
	const struct header *transfer = head->known[HEADER_TRANSFER_ENCODING];
	size_t		i;

	head->is_chunked = transfer != NULL;
	head->length = 0;
	if (transfer != NULL)
	{
		if (length != NULL || !is_http_11 || !value_is(transfer, "chunked"))
			return &refusal_bad_transfer;
		return NULL;
	}
	if (length != NULL)
	{
		if (length->value_length < 1 || length->value_length > 10)
			return &refusal_bad_length;
		for (i = 0; i < length->value_length; i++)
		{
			if (!isdigit((unsigned char) length->value[i]))
				return &refusal_bad_length;
			head->length = head->length * 10 + (length->value[i] - '0');
		}
		return NULL;
	}
	for (i = 0; i < sizeof(need_length) / sizeof(need_length[0]); i++)
	{
		if (strcmp(method, need_length[i]) == 0)
			return &refusal_length_required;
	}
	return NULL;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char) tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Whether the path of a target is "path", or starts with it and goes on with
 * a slash.  Percent-escapes count as what they stand for, because they do so
 * behind entityapi.handle(), too.
 */
static bool
path_is(const char *target, const char *path, bool prefix)
{
	for (; *path != '\0'; path++)
	{
		char		c = *target++;

		if (c == '%' && hex_value(target[0]) >= 0 && hex_value(target[1]) >= 0)
		{
			c = (char) (hex_value(target[0]) * 16 + hex_value(target[1]));
			target += 2;
		}
		if (c != *path)
			return false;
	}
	return *target == '\0' || *target == '?' || (prefix && *target == '/');
}

static enum request_area
area_of(const char *target)
{
	if (path_is(target, "/api", true))
		return AREA_API;
	if (path_is(target, "/auth", true) || path_is(target, "/manage", true))
		return AREA_ACCOUNTS;
	return AREA_OTHER;
}

/* The pool lane, and the target put together again. */
static const struct refusal *
read_target(struct request *request, const struct mg_request_info *info)
{
	static const char *const logins[] =
	{"/auth/login", "/auth/token", "/auth/change-password",
	"/auth/accept-invite"};
	size_t		i;

	if (info->request_uri[0] != '/')
		return &refusal_bad_target;
	buffer_string(&request->target, info->request_uri);
	if (info->query_string != NULL)
	{
		buffer_char(&request->target, '?');
		buffer_string(&request->target, info->query_string);
	}
	if (request->target.failed)
		return &refusal_internal;

	if (strchr(request->target.data, '#') != NULL)
		return &refusal_bad_target;
	if (strcmp(request->method, "POST") == 0)
	{
		for (i = 0; i < sizeof(logins) / sizeof(logins[0]); i++)
		{
			if (path_is(request->target.data, logins[i], false))
				request->lane = LANE_LOGIN;
		}
	}
	return NULL;
}

/* The request's own id, if it is a good one; else the one it got stays. */
static void
read_id(struct request *request, const struct head *head)
{
	const struct header *header = head->known[HEADER_REQUEST_ID];
	size_t		i;

	if (header == NULL || head->repeated[HEADER_REQUEST_ID] ||
		header->value_length < 1 || header->value_length > 64)
		return;
	for (i = 0; i < header->value_length; i++)
	{
		char		c = header->value[i];

		if (!isalnum((unsigned char) c) && c != '.' && c != '_' && c != '-')
			return;
	}
	memcpy(request->id, header->value, header->value_length);
	request->id[header->value_length] = '\0';
}

/* One name of the JSON object with all its values. */
static void
write_header(struct buffer *json, struct head *head, int first)
{
	struct header *header = &head->headers[first];
	size_t		name_at;
	bool		repeated = false;
	int			i;

	buffer_char(json, json->length == 0 ? '{' : ',');
	name_at = json->length;
	buffer_json(json, header->name, header->name_length);
	for (; !json->failed && name_at < json->length; name_at++)
		json->data[name_at] =
			(char) tolower((unsigned char) json->data[name_at]);
	buffer_char(json, ':');

	for (i = first + 1; i < head->count && !repeated; i++)
		repeated = head->headers[i].name_length == header->name_length &&
			strcasecmp(head->headers[i].name, header->name) == 0;
	if (!repeated)
	{
		buffer_json(json, header->value, header->value_length);
		return;
	}
	for (i = first; i < head->count; i++)
	{
		struct header *other = &head->headers[i];

		if (other->name_length != header->name_length ||
			strcasecmp(other->name, header->name) != 0)
			continue;
		buffer_char(json, i == first ? '[' : ',');
		buffer_json(json, other->value, other->value_length);
		other->written = true;
	}
	buffer_char(json, ']');
}

static const struct refusal *
write_headers(struct request *request, struct head *head)
{
	struct buffer *json = &request->headers;
	int			i;

	for (i = 0; i < head->count; i++)
	{
		if (!head->headers[i].written &&
			strcasecmp(head->headers[i].name, "x-request-id") != 0)
			write_header(json, head, i);
	}
	buffer_string(json, json->length == 0 ? "{" : ",");
	buffer_printf(json, "\"x-request-id\":\"%s\"}", request->id);
	return json->failed ? &refusal_internal : NULL;
}

/*
 * The address in one element of X-Forwarded-For, which may carry a port or the
 * brackets of IPv6.  False if there is none.
 */
static bool
parse_forwarded(const char *start, const char *end, char *address)
{
	unsigned char bytes[16];
	const char *colon;
	size_t		length;

	while (start < end && *start == ' ')
		start++;
	while (end > start && end[-1] == ' ')
		end--;
	if (start < end && *start == '[')
	{
		start++;
		end = memchr(start, ']', (size_t) (end - start));
		if (end == NULL)
			return false;
	}
	else
	{
		colon = memchr(start, ':', (size_t) (end - start));
		if (colon != NULL &&
			memchr(colon + 1, ':', (size_t) (end - colon - 1)) == NULL)
			end = colon;
	}
	length = (size_t) (end - start);
	if (length == 0 || length >= INET6_ADDRSTRLEN)
		return false;
	memcpy(address, start, length);
	address[length] = '\0';
	return inet_pton(strchr(address, ':') ? AF_INET6 : AF_INET, address,
					 bytes) == 1;
}

/*
 * The client's address: the peer's; or, if the peer is a trusted proxy, the
 * right-most address of X-Forwarded-For that is not one.  What cannot be read
 * ends the chain of trust at the proxy that wrote it.
 */
static void
read_remote(struct request *request, const struct head *head,
			const struct mg_request_info *info, const struct config *config)
{
	char		address[INET6_ADDRSTRLEN];
	int			i;

	snprintf(request->remote, ADDRESS_SIZE, "%s", info->remote_addr);
	if (!config_trusts(config, request->remote))
		return;

	for (i = head->count - 1; i >= 0; i--)
	{
		const struct header *header = &head->headers[i];
		const char *end = header->value + header->value_length;

		if (strcasecmp(header->name, "x-forwarded-for") != 0)
			continue;
		while (end >= header->value)
		{
			const char *start = end;

			while (start > header->value && start[-1] != ',')
				start--;
			if (!parse_forwarded(start, end, address))
				return;
			snprintf(request->remote, ADDRESS_SIZE, "%s", address);
			if (!config_trusts(config, address))
				return;
			end = start - 1;
		}
	}
}

/* Reads a body whose length is known, or whose chunks say when it ends. */
static const struct refusal *
read_body(struct request *request, struct mg_connection *connection,
		  const struct head *head, long limit, long timeout_ms)
{
	struct buffer *body = &request->body;
	uint64_t	deadline = now_micros() + (uint64_t) timeout_ms * 1000;

	if (!head->is_chunked && !buffer_reserve(body, (size_t) head->length))
		return &refusal_internal;
	while (head->is_chunked || body->length < (size_t) head->length)
	{
		int			got;

		if (!buffer_reserve(body, SLICE))
			return &refusal_internal;
		got = mg_read(connection, body->data + body->length, SLICE);
		if (got < 0)
			return &refusal_bad_body;
		if (got == 0 && head->is_chunked)
			break;
		body->length += (size_t) got;
		if (body->length > (size_t) limit)
			return &refusal_body_too_large;
		if (now_micros() > deadline)
			return &refusal_body_too_slow;
		if (got == 0)
			return &refusal_bad_body;
	}
	body->data[body->length] = '\0';
	request->body_unread = false;
	return NULL;
}

/* Whether the client, and the framing, allow another request. */
static bool
allows_reuse(const struct head *head, bool is_http_11)
{
	const struct header *connection = head->known[HEADER_CONNECTION];

	/*
	 * civetweb looks at the first Connection header only, so two of them are
	 * one too many; and a chunked body may have trailers that it leaves
	 * behind.
	 */
	if (!is_http_11 || head->is_chunked || head->repeated[HEADER_CONNECTION])
		return false;
	return connection == NULL ||
		(list_has(connection, "keep-alive") && !list_has(connection, "close"));
}

const struct refusal *
request_read(struct request *request, struct mg_connection *connection,
			 const struct config *config)
{
	const struct mg_request_info *info = mg_get_request_info(connection);
	bool		is_http_11 = strcmp(info->http_version, "1.1") == 0;
	const struct refusal *refusal;
	struct head head;
	long		limit;

	memset(head.known, 0, sizeof(head.known));
	memset(head.repeated, 0, sizeof(head.repeated));
	request->method = info->request_method;
	request->is_head = strcmp(request->method, "HEAD") == 0;
	request->area = area_of(info->request_uri);
	request->body_unread = true;

	if ((refusal = check_lines(info, config, &head)) != NULL ||
		(refusal = find_known(&head)) != NULL)
		return refusal;
	read_id(request, &head);
	/* Who waits for a 100 (Continue) sends nothing that could be discarded. */
	if (head.known[HEADER_EXPECT] != NULL)
		request->body_unread = false;
	if ((refusal = read_target(request, info)) != NULL ||
		(refusal = check_host(&head, is_http_11)) != NULL)
		return refusal;

	if (head.known[HEADER_UPGRADE] != NULL)
		return &refusal_upgrade;
	if ((refusal = check_framing(&head, request->method, is_http_11)) != NULL)
		return refusal;
	limit = request->area == AREA_ACCOUNTS ? config->max_body_auth :
		config->max_body;
	if (head.length > limit)
		return &refusal_body_too_large;
	if (head.known[HEADER_EXPECT] != NULL && is_http_11)
	{
		if (!value_is(head.known[HEADER_EXPECT], "100-continue"))
			return &refusal_expectation;
		if (head.is_chunked || head.length > 0)
			mg_write(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25);
		request->body_unread = true;
	}

	request->keep_alive = allows_reuse(&head, is_http_11);
	read_remote(request, &head, info, config);
	if ((refusal = write_headers(request, &head)) != NULL)
		return refusal;
	return read_body(request, connection, &head, limit,
					 config->body_timeout_ms);
}

void
request_discard(struct request *request, struct mg_connection *connection)
{
	uint64_t	deadline = now_micros() + DISCARD_MICROS;
	char		slice[SLICE];
	size_t		total = 0;

	while (request->body_unread && total < DISCARD_BYTES)
	{
		int			got = mg_read(connection, slice, sizeof(slice));

		if (got <= 0 || now_micros() > deadline)
			break;
		total += (size_t) got;
	}
	request->body_unread = false;
}
