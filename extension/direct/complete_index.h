/*
 * Indexes by which every row is found.
 */
#ifndef EA_COMPLETE_INDEX_H
#define EA_COMPLETE_INDEX_H

#include "utils/rel.h"

/*
 * A btree in which every row has an entry, and on whose entries the snapshots
 * of this transaction may rely.  The planner takes no other one; whoever looks
 * for an index by himself asks here, each time that he uses it.
 */
extern bool ea_complete_index_is(Relation index);

#endif							/* EA_COMPLETE_INDEX_H */
