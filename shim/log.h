/*-------------------------------------------------------------------------
 *
 * log.h
 *	  The access log on stdout and the event log on stderr, JSON lines.
 *
 * Each line is one write(2), so that lines of different threads never mix.
 * Neither log ever holds a header, a body, a query string or a parameter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* What one request leaves behind; strings may be NULL. */
struct access_record
{
	const char *request_id;
	const char *method;
	const char *route;			/* the template, never the target itself */
	const char *principal_id;
	const char *principal_kind;
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

/* Microseconds of a clock that never goes back. */
extern uint64_t now_micros(void);

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

#endif							/* LOG_H */
