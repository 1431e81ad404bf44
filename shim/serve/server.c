/*
 * All of it is one thread, which waits in one place (base/loop.h) for clients,
 * the database, signals and those who help.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "civetweb/civetweb_front.h"
#include "config/load.h"
#include "connections/loop_front.h"
#include "database/nodes.h"
#include "database/replicas.h"
#include "http/encoding.h"
#include "serve/relay.h"
#include "serve/server.h"
#include "serve/service.h"
#include "serve/spans.h"

/* The loop waits for so long at most, and less while the service ends. */
#define TICK_MS 100
#define DRAIN_STEP_MS 10

/* Of these in a row, without a request, the drain is over. */
#define QUIET_STEPS 10

/* The whole of it, while it runs. */
struct run
{
	struct server server;
	const struct config_source *source;
	struct loop_source signals;
	bool		ends;
	int			status;
};

/* -------- memory and descriptors -------- */

/* Descriptors for logs, listening, waking, and connections to operators. */
#define OTHER_FILES 512

/* What each standby's watch has. */
#define WATCH_FILES 2

/*
 * Memory that one thread has freed should be of use to the next: a few arenas,
 * and large pieces go back to the system.
 *
 * Clients and database together may need more than the usual 1024 descriptors.
 */
static void
prepare_resources(void)
{
	struct rlimit limit;

	mallopt(M_ARENA_MAX, 4);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * How many connections of clients there is room for, of those that the
 * configuration wants; says so in the log if that is fewer.
 */
static long
room_for_connections(const struct config *config)
{
	long		others = OTHER_FILES + config->pool_size +
		config->pool_writes +
		(config->nodes[0] == '\0' ? 0 : MAX_NODES * config->pool_size) +
		(config->replicas[0] == '\0' ? 0 :
		 MAX_REPLICAS * (config->pool_size + WATCH_FILES));
	struct rlimit limit;
	long		room;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
		limit.rlim_cur >= (rlim_t) (config->connections + others))
		return config->connections;
	room = (long) limit.rlim_cur - others;
	if (room < (long) limit.rlim_cur / 2)
		room = (long) limit.rlim_cur / 2;
	log_event(LOG_WARNING, "start", NULL, NULL,
			  "the limit of open files is %ld: %ld connections of clients "
			  "instead of %ld", (long) limit.rlim_cur, room,
			  config->connections);
	return room;
}

/* -------- the service manager that started us (sd_notify) -------- */

/*
 * The protocol is a datagram to the socket that NOTIFY_SOCKET names; a name
 * that starts with @ is in the abstract namespace.  All of it is one thread's.
 */
static struct sockaddr_un manager;
static socklen_t manager_size;	/* 0: there is none */
static uint64_t alive_micros;	/* 0: nobody wants to know */
static uint64_t notified_at;

static void notify_send(const char *format,...)
			__attribute__((format(printf, 1, 2)));

/*
 * Reads where the service manager wants to hear from us, and how often.
 * Without one the functions below do nothing.
 */
static void
notify_start(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const char *every = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	size_t		length = path ? strlen(path) : 0;

	manager_size = 0;
	alive_micros = 0;
	if (length < 2 || length >= sizeof(manager.sun_path) ||
		(path[0] != '/' && path[0] != '@'))
		return;
	memset(&manager, 0, sizeof(manager));
	manager.sun_family = AF_UNIX;
	memcpy(manager.sun_path, path, length);
	if (path[0] == '@')
		manager.sun_path[0] = '\0';
	manager_size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) +
								length + (path[0] == '@' ? 0 : 1));

	/* Half of the time that is left us leaves room for a slow moment. */
	if (every != NULL && (pid == NULL || atol(pid) == (long) getpid()))
		alive_micros = strtoull(every, NULL, 10) / 2;
}

/* Sends assignments, one a line, such as "READY=1\nSTATUS=Serving". */
static void
notify_send(const char *format,...)
{
	char		text[512];
	va_list		arguments;
	int			file;

	if (manager_size == 0)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (file < 0)
		return;
	/* A manager that does not listen is no reason to stop serving. */
	(void) !sendto(file, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
				   (struct sockaddr *) &manager, manager_size);
	close(file);
}

/* Reports that we are alive, where that is wanted and if it is time to. */
static void
notify_alive(void)
{
	uint64_t	now;

	if (alive_micros == 0)
		return;
	now = now_micros();
	if (notified_at != 0 && now - notified_at < alive_micros)
		return;
	notified_at = now;
	notify_send("WATCHDOG=1");
}

/* -------- configuration and readiness -------- */

static void
reload(struct server *server, const struct config_source *source)
{
	struct config *config;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
				(unsigned long long) now_micros());
	config = config_reload(source, server->config);
	notify_send("READY=1");
	if (config == NULL)
	{
		log_event(LOG_ERROR, "reload", NULL, NULL,
				  "the configuration has faults, the old one stays");
		return;
	}
	server->config = config;
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
look_at_start(struct server *server)
{
	const struct trouble *trouble;
	bool		found;

	if (server->told_ready ||
		!pool_has_begun(server->pool, &found, &trouble))
		return;
	server->told_ready = true;
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

/* -------- the loop -------- */

static void
take_signal(struct loop_source *source, uint32_t events)
{
	struct run *run = (struct run *) ((char *) source -
									  offsetof(struct run, signals));
	struct signalfd_siginfo info;

	(void) events;
	if (read(source->file, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(&run->server, run->source);
	else
		run->ends = true;
}

/* Goes round once; waits for "most_ms" at most. */
static void
go_round(struct server *server, int most_ms)
{
	int			ms = server->front->calls->turn(server->front,
												server->config);
	int			relay_ms = relay_turn(server->relay);

	if (relay_ms >= 0 && relay_ms < ms)
		ms = relay_ms;
	loop_turn(server->loop, ms < most_ms ? ms : most_ms);
	look_at_start(server);
	if (server->told_ready)
		notify_alive();
}

/*
 * Lets the requests under way end, up to a moment in which there has been
 * none.
 */
static void
drain(struct server *server)
{
	uint64_t	deadline = now_micros() +
		(uint64_t) server->config->drain_timeout_ms * 1000;
	int			quiet = 0;

	notify_send("STOPPING=1\nSTATUS=Draining");
	server->draining = true;
	server->front->calls->close(server->front);
	log_event(LOG_INFO, "drain", NULL, NULL, "%ld requests under way",
			  server->under_way);
	while (quiet < QUIET_STEPS && now_micros() < deadline)
	{
		go_round(server, DRAIN_STEP_MS);
		quiet = server->under_way == 0 && !relay_sweeps(server->relay) &&
			!server->front->calls->is_busy(server->front) ? quiet + 1 : 0;
	}

	/* What comes this late could not be answered, so it is not executed. */
	server->ending = true;
	while (server->under_way > 0 && now_micros() < deadline)
		go_round(server, DRAIN_STEP_MS);
	if (server->under_way > 0)
		log_event(LOG_WARNING, "drain", NULL, NULL,
				  "%ld requests did not end in time", server->under_way);
}

/* -------- beginning and end -------- */

static bool
watch_signals(struct run *run, const sigset_t *signals)
{
	run->signals.file = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	run->signals.happened = take_signal;
	return run->signals.file >= 0 &&
		loop_watch(run->server.loop, &run->signals, EPOLLIN);
}

/* Makes all that serves; false after a line in the log. */
static bool
begin(struct server *server)
{
	const struct config *config = server->config;
	front_create create = strcmp(config->front, "civetweb") == 0 ?
		civetweb_front_create : loop_front_create;

	server->relay = relay_create(server);
	if (server->relay != NULL)
		server->front = create(config, room_for_connections(config),
							   server->loop, relay_service(server->relay));
	if (server->front == NULL)
	{
		log_event(LOG_ERROR, "start", NULL, NULL, "out of memory");
		return false;
	}
	if (!write_pid_file(config->pid_file) ||
		!log_start(config->access_log_delay_ms) ||
		!server->front->calls->listen(server->front, config))
		return false;
	replicas_start(server->replicas);
	server->started = true;
	server->front->calls->announce(server->front);
	pool_begin(server->pool);
	return true;
}

/* Ends what there is of it; false: somebody who helped may never end. */
static bool
end(struct server *server)
{
	bool		ended;

	if (server->front != NULL)
		server->front->calls->destroy(server->front);
	ended = relay_destroy(server->relay);
	spans_stop(server->spans);
	log_stop();
	encoding_stop();
	return ended;
}

static void *
serve(void *argument)
{
	struct run *run = argument;
	struct server *server = &run->server;
	bool		begun = begin(server);
	bool		ended;

	while (begun && !run->ends)
		go_round(server, TICK_MS);
	if (begun)
		drain(server);
	ended = end(server);
	if (begun && server->config->pid_file[0] != '\0')
		unlink(server->config->pid_file);
	run->status = begun ? 0 : 1;
	if (!ended)
		return NULL;
	loop_destroy(server->loop);
	config_free(server->config);
	return NULL;
}

int
server_run(const struct config_source *source, struct config *config)
{
	struct run	run = {.server = {.config = config},.source = source};
	sigset_t	signals;
	pthread_t	thread;

	/* Blocked before any thread exists, so that all of them inherit it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);

	notify_start();
	prepare_resources();
	run.server.spans = spans_start(config);
	run.server.loop = loop_create();
	if (run.server.loop == NULL || !watch_signals(&run, &signals) ||
		!thread_begin(&thread, serve, &run))
	{
		log_event(LOG_ERROR, "start", NULL, NULL, "out of memory");
		return 1;
	}
	pthread_join(thread, NULL);
	close(run.signals.file);
	if (run.status == 0)
		log_event(LOG_INFO, "stop", NULL, NULL, "stopped");
	return run.status;
}
