/*
 * What should exist: tables, columns, constraints and indexes.
 */
#ifndef EA_TABLES_H
#define EA_TABLES_H

#include "nodes/pg_list.h"

#include "base/names.h"
#include "model/types.h"

typedef struct EaDdlColumn
{
	const char *name;
	const char *field;			/* NULL: a column that every table has */
	bool		field_gone;		/* of the stored state: no field continues
								 * it */
	const EaType *type;			/* of an attribute, else NULL */
	int			length;			/* string: characters */
	int			precision;		/* decimal */
	int			scale;
	bool		adapted;		/* it may round */
	const char *target;			/* entity a reference points at, or NULL */
	const char *sql;			/* type with modifier */
	bool		not_null;
	const char *fill;			/* SQL of what existing rows get, or NULL */
	const char *sql_default;	/* SQL that stays as the default, or NULL */
	bool		missing;		/* of the stored state: the table lacks it */
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
	bool		deleted;		/* of deleted rows by their time */
	const char *target;			/* entity of a foreign key */
	bool		anew;			/* of the stored state: dropped, made again */
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
	bool		tenant_scoped;	/* keys and indexes begin with the tenant */
	bool		existing;		/* others made it: only looked at */
	bool		of_application; /* and another role owns it, */
	bool		view;			/* it is only read, and has no keys, */
	bool		row_security;	/* whose rows it may not see all */
	bool		copied;			/* its rows are copies: nothing to lose */
	const char *id_column;
	List	   *key_columns;	/* that, or all columns of a key of several */
	bool		keyed;			/* others say what that is */
	const char *tenant_column;	/* the table may have one without that, */
	bool		owned;			/* and yet rows belong to tenants: */
	List	   *lead;			/* these columns say to which one; or NIL */
	bool		of_one;			/* all to one of them */
	List	   *global;			/* unique indexes that tenants share */
	const char *deleted_column; /* NULL: nothing is deleted softly */
	const char *deletion_column;	/* NULL: unknown by what */
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
	bool		lost_policy;	/* of the stored state: to be made anew */
	bool		lost_rights;
	bool		lost_placement;	/* the same: Citus does not have it */
	bool		distributed;	/* Citus has it, before the change and after */
} EaDdlTable;

typedef struct EaDdlState
{
	List	   *tables;			/* of EaDdlTable * */
	EaNameMap  *by_key;
	bool		distributed;	/* all of it is with Citus, or is to be */
} EaDdlState;

/*
 * The future name of a stored entity.  A field or a column that is missing in
 * its map goes, and so does a join table.
 */
typedef struct EaDdlAlias
{
	const char *entity;			/* NULL: the entity goes */
	bool		replaced;		/* its table is dropped and made anew */
	bool		other_ids;		/* or its ids are made of other columns */
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

/*
 * definitions: EaJson trees of entity.definition; aliases: EaDdlAlias by
 * entity, or NULL to leave all names as they are.
 */
extern EaDdlState *ea_ddl_state(List *definitions, EaNameMap *aliases,
								bool distributed);

/* The columns in an order that does not change with that of the fields. */
extern List *ea_ddl_sorted_columns(const EaDdlTable *table);

#endif							/* EA_TABLES_H */
