/*
 * Definitions to tables, and the statements from one state to the next.
 *
 * tables.c derives what should exist from stored definitions; the stored
 * state and the new one pass through the same code, so that comparing the
 * two results says what to do.  match.c says what continues what under
 * which name, ddl.c compares, columns.c decides about columns,
 * convert.c about their types, rows.c looks at the rows that are
 * there.
 *
 * The stored state is derived twice: as it is, and as it will be called.  The
 * second one is compared with the new state, so that nothing but match.c
 * and rename.c needs to think of renaming; "was" leads from there to the
 * names that the database knows.
 */
#ifndef EA_DDL_H
#define EA_DDL_H

#include "nodes/pg_list.h"

#include "base/names.h"
#include "ddl/tables.h"
#include "manifest/manifest.h"
#include "model/catalog.h"

/* The definitions of a state: as trees, and as a catalog. */
typedef struct EaDdlSource
{
	List	   *trees;
	EaCatalog  *catalog;
	EaNameMap  *pending;		/* of the stored state */
} EaDdlSource;

/* Options beside the new definitions, and the results. */
typedef struct EaDdlRequest
{
	EaNameMap  *allowed;		/* Entity, Entity.field: may be lost */
	bool		changed;		/* the definitions are not the stored ones */
	bool		repair;			/* make again what the tables lack */
	bool		dry_run;		/* change nothing */

	bool		unplanned;		/* all but what comes first */
	List	   *steps;			/* EaDdlStep *: pending then */
	List	   *differences;	/* EaDdlDifference *: that stay */
	EaNameMap  *aliases;		/* EaDdlAlias by stored entity */
	Oid			application_role;	/* of the Service, and the owner of */
	Oid			application_owner;	/* its tables, beside superusers */
	EaDdlState *to;				/* what is to be, with its rows "after" */
} EaDdlRequest;

/*
 * Statements (EaDdlStatement) from the stored definitions to the new ones,
 * in order; what cannot be done is noted as faults in m, and so are, where
 * there is a change, differences that stay.  SPI must be connected.
 */
extern List *ea_ddl_plan(EaManifest *m, const EaDdlSource *stored,
						 const EaDdlSource *wanted, EaDdlRequest *change);

#endif							/* EA_DDL_H */
