/*
 * Erase what deleted tenants leave behind, step by step.
 */
#ifndef EA_ERASE_TENANTS_H
#define EA_ERASE_TENANTS_H

#include "model/catalog.h"
#include "request/request.h"

/*
 * One step for the tenant that was deleted first: so many rows at a time until
 * EA_ERASE_STEP_MS have passed, and once at least.  While there are none, it
 * looks on for EA_ERASE_LOOK_MS, as a session begins with all tables, and the
 * next step of the session goes on behind them; patient: for as long as it
 * takes, as the next step may be another session's.  Only requests of that
 * tenant wait for it, and it leaves at once if another session is at it.
 * Returns the number of rows taken away; *more says whether the next step has
 * work to do now.  SPI must be connected.  The server's log reports a tenant
 * whose rows cannot be deleted, and the next one's turn comes; a later step
 * tries again.
 */
extern int64 ea_erase_step(EaRequest *req, bool patient, bool *more);

#define EA_ERASE_STEP_MS 50
#define EA_ERASE_LOOK_MS 1000

/* -------- between erase_tenants.c and erase_entities.c -------- */

typedef enum EaEraseKind
{
	EA_ERASE_LINKS,				/* rows of a join table */
	EA_ERASE_LOOSEN,			/* references of rows become null */
	EA_ERASE_ROWS,				/* rows that nothing refers to any more */
	EA_ERASE_KNOT				/* rows that cannot be without one another */
} EaEraseKind;

/* The work on one table, or on some. */
typedef struct EaErase
{
	EaEraseKind kind;
	List	   *entities;		/* one, but for a knot */
	EaField    *field;			/* LINKS */
	char	   *set;			/* LOOSEN: `a = NULL, b = NULL`, */
	char	   *where;			/* and `t0.a IS NOT NULL OR ...` */
} EaErase;

#endif							/* EA_ERASE_TENANTS_H */
