/*
 * Nothing is changed here.  All that is amiss is reported at once, each with
 * the statement that repairs it.  Constraints and indexes are found by what
 * they do, whatever their names are.
 *
 * Statements on the table run with the rights of entityapi_owner, but for
 * those of an application (application_check.c), and so do its dependent
 * objects: triggers, defaults, constraints, indexes.  A role that could put
 * code there would have these rights, so the table must belong to
 * entityapi_owner, and such code to it or to a superuser.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "cluster/distributed.h"
#include "ddl/distribution.h"
#include "ddl/application_check.h"
#include "ddl/crossings.h"
#include "ddl/existing_check.h"
#include "ddl/key_columns.h"
#include "ddl/name_lists.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "model/acting_keys.h"
#include "model/application.h"
#include "model/id_columns.h"
#include "model/table_owners.h"

#define READER "entityapi_reader"

typedef struct Look
{
	EaDdlPlan  *plan;
	EaDdlTable *table;
	Oid			relid;
} Look;

/* The rows of a query, as many as are wanted; 0: all. */
static uint64
run_query(const char *sql, int wanted)
{
	int			result = SPI_execute(sql, true, wanted);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "a look at the catalogs failed: %s",
			 SPI_result_code_string(result));
	return SPI_processed;
}

static bool
has_row(const char *sql)
{
	return run_query(sql, 1) > 0;
}

/* -------- the table as such -------- */

/* A fault at /spec/table. */
static void
lacks(Look *look, const char *message, const char *hint)
{
	ea_ddl_lacks(look->plan, look->table, message, hint);
}

static char *
alter(Look *look, const char *what)
{
	return psprintf("ALTER TABLE %s %s", look->table->qualified, what);
}

/* Nothing further is looked at when it is no ordinary table. */
static bool
is_plain_table(Look *look, Relation rel)
{
	const char *why = NULL;

	if (look->table->of_application ?
		!ea_application_is_kind(rel->rd_rel->relkind, look->table->view) :
		rel->rd_rel->relkind != RELKIND_RELATION)
		why = "only ordinary tables are served, "
			"not views, partitioned or foreign tables";
	else if (rel->rd_rel->relispartition ||
			 (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
			  find_inheritance_children(look->relid, NoLock) != NIL))
		why = "tables with partitions or children, or that are such, "
			"are not served";
	else if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		why = "temporary and unlogged tables are not served";
	if (why != NULL)
		lacks(look, psprintf("%s: %s", look->table->qualified, why), NULL);
	return why == NULL;
}

/* An INSERT into the whole does not tell what its partition got. */
static void
check_version(Look *look, Relation rel)
{
	EaDeclEntity *entity = ea_names_map_get(look->plan->m->by_entity,
											look->table->entity);
	const char *version = entity->columns[EA_DECL_VERSION];

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		version != NULL && strcmp(version, "xmin") == 0)
		lacks(look, "rows of a partitioned table have no \"xmin\" that a "
			  "request could be told",
			  "name a column of type bigint as the version");
}

/* The owner that tables must have: the role that runs this. */
static char *
owner_name(void)
{
	return GetUserNameFromId(GetUserId(), false);
}

static void
check_owner(Look *look, Relation rel)
{
	char	   *name = owner_name();

	if (rel->rd_rel->relowner != GetUserId())
		lacks(look, psprintf("the table must belong to %s", name),
			  alter(look, psprintf("OWNER TO %s", quote_identifier(name))));
	if (rel->rd_rel->relforcerowsecurity)
		lacks(look,
			  "row-level security is forced on the owner, so requests would "
			  "not see all rows of their tenant",
			  alter(look, "NO FORCE ROW LEVEL SECURITY"));
	if (rel->rd_rules != NULL)
		lacks(look, "rewrite rules change what the service's statements do",
			  "drop them, or use triggers");
}

/* The schema's owner could put another table in this one's place. */
static void
check_schema(Look *look)
{
	const char *schema = quote_identifier(look->table->schema);
	Oid			namespace = get_namespace_oid(look->table->schema, false);
	Oid			owner = ea_table_owners_of_schema(namespace);

	if (OidIsValid(owner))
		lacks(look,
			  psprintf("the schema belongs to %s, who could put another table "
					   "in the place of this one",
					   GetUserNameFromId(owner, false)),
			  psprintf("ALTER SCHEMA %s OWNER TO %s", schema,
					   quote_identifier(owner_name())));
	if (ea_compat_schema_aclcheck(namespace, GetUserId(),
								  ACL_USAGE) != ACLCHECK_OK)
		lacks(look, psprintf("%s may not use the schema", owner_name()),
			  psprintf("GRANT USAGE ON SCHEMA %s TO %s", schema,
					   quote_identifier(owner_name())));
	if (ea_compat_schema_aclcheck(namespace, get_role_oid(READER, false),
								  ACL_USAGE) != ACLCHECK_OK)
		lacks(look, READER " may not use the schema",
			  psprintf("GRANT USAGE ON SCHEMA %s TO " READER, schema));
}

/* -------- columns -------- */

/* Of columns without a field, of references, of keys. */
static const struct
{
	const char *sql;
	Oid			type;
}			plain_types[] =
{
	{"uuid", UUIDOID}, {"int2", INT2OID}, {"int4", INT4OID},
	{"int8", INT8OID}, {"text", TEXTOID}, {"varchar", VARCHAROID},
	{"bpchar", BPCHAROID}, {"date", DATEOID},
	{"timestamptz", TIMESTAMPTZOID}
};

static Oid
plain_type(const char *sql)
{
	for (int i = 0; i < lengthof(plain_types); i++)
	{
		if (strcmp(plain_types[i].sql, sql) == 0)
			return plain_types[i].type;
	}
	elog(ERROR, "a column has the unknown type \"%s\"", sql);
	return InvalidOid;
}

static const char *
plain_name(Oid type)
{
	for (int i = 0; i < lengthof(plain_types); i++)
	{
		if (plain_types[i].type == type)
			return plain_types[i].sql;
	}
	return NULL;
}

/* Why a column cannot hold the values of a field, or NULL. */
static const char *
type_fault(const EaDdlColumn *column, Oid type, int32 typmod)
{
	const EaType *wanted = column->type;
	int32		most;
	Oid			base = getBaseTypeAndTypmod(type, &typmod);
	char	   *is = format_type_with_typemod(type, typmod);

	if (wanted == NULL)
	{
		/*
		 * a reference, or a column without a field, whose type stands in SQL
		 */
		Oid			plain = plain_type(column->sql);

		return base == plain ? NULL :
			psprintf("is %s and must be %s", is, format_type_be(plain));
	}
	most = typmod - VARHDRSZ;
	if (wanted->crosses != EA_CROSSES_AS_IS)
		return wanted->id == EA_TYPE_CHAR && typmod >= 0 &&
			most < column->length ?
			psprintf("is %s, and the field may have %d characters", is,
					 column->length) : NULL;
	if (wanted->form == EA_FORM_TEXT)
	{
		if (base != TEXTOID && base != VARCHAROID)
			return psprintf("is %s and must be text or character varying", is);
		if (base == VARCHAROID && typmod >= 0 &&
			wanted->modifier != EA_MODIFIER_LENGTH)
			return psprintf("is %s; as a text, the field may be longer", is);
		if (base == VARCHAROID && typmod >= 0 && most < column->length)
			return psprintf("is %s, and the field may have %d characters: "
							"give it a maxLength", is, column->length);
		return NULL;
	}
	if (base != wanted->column_oid)
		return psprintf("is %s and must be %s", is,
						format_type_be(wanted->column_oid));
	if (wanted->modifier == EA_MODIFIER_DIGITS && column->precision == 0)
		return typmod < 0 || column->adapted ? NULL :
			psprintf("is %s and must be numeric", is);
	if (wanted->modifier == EA_MODIFIER_DIGITS)
	{
		int			precision = typmod < 0 ? -1 :
		((typmod - VARHDRSZ) >> 16) & 0xffff;
		int			scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;

		if (precision < column->precision || scale != column->scale)
			return psprintf("is %s and must be numeric(%d,%d)", is,
							column->precision, column->scale);
	}
	if (wanted->form == EA_FORM_TIMESTAMP && !column->adapted &&
		typmod >= 0 && typmod < MAX_TIMESTAMP_PRECISION)
		return psprintf("is %s, which rounds, and must be %s", is,
						format_type_be(base));
	return NULL;
}

/* A fault at a key of /spec/columns. */
static void
column_lacks(Look *look, const EaDdlColumn *column, const char *what,
			 const char *hint)
{
	const char *message = psprintf("the column \"%s\" %s", column->name, what);

	if (column->field != NULL)
		ea_ddl_fault(look->plan, look->table, column->field, message, hint);
	else if (look->table->of_application &&
			 column->name == look->table->tenant_column)
		ea_ddl_tenant_fault(look->plan, look->table, "/spec/tenant/column",
							message, hint);
	else
		lacks(look, message, hint);
}

/* Live rows have null there. */
static bool
is_of_deletion(const EaDdlTable *table, const EaDdlColumn *column)
{
	return (table->deleted_column != NULL &&
			strcmp(column->name, table->deleted_column) == 0) ||
		(table->deletion_column != NULL &&
		 strcmp(column->name, table->deletion_column) == 0);
}

static void
check_column(Look *look, Form_pg_attribute att, const EaDdlColumn *column,
			 bool read_only)
{
	const char *quoted = quote_identifier(column->name);
	const char *why = type_fault(column, att->atttypid, att->atttypmod);

	if (why != NULL)
		column_lacks(look, column, why, NULL);
	else if (OidIsValid(att->attcollation) &&
			 !get_collation_isdeterministic(att->attcollation))
		column_lacks(look, column, "has a nondeterministic collation", NULL);
	if (look->table->view)
		return;					/* it cannot tell the rest */
	if (!read_only &&
		(att->attgenerated != '\0' ||
		 att->attidentity == ATTRIBUTE_IDENTITY_ALWAYS))
		column_lacks(look, column, "is generated and cannot be written",
					 column->field ? "make the field readOnly" : NULL);
	if (column->not_null && !att->attnotnull)
		column_lacks(look, column, "must be not null",
					 alter(look,
						   psprintf("ALTER COLUMN %s SET NOT NULL", quoted)));

	/* the times of creation and update are always written */
	if (!column->not_null && !read_only && att->attnotnull &&
		(column->field != NULL || is_of_deletion(look->table, column)))
		column_lacks(look, column, "takes no null",
					 column->field ? "make the field required" :
					 alter(look,
						   psprintf("ALTER COLUMN %s DROP NOT NULL", quoted)));
}

/*
 * Labels of an enum are renamed without a trace in the rows, which would swap
 * ids, so it is no key, nor is any other type that has no row in model/id.c.
 */
static bool
is_key_type(Look *look, Form_pg_attribute att)
{
	const char *quoted = quote_identifier(NameStr(att->attname));
	Oid			base = getBaseType(att->atttypid);

	if (plain_name(base) != NULL && base != TIMESTAMPTZOID)
		return true;
	lacks(look,
		  psprintf("the column \"%s\" is %s: a key is a uuid, an integer, "
				   "text, character varying, character or a date",
				   NameStr(att->attname), format_type_be(att->atttypid)),
		  psprintf("%s, or name another one in \"key\"",
				   alter(look, psprintf("ALTER COLUMN %s TYPE text",
										quoted))));
	return false;
}

static bool
is_read_only(Look *look, const EaDdlColumn *column)
{
	EaDeclEntity *entity = ea_names_map_get(look->plan->m->by_entity,
											look->table->entity);
	EaDeclField *field = column->field == NULL ? NULL :
	ea_names_map_get(entity->by_name, column->field);

	return field != NULL && field->read_only && field->default_value == NULL;
}

/* A statement that runs: a value of its own for each row, or none. */
static char *
default_hint(Look *look, Form_pg_attribute att)
{
	const char *quoted = quote_identifier(NameStr(att->attname));
	const char *value = att->atttypid == UUIDOID ? "gen_random_uuid()" :
		att->atttypid == TIMESTAMPTZOID || att->atttypid == TIMESTAMPOID ||
		att->atttypid == DATEOID ? "now()" : NULL;

	if (value != NULL)
		return alter(look, psprintf("ALTER COLUMN %s SET DEFAULT %s", quoted,
									value));
	if (has_row(psprintf("SELECT FROM pg_index WHERE indrelid = %u"
						 " AND indisprimary AND %d = ANY (indkey::int2[])",
						 look->relid, att->attnum)))
		return "give it a default";
	return alter(look, psprintf("ALTER COLUMN %s DROP NOT NULL", quoted));
}

/* The database may fill its key as it likes. */
static void
check_one(Look *look, Form_pg_attribute att, const EaDdlColumn *column)
{
	bool		key = look->table->keyed &&
		ea_ddl_names_have(look->table->key_columns, column->name);

	if (!key || is_key_type(look, att))
		check_column(look, att, column,
					 (key && column->field == NULL) ||
					 is_read_only(look, column));
}

static void
check_columns(Look *look, Relation rel)
{
	EaNameMap  *there = ea_names_map_create(32);
	TupleDesc	desc = RelationGetDescr(rel);
	bool		created = ea_ddl_permits(look->plan, look->table, "create");
	ListCell   *lc;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		char	   *name = NameStr(att->attname);
		EaDdlColumn *column;

		if (att->attisdropped)
			continue;
		ea_names_map_put(there, pstrdup(name), att);
		column = ea_names_map_get(look->table->by_column, name);
		if (column != NULL)
			check_one(look, att, column);
		if (created && att->attnotnull && !att->atthasdef &&
			att->attidentity == '\0' &&
			(column == NULL || is_read_only(look, column)))
			lacks(look,
				  psprintf("the column \"%s\" is %s, not null and without a "
						   "default: no row could be created", name,
						   column ? "read-only" : "no field's"),
				  default_hint(look, att));
	}
	foreach(lc, look->table->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		if (ea_names_map_get(there, column->name) == NULL)
			column_lacks(look, column, "does not exist",
						 "name another one in \"columns\"");
	}
}

/* -------- constraints and indexes -------- */

/*
 * The text of a predicate that asks for null; NULL of others, in which values
 * of a type come with code of its owner.
 */
#define PREDICATE \
	"CASE WHEN i.indpred::text LIKE '{NULLTEST %%'" \
	" THEN pg_get_expr(i.indpred, i.indrelid) END"

static bool
has_unique(Look *look, List *columns, bool immediate, bool partial)
{
	const EaDdlTable *table = look->table;
	const char *rows = "i.indpred IS NULL";

	if (partial)
	{
		char	   *kept = psprintf("(%s IS NULL)",
									quote_identifier(table->deleted_column));

		rows = psprintf(PREDICATE " = %s", quote_literal_cstr(kept));
	}
	return has_row(psprintf("SELECT FROM pg_index i WHERE i.indrelid = %u"
							" AND i.indisunique AND i.indisvalid%s"
							" AND %s AND %s",
							look->relid,
							immediate ? " AND i.indimmediate" : "",
							rows,
							ea_ddl_are_columns(table, EA_KEY_NAMES, columns,
											   false)));
}

static bool
has_index(Look *look, List *columns)
{
	return has_row(psprintf("SELECT FROM pg_index i WHERE i.indrelid = %u"
							" AND i.indisvalid AND i.indpred IS NULL"
							" AND %s", look->relid,
							ea_ddl_are_columns(look->table, EA_KEY_NAMES,
											   columns, true)));
}

/* One that has the deleted rows in the order of their times. */
static bool
has_deleted(Look *look, const EaDdlObject *object)
{
	const char *deleted = linitial(object->columns);
	char	   *rows = psprintf("(%s IS NOT NULL)", quote_identifier(deleted));

	return has_row(psprintf("SELECT FROM pg_index i WHERE i.indrelid = %u"
							" AND i.indisvalid AND (i.indpred IS NULL OR"
							" " PREDICATE " = %s)"
							" AND (" EA_KEY_NAMES ")[1] = %s",
							look->relid, quote_literal_cstr(rows),
							quote_literal_cstr(deleted)));
}

static EaDdlTable *
target_table(Look *look, const EaDdlObject *object)
{
	EaDdlTable *target = ea_names_map_get(look->plan->to->by_key,
										  object->target);

	if (target == NULL)
		elog(ERROR, "there is no table of \"%s\"", object->target);
	return target;
}

/* With Citus a key comes after both of its tables. */
static char *
refer(Look *look, const EaDdlObject *object)
{
	char	   *add = alter(look, psprintf("ADD %s", object->body));

	return !look->plan->was_distributed ||
		ea_distributed_is(look->relid) ? add :
		psprintf("%s; %s", ea_ddl_distribute_call(look->table), add);
}

/*
 * Keys of an application have the actions that its people gave them.  The
 * service does the same before, with rights and records, so the action has to
 * be the one that "onDelete" says.  Where nobody deletes the target any key
 * will do; and where its rows are hidden first, the service is to find what
 * refers to them before they go for good, so the key must only refuse.
 */
static const char *
key_actions(Look *look, const EaDdlObject *object, const EaDdlTable *target)
{
	EaEntity   *far = ea_catalog_entity(look->plan->wanted, target->entity);
	EaEntity   *near = ea_catalog_entity(look->plan->wanted,
										 look->table->entity);
	const EaField *field = ea_catalog_field(near, object->field,
											strlen(object->field));
	static const char *const same[] = {
		[EA_RESTRICT] = "'a', 'r'",
		[EA_CASCADE] = "'c'",
		[EA_SET_NULL] = "'n'"
	};

	if (field == NULL)
		elog(ERROR, "a foreign key of no field");
	if (!ea_acting_keys_deletes(far))
		return NULL;
	return far->soft_delete ?
		psprintf("'a', 'r', %s", same[field->on_delete]) :
		same[field->on_delete];
}

/* Between tables of an application; NULL: the key is none of theirs. */
static char *
key_condition(Look *look, const EaDdlObject *object, const EaDdlTable *target)
{
	const char *actions;

	if (!look->table->of_application)
		return " AND f.condeferrable AND f.confdeltype = 'a'"
			" AND f.confupdtype = 'a'";
	actions = key_actions(look, object, target);
	return actions == NULL ? "" :
		psprintf(" AND f.confdeltype IN (%s)"
				 " AND (f.confdelsetcols IS NULL AND (f.confdeltype <> 'n'"
				 " OR cardinality(f.conkey) = %d) OR "
				 EA_NAMES("f.confdelsetcols", "f.conrelid") " <@ %s)", actions,
				 list_length(object->columns),
				 ea_ddl_name_array(look->table, target->tenant_scoped,
							object->columns));
}

/* pg_constraint.confdeltype of a key that is as it has to be else, or 0 */
static char
find_action(const char *keys)
{
	return run_query(keys, 1) == 0 ? '\0' :
		SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1)[0];
}

/* One that does not say what "onDelete" says. */
static void
check_action(Look *look, const EaDdlObject *object, char action)
{
	static const struct
	{
		char		action;
		const char *name;
		const char *on_delete;
	}			known[] = {
		{'a', "NO ACTION", "restrict"},
		{'r', "RESTRICT", "restrict"},
		{'c', "CASCADE", "cascade"},
		{'n', "SET NULL", "setNull"},
		{'d', "SET DEFAULT", NULL}
	};

	for (int i = 0; i < lengthof(known); i++)
	{
		if (known[i].action != action)
			continue;
		ea_ddl_fault(look->plan, look->table, object->field,
					 psprintf("its foreign key is ON DELETE %s, and onDelete "
							  "says something else", known[i].name),
					 known[i].on_delete == NULL ? "give it another action" :
					 psprintf("onDelete: %s", known[i].on_delete));
	}
}

/* The ids that a column has are those of the key that it refers to. */
static void
check_kind(Look *look, const EaDdlObject *object, const EaDdlTable *target)
{
	EaEntity   *entity = ea_catalog_entity(look->plan->wanted,
										   look->table->entity);
	EaEntity   *to = ea_catalog_entity(look->plan->wanted, target->entity);
	EaField    *field = ea_catalog_field(entity, object->field,
										 strlen(object->field));
	const char *quoted = quote_identifier(linitial(object->columns));
	const char *type = format_type_be(to->key.type->oid);
	bool		several = to->key.nparts > 0;

	for (int m = 0; field != NULL && m < field->nmembers; m++)
	{
		if (ea_columns_find(field->members[m].column, quoted) == 0 &&
			!ea_id_same_kind(&field->members[m].key, &to->key))
			ea_ddl_fault(look->plan, look->table, object->field,
						 psprintf("refers to a key of %s by %s of "
								  "another type", target->qualified,
								  several ? "columns" : "a column"),
						 several ? "name columns of the key's types, in its "
						 "order" :
						 alter(look, psprintf("ALTER COLUMN %s TYPE %s",
											  quoted, type)));
	}
}

static void
check_reference(Look *look, EaDdlObject *object)
{
	EaDdlTable *target = target_table(look, object);
	Oid			far = ea_ddl_relation(target);
	const char *field = object->field;
	char	   *keys;
	char		action;

	if (target->view)
	{
		ea_ddl_fault(look->plan, look->table, field,
					 psprintf("leads to %s, a view, to which there is no "
							  "foreign key", target->qualified),
					 "name the table that the view is of, or keep the id in "
					 "an attribute");
		return;
	}
	if (!OidIsValid(far))
	{
		ea_ddl_fault(look->plan, look->table, field,
					 psprintf("needs a foreign key to the table of %s, which "
							  "is not made yet", object->target),
					 psprintf("apply without the field, then %s, "
							  "then add the field",
							  alter(look, psprintf("ADD %s", object->body))));
		return;
	}
	check_kind(look, object, target);
	keys = psprintf("SELECT f.confdeltype FROM pg_constraint f"
					" WHERE f.contype = 'f'"
					" AND f.conrelid = %u AND f.confrelid = %u"
					" AND f.convalidated AND %s",
					look->relid, far,
					ea_ddl_are_references(look->table, object->columns,
										  target, target->key_columns));
	if (has_row(psprintf("%s%s", keys, key_condition(look, object, target))))
		return;
	action = look->table->of_application ? find_action(keys) : '\0';
	if (action != '\0')
		check_action(look, object, action);
	else
		ea_ddl_fault(look->plan, look->table, field,
					 look->table->of_application ?
					 psprintf("needs a foreign key to the key of %s",
							  target->qualified) :
					 psprintf("needs a deferrable foreign key to %s without "
							  "actions", target->qualified),
					 refer(look, object));
}

static bool
has_primary_key(Look *look)
{
	return has_row(psprintf("SELECT FROM pg_index WHERE indrelid = %u"
							" AND indisprimary", look->relid));
}

static void
check_objects(Look *look)
{
	EaDdlTable *table = look->table;
	List	   *key = list_copy(table->key_columns);
	ListCell   *lc;

	if (!has_unique(look, key, true, false))
	{
		if (table->tenant_scoped)
			key = lcons(unconstify(char *, table->tenant_column), key);
		lacks(look,
			  psprintf("needs a primary key or an immediate unique constraint "
					   "on %s", ea_ddl_names_said(key)),
			  alter(look,
					psprintf("ADD %s (%s)", has_primary_key(look) ?
							 "UNIQUE" : "PRIMARY KEY",
							 ea_ddl_names_quoted(key))));
	}
	foreach(lc, table->objects)
	{
		EaDdlObject *object = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (object->kind == EA_DDL_FOREIGN_KEY)
			check_reference(look, object);
		else if (object->unique &&
				 !has_unique(look, object->columns, false, object->partial))
			ea_ddl_fault(look->plan, table, object->field,
						 "needs a unique index",
						 object->partial ? object->body :
						 alter(look, psprintf("ADD %s", object->body)));

		else if (object->deleted)
		{
			if (!has_deleted(look, object))
				lacks(look,
					  "needs an index of deleted rows by their time, for "
					  "purgeAfterDays",
					  object->body);
		}

		/* those of references are good to have, others have been asked for */
		else if (object->kind == EA_DDL_PLAIN_INDEX && !object->unique &&
				 !object->implied && !has_index(look, object->columns))
			ea_ddl_fault(look->plan, table, object->field,
						 "needs an index", object->body);
	}
}

/* -------- what reaches across tenants, and rights -------- */

/* Run a query of one or two columns, and report each row. */
static void
check_rows(Look *look, const char *message, const char *hint, const char *sql)
{
	uint64		n = run_query(sql, 0);

	for (uint64 i = 0; i < n; i++)
		lacks(look,
			  psprintf(message,
					   SPI_getvalue(SPI_tuptable->vals[i],
									SPI_tuptable->tupdesc, 1)),
			  hint);
}

static void
check_tenancy(Look *look)
{
	const EaDdlTable *table = look->table;

	if (table->of_application)
		ea_ddl_check_tenant(look->plan, look->table, look->relid);
	if (!table->tenant_scoped)
		return;

	/* ids are made by the service, so that none can be guessed by its error */
	check_rows(look,
			   "the unique index or exclusion constraint \"%s\" "
			   "would tell tenants of each other's values",
			   "let it start with the column of the tenant",
			   psprintf("SELECT c.relname FROM pg_index i"
						" JOIN pg_class c ON c.oid = i.indexrelid"
						" WHERE i.indrelid = %u"
						" AND (i.indisunique OR i.indisexclusion)"
						" AND NOT %s = ANY (" EA_SHARED_NAMES ")"
						" AND NOT (" EA_KEY_NAMES " = ARRAY[%s])",
						look->relid, quote_literal_cstr(table->tenant_column),
						quote_literal_cstr(table->id_column)));
	check_rows(look, "the foreign key \"%s\" reaches rows of other tenants",
			   "let it start with the column of the tenant",
			   psprintf("SELECT f.conname FROM pg_constraint f"
						" WHERE f.contype = 'f' AND f.conrelid = %u"
						" AND NOT (%s = ANY ("
						EA_NAMES("f.conkey", "f.conrelid") "))"
						" AND EXISTS (SELECT FROM pg_attribute t"
						" WHERE t.attrelid = f.confrelid"
						" AND t.attname IN ('tenant_id', %s)"
						"             AND NOT t.attisdropped)",
						look->relid, quote_literal_cstr(table->tenant_column),
						quote_literal_cstr(table->tenant_column)));
}

/* It has the table, and may, or will not have it any more. */
static bool
is_of_citus(const EaDdlPlan *plan, const EaOwnersFault *fault)
{
	return fault->part == EA_OWNERS_CITUS &&
		(plan->was_distributed || plan->is_distributed);
}

static void
check_code(Look *look)
{
	ListCell   *lc;

	foreach(lc, ea_table_owners_faults(1, &look->relid,
									   look->plan->is_distributed, true))
	{
		EaOwnersFault *fault = lfirst(lc);

		/* these have been reported in other words */
		if (fault->part != EA_OWNERS_TABLE &&
			fault->part != EA_OWNERS_SCHEMA &&
			fault->part != EA_OWNERS_CHILDREN &&
			!is_of_citus(look->plan, fault))
			lacks(look, fault->message, fault->hint);
	}
	check_rows(look,
			   "%s has rights on the table: "
			   "readers of plain SQL could do more than the service lets them",
			   psprintf("REVOKE ALL ON %s FROM PUBLIC",
						look->table->qualified),
			   psprintf("SELECT 'PUBLIC' WHERE EXISTS"
						" (SELECT FROM pg_class c, aclexplode(c.relacl) a"
						" WHERE c.oid = %u AND a.grantee = 0)"
						" OR EXISTS"
						" (SELECT FROM pg_attribute t, aclexplode(t.attacl) a"
						" WHERE t.attrelid = %u AND a.grantee = 0)",
						look->relid, look->relid));
}

/* One statement for all tables: a thousand would take a second. */
void
ea_ddl_look_at_made(EaDdlPlan *plan)
{
	Oid		   *relids = palloc(Max(list_length(plan->to->tables), 1) *
								sizeof(Oid));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);
		Oid			relid = to->existing || to->other == NULL ? InvalidOid :
			ea_ddl_relation(to->other->was);

		if (OidIsValid(relid))
			relids[n++] = relid;
	}
	plan->made_faults = ea_table_owners_faults(n, relids,
											   plan->is_distributed, false);
}

/* Is it told as a difference (additions.c), which a repair takes back? */
static bool
is_difference(const EaOwnersFault *fault)
{
	return fault->part == EA_OWNERS_TABLE ||
		fault->part == EA_OWNERS_TRIGGER ||
		fault->part == EA_OWNERS_CHILDREN;
}

/*
 * The same of a table that is made for its entity: the schema's owner can have
 * put another one there, and dependent objects may have been added.
 */
void
ea_ddl_check_made(EaDdlPlan *plan, const EaDdlTable *table,
				  const EaDdlTable *there)
{
	Oid			namespace = get_namespace_oid(table->schema, true);
	Oid			relid = there ? ea_ddl_relation(there) : InvalidOid;
	Oid			owner = OidIsValid(namespace) ?
	ea_table_owners_of_schema(namespace) : InvalidOid;
	ListCell   *lc;

	if (OidIsValid(owner))
		ea_ddl_fault(plan, table, NULL,
					 psprintf("the schema \"%s\" belongs to %s, who could put "
							  "other tables in the place of the service's",
							  table->schema, GetUserNameFromId(owner, false)),
					 psprintf("ALTER SCHEMA %s OWNER TO %s",
							  quote_identifier(table->schema), owner_name()));
	if (!OidIsValid(relid))
		return;
	foreach(lc, plan->made_faults)
	{
		EaOwnersFault *fault = lfirst(lc);

		if (fault->relid == relid && !is_difference(fault) &&
			!is_of_citus(plan, fault) &&
			(fault->part != EA_OWNERS_SCHEMA || !OidIsValid(owner)))
			ea_ddl_fault(plan, table, table->field,
						 fault->message, fault->hint);
	}
}

void
ea_ddl_check_existing(EaDdlPlan *plan, EaDdlTable *table)
{
	Look		look = {plan, table, ea_ddl_relation(table)};
	Relation	rel;

	if (!OidIsValid(look.relid))
	{
		lacks(&look, psprintf("there is no table %s", table->qualified),
			  "leave \"table\" out and one is made");
		return;
	}
	if (ea_ddl_is_made(plan, table))
	{
		lacks(&look,
			  psprintf("%s has been made for the entities: it is no existing "
					   "table", table->qualified),
			  "leave \"table\" out");
		return;
	}
	rel = relation_open(look.relid, AccessShareLock);
	if (is_plain_table(&look, rel))
	{
		if (table->of_application)
			ea_ddl_check_application(plan, table, rel);
		else
		{
			check_owner(&look, rel);
			check_schema(&look);
		}
		check_version(&look, rel);
		check_columns(&look, rel);
		if (!table->view)
			check_objects(&look);
		check_tenancy(&look);
		if (!table->of_application)
			check_code(&look);
	}
	relation_close(rel, NoLock);
}
