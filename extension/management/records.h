/*
 * Records of /manage and /auth, by a table of each kind: what is shown of
 * one, what is taken for it, where it is stored.
 *
 * A kind is an EaRecord with its columns, an EaBodyForm for each body that it
 * takes, and rows of entry/routes.c with handlers from here.  What is true of
 * one kind only stands in its hooks.
 */
#ifndef EA_RECORDS_H
#define EA_RECORDS_H

#include "audit/audit.h"
#include "identity/secret.h"
#include "query/flat_filter.h"
#include "request/body.h"
#include "request/request.h"

/* The owner of a kind's records; its id is $1 in all their SQL. */
typedef enum EaScope
{
	EA_OF_SERVICE,				/* nobody's: $1 is null */
	EA_OF_TENANT,				/* that of /manage/tenants/{id}/... */
	EA_OF_CALLER
} EaScope;

typedef struct EaDraft EaDraft;
typedef void (*EaRecordHook) (EaDraft *draft);

/*
 * A kind of record.  In all its SQL r is a row of its table, and $2 the time
 * of the request.  The first column is the id, "r.id".
 */
typedef struct EaRecord
{
	const char *schema;			/* "User": so OpenAPI calls it; User<Page>,
								 * <New>User */
	EaScope		scope;
	const char *table;			/* "entityapi.account" */
	const char *rows;			/* after it: " JOIN ... WHERE ..." */
	const EaListColumn *columns;
	int			ncolumns;

	/* how one is made, besides its id, created_at, and what was taken */
	const char *owner;			/* column with $1, NULL: none */
	const char *fixed;			/* further columns: "status, kind", */
	const char *fixed_values;	/* and what they have: "'ACTIVE', 'USER'" */
	const char *secret;			/* member of the new one that is shown once */
	const char *secret_prefix;	/* it is of base62, NULL: no such one */
	bool		secret_apart;	/* and `after` stores it, not token_id and
								 * secret_hash */
	const char *made_schema;	/* members of the new one only, for OpenAPI */

	/* the hooks of this kind; each may be NULL */
	EaRecordHook before;		/* a body is taken: before all locks */
	EaRecordHook store;			/* it has no fault: add to what is stored */
	EaRecordHook after;			/* the row is written, and not yet shown */
	EaRecordHook leave;			/* it is held, and about to be deleted */
} EaRecord;

#define EA_RECORD_COLUMNS(...) \
	.columns = (const EaListColumn[]) {__VA_ARGS__}, \
	.ncolumns = lengthof(((const EaListColumn[]) {__VA_ARGS__}))

/* A column, and what is to be in it. */
typedef struct EaStored
{
	const char *column;
	EaValue		value;
} EaStored;

#define EA_STORED_MAX 16

/* A record that is being made, changed, or shown. */
struct EaDraft
{
	EaRequest  *req;
	const EaRecord *record;
	pg_uuid_t	scope;
	pg_uuid_t	id;
	EaValue    *held;			/* its columns as they were; NULL: is made */

	/* what was sent */
	const EaJson *body;
	const char *base;			/* pointer to it */
	const EaBodyForm *form;

	/* what comes of it */
	int			nstored;
	EaStored	stored[EA_STORED_MAX];
	EaSecret	secret;
	const char *shown;			/* the secret, to be shown this once */
	StringInfo	more;			/* a further member: "'name':..." */
	void	   *own;			/* of the hooks */
};

/* Handlers.  The caller's authority over the tenant has been checked. */
extern void ea_records_list(EaRequest *req);
extern void ea_records_show(EaRequest *req);

/* -------- what they do, in parts -------- */

/*
 * The tenant of /manage/tenants/{id}/..., 404 if there is none.  But for GET
 * it stays until the transaction ends.
 */
extern void ea_records_tenant(EaRequest *req, pg_uuid_t *tenant);

/*
 * Find the record of the path and its owner; 404 if there is none.  With no id
 * in the path it is the record with the owner's id.
 */
extern void ea_records_locate(EaDraft *draft);

/* Keep the row as it is, and fill `held`; 404 if there is none. */
extern void ea_records_hold(EaDraft *draft, const char *lock);

/* A member of what is held. */
extern EaValue *ea_records_held(const EaDraft *draft, const char *member);

/* The columns as they are by now; NULL if there is no such record. */
extern EaValue *ea_records_find(const EaDraft *draft);

/*
 * The same, and notes how they differ from what was held: all members but the
 * id and those that are null of what was made, or has gone.
 */
extern EaValue *ea_records_note(const EaDraft *draft, EaAuditRecord *audit);

/* Append it as JSON. */
extern void ea_records_put(const EaDraft *draft, StringInfo out,
						   const EaValue *row);

#endif							/* EA_RECORDS_H */
