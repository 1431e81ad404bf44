/*
 * The months of the log: a partition for each, made ahead of the records.
 */
#ifndef EA_MONTHS_H
#define EA_MONTHS_H

#include "datatype/timestamp.h"

#include "request/request.h"

/*
 * Have partitions for the month of a time and those after it.  True if it has
 * tried to make some.
 */
extern bool ea_audit_months_prepare(TimestampTz at);

/*
 * The same for housekeeping, where requests make none: with Citus.  If true,
 * the transaction is to do nothing else, as it has locked the log, which other
 * sessions look at while they wait for a turn.
 */
extern bool ea_audit_months_keep_ahead(EaRequest *req);

/* The log has a part for that month: no record of it was purged. */
extern bool ea_audit_months_has(TimestampTz at);

#endif							/* EA_MONTHS_H */
