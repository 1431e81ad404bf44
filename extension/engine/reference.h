/*
 * Foreign keys of a row that is about to be written.
 *
 * PostgreSQL asks, after a row was written, for the one that it refers to by
 * a statement of its own with a lock, which costs more than writing the row.
 * Here that is done by the index of the key, before: whoever holds the lock
 * finds the row there until the transaction ends.  So it is waited for before
 * the row's own unique keys are, where PostgreSQL waits for it after them; of
 * two transactions that wait for each other, PostgreSQL ends one either way.
 */
#ifndef EA_REFERENCE_H
#define EA_REFERENCE_H

#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

typedef struct EaReference EaReference;

/*
 * The foreign key that a trigger of the referring table is of, in the current
 * memory context, or NULL if it is not to be asked here: the trigger is
 * somebody's own, or off; the key is of no plain table, compares by somebody's
 * own operators, ...  It is NULL as well, and *busy set, while somebody else
 * has the other table locked: a row may turn out to refer to nothing, and then
 * waits for nobody.
 */
extern EaReference *ea_reference_make(Relation relation,
									  const Trigger *trigger, bool *busy);

/*
 * A row refers to nothing, or to what the one "before" it did (NULL: there was
 * none), or to one that is there under the active snapshot and now is locked,
 * as by FOR KEY SHARE.  False if not, or if only PostgreSQL's own trigger can
 * tell: its owner may not ask, somebody has changed the row meanwhile.
 *
 * If a row goes and another comes in its place in one transaction while it is
 * waited for, the executor has a newer snapshot for its trigger and finds
 * that; by itself it would not.
 */
extern bool ea_reference_holds(EaReference *reference, TupleTableSlot *before,
							   TupleTableSlot *row);

#endif							/* EA_REFERENCE_H */
