/*
 * Values of the audit log that its reader may see.
 */
#ifndef EA_AUDIT_SIGHT_H
#define EA_AUDIT_SIGHT_H

#include "model/catalog.h"
#include "request/request.h"

/* The caller's sight of values of one type, in records of one kind. */
typedef struct EaAuditSight
{
	const char *type;
	bool		all;			/* else single fields, of the entity */
	EaEntity   *entity;			/* NULL: none */
} EaAuditSight;

/* Those are kept in the list, so that each type is looked up once. */
extern const EaAuditSight *ea_audit_list_sight(EaRequest *req, List **known,
											   const char *action,
											   const char *type);

/* Append the fields of `{"name":[before,after],...}` that it may see. */
extern void ea_audit_list_fields(EaRequest *req, EaEntity *entity,
								 const char *changes, int len);

#endif							/* EA_AUDIT_SIGHT_H */
