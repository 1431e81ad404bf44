/*
 * The audit log's records of one resource.
 *
 * Records of writes that succeeded, under today's names.  Fields that are
 * called otherwise today, or are there no more, are left out; records that are
 * from before anything is known about names are not read at all.
 *
 * Records may be many, and the changes of one of them may be as large as the
 * resource.  So they are read without their changes; these are read when they
 * are needed, one record at a time, and only short values are kept.
 */
#ifndef EA_RESOURCE_LOG_H
#define EA_RESOURCE_LOG_H

#include "audit/past_names.h"

/* The effect of an action on the resource that it is about. */
typedef enum EaLogEffect
{
	EA_LOG_UNKNOWN,				/* whatever it was */
	EA_LOG_MADE,
	EA_LOG_CHANGED,
	EA_LOG_ENDED,				/* it holds all values, or is silent */
	EA_LOG_RETURNED,			/* with what it had when it ended */
	EA_LOG_NOTHING				/* it purges one that had ended already */
} EaLogEffect;

/* JSON as it was written; to-one relationships are resource identifiers. */
typedef struct EaLogChange
{
	EaField    *field;
	const char *from;			/* NULL: too long to be kept */
	const char *to;
} EaLogChange;

typedef struct EaLogRecord
{
	pg_uuid_t	id;				/* must be first, as lists are sorted by it */
	TimestampTz at;
	TimestampTz since;			/* when it counts: not before those before */
	const char *type;
	EaLogEffect effect;
	bool		silent;			/* a soft end or a return: the row kept its
								 * values, and the record has none */
	bool		has_version;
	int64		version;
	int			revision;
	int			nchanges;		/* by ea_resource_log_changes() */
	EaLogChange *changes;
} EaLogRecord;

typedef struct EaResourceLog
{
	EaRequest  *req;
	EaEntity   *entity;
	const char *target;			/* the id, as the log has it */
	EaPastNames *names;
	int			n;
	int			max;
	EaLogRecord *items;			/* the oldest first */
	bool		is_last;		/* by ea_resource_log_last() */
	bool		has_changes;
} EaResourceLog;

/* All that one record says. */
typedef struct EaLogDetail
{
	bool		has_tenant;
	pg_uuid_t	tenant;			/* that was acted in */
	const char *action;
	const char *actor_id;		/* NULL: nobody known */
	const char *actor_kind;
	const char *actor_username;
	int			nchanges;
	EaLogChange *changes;		/* whatever their length */
} EaLogDetail;

/*
 * All there is, of the request's tenant if the entity has tenants.  Records
 * of one row come in the order in which it was written, which their ids have:
 * they are made while the row is held, and their times are those at which
 * requests began.
 */
extern EaResourceLog *ea_resource_log_read(EaRequest *req, EaEntity *entity,
										   const EaId *id);

/*
 * Where ids come again, the records of those that had the id before go: the
 * resource begins with its last creation that the log knows, or, if others
 * have made it, after the last deletion.  has_row: it is there.
 */
extern void ea_resource_log_begin(EaResourceLog *log, bool has_row);

/*
 * The newest record, or none, in steps that do not depend on the length of
 * the log.  *at is the newest time that any record has.  id NULL: the same
 * steps, of a resource that nobody has.
 */
extern EaResourceLog *ea_resource_log_last(EaRequest *req, EaEntity *entity,
										   const EaId *id,
										   TimestampTz *at);

/*
 * Read the changes of all records that were read; nothing the second time.
 * Where the last one alone was read, to judge by it, and it is too large for
 * the request, it says nothing (EA_LOG_UNKNOWN): that is no refusal, which
 * would reveal that there is something.
 */
extern void ea_resource_log_changes(EaResourceLog *log);

/* All of one record, in the current memory context. */
extern void ea_resource_log_detail(EaResourceLog *log,
								   const EaLogRecord *record,
								   EaLogDetail *detail);

/* How many of the records count at a time. */
extern int	ea_resource_log_until(const EaResourceLog *log, TimestampTz at);

/* The change of a field in a record, NULL: none. */
extern const EaLogChange *ea_resource_log_change(const EaLogRecord *record,
												 const EaField *field);

/*
 * The value before or after a change of a record, read again if it was too
 * long to be kept, then in the current memory context.
 */
extern const char *ea_resource_log_value(EaResourceLog *log,
										 const EaLogRecord *record,
										 const EaLogChange *change,
										 bool after);

#endif							/* EA_RESOURCE_LOG_H */
