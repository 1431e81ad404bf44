/*
 * User-defined triggers on a table that is written.
 */
#ifndef EA_TRIGGERS_H
#define EA_TRIGGERS_H

#include "utils/relcache.h"

/*
 * Triggers other than those of PostgreSQL's own, as for foreign keys, run when
 * rows of the table are written: they may change rows, skip them, or write
 * others.  The table is locked.
 */
extern bool ea_triggers_of_others(Relation table);

#endif							/* EA_TRIGGERS_H */
