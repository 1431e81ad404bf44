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
#include "http/request.h"

/*
 * Random bytes that a thread has in store: a system call for sixteen ids.  No
 * more than 256 come without a chance of being interrupted.
 */
#define RANDOM_POOL 256

/* Memory of a message that is kept for the next request. */
#define KEEP_MESSAGE (64 * 1024)

/* Health that is the database's, too. */
static const struct probe probes[] =
{
	{"/actuator/health",
	"{\"status\":\"DOWN\",\"components\":{\"db\":{\"status\":\"DOWN\"", "}}}"},
	{"/actuator/health/readiness", "{\"status\":\"DOWN\"", "}"}
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
	buffer_clear(&request->message);
	request->remote[0] = '\0';
	request->method[0] = '\0';
	request->is_head = false;
	request->keep_alive = false;
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
request_end(struct request *request)
{
	buffer_trim(&request->message, KEEP_MESSAGE);
}

void
request_free(struct request *request)
{
	buffer_free(&request->target);
	buffer_free(&request->message);
}

const char *
request_path_rest(const char *target, const char *path)
{
	return head_path_rest(target, strlen(target), path);
}

/* Whether the path of a target is that one. */
static bool
path_is(const char *target, const char *path)
{
	const char *rest = request_path_rest(target, path);

	return rest != NULL && (*rest == '\0' || *rest == '?');
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
		if (path_is(target, logins[i]))
			request->lane = LANE_LOGIN;
	}
	for (i = 0; is_get && i < sizeof(probes) / sizeof(probes[0]); i++)
	{
		if (path_is(target, probes[i].path))
			request->probe = &probes[i];
	}
}

/* The target; of an absolute one that has no path it is the top. */
static void
take_target(struct request *request, const struct head *head)
{
	if (head->target_length == 0 || head->target[0] != '/')
		buffer_char(&request->target, '/');
	buffer_append(&request->target, head->target, head->target_length);
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
		bool		is_key = header_is_named(header, "x-api-key");
		uint64_t	hash = 0xcbf29ce484222325u;
		size_t		k;

		if (!is_key && !header_is_named(header, "authorization"))
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
static void
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
	if (request->is_head || strcmp(request->method, "GET") == 0)
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

		if (header_is_named(header, "x-request-id"))
			continue;
		buffer_lower(message, header->name, header->name_length);
		buffer_append(message, ": ", 2);
		buffer_append(message, header->value, header->value_length);
		buffer_char(message, '\n');
	}
	buffer_char(message, '\n');
	request->body_start = message->length;
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
			const struct address *peer, const struct config *config)
{
	char		address[INET6_ADDRSTRLEN];
	int			i;

	if (peer->family != 0)
	{
		address_write(peer, request->remote);
		if (!config_trusts(config, request->remote))
			return;
	}

	for (i = head->count - 1; i >= 0; i--)
	{
		const struct header *header = &head->headers[i];
		const char *end = header->value + header->value_length;

		if (!header_is_named(header, "x-forwarded-for"))
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

bool
request_may_write(const struct request *request)
{
	static const char *const reading[] = {"GET", "HEAD", "OPTIONS"};
	size_t		i;

	for (i = 0; i < sizeof(reading) / sizeof(reading[0]); i++)
	{
		if (request->method[0] == '\0' ||
			strcmp(request->method, reading[i]) == 0)
			return false;
	}
	return true;
}

void
request_note(struct request *request, const struct arrival *arrival)
{
	const struct head *head = arrival->head;

	strcpy(request->method, head->method);
	request->is_head = strcmp(request->method, "HEAD") == 0;
	request->area = head->area;
	request->waited = arrival->waited;
	request->overdue = arrival->overdue;
	read_id(request, head);
	extra_read(&request->extra, head, request->method);
}

const struct refusal *
request_write(struct request *request, const struct arrival *arrival,
			  const struct config *config, bool has_nodes)
{
	const struct head *head = arrival->head;
	struct buffer *message = &request->message;

	take_target(request, head);
	if (request->target.failed ||
		!buffer_reserve(message, head->size + arrival->length))
		return &refusal_internal;
	classify(request);
	request->keep_alive = head_allows_reuse(head);
	if (config->replicas[0] != '\0' || config->nodes[0] != '\0' ||
		has_nodes || request->area == AREA_ACCOUNTS)
		read_credential(request, head);
	read_remote(request, head, &arrival->address, config);
	write_head(request, head);
	buffer_append(message, arrival->body, arrival->length);
	return message->failed ? &refusal_internal : NULL;
}
