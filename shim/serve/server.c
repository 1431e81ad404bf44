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
#include "database/replicas.h"
#include "http/clients.h"
#include "http/encoding.h"
#include "http/listen.h"
#include "serve/notify.h"
#include "serve/resources.h"
#include "serve/server.h"
#include "serve/sweep.h"
#include "serve/worker.h"

/*
 * civetweb's buffer for a request's head (and what comes with it): the most
 * that max_url and max_headers_bytes allow, and room to spare, so that it is
 * mostly us who find a head too large.
 */
#define HEAD_ROOM (8 * 1024)

#define DRAIN_STEP_MS 10

/* How long civetweb's threads may take to begin. */
#define SETTLE_MICROS 2000000

/* For probes and scrapers: a few, whatever the service itself is busy with. */
#define ADMIN_THREADS 4

/* How often it is looked whether a client takes too long. */
#define TICK_MS 100

static bool
start_civetweb(struct door *door, const struct config *config)
{
	struct buffer ports = {0};
	char		threads[16];
	char		head_buffer[24];
	char		request_timeout[16];
	char		keep_alive_timeout[16];
	long		thread_count = door->is_admin ? ADMIN_THREADS
		: config->threads;
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

		door->context = mg_start(&worker_callbacks, door, options);
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
