/*-------------------------------------------------------------------------
 *
 * reply.c
 *	  HTTP answers: those of entityapi.handle(), and the shim's own errors.
 *
 * The shim alone writes what belongs to the connection: Content-Length,
 * Connection and Date.  Everything else on an answer of entityapi.handle() is
 * entityapi.handle()'s.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "reply.h"

/* Bodies up to this size go out together with their head. */
#define JOIN_SIZE (64 * 1024)
#define KEEP_HEAD (128 * 1024)

/* The seconds after which a client may try again. */
#define RETRY_AFTER 1

/* Names that are not simply capitalised word by word. */
static const struct
{
	const char *lower;
	const char *usual;
}			usual_names[] =
{
	{"etag", "ETag"},
	{"www-authenticate", "WWW-Authenticate"},
	{"x-api-key", "X-API-Key"}
};

/* Names that entityapi.handle() has no say in. */
static const char *const own_names[] =
{
	"content-length", "connection", "date", "transfer-encoding", "keep-alive",
	"upgrade"
};

/* Where the headers for the shim's own log go. */
static const struct
{
	const char *name;
	size_t		offset;
	size_t		size;
}			private_headers[] =
{
	{"x-entityapi-route", offsetof(struct reply, route), ROUTE_SIZE},
	{"x-entityapi-principal", offsetof(struct reply, principal_id),
	PRINCIPAL_SIZE},
	{"x-entityapi-principal-kind", offsetof(struct reply, principal_kind),
	PRINCIPAL_SIZE}
};

#define PRIVATE_PREFIX "x-entityapi-"
#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The text of Date (RFC 9110, section 5.6.7), made once a second. */
static const char *
date_now(struct reply *reply)
{
	static const char *const days[] =
	{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] =
	{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
	"Nov", "Dec"};
	time_t		now = time(NULL);
	struct tm	parts;

	if (now != reply->date_second)
	{
		gmtime_r(&now, &parts);
		snprintf(reply->date, sizeof(reply->date),
				 "%s, %02d %s %04d %02d:%02d:%02d GMT", days[parts.tm_wday],
				 parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900,
				 parts.tm_hour, parts.tm_min, parts.tm_sec);
		reply->date_second = now;
	}
	return reply->date;
}

static bool
has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

/* Status line and the headers that belong to the connection. */
static void
start_head(struct reply *reply, const struct request *request,
		   struct mg_connection *connection, int status, size_t length)
{
	struct buffer *head = &reply->head;

	buffer_trim(head, KEEP_HEAD);
	buffer_printf(head, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status,
				  mg_get_response_code_text(connection, status),
				  date_now(reply));
	if (has_body(status))
		buffer_printf(head, "Content-Length: %zu\r\n", length);
	if (!request->keep_alive)
	{
		mg_disable_connection_keep_alive(connection);
		buffer_string(head, "Connection: close\r\n");
	}
}

/* A field name in its usual spelling; false if it is none. */
static bool
append_name(struct buffer *head, const char *name)
{
	bool		first = true;
	size_t		i;

	if (*name == '\0')
		return false;
	for (i = 0; i < LENGTH_OF(usual_names); i++)
	{
		if (strcmp(name, usual_names[i].lower) == 0)
		{
			buffer_string(head, usual_names[i].usual);
			return true;
		}
	}
	for (; *name != '\0'; name++)
	{
		if (!isalnum((unsigned char) *name) && *name != '-' && *name != '_')
			return false;
		buffer_char(head, first ? (char) toupper((unsigned char) *name) :
					*name);
		first = *name == '-';
	}
	return true;
}

/* One header line; false if name or value could break out of it. */
static bool
append_header(struct buffer *head, const char *name, const json_t *value)
{
	const char *text = json_string_value(value);
	const char *p;

	if (text == NULL || !append_name(head, name))
		return false;
	for (p = text; *p != '\0'; p++)
	{
		if ((unsigned char) *p < 0x20 || *p == 0x7f)
			return false;
	}
	buffer_append(head, ": ", 2);
	buffer_append(head, text, (size_t) (p - text));
	buffer_append(head, "\r\n", 2);
	return true;
}

/* Keeps a header that is meant for the log; long ones are cut. */
static void
keep_private(struct reply *reply, const char *name, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t		i;

	for (i = 0; i < LENGTH_OF(private_headers) && text != NULL; i++)
	{
		if (strcmp(name, private_headers[i].name) == 0)
			snprintf((char *) reply + private_headers[i].offset,
					 private_headers[i].size, "%s", text);
	}
}

static bool
append_headers(struct reply *reply, json_t *headers)
{
	const char *name;
	json_t	   *value;

	json_object_foreach(headers, name, value)
	{
		bool		is_own = false;
		size_t		i;

		if (strncmp(name, PRIVATE_PREFIX, strlen(PRIVATE_PREFIX)) == 0)
		{
			keep_private(reply, name, value);
			continue;
		}
		for (i = 0; i < LENGTH_OF(own_names) && !is_own; i++)
			is_own = strcasecmp(name, own_names[i]) == 0;
		if (is_own)
			continue;
		if (json_is_array(value))
		{
			for (i = 0; i < json_array_size(value); i++)
			{
				if (!append_header(&reply->head, name,
								   json_array_get(value, i)))
					return false;
			}
		}
		else if (!append_header(&reply->head, name, value))
			return false;
	}
	return true;
}

/* Sends head and body, in one packet where that saves one. */
static void
send_reply(struct reply *reply, struct mg_connection *connection,
		   const char *body, size_t length)
{
	struct buffer *head = &reply->head;
	bool		joined = length <= JOIN_SIZE;

	if (joined)
		buffer_append(head, body, length);
	if (head->failed)
	{
		mg_disable_connection_keep_alive(connection);
		return;
	}

	/* A client that is gone is none of our business, but its connection is. */
	if (mg_write(connection, head->data, head->length) != (int) head->length ||
		(!joined && mg_write(connection, body, length) != (int) length))
		mg_disable_connection_keep_alive(connection);
	reply->bytes = length;
}

static void
start_reply(struct reply *reply)
{
	reply->bytes = 0;
	reply->route[0] = '\0';
	reply->principal_id[0] = '\0';
	reply->principal_kind[0] = '\0';
}

bool
reply_answer(struct reply *reply, const struct request *request,
			 struct mg_connection *connection, int status,
			 const char *headers, const char *body, size_t length)
{
	json_error_t error;
	json_t	   *object = json_loads(headers, JSON_REJECT_DUPLICATES, &error);
	bool		fine;

	start_reply(reply);
	start_head(reply, request, connection, status, length);
	fine = json_is_object(object) && append_headers(reply, object);
	json_decref(object);
	if (!fine || reply->head.failed)
		return false;
	buffer_string(&reply->head, "\r\n");
	if (request->is_head || !has_body(status))
		length = 0;
	send_reply(reply, connection, body, length);
	return true;
}

/* The error document of the contract, section 1.2. */
static void
write_error(struct buffer *body, const struct request *request,
			const struct refusal *refusal)
{
	buffer_string(body, "{\"errors\":[{\"id\":");
	buffer_json_string(body, request->id);
	buffer_printf(body, ",\"status\":\"%d\",\"code\":", refusal->status);
	buffer_json_string(body, refusal->code);
	buffer_string(body, ",\"title\":");
	buffer_json_string(body, refusal->title);
	buffer_string(body, ",\"detail\":");
	buffer_json_string(body, refusal->detail);
	buffer_string(body, "}]}");
}

int
reply_refusal(struct reply *reply, struct request *request,
			  struct mg_connection *connection,
			  const struct refusal *refusal)
{
	bool		is_api = request->area == AREA_API;
	struct buffer body = {0};
	struct buffer *head = &reply->head;
	int			status = refusal->status;

	if (status == 503 && request->probe != NULL)
	{
		status = request->probe->status;
		buffer_string(&body, request->probe->body);
	}
	else
		write_error(&body, request, refusal);

	if (request->body_unread || refusal->status < 500)
		request->keep_alive = false;
	start_reply(reply);
	start_head(reply, request, connection, status, body.length);
	buffer_printf(head, "Content-Type: %s\r\nCache-Control: %s\r\n",
				  is_api ? "application/vnd.api+json" : "application/json",
				  is_api ? "private, no-cache" : "no-store");
	buffer_printf(head, "X-Request-Id: %s\r\n"
				  "X-Content-Type-Options: nosniff\r\n"
				  "Vary: Accept, Authorization, X-API-Key\r\n", request->id);
	if (status == 503)
		buffer_printf(head, "Retry-After: %d\r\n", RETRY_AFTER);
	buffer_string(head, "\r\n");
	if (body.failed)
		head->failed = true;
	send_reply(reply, connection, body.data,
			   request->is_head ? 0 : body.length);
	buffer_free(&body);
	return status;
}

void
reply_free(struct reply *reply)
{
	buffer_free(&reply->head);
}
