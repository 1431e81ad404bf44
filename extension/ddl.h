/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  Definitions to tables, and the statements from one state to the next.
 *
 * ddl_table.c derives what should exist from stored definitions; the stored
 * state and the new one pass through the same code, so that comparing the
 * two results says what to do.  ddl_match.c says what continues what under
 * which name, ddl.c compares, ddl_column.c decides about columns,
 * ddl_convert.c about their types, ddl_data.c looks at the rows that are
 * there.
 *
 * The stored state is derived twice: as it is, and as it will be called.  The
 * second one is compared with the new state, so that nothing but ddl_match.c
 * and ddl_rename.c needs to think of renaming; "was" leads from there to the
 * names that the database knows.
 *
 * extension/ddl.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_H
#define EA_DDL_H

#include "catalog.h"
#include "jsonread.h"
#include "names.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "types.h"

/* How names of constraints and indexes end. */
#define EA_DDL_PRIMARY "pkey"
#define EA_DDL_KEY "key"
#define EA_DDL_INDEX "idx"
#define EA_DDL_LOOKUP "lookup_idx"
#define EA_DDL_REFERENCE "fkey"
#define EA_DDL_ENUM "enum"
#define EA_DDL_MINIMUM "minimum"
#define EA_DDL_MAXIMUM "maximum"
#define EA_DDL_ONE_OF "one_of"
#define EA_DDL_FILLED "filled"

typedef struct EaDdlColumn
{
	const char *name;
	const char *field;			/* NULL: a column that every table has */
	bool		field_gone;		/* of the stored state: no field continues it */
	const EaType *type;			/* of an attribute, else NULL */
	int			length;			/* string: characters */
	int			precision;		/* decimal */
	int			scale;
	const char *target;			/* entity a reference points at, or NULL */
	const char *sql;			/* type with modifier */
	bool		not_null;
	const char *fill;			/* SQL of what existing rows get, or NULL */
	const char *sql_default;	/* SQL that stays as the default, or NULL */
	struct EaDdlColumn *was;	/* of the stored state, as it is */
} EaDdlColumn;

typedef enum EaDdlObjectKind
{
	EA_DDL_CONSTRAINT,			/* primary key, unique, check */
	EA_DDL_FOREIGN_KEY,
	EA_DDL_PLAIN_INDEX
} EaDdlObjectKind;

/* A constraint or an index of a table. */
typedef struct EaDdlObject
{
	EaDdlObjectKind kind;
	const char *name;
	const char *body;			/* what follows ADD CONSTRAINT <name>, or the
								 * whole CREATE INDEX */
	const char *field;			/* NULL: of no single field */
	List	   *columns;		/* it is about, without tenant_id */
	const char *condition;		/* of a check */
	bool		unique;
	bool		partial;		/* unique among rows that are not deleted */
	bool		implied;		/* serves a reference, not asked for */
	const char *target;			/* entity of a foreign key */
	struct EaDdlObject *was;	/* of the stored state, as it is */
} EaDdlObject;

typedef struct EaDdlTable
{
	const char *key;			/* Entity, or Entity.field of a join table */
	const char *entity;
	const char *field;			/* of a join table, else NULL */
	const char *schema;
	const char *name;
	const char *qualified;		/* quoted */
	bool		tenant_scoped;
	bool		existing;		/* others made it: only looked at */
	const char *id_column;
	const char *tenant_column;
	const char *deleted_column; /* NULL: nothing is deleted softly */
	List	   *columns;		/* of EaDdlColumn * */
	List	   *objects;		/* of EaDdlObject * */
	EaNameMap  *by_column;
	EaNameMap  *by_object;
	struct EaDdlTable *was;		/* of the stored state, as it is */
	struct EaDdlTable *other;	/* what continues it, what it continues */
	bool		gone;			/* of the stored state: with its entity */
	bool		touched;		/* columns are renamed, change type or go */
	bool		reshaped;		/* columns are added or renamed */
	int			has_rows;		/* -1: not looked yet */
	int			is_live;		/* -1: not looked yet */
	const char *after;			/* SQL of the rows as they will be */
	const char *policy;			/* condition of row-level security */
	const char *granted;		/* columns that readers may see; "": all */
} EaDdlTable;

typedef struct EaDdlState
{
	List	   *tables;			/* of EaDdlTable * */
	EaNameMap  *by_key;
} EaDdlState;

/*
 * What a stored entity will be called.  A field or a column that is missing
 * in its map goes, and so does a join table.
 */
typedef struct EaDdlAlias
{
	const char *entity;			/* NULL: the entity goes */
	bool		replaced;		/* its table is dropped and made anew */
	EaDdlTable *table;			/* that continues it, if not replaced */
	EaNameMap  *fields;			/* names by names */
	EaNameMap  *columns;
	EaNameMap  *joins;			/* EaDdlJoin * by field */
} EaDdlAlias;

/* The same of a join table; turned: its ends have changed places. */
typedef struct EaDdlJoin
{
	EaDdlTable *table;
	bool		turned;
} EaDdlJoin;

typedef struct EaDdlStatement
{
	const char *sql;
	const char *label;			/* document it comes from */
	const char *pointer;
	const EaDdlTable *table;	/* as it will be; NULL: of no single one */
	bool		rewrites;		/* a new type whose values are stored anew */
	bool		deferred;		/* runs by itself, after the transaction */

	/* filled in by ddl_effect.c */
	const EaDdlTable *stored;	/* the table as it is, NULL: it is new */
	LOCKMODE	lock;			/* on it, NoLock if none */
	const char *effect;			/* why it takes time, or NULL */
	double		rows;			/* estimate; -1: of no interest */
} EaDdlStatement;

/* What is left for after the transaction: statements about one object. */
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
	EA_DDL_DROP_OBJECTS,
	EA_DDL_DROP_TABLES,
	EA_DDL_PURGE_ROWS,
	EA_DDL_DROP_COLUMNS,
	EA_DDL_MOVE_TABLES,
	EA_DDL_RENAME,
	EA_DDL_CREATE_TABLES,
	EA_DDL_CHANGE_COLUMNS,
	EA_DDL_ADD_OBJECTS,
	EA_DDL_ADD_REFERENCES,
	EA_DDL_ADD_POLICIES,
	EA_DDL_LATER,				/* after the transaction */
	EA_DDL_NPHASES
} EaDdlPhase;

struct EaManifest;

typedef struct EaDdlPlan
{
	struct EaManifest *m;		/* takes the faults */
	EaNameMap  *allowed;		/* Entity, Entity.field whose loss is allowed */
	EaDdlState *stored;			/* as it is */
	EaDdlState *from;			/* the same, as it will be called */
	EaDdlState *to;
	EaNameMap  *pending;		/* of the stored state: what is not yet there */
	List	   *steps;			/* of EaDdlStep *, old ones that stay and new */
	List	   *purged;			/* tables that lose their hidden rows */
	List	   *made_faults;		/* of EaOwnersFault *, of made tables */
	List	   *phases[EA_DDL_NPHASES]; /* of EaDdlStatement * */
} EaDdlPlan;

/* in ddl_table.c */

/* Name of a constraint or an index; columns joined by two underscores. */
extern char *ea_ddl_name(const char *table, const char *columns,
						 const char *suffix);

/*
 * definitions: EaJson trees of entity.definition; aliases: EaDdlAlias by
 * entity, or NULL to leave all names as they are.
 */
extern EaDdlState *ea_ddl_state(List *definitions, EaNameMap *aliases);

/* in ddl_match.c */

/*
 * What continues what: sets from and to of the plan, and "other" of their
 * tables.  Needs nothing but the definitions.
 */
extern void ea_ddl_match(EaDdlPlan *plan, List *stored, List *wanted);

/* in ddl_rename.c */

/* New names of tables, columns, constraints and indexes that stay. */
extern void ea_ddl_rename(EaDdlPlan *plan);

/* Is a stored object what is wanted, but perhaps for its name? */
extern bool ea_ddl_stays(EaDdlTable *from, EaDdlObject *stored,
						 EaDdlTable *to, EaDdlObject *wanted);

/* in ddl_convert.c */

typedef enum EaDdlChange
{
	EA_DDL_SAME,
	EA_DDL_WIDER,				/* every value has a place */
	EA_DDL_NARROWER,			/* some values may not */
	EA_DDL_OTHER				/* no way from one to the other */
} EaDdlChange;

/* From one attribute's type to another's. */
extern EaDdlChange ea_ddl_compare_types(const EaDdlColumn *from,
										const EaDdlColumn *to);

/* The value in SQL as one of the new type. */
extern const char *ea_ddl_convert(const EaDdlColumn *from,
								  const EaDdlColumn *to, const char *value);

/* SQL that holds for values with a place in the new type; NULL: for all. */
extern const char *ea_ddl_fits(const EaDdlColumn *from, const EaDdlColumn *to,
							   const char *value);

/* SQL that holds for values that are cut or rounded. */
extern const char *ea_ddl_cuts(const EaDdlColumn *from, const EaDdlColumn *to,
							   const char *value);

/* in ddl_column.c */

/* Columns of a table that stays; sets to->after. */
extern void ea_ddl_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to);

/* in ddl_purge.c */

/* A table that stays and hides no rows any more: refuse, or note it. */
extern void ea_ddl_check_hidden(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlTable *to);

/* Hidden rows of all noted tables go. */
extern void ea_ddl_purge(EaDdlPlan *plan);

/* in ddl_data.c; all look at the stored table through SPI */
extern bool ea_ddl_has_rows(EaDdlTable *table);

/* Has it so many rows that nobody may wait until all are looked at? */
extern bool ea_ddl_is_live(EaDdlTable *table);

/* Rows that meet the condition; rows: a table, or a query in parentheses. */
extern int64 ea_ddl_count(const char *rows, const char *condition);

/* A table that goes must not be referred to by one of others: a fault. */
extern void ea_ddl_check_dropped(EaDdlPlan *plan, EaDdlTable *table);

/*
 * Values that two rows or more of a table that stays would have, where a
 * unique object wants them different.
 */
extern int64 ea_ddl_count_duplicates(EaDdlTable *to, EaDdlObject *object);

/* in ddl_existing.c */

/* All that an existing table lacks, as faults; statements come from no one. */
extern void ea_ddl_check_existing(EaDdlPlan *plan, EaDdlTable *table);

/*
 * Whose the schema of a made table is, and the table that is there under the
 * name that it has so far (NULL: none yet), with all that it calls.
 */
extern void ea_ddl_look_at_made(EaDdlPlan *plan);
extern void ea_ddl_check_made(EaDdlPlan *plan, const EaDdlTable *table,
							  const EaDdlTable *there);

/* The table as it is now, InvalidOid when there is none. */
extern Oid	ea_ddl_relation(const EaDdlTable *table);

/* in ddl_security.c */

/* Policies and rights; comes when all other statements are planned. */
extern void ea_ddl_secure(EaDdlPlan *plan, EaCatalog *stored,
						  EaCatalog *wanted);

/* in ddl_online.c */

/* As schemas and names of what is pending are kept together. */
extern char *ea_ddl_pending_key(const char *schema, const char *name);

/* index, unique, validate; NULL for what cannot be left for later. */
extern const char *ea_ddl_step_kind(const EaDdlObject *object);

/* The statement of an index that no transaction may run. */
extern const char *ea_ddl_concurrently(const EaDdlTable *to,
									   const EaDdlObject *object);

/* The check that stands in for NOT NULL until it has been validated. */
extern char *ea_ddl_filled_name(const EaDdlTable *table,
								const EaDdlColumn *column);

/* The statement that gives rows without a value the default. */
extern const char *ea_ddl_fill(const EaDdlTable *to,
							   const EaDdlColumn *column);

/* Add an object to a live table; false: only the transaction can. */
extern bool ea_ddl_add_online(EaDdlPlan *plan, EaDdlTable *to,
							  EaDdlObject *object);

/* An object that stays is pending and stays so, if it is. */
extern void ea_ddl_keep_pending(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlTable *to, EaDdlObject *stored,
								EaDdlObject *object);

/* An object that is pending, and of which there may be nothing to rename. */
extern bool ea_ddl_is_promised(EaDdlPlan *plan, EaDdlTable *from,
							   EaDdlObject *object);

/* Drop what may not be there yet; false: it is there. */
extern bool ea_ddl_drop_pending(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlObject *object);

/*
 * Was a column required in the stored state, and is it to be so still?  If
 * that is pending it stays so, or what was made for it goes.
 */
extern bool ea_ddl_keep_required(EaDdlPlan *plan, EaDdlTable *from,
								 EaDdlTable *to, EaDdlColumn *stored,
								 EaDdlColumn *column);

/* A column of a live table is required from now on; fill: rows lack it. */
extern void ea_ddl_require_online(EaDdlPlan *plan, EaDdlTable *to,
								  EaDdlColumn *column, bool fill);

/* Make steps the ones that are pending; needs SPI. */
extern void ea_ddl_store_steps(List *steps, int revision);

/* in ddl_step.c */

/*
 * Schemas and names of what is promised and not done; trees: the definitions
 * in force.  Needs SPI.
 */
extern EaNameMap *ea_ddl_load_pending(List *trees);

/* in ddl_effect.c */

/* What each statement locks, and why it takes time. */
extern void ea_ddl_note_effects(EaDdlPlan *plan, List *statements);

/* A lock as LOCK TABLE calls it. */
extern const char *ea_ddl_lock_name(LOCKMODE lock);

/* in ddl.c */

/* Returns the statement, which may be described further. */
extern EaDdlStatement *ea_ddl_add(EaDdlPlan *plan, EaDdlPhase phase,
								  const EaDdlTable *table, const char *field,
								  const char *fmt,...)
			pg_attribute_printf(5, 6);

/* A fault at a field of an entity, or at the entity. */
extern void ea_ddl_fault(EaDdlPlan *plan, const EaDdlTable *table,
						 const char *field, const char *hint,
						 const char *fmt,...) pg_attribute_printf(5, 6);

/* Has the loss of a field's data, or an entity's, been allowed? */
extern bool ea_ddl_may_lose(EaDdlPlan *plan, const char *entity,
							const char *field);

/* The definitions of a state: as trees, and as a catalog. */
typedef struct EaDdlSource
{
	List	   *trees;
	EaCatalog  *catalog;
	EaNameMap  *pending;		/* of the stored state */
} EaDdlSource;

/*
 * Statements (EaDdlStatement) from the stored definitions to the new ones,
 * in order, and the steps that are pending then; what cannot be done is noted
 * as faults in m.  SPI must be connected.
 */
extern List *ea_ddl_plan(struct EaManifest *m, const EaDdlSource *stored,
						 const EaDdlSource *wanted, EaNameMap *allowed,
						 List **steps);

/* in ddl_run.c */

/* How long the statements of this call wait for a lock, in milliseconds. */
extern void ea_ddl_limit_waits(int timeout);

/*
 * Run those of the transaction.  An error that the data cause is thrown as a
 * fault; ERRCODE_LOCK_NOT_AVAILABLE when the tables are in use.
 */
extern void ea_ddl_run(struct EaManifest *m, List *statements);

#endif							/* EA_DDL_H */
