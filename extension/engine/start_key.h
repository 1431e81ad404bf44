/*
 * The key that an index scan begins at, which need not be asked of what comes
 * after it.
 *
 * A page that begins at a value (name >= $2 in the order of an index) enters
 * the index right there.  Until PostgreSQL 17, which does this by itself, each
 * entry of the leaf page is held against the value all the same, though all
 * that the scan meets from its first row on lie on that side of it.  For text
 * that is more than all the rest of the scan.
 */
#ifndef EA_START_KEY_H
#define EA_START_KEY_H

#include "executor/spi.h"

/*
 * Run a statement that only reads under the active snapshot, as SPI would do
 * it but for that.  False, with nothing run, if it is anything else, where
 * the server does it by itself, or while nothing may go past the executor
 * (engine/keyscan.h, of which "here" is).
 */
extern bool ea_start_key_run(SPIPlanPtr plan, bool here, ParamListInfo params,
							 DestReceiver *dest, uint64 *n);

#endif							/* EA_START_KEY_H */
