/*
 * Run one statement on a cached plan, rows straight to a callback.
 *
 * This is all of engine/ that folders above include: the tables that
 * statements rely on (held.h), invalidation messages (invalidate.h), waits for
 * tables (table_lock.h), classes of turns (turn_class.h), and cached plans
 * (plancache.h) come with it.
 *
 * Rows never pass through a tuple table: a DestReceiver hands each slot to
 * the caller's function, which reads slot->tts_values and tts_isnull.
 */
#ifndef EA_EXEC_H
#define EA_EXEC_H

#include "executor/tuptable.h"

#include "base/exec_params.h"
#include "direct/index_count.h"
#include "engine/held.h"
#include "engine/invalidate.h"
#include "engine/own_text.h"
#include "engine/plancache.h"
#include "engine/reader.h"
#include "engine/table_lock.h"
#include "engine/turn_class.h"
#include "request/request.h"

typedef enum EaExecMode
{
	EA_EXEC_READ,				/* the statement's snapshot, no writes */
	EA_EXEC_WRITE,				/* sees all that is committed by now */
	EA_EXEC_LOOK				/* a read that is the service's own affair:
								 * neither counted nor observed */
} EaExecMode;

/*
 * Run sql, a string that also is the key of the plan cache: with equal text
 * the types must be equal, and no value of a request may stand in the text.
 * The reader may be NULL.  Returns the number of rows processed.  SPI must be
 * connected.
 *
 * Only tables of the extension and of the system may stand in it.  Those of
 * entities take ea_exec_held(), which locks them, then sees to it that they
 * are what the statement was written for, and only then runs it.
 *
 * ea_exec_one() is for look-ups by key, for which a generic plan is forced,
 * ea_exec_each() for all others; ea_exec_write() changes or locks rows by
 * key and reads none.
 */
extern uint64 ea_exec_write(const char *sql, EaParams params);
extern uint64 ea_exec_one(EaExecMode mode, const char *sql, EaParams params,
						  const EaReader *reader, void *arg);
extern uint64 ea_exec_each(EaExecMode mode, const char *sql, EaParams params,
						   const EaReader *reader, void *arg);
extern uint64 ea_exec_held(const EaHeld *held, EaExecMode mode, bool one_row,
						   const char *sql, EaParams params,
						   const EaReader *reader, void *arg);

/*
 * The rows that have these values, counted on an index: see
 * direct/index_count.h.  False: it takes a statement.
 */
extern bool ea_exec_count_rows(const EaHeld *held, const char *table,
							   int nkeys, const EaCountKey *keys,
							   int64 *count);

/*
 * User-defined triggers ran with the last statement that has ended, so that
 * its rows may be others than it says, or not be there.  This is known of
 * statements that the executor runs; those run without it have none
 * (direct/key_update.h).
 */
extern bool ea_exec_triggered(void);

/* The int8 of the one row that a look-up finds; 0 if it finds none. */
extern int64 ea_exec_int64(EaExecMode mode, const char *sql, EaParams params);

/* Keeps the int8 of a row in the int64 that is its argument. */
extern void ea_exec_read_int64(void *arg, TupleTableSlot *slot);

/*
 * A look-up by key that sees what is committed by now, in any isolation level,
 * within a statement of the caller's and while parallel workers run: for state
 * that a session keeps, and for rights that may have been taken away.
 */
extern uint64 ea_exec_latest(EaExecMode mode, const char *sql,
							 EaParams params, const EaReader *reader,
							 void *arg);

/*
 * Call fn before each statement that writes or locks rows that all nodes of a
 * cluster may have (in_turn).  It may run statements.
 */
typedef void (*EaExecTurn) (const EaPlan *kept);

extern void ea_exec_in_turn(EaExecTurn fn);

/*
 * Call fn with each statement before it runs; NULL ends it.  Statements that
 * fn itself runs are not observed.  The texts of ea_exec_tell() come with
 * NULL.
 */
typedef void (*EaExecObserver) (const char *sql, const EaParams *params);

extern void ea_exec_observe(EaExecObserver fn);

/*
 * EXPLAIN the statement that is being observed, by SPI, as it will run.
 */
extern void ea_exec_explain(const char *sql, const EaParams *params);

/* Report to the observer a step that was done without a statement. */
extern void ea_exec_tell(const char *fmt,...) pg_attribute_printf(1, 2);

/*
 * Statements run by this backend since the last call of reset, and what was
 * done in the place of one.
 */
extern int	ea_exec_count(void);
extern void ea_exec_count_one(void);
extern void ea_exec_reset_count(void);

/* A text[] Datum of n C strings, or of a list of them, and back (palloc'd). */
extern Datum ea_exec_text_array(char *const *items, int n);
extern Datum ea_exec_text_list(const List *texts);
extern char **ea_exec_array_text(Datum array, int *n);

#endif							/* EA_EXEC_H */
