/*
 * The newest snapshot, and whether it sees what an earlier one saw.
 */
#ifndef EA_NEWEST_H
#define EA_NEWEST_H

#include "utils/snapshot.h"

/*
 * A snapshot taken now, as for reading system catalogs: one that parallel
 * workers may take, too.  It is to be pushed or asked before any other is
 * taken.
 */
extern Snapshot ea_newest_snapshot(void);

/*
 * How many transactions that could write had ended on this server when it was
 * taken; notes of rows that it saw are kept with that number.  Never 0.
 */
extern uint64 ea_newest_ended(Snapshot newest);

/*
 * It sees what one saw that was taken when so many had ended (0: false).  One
 * that is prepared has ended in this sense, and ends once more with its fate.
 */
extern bool ea_newest_sees_the_same(Snapshot newest, uint64 ended);

/*
 * It sees what another one does, which may be a copy and older; false where
 * that cannot be known, or this transaction has written.
 */
extern bool ea_newest_sees_as(Snapshot newest, Snapshot other);

#endif							/* EA_NEWEST_H */
