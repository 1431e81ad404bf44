/*
 * Where the tables are not what is declared.
 *
 * A role with rights on them may drop or alter what an apply has made.  This
 * module finds that by comparing the catalogs with what tables.c derives from
 * the stored definitions, a few statements for all tables together; repair.c
 * has the planner make again what can be made without a loss.
 *
 * Of what is not declared, what opens a made table to others is a difference
 * (additions.c); its code is told of (notices.c), and refused where it is of
 * others (existing_check.c).  Anything else on a table is its owner's affair.
 * Existing tables are checked for themselves, their columns, and the objects
 * that an apply has put on them.
 */
#ifndef EA_DRIFT_H
#define EA_DRIFT_H

#include "nodes/pg_list.h"

#include "ddl/plan.h"
#include "ddl/tables.h"
#include "model/catalog.h"

typedef enum EaDdlPart
{
	EA_DDL_PART_TABLE,			/* it is missing, or no table */
	EA_DDL_PART_COLUMN,			/* it is missing */
	EA_DDL_PART_TYPE,
	EA_DDL_PART_NOT_NULL,
	EA_DDL_PART_DEFAULT,
	EA_DDL_PART_OBJECT,			/* a constraint or an index */
	EA_DDL_PART_ROW_SECURITY,	/* off, or forced on the owner */
	EA_DDL_PART_POLICY,
	EA_DDL_PART_RIGHTS,			/* of entityapi_reader */
	EA_DDL_PART_PLACEMENT,		/* with Citus */
	EA_DDL_PART_ADDITION,		/* a policy, rule or right of others */
	EA_DDL_PART_OWNER,
	EA_DDL_PART_KIN				/* a child, or a parent */
} EaDdlPart;

typedef struct EaDdlDifference
{
	EaDdlPart	part;
	EaDdlTable *table;			/* of the stored state, as is all of it */
	EaDdlColumn *column;		/* of COLUMN to DEFAULT */
	EaDdlObject *object;		/* of OBJECT */
	bool		there;			/* it is, but another one */
	bool		forced;			/* of ROW_SECURITY: on the owner */
	const char *undo;			/* of ADDITION to KIN: the statement that takes
								 * it back, or NULL */
	Oid			whose;			/* of OWNER, KIN: whose rights that takes */
	const char *called;			/* of OBJECT: it is, by this name; or NULL */
	const char *message;
	const char *hint;			/* the way out; NULL: it can be put back */
} EaDdlDifference;

/*
 * Differences (EaDdlDifference *) of the tables of a state, whose policies
 * must have been derived; those of shape, TABLE to TYPE, come first.  pending:
 * what is not there yet, and need not be.  A table that another transaction
 * has locked is not looked at.  SPI must be connected.
 */
extern List *ea_ddl_differences(EaDdlState *stored, EaNameMap *pending);

/* The remedy for a difference. */
extern const char *ea_ddl_way_out(const EaDdlDifference *difference);

#endif							/* EA_DRIFT_H */
