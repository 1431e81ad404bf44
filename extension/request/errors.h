/*
 * Refusals: the table of codes, and the way from a fault to an answer.
 *
 * A refusal is an answer of the API, not a PostgreSQL error text.  Code that
 * finds a fault adds it to the request; as soon as it cannot go on it throws.
 * The guard in entry/handle.c catches, and ea_errors_write() makes the
 * document.
 */
#ifndef EA_ERRORS_H
#define EA_ERRORS_H

#include "utils/elog.h"

#include "base/compat.h"
#include "request/problem.h"
#include "request/request.h"

/* SQLSTATE of a thrown refusal; the request holds its faults. */
#define ERRCODE_EA_REFUSED MAKE_SQLSTATE('J', 'A', '0', '0', '0')

/*
 * SQLSTATE of a row that was not written: 409 NOT_WRITTEN where a request
 * wrote it (write/written.h).
 */
#define ERRCODE_EA_NOT_WRITTEN MAKE_SQLSTATE('J', 'A', '4', '0', '9')

/* SQLSTATE of refused manifests; DETAIL is a JSON array of faults. */
#define ERRCODE_EA_MANIFEST MAKE_SQLSTATE('J', 'A', '4', '0', '0')

/*
 * Note one fault and go on.  The format is that of whole sentences.  Strings
 * are copied into the request's memory.  Beyond EA_MAX_PROBLEMS further ones
 * are dropped.
 */
extern void ea_errors_add(EaRequest *req, EaErrorCode code, EaSource source,
						  const char *where, const char *fmt,...)
			pg_attribute_printf(5, 6);

/* Note one fault and give up: longjmps to the guard of the request. */
extern EA_NORETURN void ea_errors_throw(EaRequest *req, EaErrorCode code,
										EaSource source, const char *where,
										const char *fmt,...)
			pg_attribute_printf(5, 6);

/*
 * The one answer for a resource that is absent, another tenant's or hidden; a
 * fault that was noted by then is of the request alone, and is told instead.
 */
#define EA_NO_SUCH_RESOURCE "There is no such resource."
extern EA_NORETURN void ea_errors_not_found(EaRequest *req);

/* Give up if faults have been noted. */
extern void ea_errors_check(EaRequest *req);

/* The HTTP status of a code. */
extern int	ea_errors_status(EaErrorCode code);

/* The stable word of a code, e.g. "INVALID_FILTER". */
extern const char *ea_errors_word(EaErrorCode code);

/*
 * Turn the noted faults into the answer: sets status, headers that belong to
 * the status (WWW-Authenticate) and the error document (JSON:API "errors").
 */
extern void ea_errors_write(EaRequest *req);

/* "/a/b" + "c~d" -> "/a/b/c~0d" (RFC 6901), palloc'd. */
extern char *ea_errors_pointer(const char *base, const char *token);

/* The same for an array index. */
extern char *ea_errors_index(const char *base, int index);

/*
 * ReThrowError() for an error that CopyErrorData() has copied, wherever that
 * lies: all its texts live until it is reported.
 */
extern EA_NORETURN void ea_errors_rethrow(ErrorData *edata);

#endif							/* EA_ERRORS_H */
