/*
 * The deletion that a soft-deleted row was part of.
 *
 * All rows of one deletion have its time and its id.  Rows of before there
 * were ids, and existing tables without a column for them, have the time
 * alone.
 */
#ifndef EA_DELETION_MARK_H
#define EA_DELETION_MARK_H

#include "model/sqlbuf.h"

typedef struct EaDeletionMark
{
	TimestampTz at;
	bool		has_column;		/* the table has one for the id, */
	bool		has_id;			/* and this row has one */
	pg_uuid_t	id;
} EaDeletionMark;

/* Append the columns that have it, of t<alias>; read them from *column on. */
extern void ea_deletion_mark_select(EaSqlBuf *b, EaEntity *entity, int alias);
extern void ea_deletion_mark_read(EaDeletionMark *deletion, EaEntity *entity,
								  TupleTableSlot *slot, int *column);

/* ` AND <t<alias> was deleted with it>`; the statement shows deleted rows. */
extern void ea_deletion_mark_same(EaSqlBuf *b, EaEntity *entity, int alias,
								  const EaDeletionMark *deletion);

#endif							/* EA_DELETION_MARK_H */
