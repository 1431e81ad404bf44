/*
 * The running service: its start, signals and the drain.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <civetweb.h>
#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/load.h"
#include "database/pool.h"
#include "database/nodes.h"
#include "database/replicas.h"
#include "connections/clients.h"
#include "http/encoding.h"
#include "connections/front.h"
#include "connections/listen.h"
#include "serve/notify.h"
#include "serve/relay.h"
#include "serve/resources.h"
#include "serve/server.h"
#include "serve/spans.h"
#include "serve/sweep.h"
#include "serve/worker.h"

/*
 * civetweb's buffer for a request's head (and what comes with it): the most
 * that max_url and max_headers_bytes allow, and room to spare, so that it is
 * mostly us who find a head too large.
 */
#define HEAD_ROOM (8 * 1024)

#define DRAIN_STEP_MS 10

/* For probes and scrapers: a few, whatever the service itself is busy with. */
#define ADMIN_THREADS 4
#define ADMIN_CONNECTIONS 256

/*
 * Threads that work at once, beside one for each database connection: while
 * one sends its answer another one has its connection.
 */
#define MORE_THREADS 2

/* How often it is looked whether a client takes too long. */
#define TICK_MS 100

/* One more for the loop. */
static long
threads_of(const struct door *door, const struct config *config)
{
	return door->is_admin ? ADMIN_THREADS :
		config->threads + (door->server->relay != NULL);
}

static bool
start_civetweb(struct door *door, const struct config *config)
{
	struct buffer ports = {0};
	char		threads[16];
	char		head_buffer[24];
	char		request_timeout[16];
	char		keep_alive_timeout[16];
	long		thread_count = threads_of(door, config);
	bool		fine = false;

	snprintf(threads, sizeof(threads), "%ld", thread_count);
	snprintf(head_buffer, sizeof(head_buffer), "%ld",
			 config->max_url + config->max_headers_bytes + HEAD_ROOM);
	snprintf(request_timeout, sizeof(request_timeout), "%ld",
			 config->request_timeout_ms);
	snprintf(keep_alive_timeout, sizeof(keep_alive_timeout), "%ld",
			 config->keep_alive_timeout_ms);
	door->clients = clients_create(thread_count);
	if (door->clients != NULL && door->front != NULL &&
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

		front_recruit(door->front, true);
		door->context = mg_start(&worker_callbacks, door, options);
		front_recruit(door->front, false);
		fine = door->context != NULL &&
			listen_attach(&door->listener, door->context) &&
			listen_begin(&door->listener, door->front);
	}
	buffer_free(&ports);
	if (!fine)
		log_event(LOG_ERROR, "start", NULL, NULL, "cannot listen on %s",
				  door->addresses);
	return fine;
}

/* Starts civetweb at all addresses. */
static bool
open_doors(struct server *server, const struct config *config)
{
	server->main.server = server->admin.server = server;
	server->main.addresses = config->listen;
	server->admin.addresses = config->admin_listen;
	server->admin.is_admin = true;

	/* which server has what is asked for may take a while to find out */
	if (replicas_count(server->replicas) == 0 &&
		nodes_count(server->nodes) == 0)
		server->relay = relay_create(server, config, &server->main.loop);
	server->main.front = front_create(config, resources_connections(config),
									  threads_of(&server->main, config),
									  config->pool_size *
									  (1 + replicas_count(server->replicas) +
									   nodes_count(server->nodes)) +
									  MORE_THREADS,
									  server->relay ? &server->main.loop :
									  NULL);
	server->admin.front = front_create(config, ADMIN_CONNECTIONS,
									   ADMIN_THREADS, ADMIN_THREADS, NULL);

	/* operators first, who then see the rest come up */
	return (config->admin_listen[0] == '\0' ||
			start_civetweb(&server->admin, config)) &&
		start_civetweb(&server->main, config);
}

/* Stops civetweb at an address. */
static void
close_door(struct door *door)
{
	if (door->front != NULL)
	{
		front_close(door->front);
		front_stop(door->front);
	}
	listen_stop(&door->listener);
	if (door->context != NULL)
	{
		clients_close_waiting(door->clients);
		mg_stop(door->context);
	}
	if (!door->is_admin)
		relay_destroy(door->server->relay);
	front_destroy(door->front);
	clients_destroy(door->clients);
}

static void
close_doors(struct server *server)
{
	close_door(&server->main);
	close_door(&server->admin);
	mg_exit_library();
}

static void
tick_door(struct door *door, const struct config *config)
{
	clients_tick(door->clients, config);
	front_tick(door->front, config);
}

/* Ends the connections that take longer than they may. */
static void
tick_clients(struct server *server)
{
	const struct config *config = atomic_load(&server->config);

	tick_door(&server->main, config);
	if (server->admin.context != NULL)
		tick_door(&server->admin, config);
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
	front_close(server->main.front);
	listen_stop(&server->main.listener);
	log_event(LOG_INFO, "drain", NULL, NULL, "%d requests under way",
			  atomic_load(&server->under_way));
	while (quiet < 10 && now_micros() < deadline)
	{
		quiet = atomic_load(&server->under_way) == 0 &&
			!front_is_busy(server->main.front) ? quiet + 1 : 0;
		tick_clients(server);
		sleep_ms(DRAIN_STEP_MS);
	}
	/* What comes this late could not be answered, so it is not executed. */
	atomic_store(&server->ending, true);
	while (atomic_load(&server->under_way) > 0 && now_micros() < deadline)
		sleep_ms(DRAIN_STEP_MS);
	/* civetweb's threads look at its flag every other second only */
	clients_close_waiting(server->main.clients);
	front_close_silent(server->main.front);
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
 * be there as well, or what is wrong with it: a restart would not help.
 */
static void
notify_ready(struct server *server)
{
	const struct config *config = atomic_load(&server->config);
	PGconn	   *connection = NULL;
	bool		found = pool_acquire(server->pool, LANE_DATA, false,
									 (int) config->login_pool_share,
									 now_micros(), &connection) == POOL_READY;
	const struct trouble *trouble = found ? trouble_find(config) :
		pool_trouble(server->pool);

	if (found)
		pool_release(server->pool, LANE_DATA, connection, true);
	if (found && trouble != NULL && !trouble->may_serve)
		trouble = NULL;
	if (found && trouble != NULL)
		log_event(LOG_WARNING, "start", NULL, NULL, "%s", trouble->text);
	if (trouble != NULL)
		notify_send("READY=1\nSTATUS=Serving, but %s", trouble->text);
	else
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
	atomic_store(&server.config, config);
	resources_prepare();
	server.pool = pool_create(config, SESSION_PRIMARY, config->database);
	server.replicas = replicas_create(config);
	server.nodes = nodes_create(config, server.pool);
	server.spans = spans_start(config);
	mg_init_library(0);
	if (server.pool == NULL || server.replicas == NULL ||
		server.nodes == NULL ||
		!write_pid_file(config->pid_file) ||
		!log_start(config->access_log_delay_ms) ||
		!open_doors(&server, config))
	{
		close_doors(&server);
		spans_stop(server.spans);
		log_stop();
		replicas_destroy(server.replicas);
		nodes_destroy(server.nodes);
		pool_destroy(server.pool);
		config_free(config);
		return 1;
	}
	replicas_start(server.replicas);
	atomic_store(&server.started, true);
	listen_announce(&server.main.listener);
	if (server.admin.context != NULL)
		listen_announce(&server.admin.listener);
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
	spans_stop(server.spans);
	log_stop();
	encoding_stop();
	replicas_destroy(server.replicas);
	nodes_destroy(server.nodes);
	pool_destroy(server.pool);
	config = atomic_load(&server.config);
	if (config->pid_file[0] != '\0')
		unlink(config->pid_file);
	config_free(config);
	log_event(LOG_INFO, "stop", NULL, NULL, "stopped");
	return 0;
}
