/*-------------------------------------------------------------------------
 *
 * write_audit.h
 *	  What a write of an entity changes, for the audit log.
 *
 * All of these do nothing where the declarations ask for no records of
 * entities.  What was there before is what the write really replaces: either
 * it was read under a lock, or the write made sure that it still is there.
 *
 * extension/write_audit.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_WRITE_AUDIT_H
#define EA_WRITE_AUDIT_H

#include "audit.h"
#include "catalog.h"
#include "input.h"
#include "sqlbuf.h"

/* A row was made from the input: its record is open from now on. */
extern void ea_write_audit_created(EaInput *input, const pg_uuid_t *id);

/*
 * Before an update: keep what the row holds in the fields given; NULL where
 * there is nothing to keep.  To lock the row costs more than to read it, so
 * the update first asks for a row that is unchanged, and only where there is
 * none for one that has been locked.  After it: open the record, with the
 * values that differ.
 */
typedef struct EaWriteBefore EaWriteBefore;

extern EaWriteBefore *ea_write_audit_before(EaInput *input,
											const pg_uuid_t *id, bool lock);
extern void ea_write_audit_unchanged(EaSqlBuf *b, const EaWriteBefore *before,
									 int alias);
extern void ea_write_audit_updated(EaInput *input, const pg_uuid_t *id,
								   EaWriteBefore *before);

/*
 * Deleted rows: the columns that the statement returns, for alias t<n>, and
 * the callback that notes a record for each row.
 */
typedef struct EaWriteDeleted
{
	EaRequest  *req;
	EaEntity   *entity;
} EaWriteDeleted;

extern void ea_write_audit_columns(EaSqlBuf *b, EaEntity *entity, int alias);
extern void ea_write_audit_deleted_row(void *deleted, TupleTableSlot *slot);

/*
 * What statements put into a relationship and took out of it, by what they
 * returned: others may have come or gone since anybody looked.
 */
typedef struct EaWriteIds
{
	int			n;
	int			max;
	pg_uuid_t  *ids;
} EaWriteIds;

typedef struct EaWriteMoved
{
	EaWriteIds	added;
	EaWriteIds	removed;
} EaWriteMoved;

/* NULL where nobody asks. */
extern EaWriteMoved *ea_write_audit_moved(EaRequest *req);

/* Run a statement that writes links, and note the `column` of each. */
extern void ea_write_audit_run_links(EaSqlBuf *b, const char *column,
									 EaWriteIds *moved);

/*
 * Rows whose owning field a write elsewhere is about to change: begin the
 * statement that locks and reads them, for the same operation as the write,
 * the caller adds its conditions, and run it.  NULL if there is no such row.
 */
typedef struct EaWriteOwners EaWriteOwners;

extern int	ea_write_audit_owners(EaSqlBuf *b, EaRequest *req,
								  EaField *owner, EaOperation op,
								  bool deleted_too);
extern EaWriteOwners *ea_write_audit_hold_owners(EaSqlBuf *b, EaField *owner);

/*
 * Then the write itself: ` AND t<alias>.<id> = ANY ($n)` with the rows held,
 * which may be left out where none may escape, and run it.  Each row that it
 * changes gets a record in which the field becomes the resource `after`, or
 * null.  A row that was not held lets the request be repeated.  Without owners
 * the statement is just run.
 */
extern void ea_write_audit_only_owners(EaSqlBuf *b, int alias,
									   const EaWriteOwners *owners);
extern void ea_write_audit_run_owners(EaSqlBuf *b, int alias,
									  EaWriteOwners *owners,
									  const char *after_type,
									  const pg_uuid_t *after,
									  EaWriteIds *moved);

/* How a relationship that is not a column of the row changes. */
typedef enum EaWriteLinks
{
	EA_LINKS_FIRST,				/* there were none before */
	EA_LINKS_ADD,
	EA_LINKS_REPLACE,
	EA_LINKS_REMOVE
} EaWriteLinks;

/* It has: add the members before and after to the open record. */
extern void ea_write_audit_links(EaRequest *req, EaField *field,
								 const pg_uuid_t *id, EaWriteLinks how,
								 EaWriteMoved *moved);

#endif							/* EA_WRITE_AUDIT_H */
