/*
 * GET /manage/audit: read the audit log, newest first.
 */
#ifndef EA_AUDIT_LIST_H
#define EA_AUDIT_LIST_H

#include "request/request.h"

/*
 * Answer with a page of audit records.  A SuperAdmin sees all, a TenantAdmin
 * those of its own tenant.  Throws 400 for faults of filter or page[...].
 */
extern void ea_audit_list(EaRequest *req);

#endif							/* EA_AUDIT_LIST_H */
