/*
 * The access log on stdout and the event log on stderr, JSON lines.
 *
 * Lines of different threads never mix.  Those of the event log are written at
 * once, one write(2) each.  Those of the access log may wait for others for a
 * moment and go out together, because a write costs more than all else that is
 * done for them; a process that is killed loses the ones that wait.
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
 * From here on, lines of the access log wait for at most that time; 0: not at
 * all, as before this call.  False if there can be no thread for it.
 */
extern bool log_start(long delay_ms);

/* Writes what waits, and goes back to writing at once. */
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
