/*
 * One HTTP request, checked, as entityapi.handle() wants it.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/proxies.h"
#include "connections/front.h"
#include "http/head.h"
#include "http/request.h"
#include "connections/wire.h"

/* What is read at once, so that the clock is looked at in between. */
#define BODY_SLICE (16 * 1024)
#define DISCARD_SLICE 4096
#define CHUNKS_SLICE 4096

/*
 * Random bytes that a thread has in store: a system call for sixteen ids.  No
 * more than 256 come without a chance of being interrupted.
 */
#define RANDOM_POOL 256

/* How much of an unwanted body is read, and for how long. */
#define DISCARD_BYTES (4 * 1024 * 1024)
#define DISCARD_MICROS 1000000

/* Memory of a message that a thread keeps for its next request. */
#define KEEP_MESSAGE (64 * 1024)

/*
 * Health.  Liveness is that of the shim: nothing is won
 * by restarting it because the database is away.
 */
static const struct probe probes[] =
{
	{"/actuator/health", 503,
	"{\"status\":\"DOWN\",\"components\":{\"db\":{\"status\":\"DOWN\"",
	"}}}", true, 0},
	{"/actuator/health/readiness", 503, "{\"status\":\"DOWN\"", "}", true, 0},
	{"/actuator/health/liveness", 200, "{\"status\":\"UP\"", "}", false, 50}
};

static void
take_random(unsigned char *bytes, size_t length)
{
	static _Thread_local unsigned char pool[RANDOM_POOL];
	static _Thread_local size_t left = 0;

	/* So short a request never blocks and never fails once it has seed. */
	if (left < length)
	{
		if (getrandom(pool, sizeof(pool), 0) != sizeof(pool))
			memset(pool, 0, sizeof(pool));
		left = sizeof(pool);
	}
	left -= length;
	memcpy(bytes, pool + left, length);
}

/*
 * A version 7 UUID (RFC 9562, section 5.7): the log has an index of them, and
 * what comes later is put at its end.  Where the version leaves room between
 * the milliseconds and what is random, it has their fraction (section 6.2).
 */
static void
make_id(char *id)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[16];
	struct timespec now;
	uint64_t	ms;
	long		fraction;
	int			i;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
	fraction = now.tv_nsec % 1000000 * 512 / 125000;
	for (i = 0; i < 6; i++)
		bytes[i] = (unsigned char) (ms >> (40 - 8 * i));
	bytes[6] = (unsigned char) (0x70 | fraction >> 8);
	bytes[7] = (unsigned char) fraction;
	take_random(bytes + 8, 8);
	bytes[8] = (unsigned char) ((bytes[8] & 0x3f) | 0x80);
	for (i = 0; i < 16; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*id++ = '-';
		*id++ = digits[bytes[i] >> 4];
		*id++ = digits[bytes[i] & 0x0f];
	}
	*id = '\0';
}

void
request_start(struct request *request)
{
	buffer_clear(&request->target);
	buffer_trim(&request->message, KEEP_MESSAGE);
	request->remote[0] = '\0';
	request->method = NULL;
	request->is_head = false;
	request->body_unread = false;
	request->keep_alive = false;
	request->is_chunked = false;
	chunks_begin(&request->chunks, 0);
	request->waited = 0;
	request->overdue = false;
	request->has_key = false;
	request->credential = 0;
	request->area = AREA_OTHER;
	request->lane = LANE_DATA;
	request->probe = NULL;
	request->mark = 0;
	request->trouble = NULL;
	make_id(request->id);
}

void
request_free(struct request *request)
{
	buffer_free(&request->target);
	buffer_free(&request->message);
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char) tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *
request_path_rest(const char *target, const char *path)
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
			return NULL;
	}
	return target;
}

/*
 * Whether the path of a target is "path", or starts with it and goes on with
 * a slash.  Percent-escapes count as what they stand for, because they do so
 * behind entityapi.handle(), too.
 */
static bool
path_is(const char *target, const char *path, bool prefix)
{
	const char *rest = request_path_rest(target, path);

	return rest != NULL &&
		(*rest == '\0' || *rest == '?' || (prefix && *rest == '/'));
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

/* Pool lane and health probe follow from method and path. */
static void
classify(struct request *request)
{
	static const char *const logins[] =
	{"/auth/login", "/auth/token", "/auth/change-password",
	"/auth/accept-invite"};
	const char *target = request->target.data;
	bool		is_get = request->is_head ||
		strcmp(request->method, "GET") == 0;
	bool		is_post = strcmp(request->method, "POST") == 0;
	size_t		i;

	for (i = 0; is_post && i < sizeof(logins) / sizeof(logins[0]); i++)
	{
		if (path_is(target, logins[i], false))
			request->lane = LANE_LOGIN;
	}
	for (i = 0; is_get && i < sizeof(probes) / sizeof(probes[0]); i++)
	{
		if (path_is(target, probes[i].path, false))
			request->probe = &probes[i];
	}
}

/* The target, put together again. */
static const struct refusal *
read_target(struct request *request, const struct mg_request_info *info)
{
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
	classify(request);
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

/* FNV-1a over what tells one session from another. */
static void
read_credential(struct request *request, const struct head *head)
{
	int			i;

	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];
		bool		is_key = strcasecmp(header->name, "x-api-key") == 0;
		uint64_t	hash = 0xcbf29ce484222325u;
		size_t		k;

		if (!is_key && strcasecmp(header->name, "authorization") != 0)
			continue;
		for (k = 0; k < header->value_length; k++)
			hash = (hash ^ (unsigned char) header->value[k]) * 0x100000001b3u;
		request->credential ^= hash;
		request->has_key = request->has_key || is_key;
	}
}

/*
 * The head of the message that entityapi.handle() takes (message.h of the
 * extension).  HEAD is GET, but for the body, which is ours to leave out.
 */
static const struct refusal *
write_head(struct request *request, const struct head *head)
{
	struct buffer *message = &request->message;
	int			i;

	buffer_string(message, request->is_head ? "GET" : request->method);
	buffer_char(message, ' ');
	buffer_append(message, request->target.data, request->target.length);
	buffer_char(message, ' ');
	buffer_string(message, request->remote[0] ? request->remote : "-");
	buffer_char(message, '\n');
	if (strcmp(request->method, "GET") == 0)
	{
		buffer_string(message, "x-entityapi-reads-only: 0\n");
		request->mark = message->length - 2;
	}
	buffer_string(message, "x-request-id: ");
	buffer_string(message, request->id);
	buffer_char(message, '\n');
	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];

		if (strcasecmp(header->name, "x-request-id") == 0)
			continue;
		/* read_lines() leaves none; another one would be another header */
		if (memchr(header->value, '\n', header->value_length) != NULL)
			return &refusal_bad_line;
		buffer_lower(message, header->name, header->name_length);
		buffer_append(message, ": ", 2);
		buffer_append(message, header->value, header->value_length);
		buffer_char(message, '\n');
	}
	buffer_char(message, '\n');
	request->body_start = message->length;
	return message->failed ? &refusal_internal : NULL;
}

void
request_set_reads_only(struct request *request, bool reads_only)
{
	if (request->mark > 0)
		request->message.data[request->mark] = reads_only ? '1' : '0';
}

/* Copies an address in its one form; false if it is none. */
static bool
take_address(const char *text, char *address)
{
	struct address parsed;

	if (!address_parse(text, &parsed))
		return false;
	address_write(&parsed, address);
	return true;
}

/*
 * The address in one element of X-Forwarded-For, which may carry a port or the
 * brackets of IPv6.  False if there is none.
 */
static bool
parse_forwarded(const char *start, const char *end, char *address)
{
	char		text[INET6_ADDRSTRLEN];
	const char *colon;
	size_t		length;

	while (start < end && *start == ' ')
		start++;
	while (end > start && end[-1] == ' ')
		end--;
	if (start >= end)
		return false;
	if (*start == '[')
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
	memcpy(text, start, length);
	text[length] = '\0';
	return take_address(text, address);
}

/*
 * The client's address: the peer's; or, if the peer is a trusted proxy, the
 * right-most address of X-Forwarded-For that is not one.  The peer of a Unix
 * socket has no address, and is trusted, as its file lets it in.  What cannot
 * be read ends the chain of trust at the proxy that wrote it.
 */
static void
read_remote(struct request *request, const struct head *head,
			const struct config *config)
{
	char		address[INET6_ADDRSTRLEN];
	struct address peer;
	int			i;

	if (front_remote(&peer))
	{
		address_write(&peer, request->remote);
		if (!config_trusts(config, request->remote))
			return;
	}

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

static const struct refusal *
refusal_of(const struct chunks *chunks)
{
	switch (chunks->state)
	{
		case CHUNKS_COMPLETE:
			return NULL;
		case CHUNKS_TOO_LARGE:
			return &refusal_body_too_large;
		default:
			return &refusal_bad_body;
	}
}

/*
 * Reads a body in chunks from the connection itself: what civetweb makes of
 * them differs from version to version (wire.c).  The connection ends with
 * this request, so what follows the last chunk, trailers or anything else, is
 * nobody's.
 */
static const struct refusal *
read_chunks(struct request *request, const struct mg_request_info *info,
			long limit, const struct config *config)
{
	uint64_t	deadline =
		now_micros() + (uint64_t) config->body_timeout_ms * 1000;
	uint64_t	patience = (uint64_t) config->request_timeout_ms * 1000;
	struct chunks *chunks = &request->chunks;
	char		bytes[CHUNKS_SLICE];
	const char *rest;
	size_t		length;

	if (!wire_rest(head_end(info), &rest, &length))
		return &refusal_length_required;
	chunks_begin(chunks, (size_t) limit);
	chunks_take(chunks, rest, length, &request->message);
	while (chunks->state < CHUNKS_COMPLETE)
	{
		uint64_t	until = now_micros() + patience;
		long		got = wire_read(bytes, sizeof(bytes),
									until < deadline ? until : deadline);

		if (got < 0 || (got == 0 && now_micros() > deadline))
			return &refusal_body_too_slow;
		if (got == 0)
			return &refusal_bad_body;
		chunks_take(chunks, bytes, (size_t) got, &request->message);
	}
	return request->message.failed ? &refusal_internal : refusal_of(chunks);
}

/* Reads a body whose length is known. */
static const struct refusal *
read_body(struct request *request, struct mg_connection *connection,
		  const struct head *head, const struct config *config)
{
	struct buffer *message = &request->message;
	size_t		length = 0;
	uint64_t	deadline =
		now_micros() + (uint64_t) config->body_timeout_ms * 1000;
	uint64_t	patience = (uint64_t) config->request_timeout_ms * 1000;

	if (!buffer_reserve(message, (size_t) head->length))
		return &refusal_internal;
	while (length < (size_t) head->length)
	{
		uint64_t	before = now_micros();
		int			got;

		if (!buffer_reserve(message, BODY_SLICE))
			return &refusal_internal;
		got = mg_read(connection, message->data + message->length,
					  BODY_SLICE);
		if (got > 0)
		{
			message->length += (size_t) got;
			length += (size_t) got;
		}
		if (now_micros() > deadline ||
			(got <= 0 && now_micros() > before + patience))
			return &refusal_body_too_slow;
		if (got <= 0)
			return &refusal_bad_body;
	}
	return NULL;
}

bool
request_may_write(const struct request *request)
{
	static const char *const reading[] = {"GET", "HEAD", "OPTIONS"};
	size_t		i;

	for (i = 0; i < sizeof(reading) / sizeof(reading[0]); i++)
	{
		if (request->method == NULL ||
			strcmp(request->method, reading[i]) == 0)
			return false;
	}
	return true;
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

	request->method = info->request_method;
	request->is_head = strcmp(request->method, "HEAD") == 0;
	request->area = area_of(info->request_uri);
	request->body_unread = true;
	wire_next();

	if ((refusal = head_read(&head, info, config)) != NULL)
		return refusal;
	read_id(request, &head);
	request->is_chunked = head.known[HEADER_TRANSFER_ENCODING] != NULL;
	extra_read(&request->extra, &head, request->method);
	/* Who waits for a 100 (Continue) sends nothing that could be discarded. */
	if (head.known[HEADER_EXPECT] != NULL)
		request->body_unread = false;
	if ((refusal = read_target(request, info)) != NULL ||
		(refusal = head_check_host(&head, is_http_11)) != NULL)
		return refusal;

	if (head.known[HEADER_UPGRADE] != NULL)
		return &refusal_upgrade;
	refusal = head_check_framing(&head, request->method, is_http_11);
	if (refusal != NULL)
		return refusal;
	limit = request->area == AREA_ACCOUNTS ? config->max_body_auth :
		config->max_body;
	if (head.length > limit)
		return &refusal_body_too_large;
	if (head.known[HEADER_EXPECT] != NULL && is_http_11)
	{
		if (!header_is(head.known[HEADER_EXPECT], "100-continue"))
			return &refusal_expectation;
		if (head.is_chunked || head.length > 0)
			mg_write(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25);
		request->body_unread = true;
	}

	request->keep_alive = head_allows_reuse(&head, is_http_11);
	if (config->replicas[0] != '\0' || config->nodes[0] != '\0' ||
		request->area == AREA_ACCOUNTS)
		read_credential(request, &head);
	read_remote(request, &head, config);
	if ((refusal = write_head(request, &head)) != NULL)
		return refusal;
	refusal = head.is_chunked ? read_chunks(request, info, limit, config) :
		read_body(request, connection, &head, config);
	if (refusal != NULL)
		return refusal;
	if (!buffer_reserve(&request->message, 1))
		return &refusal_internal;
	request->message.data[request->message.length] = '\0';
	if (!head.is_chunked)
	{
		size_t		length = request->message.length - request->body_start;

		request->body_unread = false;
		wire_note(head_end(info), length);
	}
	return NULL;
}

/*
 * What comes of a body in chunks, up to its end.  Who sends what is none is
 * not waited for.
 */
static void
discard_chunks(struct request *request)
{
	struct chunks *chunks = &request->chunks;
	uint64_t	deadline = now_micros() +
		(chunks->state == CHUNKS_MALFORMED ? 1000 : DISCARD_MICROS);
	char		slice[DISCARD_SLICE];
	size_t		total = 0;

	while (!chunks->ended && total < DISCARD_BYTES)
	{
		long		got = wire_read(slice, sizeof(slice), deadline);

		if (got <= 0)
			break;
		if (chunks->state == CHUNKS_COMPLETE)
			chunks_take(chunks, slice, (size_t) got, &request->message);
		total += (size_t) got;
	}
}

void
request_discard(struct request *request, struct mg_connection *connection)
{
	uint64_t	deadline = now_micros() + DISCARD_MICROS;
	char		slice[DISCARD_SLICE];
	size_t		total = 0;

	if (request->body_unread && request->is_chunked)
		discard_chunks(request);
	else
	{
		while (request->body_unread && total < DISCARD_BYTES)
		{
			int			got = mg_read(connection, slice, sizeof(slice));

			if (got <= 0 || now_micros() > deadline)
				break;
			total += (size_t) got;
		}
	}
	request->body_unread = false;
}
