/*-------------------------------------------------------------------------
 *
 * server.c
 *	  The running service: civetweb, its callbacks, signals and the drain.
 *
 * civetweb keeps a thread for each client connection it serves.  Its threads
 * have small stacks (100 kB), so what is large lives in a struct worker, one a
 * thread.  begin_request answers everything itself: none of civetweb's own
 * ways to serve files, scripts, sockets or preflights is ever reached.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <civetweb.h>
#include <libpq-fe.h>

#include "actuator.h"
#include "call.h"
#include "clients.h"
#include "clock.h"
#include "cors.h"
#include "listen.h"
#include "load.h"
#include "log.h"
#include "logins.h"
#include "metrics.h"
#include "notify.h"
#include "pool.h"
#include "replicas.h"
#include "reply.h"
#include "request.h"
#include "resources.h"
#include "server.h"
#include "sweep.h"
#include "wire.h"

/*
 * civetweb's buffer for a request's head (and what comes with it): the most
 * that max_url and max_headers_bytes allow, and room to spare, so that it is
 * mostly us who find a head too large.
 */
#define HEAD_ROOM (8 * 1024)

/* The most that a thread keeps of a buffer between connections. */
#define KEEP_IDLE 4096

/* Memory of a compressed body that a thread keeps for its next one. */
#define KEEP_COMPRESSED (64 * 1024)

#define DRAIN_STEP_MS 10

/* How long civetweb's threads may take to begin. */
#define SETTLE_MICROS 2000000

/* For probes and scrapers: a few, whatever the service itself is busy with. */
#define ADMIN_THREADS 4
/* How often it is looked whether a client takes too long. */
#define TICK_MS 100

/* What a thread of civetweb uses again and again. */
struct worker
{
	struct client client;
	struct request request;
	struct reply reply;
	struct buffer line;
	struct buffer compressed;
};

/* An instance of civetweb: its threads, queue and addresses are its own. */
struct door
{
	struct server *server;
	bool		is_admin;
	const char *addresses;		/* of the configuration */
	struct mg_context *context;
	struct listener listener;
	struct clients *clients;	/* connections of its threads */
};

struct server
{
	_Atomic(struct config *) config;
	struct pool *pool;
	struct sweeper *sweeper;
	struct replicas *replicas;
	struct door main;
	struct door admin;			/* without a context, if there is none */
	atomic_int	under_way;		/* requests at the main door */
	atomic_int	threads;		/* of civetweb, that have begun */
	atomic_bool settled;		/* connections may be served */
	atomic_bool started;
	atomic_bool draining;
	atomic_bool ending;			/* nothing is executed any more */
	int			parked[2];		/* a pipe, see open_doors() */
};

static void
log_request(struct worker *worker, const struct config *config, int status,
			const struct answer *answer, uint64_t started)
{
	const struct request *request = &worker->request;
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
	gauges->pool_waiting = report.waiting;
	gauges->requests_in_flight = atomic_load(&server->under_way);
	gauges->draining = atomic_load(&server->draining);
	gauges->ready = atomic_load(&server->started) && !gauges->draining;
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

	request->may_block = worker->client.watched;
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
		refusal = replicas_call(server->replicas, server->pool, config,
								request, answer);
	if (atomic_load(&server->draining))
		request->keep_alive = false;
	request->extra.wait_micros = answer->wait_micros;
	request->extra.database_micros = answer->database_micros;
	client_note(&worker->client, CLIENT_TAKING);
	if (refusal == NULL)
	{
		compress(worker, answer);
		reply_answer(&worker->reply, request, connection, answer);
		return answer->status;
	}
	metrics_refused(refusal);
	return reply_refusal(&worker->reply, request, connection, refusal);
}

/*
 * Whether a connection may be served: what came over TCP must have come to a
 * port of the configuration, and not to the place of a Unix socket.
 */
static bool
is_welcome(const struct door *door, const struct mg_connection *connection)
{
	const struct mg_request_info *info = mg_get_request_info(connection);

	return listen_is_unix(info) ||
		listen_knows(&door->listener, info->server_port);
}

static int
begin_request(struct mg_connection *connection)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct server *server = door->server;
	struct worker *worker = mg_get_thread_pointer(connection);
	struct config *config = atomic_load(&server->config);
	struct answer answer = {0};
	uint64_t	started = now_micros();
	int			status;

	if (worker == NULL || !is_welcome(door, connection))
	{
		mg_disable_connection_keep_alive(connection);
		return 500;
	}
	atomic_fetch_add(&server->under_way, door->is_admin ? 0 : 1);
	clients_greet(door->clients, &worker->client, connection, config);
	request_start(&worker->request);
	extra_start(&worker->request.extra, config, started);
	status = serve(door, worker, config, connection, &answer);
	PQclear(answer.result);
	log_request(worker, config, status, &answer, started);
	client_note(&worker->client, CLIENT_LEAVING);
	request_discard(&worker->request, connection);
	worker->client.requests++;
	worker->client.consumed += worker->request.wire_length;
	client_note(&worker->client, CLIENT_WAITING);
	atomic_fetch_sub(&server->under_way, door->is_admin ? 0 : 1);
	return status;
}

/* Answers what never became a request, and ends the connection. */
static void
refuse(struct mg_connection *connection, const struct refusal *refusal)
{
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct worker *worker = mg_get_thread_pointer(connection);
	struct config *config = atomic_load(&door->server->config);
	struct answer answer = {0};

	mg_disable_connection_keep_alive(connection);
	worker->client.failed = true;
	client_note(&worker->client, CLIENT_TAKING);
	request_start(&worker->request);
	extra_start(&worker->request.extra, config, now_micros());
	worker->request.may_block = worker->client.watched;
	metrics_refused(refusal);
	reply_refusal(&worker->reply, &worker->request, connection, refusal);
	log_request(worker, config, refusal->status, &answer, now_micros());
}

/* Why civetweb could not read a head: it tells one status for all reasons. */
static const struct refusal *
refusal_of_head(const struct door *door, struct client *client)
{
	const struct config *config = atomic_load(&door->server->config);
	long		allowed_ms = client->requests == 0 ?
		config->request_timeout_ms : config->keep_alive_timeout_ms;

	if (clients_unparsed(door->clients, client) >
		(size_t) (config->max_headers_bytes + config->max_url))
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
	struct door *door = mg_get_user_data(mg_get_context(connection));
	struct worker *worker = mg_get_thread_pointer(connection);

	(void) data;
	while (!atomic_load(&door->server->settled))
		sleep_ms(1);
	wire_begin();
	if (worker != NULL)
		clients_open(door->clients, &worker->client, connection,
					 atomic_load(&door->server->config));
	return 0;
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
	if (info != NULL)
		clients_learn(door->clients, connection, info);
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
	settle_buffers(worker);
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
		clients_add(door->clients, &worker->client);
	}
	resources_touch_stack();
	if (type == 1)
		atomic_fetch_add(&door->server->threads, 1);
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

static bool
start_civetweb(struct door *door, const struct config *config)
{
	struct mg_callbacks callbacks = {
		.begin_request = begin_request,
		.http_error = http_error,
		.init_connection = init_connection,
		.connection_close = connection_close,
		.log_message = log_message,
		.init_thread = init_thread,
		.exit_thread = exit_thread
	};
	struct buffer ports = {0};
	char		threads[16];
	char		head_buffer[24];
	char		request_timeout[16];
	char		keep_alive_timeout[16];
	long		thread_count = door->is_admin ? ADMIN_THREADS : config->threads;
	bool		fine = false;

	snprintf(threads, sizeof(threads), "%ld", thread_count);
	snprintf(head_buffer, sizeof(head_buffer), "%ld",
			 config->max_url + config->max_headers_bytes + HEAD_ROOM);
	snprintf(request_timeout, sizeof(request_timeout), "%ld",
			 config->request_timeout_ms);
	snprintf(keep_alive_timeout, sizeof(keep_alive_timeout), "%ld",
			 config->keep_alive_timeout_ms);
	door->clients = clients_create(thread_count);
	if (door->clients != NULL &&
		listen_open(&door->listener, door->addresses,
					config->socket_mode_bits, &ports))
	{
		const char *options[] = {
			"listening_ports", ports.data,
			"num_threads", threads,
			"decode_url", "no",
			"enable_directory_listing", "no",
			"enable_auth_domain_check", "no",
			"access_control_allow_origin", "",
			"access_control_allow_methods", "",
			"max_request_size", head_buffer,
			"request_timeout_ms", request_timeout,
			"enable_keep_alive", config->reuse_connections ? "yes" : "no",
			"keep_alive_timeout_ms", keep_alive_timeout,
			"connection_queue", "128",
			"listen_backlog", "1024",
			"tcp_nodelay", "1",
			NULL
		};

		door->context = mg_start(&callbacks, door, options);
		fine = door->context != NULL &&
			listen_attach(&door->listener, door->context);
	}
	buffer_free(&ports);
	if (!fine)
		log_event(LOG_ERROR, "start", NULL, NULL, "cannot listen on %s",
				  door->addresses);
	return fine;
}

/*
 * Starts civetweb at all addresses.  It has no function to stop accepting
 * connections while those that are open go on, so its listening descriptors
 * are to be replaced by that of a pipe that nobody writes to, on which its
 * master thread sleeps on.
 */
static bool
open_doors(struct server *server, const struct config *config)
{
	server->main.server = server->admin.server = server;
	server->main.addresses = config->listen;
	server->admin.addresses = config->admin_listen;
	server->admin.is_admin = true;
	if (pipe2(server->parked, O_CLOEXEC) != 0)
		return false;

	/* operators first, who then see the rest come up */
	return (config->admin_listen[0] == '\0' ||
			start_civetweb(&server->admin, config)) &&
		start_civetweb(&server->main, config);
}

/*
 * Ends what is for the start alone, while no thread does anything but begin:
 * connections wait for this.
 */
static void
settle(struct server *server, const struct config *config)
{
	uint64_t	deadline = now_micros() + SETTLE_MICROS;
	long		expected = config->threads +
		(server->admin.context != NULL ? ADMIN_THREADS : 0);

	while (atomic_load(&server->threads) < expected &&
		   now_micros() < deadline)
		sleep_ms(1);
	resources_settle();
	atomic_store(&server->settled, true);
}

/*
 * Stops civetweb.  The end of the pipe wakes its master threads, which look at
 * their stop flag only every other second while nothing happens.
 */
static void
close_doors(struct server *server)
{
	/* if it has come to nothing, threads may still wait for that */
	atomic_store(&server->settled, true);
	listen_stop(&server->main.listener, server->parked[0]);
	listen_stop(&server->admin.listener, server->parked[0]);
	if (server->parked[1] >= 0)
		close(server->parked[1]);
	listen_wake(&server->main.listener);
	listen_wake(&server->admin.listener);
	if (server->admin.context != NULL)
		clients_close_waiting(server->admin.clients);
	if (server->main.context != NULL)
		mg_stop(server->main.context);
	if (server->admin.context != NULL)
		mg_stop(server->admin.context);
	mg_exit_library();
	if (server->parked[0] >= 0)
		close(server->parked[0]);
}

/* Ends the connections that take longer than they may. */
static void
tick_clients(struct server *server)
{
	const struct config *config = atomic_load(&server->config);

	clients_tick(server->main.clients, config);
	if (server->admin.clients != NULL)
		clients_tick(server->admin.clients, config);
}

static void
destroy_clients(struct server *server)
{
	clients_destroy(server->main.clients);
	clients_destroy(server->admin.clients);
}

/*
 * Lets the requests under way end.  civetweb answers nothing any more once it
 * is told to stop, so this waits until there has been none for a moment, which
 * covers those that sit between two of its queues.
 */
static void
drain(struct server *server)
{
	const struct config *config = atomic_load(&server->config);
	uint64_t	deadline =
		now_micros() + (uint64_t) config->drain_timeout_ms * 1000;
	int			quiet = 0;

	notify_send("STOPPING=1\nSTATUS=Draining");
	atomic_store(&server->draining, true);
	listen_stop(&server->main.listener, server->parked[0]);
	log_event(LOG_INFO, "drain", NULL, NULL, "%d requests under way",
			  atomic_load(&server->under_way));
	while (quiet < 10 && now_micros() < deadline)
	{
		quiet = atomic_load(&server->under_way) == 0 ? quiet + 1 : 0;
		tick_clients(server);
		sleep_ms(DRAIN_STEP_MS);
	}
	/* What comes this late could not be answered, so it is not executed. */
	atomic_store(&server->ending, true);
	while (atomic_load(&server->under_way) > 0 && now_micros() < deadline)
		sleep_ms(DRAIN_STEP_MS);
	/* civetweb's threads look at its flag every other second only */
	clients_close_waiting(server->main.clients);
	if (atomic_load(&server->under_way) > 0)
		log_event(LOG_WARNING, "drain", NULL, NULL,
				  "%d requests did not end in time",
				  atomic_load(&server->under_way));
}

static void
reload(struct server *server, const struct config_source *source)
{
	struct config *config;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
				(unsigned long long) now_micros());
	config = config_reload(source, atomic_load(&server->config));
	notify_send("READY=1");
	if (config == NULL)
	{
		log_event(LOG_ERROR, "reload", NULL, NULL,
				  "the configuration has faults, the old one stays");
		return;
	}
	atomic_store(&server->config, config);
	log_event(LOG_INFO, "reload", NULL, NULL, "configuration loaded");
}

static bool
write_pid_file(const char *path)
{
	FILE	   *file;

	if (path[0] == '\0')
		return true;
	file = fopen(path, "w");
	if (file == NULL || fprintf(file, "%ld\n", (long) getpid()) < 0 ||
		fclose(file) != 0)
	{
		log_event(LOG_ERROR, "start", NULL, NULL, "cannot write \"%s\": %s",
				  path, strerror(errno));
		return false;
	}
	return true;
}

/*
 * Ready is who listens.  The database is tried before, so that it is known to
 * be there as well, or that it is not: then a restart would not help.
 */
static void
notify_ready(struct server *server)
{
	const struct config *config = atomic_load(&server->config);
	PGconn	   *connection = NULL;
	bool		found = pool_acquire(server->pool, config, LANE_DATA,
									 &connection) == POOL_READY;

	if (found)
		pool_release(server->pool, LANE_DATA, connection, true);
	notify_send("READY=1\nSTATUS=%s", found ? "Serving" :
				"Serving, but the database cannot be reached");
}

int
server_run(const struct config_source *source, struct config *config)
{
	struct server server;
	sigset_t	signals;
	int			signal_number = 0;

	/* Blocked before any thread exists, so that all of them inherit it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);

	memset(&server, 0, sizeof(server));
	notify_start();
	server.parked[0] = server.parked[1] = -1;
	atomic_store(&server.config, config);
	resources_prepare();
	server.pool = pool_create(config, NULL);
	server.replicas = replicas_create(config);
	mg_init_library(0);
	if (server.pool == NULL || server.replicas == NULL ||
		!write_pid_file(config->pid_file) ||
		!log_start(config->access_log_delay_ms) ||
		!open_doors(&server, config))
	{
		close_doors(&server);
		log_stop();
		replicas_destroy(server.replicas);
		pool_destroy(server.pool);
		destroy_clients(&server);
		config_free(config);
		return 1;
	}
	settle(&server, config);
	replicas_start(server.replicas);
	atomic_store(&server.started, true);
	if (!clients_know_civetweb())
		log_event(LOG_WARNING, "start", NULL, NULL,
				  "civetweb %s, headers of %s: connections without a request "
				  "end by their time only", mg_version(), CIVETWEB_VERSION);
	listen_announce(&server.main.listener, server.main.context);
	if (server.admin.context != NULL)
		listen_announce(&server.admin.listener, server.admin.context);
	server.sweeper = sweeper_start(&server.config, server.pool);
	if (server.sweeper == NULL)
		log_event(LOG_ERROR, "start", NULL, NULL,
				  "no thread for sweeping: what is over is not deleted");
	notify_ready(&server);

	while (signal_number != SIGTERM && signal_number != SIGINT)
	{
		const struct timespec tick = {0, TICK_MS * 1000000};

		signal_number = sigtimedwait(&signals, NULL, &tick);
		if (signal_number == SIGHUP)
			reload(&server, source);
		tick_clients(&server);
		notify_alive();
	}

	drain(&server);
	close_doors(&server);
	sweeper_stop(server.sweeper);
	log_stop();
	encoding_stop();
	replicas_destroy(server.replicas);
	pool_destroy(server.pool);
	destroy_clients(&server);
	config = atomic_load(&server.config);
	if (config->pid_file[0] != '\0')
		unlink(config->pid_file);
	config_free(config);
	log_event(LOG_INFO, "stop", NULL, NULL, "stopped");
	return 0;
}
