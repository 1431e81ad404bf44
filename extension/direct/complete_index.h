/*
 * Indexes by which every row is found.
 */
#ifndef EA_COMPLETE_INDEX_H
#define EA_COMPLETE_INDEX_H

#include "utils/rel.h"

/*
 * A btree in which every row has an entry, and on whose entries the snapshots
 * of this transaction may rely.  The planner takes no other one; code that
 * looks for an index by itself asks here, each time that it uses the index.
 */
extern bool ea_complete_index_is(Relation index);

#endif							/* EA_COMPLETE_INDEX_H */
