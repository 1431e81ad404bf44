#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "http/cors.h"

#define SEPARATORS ", "

#define METHODS "GET, HEAD, POST, PATCH, PUT, DELETE"
#define REQUEST_HEADERS \
	"Accept, Authorization, Content-Type, If-Match, If-None-Match, " \
	"Traceparent, X-API-Key, X-Request-Id, X-Tenant-Id"
#define ANSWER_HEADERS \
	"Allow, Deprecation, ETag, Location, Retry-After, Server-Timing, " \
	"Sunset, WWW-Authenticate, X-Request-Id"

/* Ports that browsers leave out of an origin */
static const struct
{
	const char *scheme;
	const char *port;
}			default_ports[] =
{
	{"http://", ":80"},
	{"https://", ":443"}
};

static bool
is_port(const char *text)
{
	char	   *end;
	long		port = strtol(text, &end, 10);

	return isdigit((unsigned char) *text) && *text != '0' && *end == '\0' &&
		port <= 65535;
}

/* scheme://host[:port], in lower case (RFC 6454, section 6.2) */
static bool
is_origin(const char *origin)
{
	size_t		scheme = strspn(origin,
								"abcdefghijklmnopqrstuvwxyz0123456789+-.");
	const char *host = origin + scheme + 3;
	size_t		length;
	size_t		i;

	if (!islower((unsigned char) *origin) ||
		strncmp(origin + scheme, "://", 3) != 0)
		return false;
	if (*host == '[')
	{
		length = 1 + strspn(host + 1, "0123456789abcdef:.");
		if (length < 3 || host[length++] != ']')
			return false;
	}
	else
		length = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._");
	if (length == 0 || (host[length] != '\0' && host[length] != ':') ||
		(host[length] == ':' && !is_port(host + length + 1)))
		return false;
	for (i = 0; i < sizeof(default_ports) / sizeof(default_ports[0]); i++)
	{
		if (strncmp(origin, default_ports[i].scheme, scheme + 3) == 0 &&
			strcmp(host + length, default_ports[i].port) == 0)
			return false;
	}
	return true;
}

bool
cors_check(const char *origins)
{
	char	   *list = strdup(origins);
	char	   *state = NULL;
	char	   *item;
	bool		fine = list != NULL;

	for (item = fine ? strtok_r(list, SEPARATORS, &state) : NULL;
		 item != NULL; item = strtok_r(NULL, SEPARATORS, &state))
	{
		if (is_origin(item))
			continue;
		complain("cors_origins: \"%s\" is not an origin as browsers send it, "
				 "such as https://app.example.com or http://localhost:3000",
				 item);
		fine = false;
	}
	free(list);
	return fine;
}

const char *
cors_find(const struct config *config, const char *origin, size_t length)
{
	const char *item = config->cors_origins;

	for (;;)
	{
		size_t		item_length;

		item += strspn(item, SEPARATORS);
		item_length = strcspn(item, SEPARATORS);
		if (item_length == 0)
			return NULL;
		if (item_length == length && memcmp(item, origin, length) == 0)
			return item;
		item += item_length;
	}
}

void
cors_write(struct buffer *head, const struct config *config,
		   const char *origin, size_t length)
{
	if (config->cors_origins[0] == '\0')
		return;

	/* without an allowed origin, too: a cache must not give it to others */
	buffer_string(head, "Vary: Origin\r\n");
	if (origin == NULL)
		return;
	buffer_string(head, "Access-Control-Allow-Origin: ");
	buffer_append(head, origin, length);
	buffer_string(head, "\r\nAccess-Control-Expose-Headers: " ANSWER_HEADERS
				  "\r\n");
	if (config->server_timing)
	{
		buffer_string(head, "Timing-Allow-Origin: ");
		buffer_append(head, origin, length);
		buffer_string(head, "\r\n");
	}
}

void
cors_write_preflight(struct buffer *head, const struct config *config)
{
	buffer_string(head, "Access-Control-Allow-Methods: " METHODS "\r\n"
				  "Access-Control-Allow-Headers: " REQUEST_HEADERS "\r\n");
	buffer_printf(head, "Access-Control-Max-Age: %ld\r\n",
				  config->cors_max_age_s);
}
