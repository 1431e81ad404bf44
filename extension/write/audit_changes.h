/*
 * The changes that a write of an entity makes, for the audit log.
 *
 * All of these do nothing where the declarations ask for no records of
 * entities.  The values before are those that the write really replaces:
 * either it was read under a lock, or the write made sure that it still is
 * there.
 */
#ifndef EA_AUDIT_CHANGES_H
#define EA_AUDIT_CHANGES_H

#include "audit/audit.h"
#include "model/catalog.h"
#include "model/sqlbuf.h"
#include "write/input.h"

/*
 * A row was made from the input: its record is open from now on.  Where
 * user-defined triggers had a say, here and below, the record has the row as
 * they have left it, which is read; if it is not there, all is refused
 * (write/written.h).
 */
extern void ea_changes_created(EaInput *input, const EaId *id);

/*
 * The values that an update replaces in the fields given; NULL where there is
 * nothing to keep.  The update itself is asked for it.  Where it declines,
 * having done nothing, the row is read: to lock it costs more, so the update
 * first asks for a row that is unchanged, and only where there is none for one
 * that has been locked.  Where user-defined triggers may change any field, all
 * are read, and locked at once.  After it: open the record, with the values
 * that differ.  Returns the version that the row has.
 */
typedef struct EaWriteBefore EaWriteBefore;

extern EaWriteBefore *ea_changes_before(EaInput *input);
extern void ea_changes_ask(EaSqlBuf *b, EaWriteBefore *before, int alias);
extern bool ea_changes_declined(const EaWriteBefore *before);
extern void ea_changes_read(EaWriteBefore *before, const EaId *id,
							bool lock);
extern int64 ea_changes_updated(EaInput *input, const EaId *id,
								EaWriteBefore *before, int64 version);

/*
 * Deleted rows, or restored ones: the columns that the statement returns, for
 * alias t<n>, the same for one that reads rows before they go, and the
 * callback that notes a record for each row.  The record
 * of a row that is gone for good has all its values.  A row that stays keeps
 * them, so the records of its soft deletion and its return say which deletion
 * it was, and no values: however often that is done, the log has no further
 * copy.
 */
typedef struct EaWriteDeleted
{
	EaRequest  *req;
	EaEntity   *entity;
	bool		restored;
	bool		stays;
	const pg_uuid_t *deletion;	/* of what stays; NULL: it has none */
} EaWriteDeleted;

extern void ea_changes_deleted(EaSqlBuf *b, EaWriteDeleted *deleted,
							   int alias);
extern void ea_changes_deleted_columns(EaSqlBuf *b, EaWriteDeleted *deleted,
									   int alias);
extern void ea_changes_deleted_row(void *deleted, TupleTableSlot *slot);

/*
 * The members that statements put into a relationship and took out of it, by
 * the rows that they returned: others may have come or gone since the check.
 */
typedef struct EaWriteMoved
{
	EaIds		added;
	EaIds		removed;
} EaWriteMoved;

/* NULL where no record is asked for. */
extern EaWriteMoved *ea_changes_moved(EaRequest *req, EaField *field);

/*
 * Run a statement that writes links of a many-to-many, and note the far end of
 * each.
 */
extern void ea_changes_run_links(EaSqlBuf *b, const EaField *field,
								 EaIds *moved);

/*
 * Rows whose owning field a write elsewhere is about to change: begin the
 * statement that locks and reads them, for the same operation as the write,
 * the caller adds its conditions, and run it.  NULL if there is no such row.
 */
typedef struct EaWriteOwners EaWriteOwners;

extern int	ea_changes_owners(EaSqlBuf *b, EaRequest *req,
							  EaField *owner, EaOperation op,
							  bool deleted_too);
extern EaWriteOwners *ea_changes_hold_owners(EaSqlBuf *b, EaField *owner);

/*
 * Then the write itself: ` AND t<alias>.<id> = ANY ($n)` with the rows held,
 * which may be left out where none may escape, and run it.  Each row that it
 * changes gets a record in which the field becomes the resource `after`, or
 * null.  A row that was not held lets the request be repeated.  Without owners
 * the statement is just run.
 */
extern void ea_changes_only_owners(EaSqlBuf *b, int alias,
								   const EaWriteOwners *owners);
extern void ea_changes_run_owners(EaSqlBuf *b, int alias,
								  EaWriteOwners *owners,
								  const EaEntity *after_of,
								  const EaId *after,
								  EaIds *moved);

/* How a relationship that is not a column of the row changes. */
typedef enum EaWriteLinks
{
	EA_LINKS_FIRST,				/* there were none before */
	EA_LINKS_ADD,
	EA_LINKS_REPLACE,
	EA_LINKS_REMOVE
} EaWriteLinks;

/* It has: add the members before and after to the open record. */
extern void ea_changes_links(EaRequest *req, EaField *field,
							 const EaId *id, EaWriteLinks how,
							 EaWriteMoved *moved);

#endif							/* EA_AUDIT_CHANGES_H */
