/*
 * A request as an event of the audit log: its action, target, outcome.
 */
#ifndef EA_AUDIT_EVENT_H
#define EA_AUDIT_EVENT_H

#include "audit/audit.h"

/* The work stays: write its records. */
extern void ea_audit_keep(EaRequest *req);

/* The work was undone and the answer is an error: write that. */
extern void ea_audit_refuse(EaRequest *req);

#endif							/* EA_AUDIT_EVENT_H */
