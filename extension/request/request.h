/*
 * One request: the input, the caller, and the answer under way.
 *
 * An EaRequest and all it points to live in req->mcxt, which entry/handle.c
 * makes before and deletes after; nothing of it outlives the call.
 */
#ifndef EA_REQUEST_H
#define EA_REQUEST_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "utils/uuid.h"

#include "request/principal.h"
#include "request/problem.h"

typedef enum EaMethod
{
	EA_GET = 1 << 0,
	EA_POST = 1 << 1,
	EA_PATCH = 1 << 2,
	EA_PUT = 1 << 3,
	EA_DELETE = 1 << 4
} EaMethod;

typedef struct EaHeader
{
	const char *name;			/* lower case */
	const char *value;
} EaHeader;

/*
 * The write under way, and its place in the body: with them a violated
 * constraint gets its meaning for the caller.
 */
typedef struct EaWriting
{
	const char *operation;		/* pointer of the atomic operation, or NULL */
	const char *pointer;		/* of the resource object; NULL: "/data" */
	struct EaEntity *entity;	/* whose table is changed; NULL: none yet */
	struct EaField *field;		/* the relationship that alone is written */
	struct EaField *links;		/* whose join table is changed, or NULL */
	bool		deleting;
	bool		releasing;		/* what referred to it lets go of it */
	bool		restoring;
} EaWriting;

/*
 * Where an error of a statement that changes an entity's table was raised
 * (request/raised.h).
 */
typedef struct EaRaised
{
	int			sqlerrcode;		/* 0: nothing is noted */
	bool		by_trigger;
	bool		by_others;		/* by a function that the statement called */
} EaRaised;

typedef enum EaWritingHow
{
	EA_WRITING_ROWS,
	EA_WRITING_DELETES,
	EA_WRITING_RELEASES,		/* takes references to what is deleted */
	EA_WRITING_RESTORES			/* fields that nobody has sent, as they were */
} EaWritingHow;

#define EA_MAX_ARGS 4
#define EA_MAX_HEADERS 16

typedef struct EaRequest EaRequest;

struct EaRequest
{
	MemoryContext mcxt;
	TimestampTz now;			/* the clock of this request */

	/* the input */
	EaMethod	method;			/* HEAD is GET with head set */
	bool		head;
	char	   *target;			/* as sent */
	char	   *query;			/* after '?', as sent; NULL without one */
	int			nheaders;
	EaHeader   *headers;		/* one that was repeated, more than once */
	const char *body;			/* body_len bytes, NULL without one */
	int			body_len;
	char	   *remote;			/* client address, NULL if unknown */
	char		request_id[65];
	bool		reads_only;		/* writes nothing, not even of its refusal */

	/* found on the way */
	struct EaCatalog *catalog;
	EaPrincipal *principal;		/* NULL: anonymous */
	const struct EaRoute *route;
	char	   *args[EA_MAX_ARGS];	/* decoded {segments} of the route */
	int			nargs;
	int			version;		/* API version, 0 outside /api */
	struct EaEntity *entity;	/* of an /api path */
	struct EaField *field;		/* its relationship, if one is named */
	bool		has_tenant;		/* tenant the request acts in */
	pg_uuid_t	tenant;
	EaWriting	writing;
	const struct EaApplication *application;	/* model/application.h */
	EaRaised	raised;
	bool		triggered;		/* user-defined triggers had a say in the
								 * rows written, which may be others */
	struct EaLids *lids;		/* local ids, within atomic operations */
	struct EaIdPool *ids;		/* texts of ids (model/id.h) */
	struct List *deferred;		/* foreign keys that are checked at the end */
	bool		strangers;		/* user-defined code ran in it */
	Size		unseen;			/* bytes kept since the limit was looked at */
	bool		called;			/* hooks among it */
	bool		deletes;		/* rows that others may still refer to */
	struct EaAudit *audit;		/* records so far, NULL: none */

	/* faults so far */
	EaProblem	problems[EA_MAX_PROBLEMS];
	int			nproblems;

	/* the answer */
	int			status;
	StringInfo	out;			/* body; empty: none */
	EaHeader	answer[EA_MAX_HEADERS];
	int			nanswer;
};

/*
 * Value of a request header by its lower-case name, or NULL when absent.  A
 * header sent more than once sets *repeated (which may be NULL) and gives the
 * first value.
 */
extern const char *ea_request_header(const EaRequest *req, const char *name,
									 bool *repeated);

/*
 * The same of a header that is a list: several lines are one, with commas
 * between (RFC 9110 section 5.3).
 */
extern const char *ea_request_list(const EaRequest *req, const char *name);

/* Set an answer header; value is not copied.  A second call replaces. */
extern void ea_request_answer(EaRequest *req, const char *name,
							  const char *value);

/*
 * From here on a statement changes the table of an entity; req->field alone is
 * written, where one is named.
 */
extern void ea_writing_begin(EaRequest *req, struct EaEntity *entity,
							 EaWritingHow how);

/* The same of the join table of a relationship of the entity. */
extern void ea_writing_links(EaRequest *req, struct EaEntity *entity,
							 struct EaField *links);

/* Nothing is written any more: a failure now is of no part of the body. */
extern void ea_writing_end(EaRequest *req);

/* The next writes are of this part of the body; operation as in EaWriting. */
extern void ea_writing_at(EaRequest *req, const char *operation,
						  const char *pointer);

/* The time, or what entityapi.clock says it is. */
extern TimestampTz ea_request_clock(void);

#endif							/* EA_REQUEST_H */
