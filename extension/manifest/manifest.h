/*
 * Manifests under way: what the documents declare, and their faults.
 *
 * Applying goes through these files, each leaning on the one before:
 * documents.c (documents to the structs below), check.c and fields.c (do they
 * fit together), compile.c (to the stored definitions), ddl/ddl.c (to
 * statements), apply/apply.c (the whole).  No step stops at a fault; faults
 * are collected here and thrown at once.
 *
 * All memory belongs to the memory context of the call.
 */
#ifndef EA_MANIFEST_H
#define EA_MANIFEST_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

#include "base/names.h"
#include "model/catalog.h"
#include "model/host.h"

/* The nesting that a document may have. */
#define EA_MANIFEST_MAX_DEPTH 64

/* Characters of a value that surely fit an index, encoded in UTF-8. */
#define EA_MANIFEST_MAX_KEY 600

typedef enum EaDeclKind
{
	EA_DECL_ENTITY,
	EA_DECL_ONE_OF,
	EA_DECL_ROLES,
	EA_DECL_POLICY,
	EA_DECL_SECURITY_ATTRIBUTES,
	EA_DECL_VERSIONS,
	EA_DECL_SERVICE,
	EA_DECL_HOOK
} EaDeclKind;

#define EA_DECL_NKINDS (EA_DECL_HOOK + 1)

typedef enum EaRelation
{
	EA_MANY_TO_ONE_RELATION,
	EA_ONE_TO_MANY_RELATION,
	EA_ONE_TO_ONE_RELATION,
	EA_MANY_TO_MANY_RELATION
} EaRelation;

/* A document; the pointers of its faults start at its root. */
typedef struct EaDeclDocument
{
	const EaJson *json;
	const char *label;			/* source, Kind/Name or #index */
	EaDeclKind	kind;
	char	   *name;			/* metadata.name */
	const EaJson *spec;			/* NULL when it is missing */
} EaDeclDocument;

typedef struct EaDeclEntity EaDeclEntity;
typedef struct EaDeclField EaDeclField;

/* A column of an id that has several. */
typedef struct EaDeclPart
{
	char	   *column;
	EaHostColumn key;
} EaDeclPart;

/* A possible target, and the column that holds its id, or the first. */
typedef struct EaDeclMember
{
	EaDeclEntity *entity;
	char	   *column;
	List	   *parts;			/* of EaDeclPart *, two or more; else NIL */
	EaHostColumn key;			/* what that is; without a type: a UUID, or as
								 * the target's key */
} EaDeclMember;

/*
 * A field.  The first part is as written, with -1 or NULL for what is not;
 * the second is worked out by check.c.
 */
struct EaDeclField
{
	EaDeclEntity *entity;
	const char *name;
	const EaJson *json;
	const char *pointer;		/* /spec/fields/<name> */
	char	   *type_name;
	char	   *description;
	char	   *target;
	char	   *mapped_by;
	char	   *through;		/* a join table that is there */
	char	   *renamed_from;
	char	   *from;			/* of User: the part of an account */
	char	   *pattern;
	int			relation;		/* EaRelation */
	int			on_delete;		/* EaOnDelete */
	bool		required;
	bool		unique;
	bool		index;
	bool		read_only;
	bool		write_once;
	int			min_length;
	int			max_length;
	int			precision;
	int			scale;
	int			zone;			/* 0: UTC */
	int			since;
	int			removed_in;
	const EaJson *default_value;
	const EaJson *enum_values;
	const EaJson *minimum;
	const EaJson *maximum;
	List	   *read_roles;		/* of char * */
	List	   *write_roles;

	bool		key_part;		/* it has a column of a key of several */
	bool		system;			/* the service fills it, as "system" asks */
	bool		for_administrators; /* nobody else reads it */
	const char *caller;			/* what a new resource gets of its caller */
	bool		sound;			/* no fault so far that hides others */
	EaFieldKind kind;
	const EaType *type;			/* of an attribute */
	bool		open;			/* decimal of any number of digits */
	bool		adapted;		/* the column stores others than are written */
	bool		of_database;	/* the column's type says which labels */
	const char *held_schema;	/* the type of a column whose values cross */
	const char *held_type;		/* as texts; or NULL */
	char	   *column;			/* of an attribute */
	List	   *members;		/* of EaDeclMember * */
	EaDeclField *owner;			/* of an inverse side */
	char	   *join_table;		/* of an owning ManyToMany */
	char	   *join_schema;	/* NULL: that of made tables */
	char	   *join_near;
	char	   *join_far;
	EaHostColumn near_key;		/* what columns of one that is there are; */
	EaHostColumn far_key;
	bool		join_repeats;	/* it may have a link several times, */
	bool		join_served;	/* or is the table of an entity as well */
};

/* The columns of an existing table that are no fields'. */
typedef enum EaDeclColumn
{
	EA_DECL_ID,
	EA_DECL_TENANT_ID,
	EA_DECL_VERSION,
	EA_DECL_CREATED_AT,
	EA_DECL_UPDATED_AT,
	EA_DECL_DELETED_AT,
	EA_DECL_DELETION_ID
} EaDeclColumn;

#define EA_DECL_NCOLUMNS (EA_DECL_DELETION_ID + 1)

/* One of them says whose a row of an application is. */
typedef struct EaDeclTenant
{
	char	   *column;
	char	   *by;				/* a reference to what has a tenant, */
	EaDeclField *by_field;		/* once it is found */
	char	   *is;
} EaDeclTenant;

struct EaDeclEntity
{
	EaDeclDocument *document;
	char	   *name;
	char	   *description;
	char	   *plural;
	char	   *renamed_from;
	bool		tenant_scoped;
	bool		locking;
	bool		trigger_messages;
	bool		soft_delete;
	bool		accounts;		/* User: the accounts of the tenant */
	List	   *system;			/* of char * */
	int			purge_after_days;	/* -1: deleted rows stay */
	char	   *existing_table;
	const EaJson *existing_columns;
	const EaJson *key;			/* in the place of columns.id */
	EaHostColumn key_column;
	EaDeclField *key_field;		/* whose column it is as well */
	List	   *key_parts;		/* of EaDeclPart *, two or more; else NIL */
	bool		others_write;	/* to an existing table; false: nobody else */
	bool		of_application; /* statements on it run as its role */
	bool		view;			/* and none writes it */
	bool		row_security;	/* whom row-level security may bind */
	const EaJson *tenant;		/* whose its rows are, */
	EaDeclTenant rows;			/* as it was read */
	List	   *global;			/* of char *, unique indexes that all tenants
								 * have in common */
	List	   *unseen;			/* of char *, tables that keys of others may
								 * delete from or change */
	int			since;
	int			removed_in;
	const EaJson *field_map;
	const EaJson *permissions;
	const EaJson *policies;
	const EaJson *indexes;

	char	   *collection;
	char	   *type;
	char	   *schema;			/* of an existing table, else NULL */
	char	   *table;
	const char *columns[EA_DECL_NCOLUMNS];	/* of an existing table */
	List	   *fields;			/* of EaDeclField * */
	EaNameMap  *by_name;
	List	   *references;		/* owning fields that may point here */
};

typedef struct EaDeclOneOf
{
	EaDeclDocument *document;
	char	   *name;
	char	   *description;
	List	   *member_names;	/* of char * */
	List	   *members;		/* of EaDeclEntity *, those that exist */
} EaDeclOneOf;

typedef struct EaDeclPolicy
{
	EaDeclDocument *document;
	char	   *name;
	char	   *expression;
	char	   *description;
	bool		used;
} EaDeclPolicy;

typedef struct EaDeclHook
{
	EaDeclDocument *document;
	char	   *entity;
	int			phase;
	List	   *on;
	char	   *function;		/* schema.name, or NULL if it was not that */
	int			timeout_ms;
	char	   *description;
} EaDeclHook;

/* The table whose rows are the tenants, by "tenants" of "existing". */
typedef struct EaDeclTenants
{
	char	   *name;			/* schema.name, as it was written */
	char	   *schema;
	char	   *table;			/* NULL: there is none, or a fault */
	char	   *id_column;
	char	   *name_column;
} EaDeclTenants;

/* Of all Roles, SecurityAttributes, Versions and Service documents. */
typedef struct EaDeclService
{
	EaDeclDocument *document;	/* the Service document, or NULL */
	int			tenancy;		/* 0: POOL, 1: SINGLE */
	char	   *schema;
	List	   *default_roles;
	const EaJson *tenant_admin_bypass;	/* true if it is left out */
	int			decimals;		/* 0: number, 1: string */
	int			distribution;	/* 0: none, 1: citus */
	const EaJson *existing;
	char	   *application_role;	/* of "existing", or NULL */
	List	   *search_path;	/* of char *, schemas; NIL: the role's own */
	const EaJson *settings;		/* by name; NULL: the role's own */
	const EaJson *tenants;
	EaDeclTenants tenant_rows;
	const EaJson *audit;
	bool		audit_entities;
	bool		audit_identity;
	List	   *attributes;		/* const EaJson * members, checked */
	List	   *versions;		/* the same, by number */
} EaDeclService;

typedef struct EaManifest
{
	const char *source;			/* the text all EaJson were read from */
	bool		has_application;	/* the Service says "existing", */
	bool		pools_application;	/* with tenancy: POOL */
	List	   *documents;		/* of EaDeclDocument *, sound ones */
	List	   *entities;		/* of EaDeclEntity * */
	List	   *policies;
	List	   *hooks;
	List	   *role_names;		/* of char *, in order */
	List	   *super_roles;	/* those that only a SuperAdmin assigns */
	EaDeclService service;
	EaNameMap  *by_document;	/* Kind/Name */
	EaNameMap  *by_entity;
	EaNameMap  *by_one_of;
	EaNameMap  *by_policy;
	EaNameMap  *by_role;
	EaNameMap  *by_super_role;
	EaNameMap  *by_attribute;
	int			nfaults;
	StringInfoData faults;		/* members of a JSON array */
} EaManifest;

#endif							/* EA_MANIFEST_H */
