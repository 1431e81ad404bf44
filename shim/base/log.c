#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"

#define MESSAGE_SIZE 2048

/* What is longer of a line about a fault is cut. */
#define MAX_FAULT 4096

/* Waiting lines that are so long together are written at once. */
#define WAITING_BYTES (64 * 1024)

/* The most that wait in a log while others are written. */
#define WAITING_MAX (1024 * 1024)

/* How long a log may hold up the one that writes, once. */
#define PATIENCE_MS 1000

/*
 * A log.  A reader that hangs fills its pipe, and may stop nobody: lines wait
 * for the thread that writes them.  It waits for room for a while, and then
 * loses lines until there is room again.
 */
struct sink
{
	struct buffer lines;		/* that wait; guarded by waiting.mutex */

	/* All below is guarded by "writing". */
	struct buffer taken;
	int			file;
	mode_t		type;			/* of the file; 0: not looked at yet */
	bool		stuck;			/* was full the last time */
	bool		torn;			/* the last line has no end */
};

static struct sink access_sink = {.file = STDOUT_FILENO};
static struct sink event_sink = {.file = STDERR_FILENO};

/*
 * One at a time writes, into either of the two, which may be one pipe: that
 * there was room means that there still is.  It is held from before lines are
 * taken until they are out, so that they stay in order, and is taken before
 * the other mutex.
 */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static struct
{
	pthread_mutex_t mutex;		/* guards all below */
	pthread_cond_t changed;
	pthread_t	thread;
	bool		running;
	bool		stopping;
	bool		due;			/* what waits is written now */
	long		delay_ms;
}			waiting = {
	.mutex = PTHREAD_MUTEX_INITIALIZER
};

/* RFC 3339, UTC, with microseconds. */
static void
append_time(struct buffer *line)
{
	static _Thread_local struct
	{
		time_t		second;
		char		text[80];	/* up to that */
	}			last;
	struct timespec now;
	struct tm	parts;
	char		micros[] = "000000Z\"";
	long		rest;
	int			i = 6;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec != last.second)
	{
		gmtime_r(&now.tv_sec, &parts);
		snprintf(last.text, sizeof(last.text),
				 "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.",
				 parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
				 parts.tm_hour, parts.tm_min, parts.tm_sec);
		last.second = now.tv_sec;
	}
	for (rest = now.tv_nsec / 1000; rest > 0; rest /= 10)
		micros[--i] = (char) ('0' + rest % 10);
	buffer_string(line, last.text);
	buffer_string(line, micros);
}

/* Members of a line, by names that are literals. */
#define append_member(line, name, value) \
	(buffer_string((line), ",\"" name "\":"), \
	 buffer_json_string((line), (value)))
#define append_number(line, name, value) \
	(buffer_string((line), ",\"" name "\":"), \
	 buffer_number((line), (value)))

/* Whether there is room for some bytes before the time is up. */
static bool
has_room(const struct sink *sink, uint64_t deadline)
{
	struct pollfd file = {.fd = sink->file,.events = POLLOUT};
	uint64_t	now = now_micros();
	int			left_ms = now < deadline ?
		(int) ((deadline - now + 999) / 1000) : 0;
	int			state;

	if (sink->type == S_IFREG)
		return true;
	while ((state = poll(&file, 1, left_ms)) < 0 && errno == EINTR)
		;
	return state != 0;
}

/*
 * Writes bytes.  A pipe with any room takes PIPE_BUF of them without waiting;
 * a socket can be told not to wait, and a file never does.  Returns how many
 * were written.
 */
static size_t
put(struct sink *sink, const char *data, size_t length, uint64_t deadline)
{
	size_t		done = 0;

	sink->stuck = false;
	while (done < length)
	{
		size_t		piece = length - done;
		ssize_t		written;

		if (sink->type != S_IFREG && piece > PIPE_BUF)
			piece = PIPE_BUF;
		sink->stuck = !has_room(sink, deadline);
		if (sink->stuck)
			break;
		if (sink->type == S_IFSOCK)
			written = send(sink->file, data + done, piece,
						   MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			written = write(sink->file, data + done, piece);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && errno == EAGAIN && now_micros() < deadline)
			continue;
		if (written <= 0)
			break;
		done += (size_t) written;
	}
	return done;
}

/*
 * Writes the lines that were taken.  A log that cannot be written must not
 * take the service with it.  "writing" is held.
 */
static void
write_taken(struct sink *sink)
{
	const struct buffer *lines = &sink->taken;
	uint64_t	deadline = now_micros() +
		(sink->stuck ? 0 : PATIENCE_MS * 1000);
	uint64_t	lost = 0;
	size_t		done = 0;
	struct stat status;

	if (sink->type == 0 && fstat(sink->file, &status) == 0)
		sink->type = status.st_mode & S_IFMT;
	if (sink->torn)
		sink->torn = put(sink, "\n", 1, deadline) == 0;
	if (!sink->torn)
	{
		done = put(sink, lines->data, lines->length, deadline);
		sink->torn = done > 0 && lines->data[done - 1] != '\n';
	}
	for (; done < lines->length; done++)
		lost += lines->data[done] == '\n';
	metrics_add(METRIC_LOG_LINES_LOST, lost);
}

/* -------- waiting lines -------- */

/* Takes the lines that wait and writes them; "writing" is held. */
static void
flush_sink(struct sink *sink)
{
	struct buffer emptied;

	buffer_clear(&sink->taken);
	pthread_mutex_lock(&waiting.mutex);
	emptied = sink->taken;
	sink->taken = sink->lines;
	sink->lines = emptied;
	pthread_mutex_unlock(&waiting.mutex);
	if (sink->taken.length > 0)
		write_taken(sink);
}

static void
flush(void)
{
	pthread_mutex_lock(&writing);
	flush_sink(&event_sink);
	flush_sink(&access_sink);
	pthread_mutex_unlock(&writing);
}

/* Lets lines gather for a while once there is one, then writes them. */
static void *
flush_regularly(void *nothing)
{
	(void) nothing;
	pthread_mutex_lock(&waiting.mutex);
	while (!waiting.stopping)
	{
		struct timespec until;
		int			state = 0;

		if (!waiting.due && access_sink.lines.length == 0)
		{
			pthread_cond_wait(&waiting.changed, &waiting.mutex);
			continue;
		}
		until = clock_time(now_micros() + (uint64_t) waiting.delay_ms * 1000);
		while (!waiting.stopping && !waiting.due && state == 0)
			state = pthread_cond_timedwait(&waiting.changed, &waiting.mutex,
										   &until);
		waiting.due = false;
		pthread_mutex_unlock(&waiting.mutex);
		flush();
		pthread_mutex_lock(&waiting.mutex);
	}
	pthread_mutex_unlock(&waiting.mutex);
	return NULL;
}

bool
log_start(long delay_ms)
{
	pthread_condattr_t attributes;
	bool		running;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_lock(&waiting.mutex);
	pthread_cond_init(&waiting.changed, &attributes);
	waiting.delay_ms = delay_ms;
	waiting.stopping = false;
	running = thread_begin(&waiting.thread, flush_regularly, NULL);
	waiting.running = running;
	pthread_mutex_unlock(&waiting.mutex);
	pthread_condattr_destroy(&attributes);
	return running;
}

void
log_stop(void)
{
	bool		running;

	pthread_mutex_lock(&waiting.mutex);
	running = waiting.running;
	waiting.stopping = true;
	if (running)
		pthread_cond_signal(&waiting.changed);
	pthread_mutex_unlock(&waiting.mutex);
	if (!running)
		return;
	pthread_join(waiting.thread, NULL);
	pthread_mutex_lock(&waiting.mutex);
	waiting.running = false;
	pthread_cond_destroy(&waiting.changed);
	pthread_mutex_unlock(&waiting.mutex);
	flush();
}

/*
 * Adds a line to those that wait, and wakes the thread if it is to go out at
 * once, or there are enough.  Without a thread it is written here.
 */
static void
add_line(struct sink *sink, const struct buffer *line, bool due)
{
	struct buffer *lines = &sink->lines;
	bool		running;
	bool		lost;

	pthread_mutex_lock(&waiting.mutex);
	running = waiting.running;
	lost = line->failed || lines->length + line->length > WAITING_MAX ||
		!buffer_reserve(lines, line->length);
	lines->failed = false;
	if (!lost)
		buffer_append(lines, line->data, line->length);
	due |= waiting.delay_ms == 0 || lines->length >= WAITING_BYTES;
	if (running && ((due && !waiting.due) || lines->length == line->length))
		pthread_cond_signal(&waiting.changed);
	waiting.due = due || waiting.due;
	pthread_mutex_unlock(&waiting.mutex);
	if (lost)
		metrics_add(METRIC_LOG_LINES_LOST, 1);
	if (!running)
		flush();
}

/* -------- lines -------- */

void
log_access(struct buffer *line, const struct access_record *record)
{
	buffer_clear(line);
	append_time(line);
	append_member(line, "requestId", record->request_id);
	append_member(line, "method", record->method);
	append_member(line, "route", record->route);
	append_number(line, "status", (uint64_t) record->status);
	append_number(line, "bytes", record->bytes);
	append_number(line, "totalMicros", record->total_micros);
	append_number(line, "waitMicros", record->wait_micros);
	append_number(line, "databaseMicros", record->database_micros);
	append_member(line, "principalId", record->principal_id);
	append_member(line, "principalKind", record->principal_kind);
	if (record->trace_id[0] != '\0')
	{
		append_member(line, "traceId", record->trace_id);
		append_member(line, "spanId", record->span_id);
	}
	buffer_string(line, "}\n");
	add_line(&access_sink, line, false);
}

/* Writes a line to the event log and frees it. */
static void
write_event(struct buffer *line)
{
	add_line(&event_sink, line, true);
	buffer_free(line);
}

void
log_event(enum log_level level, const char *event, const char *request_id,
		  const char *sqlstate, const char *format,...)
{
	static const char *const names[] = {
		[LOG_INFO] = "info",
		[LOG_WARNING] = "warning",
		[LOG_ERROR] = "error"
	};
	struct buffer line = {0};
	char		message[MESSAGE_SIZE];
	size_t		length;
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);

	/* libpq ends its messages with a newline. */
	length = strlen(message);
	while (length > 0 && message[length - 1] == '\n')
		message[--length] = '\0';
	if (!utf8_is_valid(message, length))
	{
		char	   *p;

		for (p = message; *p != '\0'; p++)
		{
			if ((unsigned char) *p >= 0x80)
				*p = '?';
		}
	}

	append_time(&line);
	append_member(&line, "level", names[level]);
	append_member(&line, "event", event);
	if (request_id != NULL)
		append_member(&line, "requestId", request_id);
	if (sqlstate != NULL)
		append_member(&line, "sqlstate", sqlstate);
	append_member(&line, "message", message);
	buffer_string(&line, "}\n");
	write_event(&line);
}

void
log_plain(const char *prefix, const char *text)
{
	struct buffer line = {0};

	buffer_printf(&line, "%s%s\n", prefix, text);
	write_event(&line);
}

void
complain(const char *format,...)
{
	char		fault[MAX_FAULT];
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(fault, sizeof(fault), format, arguments);
	va_end(arguments);
	log_plain("entityapi-shim: ", fault);
}
