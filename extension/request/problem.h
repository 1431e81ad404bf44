/*
 * A fault of a request: its code, its place, and its reason.
 */
#ifndef EA_PROBLEM_H
#define EA_PROBLEM_H

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
	EA_ERR_CHECK_FAILED,		/* 400 a check of the table's */
	EA_ERR_REFUSED_BY_TABLE,	/* 400 by a trigger */
	EA_ERR_VALUE_TOO_LARGE,		/* 400 for a page or an index */
	EA_ERR_WEAK_PASSWORD,		/* 400 */
	EA_ERR_INVITE_INVALID,		/* 400 */
	EA_ERR_TENANT_REQUIRED,		/* 400 X-Tenant-Id missing or unknown */
	EA_ERR_TWO_CREDENTIALS,		/* 400 */
	EA_ERR_ANSWER_TOO_LARGE,	/* 400 an answer, or its making, takes more */
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
	EA_ERR_OVERLAP,				/* 409 with another resource */
	EA_ERR_REFERENCED,			/* 409 still referred to */
	EA_ERR_STILL_DELETED,		/* 409 what it needs has not been restored */
	EA_ERR_NOT_WRITTEN,			/* 409 the table's own code kept it away */
	EA_ERR_GONE_BEYOND_LOG,		/* 410 the audit log does not know */
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

/* The part of the request at fault (JSON:API "source"). */
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

#endif							/* EA_PROBLEM_H */
