/*
 * A declared entity: its fields, relationships, permissions and rules.
 *
 * All strings and structs belong to the memory context of the catalog that
 * holds the entity.
 */
#ifndef EA_ENTITY_H
#define EA_ENTITY_H

#include "datatype/timestamp.h"

#include "model/id.h"
#include "model/types.h"

typedef enum EaOperation
{
	EA_OP_CREATE = 1 << 0,
	EA_OP_READ = 1 << 1,
	EA_OP_UPDATE = 1 << 2,
	EA_OP_DELETE = 1 << 3,
	EA_OP_RESTORE = 1 << 4,		/* and show[deleted] */
	EA_OP_HISTORY = 1 << 5		/* and what was deleted, as it was */
} EaOperation;

/* Those that change nothing. */
#define EA_OPS_READING (EA_OP_READ | EA_OP_HISTORY)

/* How many of them policies rule, the first; and all. */
#define EA_OPS_RULED 4
#define EA_OPS 6

typedef enum EaFieldKind
{
	EA_ATTRIBUTE,
	EA_TO_ONE,					/* column here: ManyToOne, owning OneToOne */
	EA_ONE_OF,					/* one column here per member */
	EA_TO_ONE_INVERSE,			/* OneToOne, column on the target */
	EA_TO_MANY,					/* OneToMany, column on the target */
	EA_MANY_TO_MANY				/* join table */
} EaFieldKind;

typedef enum EaOnDelete
{
	EA_RESTRICT,
	EA_CASCADE,
	EA_SET_NULL
} EaOnDelete;

typedef struct EaEntity EaEntity;
typedef struct EaField EaField;
typedef struct EaCatalog EaCatalog;

/* One possible target of a relationship; only one-of fields have several. */
typedef struct EaMember
{
	char	   *entity_name;
	char	   *type;			/* resource type */
	char	   *column;			/* quoted; of the owning side's table; or
								 * several, as in model/id_columns.h */
	EaIdKey		key;			/* of that column */
	EaEntity   *entity;			/* filled by ea_catalog_target() */
} EaMember;

/* Text that documents have as it is. */
typedef struct EaPiece
{
	char	   *text;
	int			len;
} EaPiece;

/* Operators that are named where they are others than those of the text. */
typedef enum EaComparison
{
	EA_COMPARES_EQ,
	EA_COMPARES_NE,
	EA_COMPARES_LT,
	EA_COMPARES_LE,
	EA_COMPARES_GT,
	EA_COMPARES_GE,
	EA_COMPARES_LIKE,
	EA_COMPARES_ILIKE,
	EA_N_COMPARISONS
} EaComparison;

/* A column of the row that a field stands in. */
typedef struct EaColumn
{
	char	   *name;			/* quoted */
	Oid			type;			/* of its values here, */
	Oid			array_type;
	Oid			held;			/* and in the table, */
	const char *held_schema;	/* where it was found by these names, else */
	const char *held_type;		/* NULL */

	/* of values that do not cross as they are; else NULL */
	const char *input;			/* the type that a text is cast to */
	const char *before;			/* SQL around the column, */
	const char *after;			/* where it is read */
	char	  **operators;		/* by EaComparison; an entry may be NULL */
} EaColumn;

struct EaField
{
	char	   *name;
	EaPiece		key;			/* `"name":`, escaped */
	EaFieldKind kind;
	int			index;			/* position in entity->fields */
	EaEntity   *entity;			/* whose field it is */
	int			since;			/* versions [since, removed_in) show it */
	int			removed_in;
	bool		required;
	bool		defaulted;		/* its column has a default of its own */
	bool		unique;
	bool		read_only;
	bool		write_once;
	char	  **read_roles;		/* NULL: no further limit */
	int			nread_roles;
	char	  **write_roles;
	int			nwrite_roles;
	bool		system;			/* the service fills it at each write */
	char	   *caller;			/* what of the caller is the default: id,
								 * username, securityAttributes; or NULL */
	char	   *caller_key;		/* the name of that attribute */
	int			ncolumns;		/* one, or one for each member; 0: elsewhere */
	EaColumn   *columns;

	/* attributes */
	const EaType *type;
	const EaType *shown;		/* the same, as documents have its values */
	bool		has_default;
	Datum		default_value;
	int			precision;		/* decimal; 0: of any number of digits */
	int			scale;
	bool		adapted;		/* the column may store another value than is
								 * written: it rounds, or spells it anew */
	int			min_length;		/* characters; -1: none */
	int			max_length;
	char	   *pattern;		/* POSIX regular expression, or NULL */
	char	   *from;			/* of User: the part of an account, or NULL */
	bool		has_minimum;	/* minimum, maximum: of the attribute's type */
	Datum		minimum;
	bool		has_maximum;
	Datum		maximum;
	int			nenum;
	char	  **enum_values;

	/* relationships */
	EaPiece		self;			/* around paths and ids of its links: key and
								 * `{"links":{"self":"` */
	EaPiece		related;		/* `/relationships/name","related":"` */
	EaPiece		end;			/* `/name"}` */
	int			nmembers;
	EaMember   *members;
	char	   *one_of;			/* ONE_OF: name of the declaration */
	char	   *mapped_by;		/* inverse sides: field of the target */
	EaOnDelete	on_delete;		/* owning sides */
	char	   *join_table;		/* MANY_TO_MANY: qualified and quoted */
	char	   *join_near;		/* its column for this side, quoted */
	char	   *join_far;		/* its column for the other side, quoted */
	EaIdKey		join_near_key;	/* of the former; that of the latter is the
								 * member's */
	bool		through;		/* the table is an application's, */
	bool		join_repeats;	/* may have a link several times, */
	bool		join_served;	/* is that of an entity as well, */
	bool		join_hides;		/* and row-level security may bind it */
	struct EaActing *acting;	/* of acting_keys.c: as the entity's */
};

/*
 * The owning field of an entity, with a column or a join table, that may
 * point at this one.
 */
typedef struct EaReference
{
	char	   *entity_name;
	char	   *field_name;
} EaReference;

typedef struct EaPermission
{
	char	   *role;			/* "*": every authenticated caller */
	int			operations;		/* mask of EaOperation */
} EaPermission;

/* A policy, and the operations it rules. */
typedef struct EaRule
{
	char	   *name;
	int			operations;		/* mask of EaOperation */
	char	   *expression;
	void	   *trees[EA_OPS_RULED];	/* authz/policy_sql.c: checked, by
									 * operation */
} EaRule;

/* When a hook runs, in the order of the manifests' words. */
typedef enum EaHookPhase
{
	EA_HOOK_GUARD,				/* before the row is read */
	EA_HOOK_VALIDATE,			/* before the write */
	EA_HOOK_MUTATE,				/* before that: may set attributes */
	EA_HOOK_AFTER				/* after it, in the same transaction */
} EaHookPhase;

typedef struct EaHook
{
	char	   *name;
	EaHookPhase phase;
	int			operations;		/* mask of EaOperation */
	char	   *schema;			/* of the function, unquoted */
	char	   *function;
	int			timeout_ms;		/* 0: the statement's own */
} EaHook;

/* A constraint of the table, for naming the field at fault. */
typedef struct EaConstraint
{
	char	   *name;
	EaField    *field;
} EaConstraint;

/*
 * The tenant of a row, which model/row_tenant.h alone finds: in a column, with
 * what the row refers to, or as the one that has all of them.
 */
typedef struct EaRowTenant
{
	char	   *column;			/* quoted */
	char	   *by;				/* the name of the field */
	pg_uuid_t  *one;
} EaRowTenant;

/* The maker of the id of a new resource. */
typedef enum EaIdMaker
{
	EA_ID_OF_SERVICE,
	EA_ID_OF_DATABASE,			/* by a default: known after the INSERT */
	EA_ID_OF_CLIENT
} EaIdMaker;

struct EaEntity
{
	EaCatalog  *catalog;
	char	   *name;			/* LineItem */
	char	   *collection;		/* lineItems */
	char	   *type;			/* lineitems */
	EaPiece		head;			/* `{"type":"lineitems","id":"` */
	char	   *table;			/* qualified and quoted: app.line_item */
	bool		existing;		/* the table was there before, and may have
								 * columns, triggers and writers of its own */
	bool		alone;			/* nobody else writes to an existing table */
	bool		of_application; /* whose table is another role's */
	bool		view;			/* which is only read, and has no key */
	bool		row_security;	/* which row-level security may bind */
	bool		adapts;			/* it has a field that is adapted, */
	bool		defaults;		/* or that is defaulted, */
	bool		spells;			/* or whose text depends on settings, */
	bool		heavy;			/* or that lists show where it is named */
	char	   *schema_name;	/* of it, unquoted */
	char	   *table_name;
	int			nunseen;
	char	  **unseen;			/* tables whose rows go or change by keys of
								 * others when rows of this one are deleted, as
								 * ea_names_table() writes them */
	struct EaActing *acting;	/* of acting_keys.c: there were no others */

	/* the columns that are no fields', quoted */
	char	   *id_column;		/* or several, as in model/id_columns.h */
	EaIdKey		key;			/* what ids are */
	EaIdMaker	maker;
	EaField    *key_field;		/* whose column it is as well, or NULL */
	EaRowTenant row_tenant;		/* of what is tenant-scoped */
	int			npart_fields;
	EaField   **part_fields;	/* of a key of several: those that have some of
								 * its columns, */
	bool		parts_are_fields;	/* and they have all of them, to be set */
	char	   *version_column; /* of what is locked optimistically; */
	bool		by_xmin;		/* PostgreSQL's own, which nobody writes */
	char	   *deleted_column; /* of what is deleted softly */
	char	   *deletion_column;	/* what it was deleted with; NULL: all
									 * that was deleted at the same time */
	char	   *created_column; /* NULL: an existing table has none */
	char	   *updated_column; /* the same */
	bool		tenant_scoped;
	bool		locking;
	bool		soft_delete;
	bool		accounts;		/* its rows are copies of accounts */
	EaField    *updated_by;		/* its last author; NULL: not asked for */
	TimestampTz applied_at;		/* since when it is declared so */
	bool		trigger_messages;	/* errors show their texts to callers */
	int			purge_after_days;	/* 0: what is deleted stays */
	int			since;
	int			removed_in;
	int			nfields;
	EaField    *fields;			/* in the order of the declaration */
	int			npermissions;
	EaPermission *permissions;
	int			nrules;
	EaRule	   *rules;
	struct EaJudged *judged;	/* of authz: what they said */
	struct EaKeptShapes *shapes;	/* of read: how callers are shown it */
	int			nhooks;
	EaHook	   *hooks;
	int			nreferences;
	EaReference *references;
	int			nconstraints;
	EaConstraint *constraints;
};

/* The version that PostgreSQL itself has of each row of an ordinary table */
#define EA_XMIN "xmin"

/* Names of the operations in manifests, by their bits; NULL at the end. */
extern const char *const ea_catalog_operations[EA_OPS + 1];

/* A field by name, len bytes; NULL when there is none. */
extern EaField *ea_catalog_field(EaEntity *entity, const char *name, int len);

/* An existing table gives the column its value: no INSERT names it. */
#define ea_catalog_is_filled(field) \
	((field)->entity->existing && (field)->read_only && !(field)->has_default)

/* createdAt, updatedAt: their columns are written with each row anyway. */
#define ea_catalog_is_time(field) \
	((field)->system && (field)->kind == EA_ATTRIBUTE)

/* Fields that a client can set say all of the id. */
#define ea_catalog_fields_say_id(entity) \
	((entity)->key_field != NULL || (entity)->parts_are_fields)

/* Anybody may make anew, with its id, what was deleted. */
#define ea_catalog_reuses_ids(entity) \
	((entity)->key.form != EA_ID_UUID || \
	 (entity)->maker == EA_ID_OF_CLIENT)

/* A decimal of a limited number of digits: other columns hold any number. */
#define ea_catalog_has_digits(field) \
	((field)->type->modifier == EA_MODIFIER_DIGITS && (field)->precision > 0)

/* Its values cross as texts. */
#define ea_catalog_crosses(field) \
	((field)->kind == EA_ATTRIBUTE && (field)->columns[0].input != NULL)

/* Its column or columns stand in the row of the resource itself. */
#define ea_catalog_has_column(field) \
	((field)->kind == EA_TO_ONE || (field)->kind == EA_ONE_OF)

/*
 * A reference from one side to the other, to a table of an application: no
 * foreign key keeps its target, as that would bind them.
 */
#define ea_catalog_is_loose(field, target) \
	((field)->entity->of_application != (target)->of_application)

/* An application may give its row to another tenant. */
#define ea_catalog_may_move(target) \
	((target)->of_application && (target)->tenant_scoped)

/*
 * Or to a row that may be another tenant's, as keys of an application need not
 * have the tenant: then it leads nowhere.
 */
#define ea_catalog_strays(field, target) \
	((field)->entity->of_application && ea_catalog_may_move(target) && \
	 ((field)->entity->row_tenant.by == NULL || \
	  strcmp((field)->entity->row_tenant.by, (field)->name) != 0))

/*
 * A statement of one tenant reaches all rows of child that refer to rows of
 * the entity, if it is to, as that of the only tenant there is.
 */
#define ea_catalog_reaches(entity, child) \
	((entity)->tenant_scoped || !(child)->tenant_scoped || \
	 ((entity)->of_application && (entity)->catalog->single))

/* Join tables of an application know of no tenants. */
#define ea_catalog_join_is_scoped(field) \
	((field)->entity->tenant_scoped && !(field)->through)

/* And so may lead from one to another. */
#define ea_catalog_join_may_cross(field, target) \
	((field)->through && (target)->tenant_scoped)
#define ea_catalog_is_to_many(field) \
	((field)->kind == EA_TO_MANY || (field)->kind == EA_MANY_TO_MANY)
#define ea_catalog_shows(thing, number) \
	((thing)->since <= (number) && (number) < (thing)->removed_in)

#endif							/* EA_ENTITY_H */
