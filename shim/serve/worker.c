/*
 * One connection of a client: its requests and their answers.
 *
 * civetweb gives a thread to each connection on which something has been said
 * (http/front.h).  Its threads have small stacks (100 kB), so what is large
 * lives in a struct worker, one a thread.  begin_request answers everything
 * itself: none of civetweb's own ways to serve files, scripts, sockets or
 * preflights is ever reached.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <civetweb.h>
#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "database/logins.h"
#include "database/pool.h"
#include "database/replicas.h"
#include "http/answer.h"
#include "http/clients.h"
#include "http/cors.h"
#include "http/front.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/wire.h"
#include "serve/actuator.h"
#include "serve/console.h"
#include "serve/resources.h"
#include "serve/spans.h"
#include "serve/worker.h"

/* The most that a thread keeps of a buffer between connections. */
#define KEEP_IDLE 4096

/* Memory of a compressed body that a thread keeps for its next one. */
#define KEEP_COMPRESSED (64 * 1024)

/* What a thread of civetweb uses again and again. */
struct worker
{
	struct clients *clients;
	struct spans *spans;		/* NULL: there are no traces here */
	struct client client;
	bool		returns;		/* its connection, to wait for its client */
	struct request request;
	struct reply reply;
	struct buffer line;
	struct buffer compressed;
};

static void
log_request(struct worker *worker, const struct config *config, int status,
			const struct answer *answer, uint64_t started)
{
	struct request *request = &worker->request;
	const struct reply *reply = &worker->reply;
	struct access_record record = {
		.request_id = request->id,
		.method = request->method,
		.route = reply->route[0] ? reply->route : NULL,
		.principal_id = reply->principal_id[0] ? reply->principal_id : NULL,
		.principal_kind = reply->principal_kind[0] ?
		reply->principal_kind : NULL,
		.status = status,
		.bytes = reply->bytes,
		.total_micros = now_micros() - started,
		.wait_micros = answer->wait_micros,
		.database_micros = answer->database_micros,
		.trace_id = request->extra.trace.trace_id,
		.span_id = request->extra.trace.span_id,
	};

	metrics_request(reply->route, request->method, status,
					record.total_micros);
	if (reply->counters[0] != '\0')
		metrics_reported(reply->counters);
	if (worker->spans != NULL)
		spans_note(worker->spans, config, request, &record, answer, started);
	if (config->access_log)
		log_access(&worker->line, &record);
}

static void
read_gauges(struct server *server, struct metrics_gauges *gauges)
{
	struct pool_report report;

	pool_report(server->pool, &report);
	gauges->pool_size = report.size;
	gauges->pool_in_use = report.lent - report.given_up;
	gauges->pool_idle = report.idle;
	gauges->pool_given_up = report.given_up;
	gauges->pool_waiting = report.waiting +
		front_waiting(server->main.front);
	gauges->requests_in_flight = atomic_load(&server->under_way);
	gauges->draining = atomic_load(&server->draining);
	gauges->ready = atomic_load(&server->started) && !gauges->draining;
}

/* Answers a request for the console, as serve_own() does. */
static int
serve_console(struct worker *worker, struct mg_connection *connection,
			  const struct refusal **refusal)
{
	struct request *request = &worker->request;
	struct console_answer answer = {0};
	const struct buffer *body = &answer.body;
	int			status = 0;

	console_serve(request, mg_get_header(connection, "If-None-Match"),
				  &answer);
	*refusal = answer.refusal;
	buffer_trim(&worker->compressed, KEEP_COMPRESSED);
	if (extra_compress(&request->extra, &worker->compressed, "", 0,
					   body->data, body->length))
		body = &worker->compressed;
	if (answer.refusal == NULL && !answer.headers.failed)
		status = reply_page(&worker->reply, request, connection, answer.route,
							answer.status, answer.headers.data, body);
	buffer_free(&answer.headers);
	buffer_free(&answer.body);
	return status;
}

/*
 * Answers what is not for entityapi.handle().  Returns the status, or 0 for
 * nothing sent: then the refusal says why, if there is one.
 */
static int
serve_own(const struct door *door, struct worker *worker,
		  struct mg_connection *connection, const struct refusal **refusal)
{
	struct request *request = &worker->request;
	struct metrics_gauges gauges;
	struct page page = {0};
	int			status = 0;

	if (request->extra.preflight)
	{
		struct buffer head = {0};

		cors_write_preflight(&head, request->extra.config);
		if (!head.failed)
			status = reply_page(&worker->reply, request, connection, "",
								204, head.data, &page.body);
		buffer_free(&head);
	}
	else if (actuator_concerns(request, door->is_admin))
	{
		read_gauges(door->server, &gauges);
		if (actuator_serve(request, door->is_admin, &gauges, &page,
						   refusal) == ACTUATOR_PAGE)
			status = reply_page(&worker->reply, request, connection,
								page.route, 200, page.headers, &page.body);
		buffer_free(&page.body);
	}
	else if (console_concerns(request))
		status = serve_console(worker, connection, refusal);
	return status;
}

/* Compresses the body of an answer, where that is wanted. */
static void
compress(struct worker *worker, struct answer *answer)
{
	buffer_trim(&worker->compressed, KEEP_COMPRESSED);
	if (extra_compress(&worker->request.extra, &worker->compressed,
					   answer->headers, answer->headers_length,
					   answer->body, answer->length))
	{
		answer->body = worker->compressed.data;
		answer->length = worker->compressed.length;
	}
}

/* Answers the request on the connection; returns the status it got. */
static int
serve(struct door *door, struct worker *worker,
	  const struct config *config, struct mg_connection *connection,
	  struct answer *answer)
{
	struct server *server = door->server;
	struct request *request = &worker->request;
	const struct refusal *refusal;
	int			status;

	client_note(&worker->client, CLIENT_SENDING);
	refusal = request_read(request, connection, config);
	if (refusal == NULL && logins_concern(request))
		request->lane = LANE_LOGIN;
	if (worker->client.refused)
		refusal = &refusal_too_many;
	client_note(&worker->client, CLIENT_SERVED);
	if (!config->reuse_connections || atomic_load(&server->draining))
		request->keep_alive = false;
	if (refusal == NULL)
	{
		status = serve_own(door, worker, connection, &refusal);
		if (status != 0)
			return status;
	}
	if (refusal == NULL && atomic_load(&server->ending))
		refusal = &refusal_unavailable;
	if (refusal == NULL)
		refusal = nodes_count(server->nodes) > 0 ?
			nodes_call(server->nodes, config, request, answer) :
			replicas_call(server->replicas, server->pool, config, request,
						  answer);
	if (atomic_load(&server->draining))
		request->keep_alive = false;
	request->extra.wait_micros = answer->wait_micros;
	request->extra.database_micros = answer->database_micros;
	request->trouble = answer->trouble;
	client_note(&worker->client, CLIENT_TAKING);
	if (refusal == NULL)
	{
		compress(worker, answer);
		reply_answer(&worker->reply, request, connection, answer);
		return answer->status;
	}
	metrics_refused(refusal);
	answer->refused = refusal->kind;
	return reply_refusal(&worker->reply, request, connection, refusal);
}

/*
 * Whether civetweb may go on with a connection whose request has been
 * answered.  If there is nothing more to read, it may have to wait for its
 * client elsewhere.
 */
static void
go_on(struct worker *worker, struct mg_connection *connection)
{
	size_t		unread;

	worker->returns = worker->request.keep_alive && !worker->reply.broken &&
		wire_unparsed(&unread) && unread == 0 && !front_stays();
	if (worker->returns)
		mg_disable_connection_keep_alive(connection);
}

static int
begin_request(struct mg_connection *connection)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct server *server = door->server;
	struct worker *worker = mg_get_thread_pointer(connection);
	struct config *config = atomic_load(&server->config);
	struct answer answer = {0};
	uint64_t	waited;
	bool		overdue = front_waited(&waited);
	uint64_t	started = now_micros() - waited;
	int			status;

	if (worker == NULL)
	{
		mg_disable_connection_keep_alive(connection);
		return 500;
	}
	atomic_fetch_add(&server->under_way, door->is_admin ? 0 : 1);
	request_start(&worker->request);
	worker->request.waited = waited;
	worker->request.overdue = overdue;
	extra_start(&worker->request.extra, config, started);
	status = serve(door, worker, config, connection, &answer);
	PQclear(answer.result);
	log_request(worker, config, status, &answer, started);
	client_note(&worker->client, CLIENT_LEAVING);
	request_discard(&worker->request, connection);
	worker->client.requests++;
	client_note(&worker->client, CLIENT_WAITING);
	atomic_fetch_sub(&server->under_way, door->is_admin ? 0 : 1);
	go_on(worker, connection);
	return status;
}

/* Answers what never became a request, and ends the connection. */
static void
refuse(struct mg_connection *connection, const struct refusal *refusal)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct worker *worker = mg_get_thread_pointer(connection);
	struct config *config = atomic_load(&door->server->config);
	struct answer answer = {.refused = refusal->kind};

	mg_disable_connection_keep_alive(connection);
	worker->client.failed = true;
	client_note(&worker->client, CLIENT_TAKING);
	request_start(&worker->request);
	extra_start(&worker->request.extra, config, now_micros());
	metrics_refused(refusal);
	reply_refusal(&worker->reply, &worker->request, connection, refusal);
	log_request(worker, config, refusal->status, &answer, now_micros());
}

/* Why civetweb could not read a head: it tells one status for all reasons. */
static const struct refusal *
refusal_of_head(const struct door *door, const struct client *client)
{
	const struct config *config = atomic_load(&door->server->config);
	long		allowed_ms = client->requests == 0 ?
		config->request_timeout_ms : config->keep_alive_timeout_ms;
	size_t		bytes;

	if (wire_unparsed(&bytes) &&
		bytes > (size_t) (config->max_headers_bytes + config->max_url))
		return &refusal_headers_too_large;
	if (atomic_load(&client->cut) || now_micros() >
		atomic_load(&client->since) + (uint64_t) allowed_ms * 1000)
		return &refusal_head_too_slow;
	return &refusal_malformed;
}

/* civetweb could not read a request: it has no method, target or headers. */
static int
http_error(struct mg_connection *connection, int status, const char *message)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct worker *worker = mg_get_thread_pointer(connection);
	const struct refusal *refusal = &refusal_malformed;

	if (worker == NULL)
		return 0;
	if (worker->client.refused)
		refusal = &refusal_too_many;
	else if (status == 413)
		refusal = &refusal_headers_too_large;
	else if (status == 505)
		refusal = &refusal_version;
	else if (strcmp(message, "Malformed message") == 0)
		refusal = refusal_of_head(door, &worker->client);
	refuse(connection, refusal);
	return 0;
}

static int
init_connection(const struct mg_connection *connection, void **data)
{
	(void) connection;
	(void) data;
	wire_begin();
	return 0;
}

/* Now it is known which connection it is. */
static void
take_connection(void *argument, const struct peer *peer)
{
	struct worker *worker = argument;

	clients_open(worker->clients, &worker->client, peer->socket,
				 peer->refused);
}

/*
 * Makes the buffers of a thread as large as most requests need, for good, so
 * that neither small nor large ones leave anything behind.
 */
static void
settle_buffers(struct worker *worker)
{
	struct buffer *const buffers[] = {
		&worker->request.target, &worker->request.message,
		&worker->reply.head, &worker->line, &worker->compressed
	};
	size_t		i;

	for (i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
	{
		buffer_trim(buffers[i], KEEP_IDLE);
		buffer_reserve(buffers[i], KEEP_IDLE / 2);
	}
}

/*
 * A connection ends.  civetweb gives up without a word on requests whose
 * target is "*" or on another server: these have a target and no path.
 */
static void
connection_close(const struct mg_connection *ending)
{
	struct mg_connection *connection = (struct mg_connection *) ending;
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct worker *worker = mg_get_thread_pointer(connection);
	const struct mg_request_info *info = mg_get_request_info(connection);

	if (worker == NULL)
		return;
	if (info != NULL && info->request_uri != NULL &&
		info->local_uri == NULL && !worker->client.failed)
	{
		refuse(connection, &refusal_bad_target);
		worker->request.body_unread = true;
		client_note(&worker->client, CLIENT_LEAVING);
		request_discard(&worker->request, connection);
	}
	clients_close(door->clients, &worker->client);

	/* Its buffers were as large as this client's requests and answers. */
	if (!worker->returns)
		settle_buffers(worker);
	worker->returns = false;
}

/*
 * civetweb says why it cannot start.  What it says later is about requests,
 * with parts of them, and has no place in a log.
 */
static int
log_message(const struct mg_connection *connection, const char *message)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));

	if (door != NULL && !atomic_load(&door->server->started))
		log_event(LOG_WARNING, "start", NULL, NULL, "%s", message);
	return 1;
}

static void *
init_thread(const struct mg_context *context, int type)
{
	struct door *door = mg_get_user_data(context);
	struct worker *worker = type == 1 ? calloc(1, sizeof(*worker)) : NULL;

	if (worker != NULL)
	{
		settle_buffers(worker);
		worker->clients = door->clients;
		worker->spans = door->is_admin ? NULL : door->server->spans;
		clients_add(door->clients, &worker->client);
		front_join(door->front, take_connection, worker);
	}
	if (type == 0)
		front_lead(door->front);
	return worker;
}

static void
exit_thread(const struct mg_context *context, int type, void *pointer)
{
	struct door *door = mg_get_user_data(context);
	struct worker *worker = pointer;

	(void) type;
	if (worker == NULL)
		return;
	clients_remove(door->clients, &worker->client);
	request_free(&worker->request);
	reply_free(&worker->reply);
	buffer_free(&worker->line);
	buffer_free(&worker->compressed);
	free(worker);
}

const struct mg_callbacks worker_callbacks = {
	.begin_request = begin_request,
	.http_error = http_error,
	.init_connection = init_connection,
	.connection_close = connection_close,
	.log_message = log_message,
	.init_thread = init_thread,
	.exit_thread = exit_thread
};
