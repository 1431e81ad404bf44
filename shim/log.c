/*-------------------------------------------------------------------------
 *
 * log.c
 *	  The access log on stdout and the event log on stderr, JSON lines.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "metrics.h"

#define MESSAGE_SIZE 2048

/* Waiting lines that are so long together are written at once. */
#define WAITING_BYTES (64 * 1024)

/*
 * Lines of the access log that wait.  Who writes holds "writing" from before it
 * takes the lines until they are out, so that they stay in order.
 */
static struct
{
	pthread_mutex_t writing;	/* taken before the other one */
	pthread_mutex_t mutex;		/* guards all below but "taken" */
	pthread_cond_t changed;
	pthread_t	thread;
	bool		running;
	bool		stopping;
	long		delay_ms;
	int			count;
	struct buffer lines;
	struct buffer taken;		/* guarded by "writing" */
}			waiting = {
	.writing = PTHREAD_MUTEX_INITIALIZER,
	.mutex = PTHREAD_MUTEX_INITIALIZER
};

uint64_t
now_micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* RFC 3339, UTC, with microseconds. */
static void
append_time(struct buffer *line)
{
	struct timespec now;
	struct tm	parts;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	buffer_printf(line, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ\"",
				  parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
				  parts.tm_hour, parts.tm_min, parts.tm_sec,
				  now.tv_nsec / 1000);
}

static void
append_member(struct buffer *line, const char *name, const char *value)
{
	buffer_printf(line, ",\"%s\":", name);
	buffer_json_string(line, value);
}

/*
 * Writes all bytes; false if that fails.  A log that cannot be written must not
 * take the service with it.
 */
static bool
write_bytes(int file, const struct buffer *bytes)
{
	size_t		done = 0;

	while (done < bytes->length)
	{
		ssize_t		written = write(file, bytes->data + done,
									bytes->length - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		done += (size_t) written;
	}
	return true;
}

/* -------- waiting lines -------- */

/* Writes the lines that wait. */
static void
flush(void)
{
	struct buffer emptied;
	int			count;

	pthread_mutex_lock(&waiting.writing);
	buffer_clear(&waiting.taken);
	pthread_mutex_lock(&waiting.mutex);
	emptied = waiting.taken;
	waiting.taken = waiting.lines;
	waiting.lines = emptied;
	count = waiting.count;
	waiting.count = 0;
	pthread_mutex_unlock(&waiting.mutex);
	if (!write_bytes(STDOUT_FILENO, &waiting.taken))
		metrics_add(METRIC_LOG_LINES_LOST, (uint64_t) count);
	pthread_mutex_unlock(&waiting.writing);
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

		if (waiting.count == 0)
		{
			pthread_cond_wait(&waiting.changed, &waiting.mutex);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += waiting.delay_ms % 1000 * 1000000;
		until.tv_sec += waiting.delay_ms / 1000 +
			until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		while (!waiting.stopping && state == 0)
			state = pthread_cond_timedwait(&waiting.changed, &waiting.mutex,
										   &until);
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

	if (delay_ms == 0)
		return true;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&waiting.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	waiting.delay_ms = delay_ms;
	waiting.stopping = false;
	waiting.running = pthread_create(&waiting.thread, NULL, flush_regularly,
									 NULL) == 0;
	return waiting.running;
}

void
log_stop(void)
{
	if (!waiting.running)
		return;
	pthread_mutex_lock(&waiting.mutex);
	waiting.stopping = true;
	pthread_cond_signal(&waiting.changed);
	pthread_mutex_unlock(&waiting.mutex);
	pthread_join(waiting.thread, NULL);
	pthread_cond_destroy(&waiting.changed);
	waiting.running = false;
	flush();
	buffer_free(&waiting.lines);
	buffer_free(&waiting.taken);
}

/* Adds a line to those that wait; a full buffer is written by who fills it. */
static void
add_waiting(const struct buffer *line)
{
	bool		full;

	pthread_mutex_lock(&waiting.mutex);
	buffer_append(&waiting.lines, line->data, line->length);
	if (++waiting.count == 1)
		pthread_cond_signal(&waiting.changed);
	full = waiting.lines.length >= WAITING_BYTES || waiting.lines.failed;
	pthread_mutex_unlock(&waiting.mutex);
	if (full)
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
	buffer_printf(line, ",\"status\":%d,\"bytes\":%zu", record->status,
				  record->bytes);
	buffer_printf(line, ",\"totalMicros\":%llu,\"waitMicros\":%llu,"
				  "\"databaseMicros\":%llu",
				  (unsigned long long) record->total_micros,
				  (unsigned long long) record->wait_micros,
				  (unsigned long long) record->database_micros);
	append_member(line, "principalId", record->principal_id);
	append_member(line, "principalKind", record->principal_kind);
	if (record->trace_id[0] != '\0')
	{
		append_member(line, "traceId", record->trace_id);
		append_member(line, "spanId", record->span_id);
	}
	buffer_string(line, "}\n");
	if (line->failed || (!waiting.running &&
						 !write_bytes(STDOUT_FILENO, line)))
		metrics_add(METRIC_LOG_LINES_LOST, 1);
	else if (waiting.running)
		add_waiting(line);
}

void
log_event(enum log_level level, const char *event, const char *request_id,
		  const char *sqlstate, const char *format,...)
{
	static const char *const names[] = {"info", "warning", "error"};
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
	if (!line.failed)
		write_bytes(STDERR_FILENO, &line);
	buffer_free(&line);
}
