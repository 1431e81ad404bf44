/*
 * A database as introspect sees it, with its decisions.
 *
 * The catalog is read as it is at one moment.  Then introspect_decide.c says
 * what is served and, if not, why; introspect_names.c names it, and
 * introspect_links.c ties it together.  They fill in what stands below
 * "decided".
 */
#ifndef INTROSPECT_CATALOG_H
#define INTROSPECT_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include <libpq-fe.h>

#include "command/introspect_memory.h"

/* Columns of one key, at most (B18: the parts of an id) */
#define MOST_PARTS 8

struct introspect_type;
struct introspect_table;
struct introspect_reference;

/* The type of a column is the one below all domains. */
struct introspect_column
{
	int			number;
	const char *name;
	const char *type;			/* as it is declared */
	const char *base;			/* the name of the type, and its schema */
	const char *base_schema;
	int			modifier;		/* -1: none */
	char		kind;			/* pg_type.typtype */
	bool		is_array;
	int			dimensions;
	bool		not_null;
	bool		has_default;
	bool		is_generated;	/* or an identity, always */
	bool		is_collated;	/* nondeterministically */
	const char *comment;		/* or NULL */
	const char *sql;			/* its name there */
	const char *declared;		/* the field that has it by now, or NULL */

	/* decided */
	const struct introspect_type *field_type;
	struct introspect_reference *reference; /* instead of an attribute */
	const char *field;			/* NULL: it has none */
	bool		is_part;		/* of the key */
	const char *why_not;		/* NULL: it is served */
};

/* A unique index over columns, whole and valid */
struct introspect_key
{
	const char *name;
	bool		is_primary;
	bool		is_immediate;
	int			count;
	int			columns[MOST_PARTS];	/* places in the table's columns */
};

/* Or with conditions or expressions, or an exclusion constraint */
struct introspect_unique
{
	const char *name;
	const char *numbers;		/* of its columns, with blanks between; 0 is
								 * an expression */
};

struct introspect_reference
{
	const char *name;
	struct introspect_table *table;
	struct introspect_table *target;
	char		on_delete;		/* pg_constraint.confdeltype */
	bool		is_valid;
	int			count;
	int			from[MOST_PARTS];	/* places in the table's columns */
	int			to[MOST_PARTS];		/* and in the target's */

	/* decided */
	const char *field;			/* NULL: it is none */
	const char *inverse;		/* the field of the target */
	bool		is_single;		/* no two rows refer to the same one */
	const char *why_not;
};

/* The name of a table in sentences. */
enum introspect_kind
{
	KIND_TABLE, KIND_PARTITIONED, KIND_VIEW, KIND_MATERIALIZED, KIND_FOREIGN,
	KIND_COUNT
};

struct introspect_table
{
	unsigned	oid;
	const char *schema;
	const char *name;
	enum introspect_kind kind;
	bool		is_logged;
	bool		is_inherited;	/* or inherits */
	bool		has_rules;
	bool		has_row_security;
	bool		forces_row_security;	/* on its owner, too */
	const char *owner;
	bool		owner_is_superuser;
	const char *comment;		/* or NULL */
	const char *sequences;		/* of its columns, in SQL, or NULL */
	const char *sql;			/* its name there, and that of its schema */
	const char *sql_schema;
	bool		may_use_schema; /* the role */
	bool		may_select;
	struct introspect_column *columns;
	int			column_count;
	struct introspect_key *keys;	/* the primary key first */
	int			key_count;
	struct introspect_unique *uniques;	/* by name */
	int			unique_count;
	struct introspect_reference *references;
	int			reference_count;
	struct introspect_reference **referrers;	/* keys to it */
	int			referrer_count;

	/* decided */
	bool		is_wanted;		/* by the options, or declared by now */
	bool		is_context;		/* declared alone: others may lead to it */
	const char *spelling;		/* schema.name, as in manifests */
	const char *declared;		/* the file that has it by now, or NULL */
	bool		is_alone;		/* in that file, which can be compared */
	const struct introspect_key *key;
	int			tenant;			/* place of its column, or -1 */
	struct introspect_reference *leader;	/* by which a row has a tenant, or
											 * NULL */
	bool		is_led_now;		/* since the present round */
	const char *entity;			/* names; NULL: it is no entity */
	const char *collection;
	struct introspect_reference *join_near; /* of a join table, which is */
	struct introspect_reference *join_far;	/* no entity; else NULL */
	bool		may_join;		/* an application's that is sound, whatever
								 * its key is */
	const char *why_not;		/* NULL: it is served */
};

struct introspect_catalog
{
	struct memory *memory;
	struct introspect_table *tables;	/* by schema and name */
	int			table_count;
	const char *role;			/* whose rights count, or NULL */
	const char *sql_role;
	bool		role_is_there;
	bool		role_is_superuser;
	const char *time_zone;		/* of the role in the database, or NULL */
	const char *search_path;	/* the same, as it was set; NULL: never */
	PGresult   *schemas;		/* names of those that are there */
	PGresult   *results[10];		/* texts are theirs */
	int			result_count;
};

/*
 * Reads all tables that are not the system's, in the transaction that is
 * open; false after a line on stderr.
 */
extern bool introspect_catalog_read(struct introspect_catalog *catalog,
									PGconn *connection);

/* The same of the rights and settings of a role. */
extern bool introspect_catalog_read_role(struct introspect_catalog *catalog,
										 PGconn *connection,
										 const char *role);

extern void introspect_catalog_free(struct introspect_catalog *catalog);

#endif							/* INTROSPECT_CATALOG_H */
