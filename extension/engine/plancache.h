/*
 * Cached plans by statement text, least recently used ones dropped.
 */
#ifndef EA_PLANCACHE_H
#define EA_PLANCACHE_H

#include "executor/spi.h"
#include "storage/lockdefs.h"

#include "base/exec_params.h"
#include "direct/checks.h"
#include "direct/key_update.h"
#include "direct/keyscan.h"
#include "engine/held.h"
#include "planning/plan_choice.h"

/* A table that a statement is over, and how it locks it. */
typedef struct EaPlanTable
{
	Oid			relid;
	LOCKMODE	mode;
	bool		written;		/* or its rows are locked for that */
} EaPlanTable;

typedef struct EaPlan
{
	SPIPlanPtr	plan;
	bool		one_row;		/* of a table, with a generic plan */
	bool		here;			/* over shards on this node */
	EaPlanChoice *choice;		/* else by which plan it runs, or NULL */

	bool		of_accounts;	/* writes or locks accounts */
	bool		in_turn;		/* or rows that all nodes may have */

	/* tables that are neither the extension's nor the system's */
	int			ntables;
	EaPlanTable *tables;
	int			nreferring;		/* that a deletion looks into, besides */
	Oid		   *referring;
	int			nbeneath;		/* that its views are over */
	Oid		   *beneath;
	bool		of_service;		/* tables of entityapi_owner are among all */
	bool		of_others;		/* and such as are of another role */
	bool		fresh;			/* just made: names mean what they meant */
	uint64		epoch;			/* when they were known to be as they must */

	/* what exec.c found out about the plan of that generation */
	int			generation;
	EaKeyScan  *scan;			/* the plan is this, or NULL */
	EaKeyUpdate *update;		/* or this */
	EaChecks   *checks;			/* of the table that it writes to, or NULL */
} EaPlan;

/*
 * The plan for a statement, prepared when it is not there yet or no longer
 * valid; held may be NULL.  It stays the cache's; the caller must not keep it
 * beyond the next call, unless its statement runs then.
 */
extern EaPlan *ea_plancache_get(const EaHeld *held, const char *sql,
								EaParams params, bool one_row);

/* The one statement of a plan; rules make more of it, or nothing: NULL. */
extern PlannedStmt *ea_plancache_statement(const CachedPlan *plan);

/* Forget a plan, whose names may mean other tables by now. */
extern void ea_plancache_forget(EaPlan *plan);

/*
 * A statement begins, or has ended without an error.  Plans that were got
 * are not freed in between.  True if another statement runs already.
 */
extern bool ea_plancache_enter(void);
extern void ea_plancache_leave(void);

/* A statement runs already. */
extern bool ea_plancache_is_running(void);

/* Hits and misses of this backend. */
extern void ea_plancache_stats(int64 *hits, int64 *misses);

/* Tables may be distributed: Citus is installed. */
extern bool ea_plancache_distributes(void);

#endif							/* EA_PLANCACHE_H */
