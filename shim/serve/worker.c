/*
 * One connection of a client: its requests and their answers.
 *
 * civetweb gives a thread to each connection on which something has been said
 * (connections/front.h).  There may be many of them, so what is large does not
 * live on a stack but in a struct worker, one a thread.  begin_request answers
 * everything itself: none of civetweb's own ways to serve files, scripts,
 * sockets or preflights is ever reached.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <civetweb.h>
#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "database/logins.h"
#include "database/pool.h"
#include "database/replicas.h"
#include "connections/clients.h"
#include "connections/front.h"
#include "connections/wire.h"
#include "serve/exchange.h"
#include "serve/relay.h"
#include "serve/worker.h"

/* The most that a thread keeps of a buffer between connections. */
#define KEEP_IDLE 4096

/* What a thread of civetweb uses again and again. */
struct worker
{
	struct clients *clients;
	struct client client;
	struct mg_connection *connection;	/* what civetweb has for it */
	bool		returns;		/* its connection, to wait for its client */
	bool		loops;			/* it has many of them, and no client */
	struct exchange exchange;
	struct desk desk;
};

/* Answers the request on the connection; returns the status it got. */
static int
serve(struct door *door, struct worker *worker,
	  struct mg_connection *connection)
{
	struct server *server = door->server;
	struct exchange *exchange = &worker->exchange;
	struct request *request = &exchange->request;
	const struct refusal *refusal;
	int			status;

	client_note(&worker->client, CLIENT_SENDING);
	refusal = request_read(request, connection, exchange->config);
	if (refusal == NULL && logins_concern(request))
		request->lane = LANE_LOGIN;
	if (worker->client.refused)
		refusal = &refusal_too_many;
	client_note(&worker->client, CLIENT_SERVED);
	if (!exchange->config->reuse_connections ||
		atomic_load(&server->draining))
		request->keep_alive = false;
	if (refusal == NULL)
	{
		status = exchange_serve(exchange, &worker->desk, connection,
								&refusal);
		if (status != 0)
			return status;
	}
	if (refusal == NULL && atomic_load(&server->ending))
		refusal = &refusal_unavailable;
	if (refusal == NULL)
		refusal = nodes_count(server->nodes) > 0 ?
			nodes_call(server->nodes, exchange->config, request,
					   &exchange->answer) :
			replicas_call(server->replicas, server->pool, exchange->config,
						  request, &exchange->answer);
	if (atomic_load(&server->draining))
		request->keep_alive = false;
	client_note(&worker->client, CLIENT_TAKING);
	return exchange_answer(exchange, &worker->desk, connection, refusal);
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

	bool		stays = worker->exchange.request.keep_alive &&
		!worker->desk.reply.broken;

	worker->returns = stays && wire_unparsed(&unread) && unread == 0 &&
		!front_stays();
	if (worker->returns || !stays)
		mg_disable_connection_keep_alive(connection);
}

static int
begin_request(struct mg_connection *connection)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct server *server = door->server;
	struct worker *worker = mg_get_thread_pointer(connection);
	struct exchange *exchange;
	size_t		unread;
	int			status;

	if (worker == NULL)
	{
		mg_disable_connection_keep_alive(connection);
		return 500;
	}
	if (worker->loops)
	{
		relay_begin(server->relay);

		/* what civetweb has not read must not become another client's */
		if (!wire_unparsed(&unread) || unread > 0)
			mg_disable_connection_keep_alive(connection);
		return 200;
	}
	atomic_fetch_add(&server->under_way, door->is_admin ? 0 : 1);
	exchange = &worker->exchange;
	exchange_start(exchange, atomic_load(&server->config));
	status = serve(door, worker, connection);
	PQclear(exchange->answer.result);
	exchange->answer.result = NULL;
	exchange_end(exchange, &worker->desk, status);
	client_note(&worker->client, CLIENT_LEAVING);
	request_discard(&exchange->request, connection);
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
	struct exchange *exchange = &worker->exchange;

	mg_disable_connection_keep_alive(connection);
	worker->client.failed = true;
	if (!worker->loops)
		client_note(&worker->client, CLIENT_TAKING);
	exchange_start(exchange, config);
	exchange_answer(exchange, &worker->desk, connection, refusal);
	exchange_end(exchange, &worker->desk, refusal->status);
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
	else if (strcmp(message, "Malformed message") == 0 && !worker->loops)
		refusal = refusal_of_head(door, &worker->client);
	refuse(connection, refusal);
	return 0;
}

static int
init_connection(const struct mg_connection *connection, void **data)
{
	struct worker *worker = mg_get_thread_pointer(connection);

	(void) data;
	if (worker != NULL)
		worker->connection = (struct mg_connection *) connection;
	wire_begin();
	return 0;
}

/* Now it is known which connection it is; NULL: the loop's. */
static void
take_connection(void *argument, const struct peer *peer)
{
	struct worker *worker = argument;

	worker->loops = peer == NULL;
	if (worker->loops)
	{
		worker->client.refused = false;
		relay_attach(worker->desk.door->server->relay, &worker->desk,
					 worker->connection);
	}
	else
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
		&worker->exchange.request.target, &worker->exchange.request.message,
		&worker->desk.reply.head, &worker->desk.line,
		&worker->desk.compressed
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

	if (worker == NULL || worker->loops)
	{
		if (worker != NULL)
			worker->loops = worker->client.failed = false;
		return;
	}
	if (info != NULL && info->request_uri != NULL &&
		info->local_uri == NULL && !worker->client.failed)
	{
		refuse(connection, &refusal_bad_target);
		worker->exchange.request.body_unread = true;
		client_note(&worker->client, CLIENT_LEAVING);
		request_discard(&worker->exchange.request, connection);
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
		worker->desk.door = door;
		worker->desk.spans = door->is_admin ? NULL : door->server->spans;
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
	request_free(&worker->exchange.request);
	reply_free(&worker->desk.reply);
	buffer_free(&worker->desk.line);
	buffer_free(&worker->desk.compressed);
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
