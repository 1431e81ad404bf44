/*-------------------------------------------------------------------------
 *
 * audit_list.h
 *	  GET /manage/audit: read the audit log, newest first.
 *
 * extension/audit_list.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_AUDIT_LIST_H
#define EA_AUDIT_LIST_H

#include "context.h"

/*
 * Answer with a page of records (contract section 8).  A SuperAdmin sees all,
 * a TenantAdmin those of the own tenant.  Throws 400 for what is wrong with
 * filter or page[...].
 */
extern void ea_audit_list(EaRequest *req);

#endif							/* EA_AUDIT_LIST_H */
