/*
 * The shim alone writes what belongs to the connection: Content-Length,
 * Connection and Date.  Everything else on an answer of entityapi.handle() is
 * entityapi.handle()'s.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "http/reply.h"

#define KEEP_HEAD (2 * REPLY_JOINED)

/* The seconds after which a client may try again. */
#define RETRY_AFTER 1

/* Where what entityapi.handle() notes for the shim's own log goes. */
static const struct
{
	const char *name;
	size_t		offset;
	size_t		size;
}			notes[] =
{
	{"x-entityapi-route: ", offsetof(struct reply, route), ROUTE_SIZE},
	{"x-entityapi-principal: ", offsetof(struct reply, principal_id),
	PRINCIPAL_SIZE},
	{"x-entityapi-principal-kind: ", offsetof(struct reply, principal_kind),
	PRINCIPAL_SIZE},
	{"x-entityapi-counters: ", offsetof(struct reply, counters), COUNTERS_SIZE}
};

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

/*
 * The reason phrase, which means nothing (RFC 9112, section 4), but people
 * read it.
 */
static const char *
reason_of(int status)
{
	static const struct
	{
		int			status;
		const char *reason;
	}			reasons[] =
	{
		{200, "OK"}, {201, "Created"}, {202, "Accepted"},
		{204, "No Content"}, {302, "Found"}, {303, "See Other"},
		{304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"},
		{403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
		{406, "Not Acceptable"}, {408, "Request Timeout"},
		{409, "Conflict"}, {410, "Gone"}, {411, "Length Required"},
		{412, "Precondition Failed"}, {413, "Payload Too Large"},
		{414, "URI Too Long"}, {415, "Unsupported Media Type"},
		{422, "Unprocessable Entity"}, {428, "Precondition Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"}, {501, "Not Implemented"},
		{503, "Service Unavailable"}, {504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"}
	};
	size_t		i;

	for (i = 0; i < LENGTH_OF(reasons); i++)
	{
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "Other";
}

static bool
has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

/* Status line and the headers that belong to the connection. */
static void
start_head(struct reply *reply, const struct request *request, int status,
		   size_t length)
{
	struct buffer *head = &reply->head;

	buffer_trim(head, KEEP_HEAD);
	buffer_string(head, "HTTP/1.1 ");
	buffer_number(head, (uint64_t) status);
	buffer_char(head, ' ');
	buffer_string(head, reason_of(status));
	buffer_string(head, "\r\nDate: ");
	buffer_string(head, date_now(reply));
	buffer_string(head, "\r\n");
	if (has_body(status))
	{
		buffer_string(head, "Content-Length: ");
		buffer_number(head, length);
		buffer_string(head, "\r\n");
	}
	if (!request->keep_alive)
		buffer_string(head, "Connection: close\r\n");
	extra_write(&request->extra, head);
}

/* Keeps the notes, lines of "name: value"; long values are cut. */
static void
keep_notes(struct reply *reply, const char *line)
{
	size_t		i;

	while (*line != '\n')
	{
		size_t		length = strcspn(line, "\n");

		for (i = 0; i < LENGTH_OF(notes); i++)
		{
			size_t		name = strlen(notes[i].name);
			size_t		size = notes[i].size - 1;
			char	   *to = (char *) reply + notes[i].offset;

			if (strncmp(line, notes[i].name, name) != 0)
				continue;
			if (size > length - name)
				size = length - name;
			memcpy(to, line + name, size);
			to[size] = '\0';
		}
		line += length + 1;
	}
}

/* Sends head and body, in one packet where that saves one. */
static void
send_reply(struct reply *reply, struct client *client, const char *body,
		   size_t length)
{
	struct buffer *head = &reply->head;
	bool		joined = length <= REPLY_JOINED;

	if (joined)
		buffer_append(head, body, length);
	reply->failed = head->failed;
	if (head->failed)
		return;
	client->calls->send(client, head->data, head->length);
	if (!joined)
		client->calls->send(client, body, length);
	reply->bytes = length;
}

static void
start_reply(struct reply *reply)
{
	reply->bytes = 0;
	reply->route[0] = '\0';
	reply->principal_id[0] = '\0';
	reply->principal_kind[0] = '\0';
	reply->counters[0] = '\0';
}

bool
reply_answer(struct reply *reply, const struct request *request,
			 struct client *client, const struct answer *answer)
{
	size_t		length = answer->length;
	bool		is_large;

	start_reply(reply);
	start_head(reply, request, answer->status, length);
	buffer_append(&reply->head, answer->headers, answer->headers_length);
	buffer_append(&reply->head, "\r\n", 2);
	keep_notes(reply, strchr(answer->notes, '\n') + 1);
	if (request->is_head || !has_body(answer->status))
		length = 0;
	is_large = length > REPLY_JOINED;
	send_reply(reply, client, answer->body, is_large ? 0 : length);
	if (!is_large || reply->failed)
		return false;
	reply->bytes = length;
	return true;
}

/* An error document (JSON:API "Error Objects"). */
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
			  struct client *client,
			  const struct refusal *refusal)
{
	bool		is_api = request->area == AREA_API;
	struct buffer body = {0};
	struct buffer *head = &reply->head;
	int			status = refusal->status;

	if (status == 503 && request->probe != NULL)
	{
		buffer_string(&body, request->probe->body);
		if (request->trouble != NULL)
			buffer_printf(&body, ",\"reason\":\"%s\"", request->trouble);
		buffer_string(&body, request->probe->end);
	}
	else
		write_error(&body, request, refusal);

	if (refusal->status < 500)
		request->keep_alive = false;
	start_reply(reply);
	start_head(reply, request, status, body.length);
	buffer_printf(head, "Content-Type: %s\r\nCache-Control: %s\r\n",
				  is_api ? "application/vnd.api+json" : "application/json",
				  is_api ? "private, no-cache" : "no-store");
	buffer_printf(head, "X-Request-Id: %s\r\n"
				  "X-Content-Type-Options: nosniff\r\n"
				  "Vary: Accept, Authorization, X-API-Key\r\n", request->id);
	if (status == 405)
		buffer_string(head, "Allow: GET, HEAD\r\n");
	if (status == 415)
		buffer_string(head, "Accept-Encoding: identity\r\n");
	if (refusal_passes(refusal))
		buffer_printf(head, "Retry-After: %d\r\n", RETRY_AFTER);
	buffer_string(head, "\r\n");
	if (body.failed)
		head->failed = true;
	send_reply(reply, client, body.data,
			   request->is_head ? 0 : body.length);
	buffer_free(&body);
	return status;
}

int
reply_page(struct reply *reply, const struct request *request,
		   struct client *client, const char *route, int status,
		   const char *headers, const struct buffer *body)
{
	struct buffer *head = &reply->head;

	start_reply(reply);
	snprintf(reply->route, ROUTE_SIZE, "%s", route);
	start_head(reply, request, status, body->length);
	buffer_printf(head, "X-Request-Id: %s\r\n"
				  "X-Content-Type-Options: nosniff\r\n", request->id);
	buffer_string(head, headers);
	buffer_string(head, "\r\n");
	if (body->failed)
		head->failed = true;
	send_reply(reply, client, body->data,
			   request->is_head || !has_body(status) ? 0 : body->length);
	return status;
}

void
reply_free(struct reply *reply)
{
	buffer_free(&reply->head);
}
