/*
 * A thread of the library reads the request and its body, leaves both to the
 * thread of the loop, and waits for the pieces of the answer, which it sends.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <civetweb.h>

#include "base/clock.h"
#include "base/log.h"
#include "civetweb/civetweb_front.h"
#include "http/parse.h"
#include "http/turn.h"

#define ADMIN_THREADS 4

/* Bytes of a body that are read at once. */
#define SLICE (16 * 1024)

/* How much of an unwanted body is read, and for how long. */
#define MOST_IGNORED ((size_t) 4 * 1024 * 1024)
#define IGNORE_MICROS 1000000

/* How often requests are looked for that wait for room. */
#define LOOK_MS 100

/* The library's buffer for a head: the reader below finds it too large. */
#define HEAD_BYTES (PARSE_MOST + 1024)

/* A request and its client, in a thread of the library. */
struct visitor
{
	struct client client;
	struct civetweb_front *front;
	struct arrival arrival;
	struct head head;
	struct buffer text;			/* of the head */
	struct buffer body;
	enum turn	turn;
	uint64_t	since;

	/* The mutex of the front guards these. */
	struct visitor *next;		/* that waits for its turn */
	struct visitor *other;		/* of all */
	pthread_cond_t changed;
	struct buffer answer;		/* what is to be sent next */
	struct body *rest;			/* and then, if it is large */
	bool		ended;
	bool		leaves;
};

struct door
{
	struct civetweb_front *front;
	struct mg_context *context;
	const char *addresses;
	bool		is_admin;
};

struct civetweb_front
{
	struct front front;
	const struct service *service;
	struct loop *loop;
	const struct config *config;
	struct door main;
	struct door admin;
	pthread_mutex_t mutex;
	struct visitor *first;		/* those that wait for their turn */
	struct visitor *last;
	struct visitor *all;
	long		waiting;
	long		usual;			/* of these */
	struct turns turns;			/* the loop's */
	bool		started;
	bool		stopping;
};

/* -------- in the thread of the loop -------- */

static void
send_piece(struct client *client, const char *bytes, size_t length)
{
	struct visitor *visitor = (struct visitor *) client;

	pthread_mutex_lock(&visitor->front->mutex);
	buffer_append(&visitor->answer, bytes, length);
	pthread_cond_signal(&visitor->changed);
	pthread_mutex_unlock(&visitor->front->mutex);
}

static void
give_rest(struct client *client, struct body *body)
{
	struct visitor *visitor = (struct visitor *) client;

	pthread_mutex_lock(&visitor->front->mutex);
	visitor->rest = body;
	pthread_mutex_unlock(&visitor->front->mutex);
}

static bool
end_answer(struct client *client, bool leaves)
{
	struct visitor *visitor = (struct visitor *) client;
	struct civetweb_front *front = visitor->front;

	turn_ends(&front->turns, visitor->turn);
	pthread_mutex_lock(&front->mutex);
	visitor->ended = true;
	visitor->leaves = leaves;
	pthread_cond_signal(&visitor->changed);
	pthread_mutex_unlock(&front->mutex);
	return true;
}

/* Whether it is its turn; one that is overdue needs no room. */
static bool
may_begin(const struct civetweb_front *front, struct visitor *visitor,
		  bool has_room, uint64_t now)
{
	uint64_t	patience = (uint64_t) front->config->pool_wait_ms * 1000;

	visitor->arrival.waited = now - visitor->since;
	visitor->arrival.overdue = visitor->arrival.waited > patience;
	switch (visitor->turn)
	{
		case TURN_USUAL:
			return has_room || visitor->arrival.overdue;
		case TURN_HEALTH:
			return turn_may_pass(&front->turns, front->usual > 0) ||
				visitor->arrival.overdue;
		case TURN_FREE:
			break;
	}
	return true;
}

/* The next one whose turn it is, or NULL. */
static struct visitor *
take_next(struct civetweb_front *front)
{
	const struct service *service = front->service;
	bool		has_room = service->has_room(service->argument);
	struct visitor **link = &front->first;
	struct visitor *previous = NULL;
	struct visitor *visitor;
	uint64_t	now;

	pthread_mutex_lock(&front->mutex);
	now = now_micros();
	while ((visitor = *link) != NULL &&
		   !may_begin(front, visitor, has_room, now))
	{
		previous = visitor;
		link = &visitor->next;
	}
	if (visitor != NULL)
	{
		*link = visitor->next;
		if (front->last == visitor)
			front->last = previous;
		front->waiting--;
		front->usual -= visitor->turn == TURN_USUAL;
	}
	pthread_mutex_unlock(&front->mutex);
	return visitor;
}

static long
waiting(const struct front *self)
{
	struct civetweb_front *front = (struct civetweb_front *) self;
	long		count;

	pthread_mutex_lock(&front->mutex);
	count = front->waiting;
	pthread_mutex_unlock(&front->mutex);
	return count;
}

static int
turn(struct front *self, const struct config *config)
{
	struct civetweb_front *front = (struct civetweb_front *) self;
	struct visitor *visitor;

	pthread_mutex_lock(&front->mutex);
	front->config = config;
	pthread_mutex_unlock(&front->mutex);
	while ((visitor = take_next(front)) != NULL)
	{
		turn_begins(&front->turns, visitor->turn);
		front->service->begin(front->service->argument,
							  &visitor->arrival);
	}
	return waiting(self) > 0 ? TURN_LOOK_MS : LOOK_MS;
}

/* -------- in a thread of the library -------- */

/* Hands the request over and sends what comes. */
static int
visit(struct mg_connection *connection, struct visitor *visitor)
{
	struct civetweb_front *front = visitor->front;
	bool		ended = false;
	bool		failed = false;

	if (visitor->arrival.is_admin || visitor->arrival.refusal != NULL)
		visitor->turn = TURN_FREE;
	else
		visitor->turn = turn_of(visitor->text.data);
	visitor->since = now_micros();
	pthread_mutex_lock(&front->mutex);
	*(front->last ? &front->last->next : &front->first) = visitor;
	front->last = visitor;
	front->waiting++;
	front->usual += visitor->turn == TURN_USUAL;
	pthread_mutex_unlock(&front->mutex);
	loop_wake(front->loop);
	while (!ended)
	{
		struct buffer piece;

		pthread_mutex_lock(&front->mutex);
		while (visitor->answer.length == 0 && !visitor->ended &&
			   !front->stopping)
			pthread_cond_wait(&visitor->changed, &front->mutex);
		piece = visitor->answer;
		memset(&visitor->answer, 0, sizeof(visitor->answer));
		ended = visitor->ended || front->stopping;
		failed |= piece.failed || (ended && !visitor->ended);
		pthread_mutex_unlock(&front->mutex);
		if (!failed && piece.length > 0)
			mg_write(connection, piece.data, piece.length);
		buffer_free(&piece);
	}
	if (!failed && visitor->rest != NULL)
		mg_write(connection, visitor->rest->bytes, visitor->rest->length);
	if (failed || visitor->leaves)
		mg_disable_connection_keep_alive(connection);
	return 200;
}

/*
 * Writes the head down once more, as the library has understood it, and has
 * it read as the other front has: what is odd about it is refused alike.
 */
static const struct refusal *
read_head(struct visitor *visitor, const struct mg_request_info *info,
		  const struct config *config)
{
	struct buffer *text = &visitor->text;
	struct lines lines = {0};
	const struct refusal *refusal;
	int			i;

	buffer_printf(text, "%s %s%s%s HTTP/%s\r\n", info->request_method,
				  info->request_uri, info->query_string ? "?" : "",
				  info->query_string ? info->query_string : "",
				  info->http_version);
	for (i = 0; i < info->num_headers; i++)
		buffer_printf(text, "%s: %s\r\n", info->http_headers[i].name,
					  info->http_headers[i].value);
	buffer_string(text, "\r\n");
	if (text->failed)
		return &refusal_internal;
	switch (lines_look(&lines, text->data, text->length))
	{
		case LINES_WHOLE:
			refusal = parse_head(&visitor->head, text->data, lines.seen,
								 config);
			return refusal ? refusal : head_check(&visitor->head, config);
		case LINES_TOO_LONG:
			return &refusal_headers_too_large;
		case LINES_MORE:
		case LINES_BAD:
			break;
	}
	return &refusal_bad_line;
}

/* Reads the body; the library waits for each piece as for a head. */
static const struct refusal *
read_body(struct visitor *visitor, struct mg_connection *connection,
		  const struct config *config)
{
	static const char word[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct head *head = &visitor->head;
	struct buffer *body = &visitor->body;
	uint64_t	deadline = now_micros() +
		(uint64_t) config->body_timeout_ms * 1000;
	uint64_t	patience = (uint64_t) config->request_timeout_ms * 1000;

	if (head->expects)
		mg_write(connection, word, sizeof(word) - 1);
	while (head->is_chunked || body->length < head->length)
	{
		uint64_t	before = now_micros();
		int			got;

		if (!buffer_reserve(body, SLICE))
			return &refusal_internal;
		got = mg_read(connection, body->data + body->length, SLICE);
		if (got == 0 && head->is_chunked && now_micros() < before + patience)
			break;
		if (now_micros() > deadline ||
			(got <= 0 && now_micros() >= before + patience))
			return &refusal_body_too_slow;
		if (got <= 0)
			return &refusal_bad_body;
		body->length += (size_t) got;
		if (body->length > head->limit)
			return &refusal_body_too_large;
	}
	return NULL;
}

/*
 * Reads what the client still sends, so that it gets to see its answer before
 * the connection closes.
 */
static void
ignore_body(struct mg_connection *connection)
{
	uint64_t	until = now_micros() + IGNORE_MICROS;
	char		bytes[4096];
	size_t		total = 0;
	int			got = 1;

	while (got > 0 && total < MOST_IGNORED && now_micros() < until)
	{
		got = mg_read(connection, bytes, sizeof(bytes));
		total += got > 0 ? (size_t) got : 0;
	}
}

static struct visitor *
new_visitor(struct door *door, const struct mg_request_info *info)
{
	static const struct client_calls clients = {
		.send = send_piece,.give = give_rest,.end = end_answer
	};
	struct civetweb_front *front = door->front;
	struct visitor *visitor = calloc(1, sizeof(*visitor));

	if (visitor == NULL)
		return NULL;
	visitor->client.calls = &clients;
	visitor->front = front;
	pthread_cond_init(&visitor->changed, NULL);
	head_start(&visitor->head);
	visitor->arrival.client = &visitor->client;
	visitor->arrival.head = &visitor->head;
	visitor->arrival.is_admin = door->is_admin;
	if (info != NULL)
		address_parse(info->remote_addr, &visitor->arrival.address);
	pthread_mutex_lock(&front->mutex);
	visitor->other = front->all;
	front->all = visitor;
	pthread_mutex_unlock(&front->mutex);
	return visitor;
}

static void
free_visitor(struct visitor *visitor)
{
	struct civetweb_front *front = visitor->front;
	struct visitor **link = &front->all;

	pthread_mutex_lock(&front->mutex);
	while (*link != visitor)
		link = &(*link)->other;
	*link = visitor->other;
	pthread_mutex_unlock(&front->mutex);
	pthread_cond_destroy(&visitor->changed);
	buffer_free(&visitor->text);
	buffer_free(&visitor->body);
	buffer_free(&visitor->answer);
	if (visitor->rest != NULL)
		visitor->rest->free(visitor->rest);
	free(visitor);
}

static const struct config *
config_of(struct civetweb_front *front)
{
	const struct config *config;

	pthread_mutex_lock(&front->mutex);
	config = front->config;
	pthread_mutex_unlock(&front->mutex);
	return config;
}

static int
begin_request(struct mg_connection *connection)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	const struct mg_request_info *info = mg_get_request_info(connection);
	const struct config *config = config_of(door->front);
	struct visitor *visitor = new_visitor(door, info);
	struct arrival *arrival;
	bool		is_refused;
	int			status;

	if (visitor == NULL)
	{
		mg_disable_connection_keep_alive(connection);
		return 500;
	}
	arrival = &visitor->arrival;
	arrival->refusal = read_head(visitor, info, config);
	if (arrival->refusal == NULL)
		arrival->refusal = read_body(visitor, connection, config);
	arrival->body = visitor->body.data;
	arrival->length = visitor->body.length;
	status = visit(connection, visitor);
	is_refused = arrival->refusal != NULL;
	free_visitor(visitor);
	if (is_refused)
		ignore_body(connection);
	return status;
}

/* The library could not read a request, and tells no more than a status. */
static int
http_error(struct mg_connection *connection, int status, const char *message)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct visitor *visitor = new_visitor(door,
										  mg_get_request_info(connection));

	(void) message;
	mg_disable_connection_keep_alive(connection);
	if (visitor == NULL)
		return 0;
	visitor->arrival.refusal = status == 413 ? &refusal_headers_too_large :
		status == 408 ? &refusal_head_too_slow :
		status == 505 ? &refusal_version : &refusal_malformed;
	visit(connection, visitor);
	free_visitor(visitor);
	return 0;
}

/*
 * It says why it cannot start.  What it says later is about requests, with
 * parts of them, and has no place in a log.
 */
static int
log_message(const struct mg_connection *connection, const char *message)
{
	const struct door *door = mg_get_user_data(mg_get_context(connection));

	if (door != NULL && !door->front->started)
		log_event(LOG_WARNING, "start", NULL, NULL, "%s", message);
	return 1;
}

/* -------- addresses -------- */

/* Those of the setting as the library writes them: * is any of IPv4. */
static bool
write_ports(struct buffer *ports, const char *addresses)
{
	const char *item = addresses;

	while (*item != '\0')
	{
		size_t		length = strcspn(item, ",");
		bool		is_any = strncmp(item, "*:", 2) == 0;

		if (strncmp(item, "unix:", 5) == 0 ||
			(*item == '[' && mg_check_feature(MG_FEATURES_IPV6) == 0))
		{
			log_event(LOG_ERROR, "start", NULL, NULL,
					  "the front civetweb cannot listen on %.*s",
					  (int) length, item);
			return false;
		}
		if (ports->length > 0)
			buffer_char(ports, ',');
		buffer_append(ports, item + (is_any ? 2 : 0),
					  length - (is_any ? 2 : 0));
		item += length + (item[length] == ',');
	}
	return !ports->failed;
}

static bool
start(struct door *door, const struct config *config, long threads)
{
	static const struct mg_callbacks callbacks = {
		.begin_request = begin_request,.http_error = http_error,
		.log_message = log_message
	};
	struct buffer ports = {0};
	char		count[24];
	char		head_bytes[24];
	char		request_timeout[24];
	char		keep_alive_timeout[24];

	snprintf(count, sizeof(count), "%ld", threads);
	snprintf(head_bytes, sizeof(head_bytes), "%d", HEAD_BYTES);
	snprintf(request_timeout, sizeof(request_timeout), "%ld",
			 config->request_timeout_ms);
	snprintf(keep_alive_timeout, sizeof(keep_alive_timeout), "%ld",
			 config->keep_alive_timeout_ms);
	if (write_ports(&ports, door->addresses))
	{
		const char *options[] = {
			"listening_ports", ports.data,
			"num_threads", count,
			"decode_url", "no",
			"enable_directory_listing", "no",
			"enable_auth_domain_check", "no",
			"access_control_allow_origin", "",
			"access_control_allow_methods", "",
			"max_request_size", head_bytes,
			"request_timeout_ms", request_timeout,
			"enable_keep_alive", config->reuse_connections ? "yes" : "no",
			"keep_alive_timeout_ms", keep_alive_timeout,
			"tcp_nodelay", "1",
			NULL
		};

		door->context = mg_start(&callbacks, door, options);
	}
	buffer_free(&ports);
	if (door->context == NULL)
		log_event(LOG_ERROR, "start", NULL, NULL, "cannot listen on %s",
				  door->addresses);
	return door->context != NULL;
}

/* -------- for the service -------- */

static bool
open_doors(struct front *self, const struct config *config)
{
	struct civetweb_front *front = (struct civetweb_front *) self;
	bool		fine;

	mg_init_library(0);
	front->main.addresses = config->listen;
	front->admin.addresses = config->admin_listen;
	fine = (config->admin_listen[0] == '\0' ||
			start(&front->admin, config, ADMIN_THREADS)) &&
		start(&front->main, config, config->threads);
	front->started = fine;
	return fine;
}

static void
announce(const struct front *self)
{
	const struct civetweb_front *front = (const struct civetweb_front *) self;

	log_event(LOG_INFO, "start", NULL, NULL,
			  "listening on %s by civetweb, for %ld connections; it belongs "
			  "behind a proxy that normalises", front->main.addresses,
			  front->config->threads);
	if (front->admin.context != NULL)
		log_event(LOG_INFO, "start", NULL, NULL, "listening on %s",
				  front->admin.addresses);
}

/* A client has its answer when its thread has written it. */
static bool
is_busy(const struct front *self)
{
	struct civetweb_front *front = (struct civetweb_front *) self;
	bool		busy;

	pthread_mutex_lock(&front->mutex);
	busy = front->all != NULL;
	pthread_mutex_unlock(&front->mutex);
	return busy;
}

/* It has no way to do that: who comes while the service drains is answered. */
static void
close_main(struct front *self)
{
	(void) self;
}

static void
destroy(struct front *self)
{
	struct civetweb_front *front = (struct civetweb_front *) self;
	struct visitor *visitor;

	pthread_mutex_lock(&front->mutex);
	front->stopping = true;
	for (visitor = front->all; visitor != NULL; visitor = visitor->other)
		pthread_cond_signal(&visitor->changed);
	pthread_mutex_unlock(&front->mutex);
	if (front->main.context != NULL)
		mg_stop(front->main.context);
	if (front->admin.context != NULL)
		mg_stop(front->admin.context);
	mg_exit_library();
	pthread_mutex_destroy(&front->mutex);
	free(front);
}

struct front *
civetweb_front_create(const struct config *config, long connections,
					  struct loop *loop, const struct service *service)
{
	static const struct front_calls calls = {
		.listen = open_doors,.announce = announce,.turn = turn,
		.waiting = waiting,.is_busy = is_busy,.close = close_main,
		.destroy = destroy
	};
	struct civetweb_front *front = calloc(1, sizeof(*front));

	(void) connections;
	if (front == NULL)
		return NULL;
	front->front.calls = &calls;
	front->service = service;
	front->loop = loop;
	front->config = config;
	front->main.front = front->admin.front = front;
	front->admin.is_admin = true;
	pthread_mutex_init(&front->mutex, NULL);
	return &front->front;
}
