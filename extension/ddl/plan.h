/*
 * A plan: the statements of a change, and its faults.
 */
#ifndef EA_PLAN_H
#define EA_PLAN_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "base/names.h"
#include "ddl/tables.h"
#include "manifest/manifest.h"
#include "model/catalog.h"

typedef struct EaDdlStatement
{
	const char *sql;
	const char *label;			/* document it comes from */
	const char *pointer;
	const EaDdlTable *table;	/* as it will be; NULL: of no single one */
	bool		rewrites;		/* a new type whose values are stored anew */
	bool		deferred;		/* runs by itself, after the transaction */
	bool		ahead;			/* runs by itself, before the transaction */
	bool		done;			/* it had to be, for the plan to be made */
	bool		divides;		/* Citus is given an existing table */

	/* filled in by effects.c */
	const EaDdlTable *stored;	/* the table as it is, NULL: it is new */
	LOCKMODE	lock;			/* on it, NoLock if none */
	const char *effect;			/* why it takes time, or NULL */
	double		rows;			/* estimate; -1: of no interest */
} EaDdlStatement;

/* Statements about one object that are left for after the transaction. */
typedef struct EaDdlStep
{
	const char *kind;			/* index, unique, validate, required */
	const EaDdlTable *table;
	const char *field;			/* NULL: of no single field */
	const char *name;			/* of the index or constraint */
	const char *column;			/* that is required, else NULL */
	const char *definition;		/* the CREATE INDEX, or the UPDATE that fills a
								 * column; NULL: there is none.  Kept to be
								 * looked at, not to be run */
} EaDdlStep;

/* The order in which statements run; each phase needs those before. */
typedef enum EaDdlPhase
{
	EA_DDL_SCHEMA,
	EA_DDL_DROP_POLICIES,
	EA_DDL_DROP_REFERENCES,
	EA_DDL_UNDISTRIBUTE,
	EA_DDL_DROP_OBJECTS,
	EA_DDL_DROP_TABLES,
	EA_DDL_PURGE_ROWS,
	EA_DDL_DROP_COLUMNS,
	EA_DDL_MOVE_TABLES,
	EA_DDL_RENAME,
	EA_DDL_CREATE_TABLES,
	EA_DDL_DISTRIBUTE,
	EA_DDL_CHANGE_COLUMNS,
	EA_DDL_ADD_OBJECTS,
	EA_DDL_ADD_REFERENCES,
	EA_DDL_ADD_POLICIES,
	EA_DDL_LATER,				/* after the transaction */
	EA_DDL_NPHASES
} EaDdlPhase;

typedef struct EaDdlPlan
{
	EaManifest *m;				/* takes the faults */
	EaNameMap  *allowed;		/* Entity, Entity.field whose loss is
								 * allowed */
	EaDdlState *stored;			/* as it is */
	EaDdlState *from;			/* the same, as it will be called */
	EaDdlState *to;
	EaCatalog  *wanted;			/* the same as entities */
	EaNameMap  *aliases;		/* EaDdlAlias by stored entity */
	EaNameMap  *pending;		/* of the stored state: what is not yet
								 * there */
	List	   *steps;			/* of EaDdlStep *, old ones that stay and
								 * new */
	List	   *purged;			/* tables that lose their hidden rows */
	List	   *made_faults;		/* of EaOwnersFault *, of made tables */
	Oid			application_role;	/* InvalidOid: there is none to use */
	Oid			application_owner;	/* of its tables, beside superusers */
	bool		was_distributed;	/* Citus has the tables, before */
	bool		is_distributed; /* and after */
	List	   *phases[EA_DDL_NPHASES]; /* of EaDdlStatement * */
} EaDdlPlan;

/* Returns the statement, which may be described further. */
extern EaDdlStatement *ea_ddl_add(EaDdlPlan *plan, EaDdlPhase phase,
								  const EaDdlTable *table, const char *field,
								  const char *fmt,...)
			pg_attribute_printf(5, 6);

/* A fault at a field of an entity, or at the entity. */
extern void ea_ddl_fault(EaDdlPlan *plan, const EaDdlTable *table,
						 const char *field, const char *message,
						 const char *hint);

/* A warning at a field of an entity. */
extern void ea_ddl_warn(EaDdlPlan *plan, const EaDdlTable *table,
						const char *field, const char *message,
						const char *hint);

/* A fault at the "table" of an entity that has an existing one. */
extern void ea_ddl_lacks(EaDdlPlan *plan, const EaDdlTable *table,
						 const char *message, const char *hint);

/* Was a table of this name made for an entity? */
extern bool ea_ddl_is_made(const EaDdlPlan *plan, const EaDdlTable *table);

/* May some role do that? */
extern bool ea_ddl_permits(const EaDdlPlan *plan, const EaDdlTable *table,
						   const char *operation);

/* Has the loss of a field's data, or an entity's, been allowed? */
extern bool ea_ddl_may_lose(EaDdlPlan *plan, const char *entity,
							const char *field);

#endif							/* EA_PLAN_H */
