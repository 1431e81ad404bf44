/*
 * The deletion that a soft-deleted row was part of.
 *
 * All rows of one deletion have its time and its id.  Rows of before there
 * were ids, and existing tables without a column for them, have the time
 * alone.
 */
#ifndef EA_SOFT_DELETION_H
#define EA_SOFT_DELETION_H

#include "model/sqlbuf.h"

typedef struct EaSoftDeletion
{
	TimestampTz at;
	bool		has_column;		/* the table has one for the id, */
	bool		has_id;			/* and this row has one */
	pg_uuid_t	id;
} EaSoftDeletion;

/* Append the columns that have it, of t<alias>; read them from *column on. */
extern void ea_soft_deletion_select(EaSqlBuf *b, EaEntity *entity, int alias);
extern void ea_soft_deletion_read(EaSoftDeletion *deletion, EaEntity *entity,
								  TupleTableSlot *slot, int *column);

/* ` AND <t<alias> was deleted with it>`; the statement shows deleted rows. */
extern void ea_soft_deletion_same(EaSqlBuf *b, EaEntity *entity, int alias,
								  const EaSoftDeletion *deletion);

#endif							/* EA_SOFT_DELETION_H */
