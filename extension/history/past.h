/*
 * A resource as it was.
 *
 * Its state at a time is its present state, less all changes that records have
 * of it since; and the result must agree with the records from before that
 * time.  Where it does not, or where there are none, something was done that
 * the log does not know, and the state is unknown.
 */
#ifndef EA_PAST_H
#define EA_PAST_H

#include "audit/past_values.h"
#include "history/resource_log.h"
#include "model/sqlbuf.h"

typedef enum EaPastKind
{
	EA_PAST_NONE,				/* it had not been made */
	EA_PAST_LIVE,
	EA_PAST_DELETED,			/* the state is that of its end */
	EA_PAST_LOST				/* the log does not reach back */
} EaPastKind;

typedef struct EaPastState
{
	EaPastKind	kind;
	EaPastValue *values;		/* by field index */
	bool	   *existed;		/* the field was declared, by field index */
	int64		version;
	TimestampTz deleted_at;
} EaPastState;

/* Numbers of records, going up (base/grow.h). */
typedef struct EaPastPlaces
{
	int			n;
	int			max;
	int		   *items;
} EaPastPlaces;

typedef struct EaPast
{
	EaRequest  *req;
	EaEntity   *entity;
	EaId		id;

	/* the row, by ea_past_find() */
	bool		has_row;
	bool		seen;			/* the caller may read it, deleted or not */
	bool		deleted;		/* softly */
	TimestampTz deleted_at;
	bool		has_created;
	TimestampTz created_at;
	int64		version;

	/* the log, by ea_past_log(); NULL: it has not been read */
	EaResourceLog *log;
	EaPastNames *names;

	/* the sources of states, read with the first of them */
	bool		is_read;
	EaPastPlaces turns;			/* records that are more than a change */
	EaPastPlaces *places;		/* that speak of a field, by its index */
	int		   *since;			/* the revision that brought it */
	EaPastValue *values;		/* of the row */
} EaPast;

/* Look at the row; it need not be there.  No log is read. */
extern EaPast *ea_past_find(EaRequest *req, EaEntity *entity,
							const EaId *id);

/*
 * Throws 404 unless the caller may know of it.  A row that is there decides,
 * deleted softly or not, before anything of the log is read; of one that is
 * gone, its last record alone.  The steps are the same whether it is hidden
 * or was never there, and do not depend on the length of the log.
 */
extern void ea_past_require(EaPast *past);

/*
 * The row is what it was at that time, whatever the log knows of others: no
 * record is from later, and none can be missing.  Sets the revision that was
 * in force then, PG_INT32_MAX: that of now.
 */
extern bool ea_past_is_row(EaPast *past, TimestampTz at, int *revision);

/* The field was declared when a revision was in force. */
extern bool ea_past_existed(EaPast *past, const EaField *field, int revision);

/* Records of the log, without their changes. */
extern EaResourceLog *ea_past_log(EaPast *past);

/*
 * As it was after the first n records, when that revision was in force; 0:
 * the one of the last of these records.
 */
extern EaPastState *ea_past_state(EaPast *past, int n, int revision);

/* As it was at a time. */
extern EaPastState *ea_past_at(EaPast *past, TimestampTz at);

/* No field that a state has is unknown. */
extern bool ea_past_is_whole(const EaPast *past, const EaPastState *state);

/*
 * The entity with a state in the place of its table, for ea_sqlbuf_from_as():
 * tenant and read policies are asked of that.  To be taken back to the entity
 * when the statement has been written.
 */
extern EaEntity *ea_past_stand_in(EaSqlBuf *b, EaPast *past,
								  const EaPastState *state);
extern void ea_past_take_back(EaPast *past, EaEntity *stand_in);

/*
 * The caller may read it as it was; all that policies may ask must be known.
 */
extern bool ea_past_shows(EaPast *past, const EaPastState *state);

#endif							/* EA_PAST_H */
