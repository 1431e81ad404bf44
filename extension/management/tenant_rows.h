/*
 * Tenants that are rows of an application: looked at again and again, so that
 * what became of the rows becomes of the tenants.
 */
#ifndef EA_TENANT_ROWS_H
#define EA_TENANT_ROWS_H

#include "model/catalog.h"
#include "request/request.h"

/*
 * Look at the rows, from where the last look of this backend stopped, and make
 * at most so many changes, or some more; 0: all.  One session does it at a
 * time: another one leaves at once, or waits.  Returns the number of changes;
 * *more: it has not come to the end.  Nothing is done where no table says who
 * the tenants are, or somebody alters it right now.  A look that fails changes
 * nothing, and leaves a line in the server's log.  SPI must be connected.
 */
extern int64 ea_tenant_rows_look(EaRequest *req, int64 limit, bool wait,
								 bool *more);

/* No table says it any more: the tenants stay as they are. */
extern void ea_tenant_rows_leave(void);

/*
 * In words: so many names of rows are none here, and are shown otherwise.
 * NULL: all are shown as they are.
 */
extern char *ea_tenant_rows_notice(EaRequest *req);

#endif							/* EA_TENANT_ROWS_H */
