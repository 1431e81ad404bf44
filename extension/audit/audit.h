/*
 * Records of what requests did, and of their refusals.
 *
 * While a request works, its records are only noted in memory.  They are
 * written together, in the request's transaction: after the work when it
 * stays, and after the guard has undone it when it does not; then the request
 * as a whole is the one thing to be recorded.
 *
 * The code that notes a record decides what it may hold: never a secret, a
 * password or its hash, a token, or a name that nobody is known to have.
 */
#ifndef EA_AUDIT_H
#define EA_AUDIT_H

#include "nodes/pg_list.h"
#include "utils/uuid.h"

#include "model/entity.h"
#include "request/request.h"

/* Actions that code names; those of whole routes are in entry/routes.c. */
#define EA_AUDIT_ENTITY_CREATE			"ENTITY_CREATE"
#define EA_AUDIT_ENTITY_UPDATE			"ENTITY_UPDATE"
#define EA_AUDIT_ENTITY_DELETE			"ENTITY_DELETE"
#define EA_AUDIT_ENTITY_RESTORE			"ENTITY_RESTORE"
#define EA_AUDIT_ENTITY_PURGE			"ENTITY_PURGE"
#define EA_AUDIT_RELATIONSHIP_ADD		"RELATIONSHIP_ADD"
#define EA_AUDIT_RELATIONSHIP_REPLACE	"RELATIONSHIP_REPLACE"
#define EA_AUDIT_RELATIONSHIP_REMOVE	"RELATIONSHIP_REMOVE"
#define EA_AUDIT_REFRESH_REUSED			"REFRESH_REUSED"
#define EA_AUDIT_AUTHENTICATION			"AUTHENTICATION"
#define EA_AUDIT_ACCESS_DENIED			"ACCESS_DENIED"
#define EA_AUDIT_TENANT_ERASED			"TENANT_ERASED"
#define EA_AUDIT_SUPERADMIN_CREATED		"SUPERADMIN_CREATED"
#define EA_AUDIT_SIGNING_KEY_ROTATED	"SIGNING_KEY_ROTATED"
#define EA_AUDIT_SIGNING_KEY_REVOKED	"SIGNING_KEY_REVOKED"
#define EA_AUDIT_MANIFEST_APPLIED		"MANIFEST_APPLIED"
#define EA_AUDIT_ROLE_MAPPED			"ROLE_MAPPED"
#define EA_AUDIT_PURGED					"AUDIT_PURGED"
#define EA_AUDIT_USER_CREATED			"USER_CREATED"
#define EA_AUDIT_USER_RENAMED			"USER_RENAMED"
#define EA_AUDIT_TENANT_ADMIN_GRANTED	"TENANT_ADMIN_GRANTED"

/*
 * The detail of a soft deletion, and of its being undone, begins so.  Such a
 * record has no values: the row keeps them, and has them again.
 */
#define EA_AUDIT_DELETION "deletion "

typedef struct EaAuditRecord
{
	const char *action;
	const char *target_type;	/* NULL: none */
	const char *target_id;		/* NULL: none */
	StringInfo	changes;		/* `{"name":[..],..` still open; NULL: none */
	int			counted;		/* bytes of them, by ea_audit_kept() */
	const char *detail;			/* NULL: none */
	bool		has_version;	/* of a target that is locked: that which it */
	int64		version;		/* had afterwards */
} EaAuditRecord;

/* The parts that all records of a request have in common. */
typedef struct EaAuditFrame
{
	const char *outcome;
	const EaPrincipal *actor;	/* NULL: nobody known */
	const char *username;		/* that was claimed, without an actor */
	bool		has_tenant;		/* that was acted in */
	pg_uuid_t	tenant;
} EaAuditFrame;

/* Noted so far; req->audit, NULL before the first note. */
typedef struct EaAudit
{
	int			n;
	int			max;
	EaAuditRecord **records;
	EaAuditRecord *open;		/* the write under way */

	/* the request itself, as far as its route does not say */
	const char *action;
	const EaPrincipal *subject;
	List	   *others;			/* further subjects (EaPrincipal) */
	const char *made;
	EaAuditRecord own;			/* its changes and detail */
} EaAudit;

/* -------- for writes of entities -------- */

/* The declarations ask for records of entities. */
extern bool ea_audit_entities(EaRequest *req);

/* A new record about a resource. */
extern EaAuditRecord *ea_audit_resource(EaRequest *req, const char *action,
										const EaEntity *entity,
										const EaId *id);

/* The same, and it becomes the write under way (req->audit->open). */
extern EaAuditRecord *ea_audit_open(EaRequest *req, const char *action,
									const EaEntity *entity,
									const EaId *id);

/* Add a changed field; before and after are JSON text and copied. */
extern void ea_audit_change(EaAuditRecord *record, const char *field,
							const char *before, const char *after);

/* The record has changes, if only none. */
extern void ea_audit_begin_changes(EaAuditRecord *record);

/*
 * The record's changes so far count as the request's memory, or are too much
 * (request/limits.h).
 */
extern void ea_audit_kept(EaRequest *req, EaAuditRecord *record);

/* The same in pieces: the caller appends `<before>,<after>]`. */
extern StringInfo ea_audit_begin_change(EaAuditRecord *record,
										const char *field);

/* The version that the write made, where the target has versions. */
static inline void
ea_audit_version(EaAuditRecord *record, bool has_version, int64 version)
{
	record->has_version = has_version;
	record->version = version;
}

/* -------- for identity and management -------- */

/*
 * A new record about what is no resource.  target_type is not copied, and
 * target_id may be NULL.
 */
extern EaAuditRecord *ea_audit_note(EaRequest *req, const char *action,
									const char *target_type,
									const pg_uuid_t *target_id);

/*
 * The account that a request without a credential turned out to be about: the
 * actor if it succeeds, its target if not.  Copied, but for the targets of its
 * pointers.  Each account has a record of its own, if there are several.
 */
extern void ea_audit_subject(EaRequest *req, const EaPrincipal *subject);

/* The record that the request made, where no Location header names it. */
extern void ea_audit_made(EaRequest *req, const pg_uuid_t *id);

/* The request does something else than its route's name says. */
extern void ea_audit_action(EaRequest *req, const char *action);

/* The record of the request itself, for notes made in one go. */
extern EaAuditRecord *ea_audit_own(EaRequest *req);

/*
 * A member that the request changed: text or, with json set, JSON; NULL is
 * null.
 */
extern void ea_audit_own_change(EaRequest *req, const char *field,
								const char *before, const char *after,
								bool json);

/* -------- for functions that are called with plain SQL -------- */

/*
 * Write a record of an act of the session's role; target_id, tenant and detail
 * may be NULL.  SPI must be connected.  No declaration switches it off.
 */
extern void ea_audit_by_role(const char *action, const pg_uuid_t *tenant,
							 const char *target_type, const char *target_id,
							 const char *detail);

/*
 * The same of an act that changed something: the changes, or none, become the
 * record's.
 */
extern void ea_audit_changes_by_role(const char *action,
									 const pg_uuid_t *tenant,
									 const char *target_type,
									 const char *target_id,
									 const char *detail,
									 EaAuditRecord *changes);

/*
 * The same of an act that changed one member, text.  It may be done before an
 * update of the extension, when the log is still that of an older version.
 */
extern void ea_audit_change_by_role(const char *action,
									const pg_uuid_t *tenant,
									const char *target_type,
									const pg_uuid_t *target_id,
									const char *field, const char *before,
									const char *after);

/* -------- for readers of records -------- */

/*
 * Where the service is distributed each record has a tenant, by which it is
 * kept: that of the platform's is the UUID of zeros, which is shown to nobody.
 */
extern const pg_uuid_t ea_audit_platform;

/* The tenant in the first Datum, NULL for the platform. */
extern const pg_uuid_t *ea_audit_tenant(Datum value, bool isnull);

/* -------- between audit.c and audit_event.c -------- */

/* Write all records noted; there is at least one. */
extern void ea_audit_write(EaRequest *req, const EaAuditFrame *frame);

#endif							/* EA_AUDIT_H */
