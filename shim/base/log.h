/*
 * The access log on stdout and the event log on stderr, JSON lines.
 *
 * Lines of different threads never mix.  While the service runs, a thread of
 * its own writes them, so that a log that cannot be written stops nobody.
 * Those of the event log go out at once.  Those of the access log may wait for
 * others for a moment and go out together, because a write costs more than all
 * else that is done for them.  A process that is killed loses what waits.
 * Neither log ever holds a header, a body, a query string or a parameter.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* What one request leaves behind; strings may be NULL. */
struct access_record
{
	const char *request_id;
	const char *method;
	const char *route;			/* the template, never the target itself */
	const char *principal_id;
	const char *principal_kind;
	const char *trace_id;		/* both empty without a trace */
	const char *span_id;
	int			status;
	size_t		bytes;			/* of the answer's body */
	uint64_t	total_micros;
	uint64_t	wait_micros;	/* for a connection of the pool */
	uint64_t	database_micros;
};

enum log_level
{
	LOG_INFO,
	LOG_WARNING,
	LOG_ERROR
};

/*
 * From here on, a thread writes, and lines of the access log wait for others
 * for at most that time.  False if there can be no thread for it.
 */
extern bool log_start(long delay_ms);

/* Writes what waits; from here on, as before the start, the caller writes. */
extern void log_stop(void);

/* Writes one line of the access log; "line" is scratch space. */
extern void log_access(struct buffer *line,
					   const struct access_record *record);

/*
 * Writes one line of the event log.  request_id and sqlstate may be NULL; the
 * message is cleaned of what is not UTF-8.
 */
extern void log_event(enum log_level level, const char *event,
					  const char *request_id, const char *sqlstate,
					  const char *format,...)
			__attribute__((format(printf, 5, 6)));

/*
 * Writes a line of text to the event log, for who starts or configures the
 * service.
 */
extern void log_plain(const char *prefix, const char *text);

/* Writes one line about a fault of the configuration to the event log. */
extern void complain(const char *format,...)
			__attribute__((format(printf, 1, 2)));

#endif							/* LOG_H */
