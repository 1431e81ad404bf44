/*
 * Records of the audit log as items of a history.
 */
#ifndef EA_HISTORY_ITEMS_H
#define EA_HISTORY_ITEMS_H

#include "history/past.h"

/* Append the items, with the members that the caller may read. */
extern void ea_history_items(StringInfo out, EaRequest *req, EaPast *past,
							 const EaLogRecord *const *records, int n);

#endif							/* EA_HISTORY_ITEMS_H */
