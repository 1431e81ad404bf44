/*
 * Values of the audit log that its reader may see.
 */
#ifndef EA_AUDIT_SIGHT_H
#define EA_AUDIT_SIGHT_H

#include "audit/past_names.h"

/* A record, as far as it says what its changes are about. */
typedef struct EaAuditAbout
{
	const char *action;
	const char *type;
	int			revision;		/* 0: it says none */
	TimestampTz at;
} EaAuditAbout;

/* The caller's sight of values of one entity. */
typedef struct EaAuditSight
{
	bool		all;
	EaPastNames *names;			/* of fields to be shown; NULL: none */
} EaAuditSight;

/* Zeros, and the request. */
typedef struct EaAuditSights
{
	EaRequest  *req;
	EaPastNames *types;			/* read when the first record needs them */
	List	   *known;			/* so that each entity is looked up once */
} EaAuditSights;

/* Of a record's values.  Sets the revision where it says none. */
extern const EaAuditSight *ea_audit_list_sight(EaAuditSights *sights,
											   EaAuditAbout *about);

/*
 * Append the fields of `{"name":[before,after],...}` that the caller may see,
 * under today's names.
 */
extern void ea_audit_list_fields(EaRequest *req, const EaAuditSight *sight,
								 int revision, const char *changes, int len);

#endif							/* EA_AUDIT_SIGHT_H */
