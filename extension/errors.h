/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  Refusals: the table of codes, and the way from a fault to an answer.
 *
 * A refusal is an answer of the API, not a PostgreSQL error text.  Code that
 * finds a fault adds it to the request; as soon as it cannot go on it throws.
 * The guard in handle.c catches, and ea_errors_write() makes the document.
 *
 * extension/errors.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_ERRORS_H
#define EA_ERRORS_H

#include "compat.h"
#include "lib/stringinfo.h"
#include "utils/elog.h"

typedef struct EaRequest EaRequest;

/* SQLSTATE of a thrown refusal; the request holds what is refused. */
#define ERRCODE_EA_REFUSED MAKE_SQLSTATE('J', 'A', '0', '0', '0')

/* SQLSTATE of refused manifests; DETAIL is a JSON array of faults. */
#define ERRCODE_EA_MANIFEST MAKE_SQLSTATE('J', 'A', '4', '0', '0')

/* At most so many error objects stand in one answer. */
#define EA_MAX_PROBLEMS 20

/*
 * Stable codes.  Status, code word and title of each are in ea_error_table
 * (errors.c), in the same order.
 */
typedef enum EaErrorCode
{
	EA_ERR_MALFORMED_REQUEST,	/* 400 path, header or encoding */
	EA_ERR_MALFORMED_JSON,		/* 400 body is no JSON */
	EA_ERR_INVALID_DOCUMENT,	/* 400 JSON of a wrong form */
	EA_ERR_UNKNOWN_FIELD,		/* 400 attribute or relationship or member */
	EA_ERR_INVALID_VALUE,		/* 400 value does not fit its type */
	EA_ERR_REQUIRED,			/* 400 required member missing or null */
	EA_ERR_READ_ONLY,			/* 400 member may not be written */
	EA_ERR_UNKNOWN_PARAMETER,	/* 400 query parameter */
	EA_ERR_INVALID_PARAMETER,	/* 400 repeated, empty or malformed one */
	EA_ERR_INVALID_FILTER,		/* 400 */
	EA_ERR_INVALID_SORT,		/* 400 */
	EA_ERR_INVALID_INCLUDE,		/* 400 */
	EA_ERR_INVALID_FIELDS,		/* 400 */
	EA_ERR_INVALID_PAGE,		/* 400 */
	EA_ERR_INVALID_HEADER,		/* 400 header value, If-Match */
	EA_ERR_TYPE_NOT_ALLOWED,	/* 400 linkage type, one-of member */
	EA_ERR_HOOK_REJECTED,		/* 400 */
	EA_ERR_WEAK_PASSWORD,		/* 400 */
	EA_ERR_INVITE_INVALID,		/* 400 */
	EA_ERR_TENANT_REQUIRED,		/* 400 X-Tenant-Id missing or unknown */
	EA_ERR_TWO_CREDENTIALS,		/* 400 */
	EA_ERR_ANSWER_TOO_LARGE,	/* 400 more than an answer or its making may take */
	EA_ERR_UNAUTHENTICATED,		/* 401 no credential */
	EA_ERR_INVALID_CREDENTIAL,	/* 401 a rejected one */
	EA_ERR_LOGIN_FAILED,		/* 401 username or password */
	EA_ERR_FORBIDDEN,			/* 403 authority missing */
	EA_ERR_PASSWORD_CHANGE_REQUIRED,	/* 403 */
	EA_ERR_CLIENT_ID,			/* 403 client-generated id */
	EA_ERR_TO_ONE,				/* 403 POST or DELETE on a to-one */
	EA_ERR_NOT_FOUND,			/* 404 */
	EA_ERR_RELATED_NOT_FOUND,	/* 404 a referenced resource */
	EA_ERR_METHOD_NOT_ALLOWED,	/* 405 */
	EA_ERR_NOT_ACCEPTABLE,		/* 406 */
	EA_ERR_TYPE_CONFLICT,		/* 409 type differs from the URL */
	EA_ERR_ID_CONFLICT,			/* 409 id differs from the URL */
	EA_ERR_UNIQUE,				/* 409 unique value taken */
	EA_ERR_REFERENCED,			/* 409 still referred to */
	EA_ERR_PRECONDITION_FAILED, /* 412 */
	EA_ERR_TOO_LARGE,			/* 413 */
	EA_ERR_URI_TOO_LONG,		/* 414 */
	EA_ERR_UNSUPPORTED_MEDIA_TYPE,	/* 415 */
	EA_ERR_PRECONDITION_REQUIRED,	/* 428 */
	EA_ERR_THROTTLED,			/* 429 */
	EA_ERR_HEADERS_TOO_LARGE,	/* 431 */
	EA_ERR_INTERNAL,			/* 500 */
	EA_ERR_UNAVAILABLE			/* 503 */
} EaErrorCode;

/* Which part of the request is at fault (JSON:API "source"). */
typedef enum EaSource
{
	EA_AT_NONE,
	EA_AT_POINTER,				/* RFC 6901 into the body */
	EA_AT_PARAMETER,			/* query parameter */
	EA_AT_HEADER				/* request header */
} EaSource;

typedef struct EaProblem
{
	EaErrorCode code;
	EaSource	source;
	const char *where;			/* pointer, parameter or header name */
	const char *detail;
} EaProblem;

/*
 * Note one fault and go on.  Strings are copied into the request's memory.
 * Beyond EA_MAX_PROBLEMS further ones are dropped.
 */
extern void ea_errors_add(EaRequest *req, EaErrorCode code, EaSource source,
						  const char *where, const char *fmt,...)
			pg_attribute_printf(5, 6);

/* Note one fault and give up: longjmps to the guard of the request. */
extern EA_NORETURN void ea_errors_throw(EaRequest *req, EaErrorCode code,
										EaSource source, const char *where,
										const char *fmt,...)
			pg_attribute_printf(5, 6) EA_NORETURN_END;

/* The one answer for what is absent, another tenant's or hidden. */
#define EA_NO_SUCH_RESOURCE "There is no such resource."
extern EA_NORETURN void ea_errors_not_found(EaRequest *req) EA_NORETURN_END;

/* Give up if faults have been noted. */
extern void ea_errors_check(EaRequest *req);

/* Status of a code, as in the contract. */
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
 * lies: all that it says lives as long as it is told.
 */
extern EA_NORETURN void ea_errors_rethrow(ErrorData *edata) EA_NORETURN_END;

#endif							/* EA_ERRORS_H */
