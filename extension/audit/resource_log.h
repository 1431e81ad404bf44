/*
 * What the audit log tells of one resource.
 *
 * Records of writes that succeeded, under today's names.  What is called
 * otherwise today, or is there no more, is left out; records that are from
 * before anything is known about names are not read at all.
 */
#ifndef EA_RESOURCE_LOG_H
#define EA_RESOURCE_LOG_H

#include "audit/past_names.h"

/* What an action does to the resource that it is about. */
typedef enum EaLogEffect
{
	EA_LOG_UNKNOWN,				/* whatever it was */
	EA_LOG_MADE,
	EA_LOG_CHANGED,
	EA_LOG_ENDED,				/* it holds all that there was */
	EA_LOG_RETURNED,			/* with what it had when it ended */
	EA_LOG_NOTHING				/* what had ended already is purged */
} EaLogEffect;

/* JSON as it was written; to-one relationships are resource identifiers. */
typedef struct EaLogChange
{
	EaField    *field;
	const char *from;
	const char *to;
} EaLogChange;

typedef struct EaLogRecord
{
	pg_uuid_t	id;				/* must be first, as lists are sorted by it */
	TimestampTz at;
	TimestampTz since;			/* when it counts: not before those before */
	const char *action;
	EaLogEffect effect;
	const char *actor_id;		/* NULL: nobody known */
	const char *actor_kind;
	const char *actor_username;
	bool		has_tenant;
	pg_uuid_t	tenant;			/* that was acted in */
	bool		has_version;
	int64		version;
	int			revision;
	int			nchanges;
	EaLogChange *changes;
} EaLogRecord;

typedef struct EaResourceLog
{
	EaPastNames *names;
	int			n;
	int			max;
	EaLogRecord *items;			/* the oldest first */
} EaResourceLog;

/*
 * All there is, of the request's tenant if the entity has tenants.  Records
 * of one row come in the order in which it was written, which their ids have:
 * they are made while the row is held, and their times are those at which
 * requests began.
 */
extern EaResourceLog *ea_resource_log_read(EaRequest *req, EaEntity *entity,
										   const pg_uuid_t *id);

/* How many of the records count at a time. */
extern int	ea_resource_log_until(const EaResourceLog *log, TimestampTz at);

/* What a record says of a field, NULL: nothing. */
extern const EaLogChange *ea_resource_log_change(const EaLogRecord *record,
												 const EaField *field);

#endif							/* EA_RESOURCE_LOG_H */
