/*
 * Whether a table's rows are those that were there before.
 */
#ifndef EA_ROW_VERSIONS_H
#define EA_ROW_VERSIONS_H

#include "access/htup.h"
#include "utils/relcache.h"

/*
 * A number for the rows that a small table has under the active snapshot, for
 * where they stand and for the transactions that wrote them.  Each row is
 * shown to seen(), which may throw.
 */
extern uint64 ea_row_versions(Oid relid,
							  void (*seen) (Relation rel, HeapTuple tuple));

#endif							/* EA_ROW_VERSIONS_H */
