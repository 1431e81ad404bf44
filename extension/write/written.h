/*
 * See that a write has written its rows.
 *
 * User-defined triggers can skip a row, write another one in its place, or
 * undo what was done, without an error.  Each statement of the service that
 * writes rows of entities or links is run from here, or is followed by a
 * question from here: one that wrote no row, or more, or others than those
 * that it was about, is refused (409 NOT_WRITTEN), and with it everything else
 * that the transaction did.
 *
 * How many rows came back is compared in any case.  The table is asked for
 * their ids only where user-defined triggers had a say (EaSqlBuf.triggered),
 * so that it costs nothing elsewhere.
 */
#ifndef EA_WRITTEN_H
#define EA_WRITTEN_H

#include "model/sqlbuf.h"

/* Refuse: a row of this table was not written.  For the server's log. */
extern EA_NORETURN void ea_written_refuse(const char *table);

/* Run a statement that writes so many rows; it has written them. */
extern void ea_written_run(EaSqlBuf *b, const EaEntity *entity, bool one_row,
						   uint64 rows, EaRowFunction row, void *arg);

/* The state that rows are to have afterwards. */
typedef enum EaWrittenAs
{
	EA_WRITTEN_THERE,			/* there, deleted softly or not */
	EA_WRITTEN_LIVE,			/* there, and not deleted */
	EA_WRITTEN_DELETED,			/* there, and deleted softly */
	EA_WRITTEN_GONE				/* not there */
} EaWrittenAs;

/* The statement was about these rows of the entity: so they are. */
extern void ea_written_rows(const EaSqlBuf *b, EaEntity *entity,
							const EaIds *ids, EaWrittenAs as);

/*
 * The statement has left nothing to do: "left", to which the caller may add
 * conditions after the table's, finds no row.  Only to be run where
 * ea_written_asks() says so.
 */
static inline bool
ea_written_asks(const EaSqlBuf *b)
{
	return b->triggered;
}

extern void ea_written_none(EaSqlBuf *left, const EaEntity *entity);

/* The ids that a query finds are all of those, in any order. */
extern void ea_written_all(EaSqlBuf *found, const EaEntity *entity,
						   const EaIds *ids);

#endif							/* EA_WRITTEN_H */
