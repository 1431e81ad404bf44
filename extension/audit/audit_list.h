/*
 * GET /manage/audit: read the audit log, newest first.
 */
#ifndef EA_AUDIT_LIST_H
#define EA_AUDIT_LIST_H

#include "model/catalog.h"
#include "request/request.h"

/*
 * Answer with a page of audit records.  A SuperAdmin sees all,
 * a TenantAdmin those of the own tenant.  Throws 400 for what is wrong with
 * filter or page[...].
 */
extern void ea_audit_list(EaRequest *req);

/* -------- within the module -------- */

/* What the caller sees of values of one type, in records of one kind. */
typedef struct EaAuditSight
{
	const char *type;
	bool		all;			/* else single fields, of the entity */
	EaEntity   *entity;			/* NULL: none */
} EaAuditSight;

#endif							/* EA_AUDIT_LIST_H */
