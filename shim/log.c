/*-------------------------------------------------------------------------
 *
 * log.c
 *	  The access log on stdout and the event log on stderr, JSON lines.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define MESSAGE_SIZE 2048

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

/* A log that cannot be written must not take the service with it. */
static void
write_line(int file, struct buffer *line)
{
	size_t		done = 0;

	buffer_string(line, "}\n");
	if (line->failed)
		return;
	while (done < line->length)
	{
		ssize_t		written = write(file, line->data + done,
									line->length - done);

		if (written <= 0)
			return;
		done += (size_t) written;
	}
}

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
	write_line(STDOUT_FILENO, line);
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
	write_line(STDERR_FILENO, &line);
	buffer_free(&line);
}
