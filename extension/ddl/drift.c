/*
 * The catalogs are read by one statement for each kind of thing, for all
 * tables at once, as a thousand tables take seconds one by one.  Findings are
 * put into the words that tables.c has for the same thing, so that texts are
 * compared.  Expressions are the exception, as PostgreSQL keeps them as trees:
 * there the declared text is made a tree, too.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

#include "base/compat.h"
#include "ddl/additions.h"
#include "ddl/distribution.h"
#include "ddl/drift.h"
#include "ddl/expressions.h"
#include "ddl/online.h"
#include "ddl/rows.h"
#include "engine/exec.h"
#include "model/application.h"

#define READER "entityapi_reader"

/* A column as the catalogs have it. */
typedef struct Attribute
{
	Oid			type;
	int32		typmod;
	bool		not_null;
	char	   *value;			/* the default, or NULL */
	bool		readable;		/* by entityapi_reader */
} Attribute;

/* The same of a constraint or an index, as tables.c writes it. */
typedef struct Object
{
	char	   *name;
	char	   *body;			/* NULL: of a check */
	char	   *check;			/* its tree */
	bool		valid;
} Object;

typedef struct Policy
{
	bool		sound;			/* who, what, and how it goes with others */
	char	   *tree;
} Policy;

/* A table that is there. */
typedef struct There
{
	EaDdlTable *table;
	Oid			relid;
	bool		ordinary;
	bool		secured;
	bool		forced;			/* row-level security on the owner */
	bool		readable;		/* all of it by entityapi_reader */
	bool		writable;		/* it has other rights, or may pass them on */
	EaNameMap  *attributes;
	EaNameMap  *objects;
	List	   *unnamed;		/* the same, those that are not declared */
	Policy	   *policy;			/* columns that readers see */
	bool		admits;			/* an existing table: they see something */
} There;

typedef struct Look
{
	EaNameMap  *pending;
	bool		distributed;
	There	   *there;
	int			n;
	EaNameMap  *types;			/* Attribute * by a type's SQL */
	bool		shapes_differ;	/* a table, column or type does */
	bool		incomplete;		/* a table is in use, and not looked at */
	List	   *differences;
} Look;

/* A difference; the last one of the list can be described further. */
static void
differ(Look *look, EaDdlPart part, EaDdlTable *table, const char *message,
	   const char *hint)
{
	EaDdlDifference *difference = palloc0(sizeof(EaDdlDifference));

	difference->part = part;
	difference->table = table;
	difference->message = message;
	difference->hint = hint;
	look->differences = lappend(look->differences, difference);
	if (part <= EA_DDL_PART_TYPE)
		look->shapes_differ = true;
}

static EaDdlDifference *
last_difference(Look *look)
{
	return llast(look->differences);
}

/* -------- what is there -------- */

/*
 * The first column of all that is read is the table, counted from 1.  Texts of
 * expressions are not read of tables that others made: these are compared with
 * nothing, and values of a type in them come with code of its owner.
 */
#define OF_TABLES \
	" FROM unnest($1::oid[], $2::bool[])" \
	" WITH ORDINALITY t (relid, theirs, n)"

static There *
there_of(Look *look, TupleTableSlot *slot)
{
	int64		n = DatumGetInt64(slot->tts_values[0]);

	Assert(n >= 1 && n <= look->n);
	return &look->there[n - 1];
}

static char *
text_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL :
		TextDatumGetCString(slot->tts_values[column]);
}

static bool
truth_of(TupleTableSlot *slot, int column)
{
	return !slot->tts_isnull[column] &&
		DatumGetBool(slot->tts_values[column]);
}

/* Rights of readers beside that to read. */
#define MORE_RIGHTS(acl) \
	"EXISTS (SELECT FROM aclexplode(" acl ") a" \
	" WHERE a.grantee = '" READER "'::regrole" \
	" AND (a.privilege_type <> 'SELECT' OR a.is_grantable))"

#define TABLES_SQL \
	"SELECT t.n, CASE c.relpersistence WHEN 'p' THEN c.relkind::text END," \
	" c.relrowsecurity AND NOT c.relforcerowsecurity," \
	" c.relforcerowsecurity," \
	" has_table_privilege('" READER "', t.relid, 'SELECT')," \
	" EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.relid" \
	" AND p.polname = '" READER "' AND p.polpermissive)," \
	" " MORE_RIGHTS("c.relacl") " OR EXISTS (SELECT FROM pg_attribute k" \
	" WHERE k.attrelid = t.relid AND NOT k.attisdropped AND " \
	MORE_RIGHTS("k.attacl") ")" \
	OF_TABLES " JOIN pg_class c ON c.oid = t.relid"

/* It is of the kind that it has to be; made tables are ordinary ones. */
static bool
is_kind(const EaDdlTable *table, char relkind)
{
	return table->of_application ?
		ea_application_is_kind(relkind, table->view) :
		relkind == RELKIND_RELATION;
}

static void
read_table(void *arg, TupleTableSlot *slot)
{
	There	   *there = there_of(arg, slot);
	const char *kind = text_of(slot, 1);

	there->ordinary = kind != NULL && is_kind(there->table, kind[0]);
	there->secured = truth_of(slot, 2);
	there->forced = truth_of(slot, 3);
	there->readable = truth_of(slot, 4);
	there->admits = truth_of(slot, 5);
	there->writable = truth_of(slot, 6);
}

#define COLUMNS_SQL \
	"SELECT t.n, a.attname::text, a.atttypid, a.atttypmod, a.attnotnull," \
	" CASE WHEN NOT t.theirs THEN pg_get_expr(d.adbin, d.adrelid) END," \
	" has_column_privilege('" READER "', a.attrelid, a.attnum, 'SELECT')" \
	OF_TABLES " JOIN pg_attribute a" \
	" ON a.attrelid = t.relid AND a.attnum > 0 AND NOT a.attisdropped" \
	" LEFT JOIN pg_attrdef d" \
	" ON d.adrelid = a.attrelid AND d.adnum = a.attnum"

static void
read_column(void *arg, TupleTableSlot *slot)
{
	There	   *there = there_of(arg, slot);
	Attribute  *attribute = palloc(sizeof(Attribute));

	attribute->type = DatumGetObjectId(slot->tts_values[2]);
	attribute->typmod = DatumGetInt32(slot->tts_values[3]);
	attribute->not_null = truth_of(slot, 4);
	attribute->value = text_of(slot, 5);
	attribute->readable = truth_of(slot, 6);
	ea_names_map_put(there->attributes, text_of(slot, 1), attribute);
}

/* Names of columns by their numbers, as in ` (a, b)`. */
#define LIST(numbers, relation) \
	"(SELECT '(' || string_agg(quote_ident(a.attname), ', ' ORDER BY k.n)" \
	" || ')' FROM unnest(" numbers ") WITH ORDINALITY k (attnum, n)" \
	" JOIN pg_attribute a" \
	" ON a.attrelid = " relation " AND a.attnum = k.attnum)"

#define CONSTRAINTS_SQL \
	"SELECT t.n, c.conname::text, CASE c.contype" \
	" WHEN 'p' THEN 'PRIMARY KEY ' || " LIST("c.conkey", "c.conrelid") \
	" WHEN 'u' THEN 'UNIQUE ' || " LIST("c.conkey", "c.conrelid") \
	" WHEN 'f' THEN 'FOREIGN KEY ' || " LIST("c.conkey", "c.conrelid") \
	" || ' REFERENCES ' || quote_ident(n.nspname) || '.'" \
	" || quote_ident(r.relname) || ' '" \
	" || " LIST("c.confkey", "c.confrelid") \
	" || CASE WHEN c.confupdtype <> 'a' OR c.confmatchtype <> 's'" \
	" THEN ' ...' WHEN c.confdeltype = 'a' THEN ''" \
	" WHEN c.confdeltype = 'n' THEN ' ON DELETE SET NULL '" \
	" || coalesce(" LIST("c.confdelsetcols", "c.conrelid") ", '')" \
	" ELSE ' ...' END END" \
	" || CASE WHEN c.condeferrable THEN ' DEFERRABLE INITIALLY '" \
	" || CASE WHEN c.condeferred THEN 'DEFERRED' ELSE 'IMMEDIATE' END" \
	" ELSE '' END, c.conbin::text, c.convalidated" \
	OF_TABLES " JOIN pg_constraint c ON c.conrelid = t.relid" \
	" AND c.contype IN ('p', 'u', 'f', 'c')" \
	" LEFT JOIN pg_class r ON r.oid = c.confrelid" \
	" LEFT JOIN pg_namespace n ON n.oid = r.relnamespace"

/*
 * Properties of an index beyond that are never declared, and stand as "...".
 */
#define INDEXES_SQL \
	"SELECT t.n, r.relname::text, 'CREATE ' || CASE WHEN i.indisunique" \
	" THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || quote_ident(r.relname)" \
	" || ' ON ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname)" \
	" || ' ' || " LIST("i.indkey::int2[]", "i.indrelid") \
	" || coalesce(' WHERE '" \
	" || CASE WHEN NOT t.theirs" \
	" THEN btrim(pg_get_expr(i.indpred, i.indrelid), '()') END, '')" \
	" || CASE WHEN i.indexprs IS NULL AND i.indnkeyatts = i.indnatts" \
	" AND m.amname = 'btree' AND 0 = ALL (i.indoption::int2[])" \
	" AND NOT EXISTS (SELECT FROM unnest(i.indclass::oid[]) k (id)" \
	" JOIN pg_opclass o ON o.oid = k.id WHERE NOT o.opcdefault)" \
	" THEN '' ELSE ' ...' END, NULL::text, i.indisvalid AND i.indisready" \
	OF_TABLES " JOIN pg_index i ON i.indrelid = t.relid" \
	" JOIN pg_class r ON r.oid = i.indexrelid" \
	" JOIN pg_am m ON m.oid = r.relam" \
	" JOIN pg_class c ON c.oid = t.relid" \
	" JOIN pg_namespace n ON n.oid = c.relnamespace" \
	" WHERE NOT EXISTS (SELECT FROM pg_constraint k" \
	" WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))"

static void
read_object(void *arg, TupleTableSlot *slot)
{
	There	   *there = there_of(arg, slot);
	Object	   *object = palloc(sizeof(Object));

	object->name = text_of(slot, 1);
	object->body = text_of(slot, 2);
	object->check = text_of(slot, 3);
	object->valid = truth_of(slot, 4);
	ea_names_map_put(there->objects, object->name, object);
	if (ea_names_map_get(there->table->by_object, object->name) == NULL)
		there->unnamed = lappend(there->unnamed, object);
}

#define POLICIES_SQL \
	"SELECT t.n, p.polcmd = 'r' AND p.polpermissive <> t.theirs" \
	" AND p.polroles = ARRAY['" READER "'::regrole::oid]," \
	" p.polqual::text" OF_TABLES \
	" JOIN pg_policy p ON p.polrelid = t.relid" \
	" AND p.polname = 'entityapi_read'"

static void
read_policy(void *arg, TupleTableSlot *slot)
{
	There	   *there = there_of(arg, slot);

	there->policy = palloc(sizeof(Policy));
	there->policy->sound = truth_of(slot, 1);
	there->policy->tree = text_of(slot, 2);
}

/*
 * Others made it, so that the policy of it holds beside theirs
 * (reader_policies.c).
 */
static bool
is_theirs(const Look *look, const EaDdlTable *table)
{
	return table->existing && !look->distributed;
}

/* text[] of what is put down for each table that is there */
static Datum
array_of(Look *look, bool theirs)
{
	char	  **items = palloc(Max(look->n, 1) * sizeof(char *));

	for (int i = 0; i < look->n; i++)
		items[i] = !theirs ? psprintf("%u", look->there[i].relid) :
			is_theirs(look, look->there[i].table) ? "t" : "f";
	return ea_exec_text_array(items, look->n);
}

static void
read_all(Look *look)
{
	EaParams	tables = ea_params(EA_TEXTS(array_of(look, false)),
								   EA_TEXTS(array_of(look, true)));

	ea_exec_each(EA_EXEC_LOOK, TABLES_SQL, tables,
				 EA_READER(read_table, INT8OID, TEXTOID, BOOLOID, BOOLOID,
						   BOOLOID, BOOLOID, BOOLOID), look);
	ea_exec_each(EA_EXEC_LOOK, COLUMNS_SQL, tables,
				 EA_READER(read_column, INT8OID, TEXTOID, OIDOID, INT4OID,
						   BOOLOID, TEXTOID, BOOLOID), look);
	ea_exec_each(EA_EXEC_LOOK, CONSTRAINTS_SQL, tables,
				 EA_READER(read_object, INT8OID, TEXTOID, TEXTOID, TEXTOID,
						   BOOLOID), look);
	ea_exec_each(EA_EXEC_LOOK, INDEXES_SQL, tables,
				 EA_READER(read_object, INT8OID, TEXTOID, TEXTOID, TEXTOID,
						   BOOLOID), look);
	ea_exec_each(EA_EXEC_LOOK, POLICIES_SQL, tables,
				 EA_READER(read_policy, INT8OID, BOOLOID, TEXTOID), look);
}

/* Waits for nobody: a change of a table that is under way has still to end. */
static bool
is_in_use(const EaDdlTable *table, Oid relid)
{
	return !ConditionalLockRelationOid(relid, AccessShareLock) ||
		ea_ddl_relation(table) != relid;
}

/* Tables that are there; those that are not are differences. */
static void
find_tables(Look *look, EaDdlState *stored)
{
	ListCell   *lc;

	look->there = palloc0(Max(list_length(stored->tables), 1) *
						  sizeof(There));
	foreach(lc, stored->tables)
	{
		EaDdlTable *table = lfirst(lc);
		Oid			relid = ea_ddl_relation(table);

		CHECK_FOR_INTERRUPTS();
		if (OidIsValid(relid) && is_in_use(table, relid))
			look->incomplete = true;
		else if (OidIsValid(relid))
		{
			There	   *there = &look->there[look->n++];

			there->table = table;
			there->relid = relid;
			there->attributes = ea_names_map_create(16);
			there->objects = ea_names_map_create(16);
		}
		else
			differ(look, EA_DDL_PART_TABLE, table,
				   psprintf("the table %s does not exist%s", table->qualified,
							table->existing ? "" :
							"; put back, it has no rows"),
				   table->existing ? "make it again, or take the entity away" :
				   NULL);
	}
}

/* -------- comparing -------- */

static bool
is_pending(Look *look, const EaDdlTable *table, const char *name)
{
	return look->pending != NULL &&
		ea_names_map_get(look->pending,
						 ea_ddl_pending_key(table->schema, name)) != NULL;
}

/* The type and modifier of a type's SQL; there are few, in many columns. */
static Attribute *
type_of(Look *look, const char *sql)
{
	Attribute  *type = ea_names_map_get(look->types, sql);

	if (type == NULL)
	{
		type = palloc0(sizeof(Attribute));
		ea_compat_parse_type(sql, &type->type, &type->typmod);
		ea_names_map_put(look->types, sql, type);
	}
	return type;
}

static void
compare_column(Look *look, There *there, EaDdlColumn *column)
{
	EaDdlTable *table = there->table;
	Attribute  *is = ea_names_map_get(there->attributes, column->name);
	Attribute  *type = table->existing ? NULL : type_of(look, column->sql);
	int			before = list_length(look->differences);
	const char *way = psprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s",
							   table->qualified,
							   quote_identifier(column->name), column->sql);

	column->missing = is == NULL;
	if (is == NULL)
		differ(look, EA_DDL_PART_COLUMN, table,
			   psprintf("the column \"%s\" of %s does not exist%s",
						column->name, table->qualified,
						table->existing ? "" : "; put back, it has no values"),
			   table->existing ? "name another one in \"columns\"" : NULL);
	else if (table->existing)
		return;					/* an apply says what is amiss */
	else if (is->type != type->type || is->typmod != type->typmod)
		differ(look, EA_DDL_PART_TYPE, table,
			   psprintf("the column \"%s\" of %s is %s and was made %s",
						column->name, table->qualified,
						format_type_with_typemod(is->type, is->typmod),
						format_type_with_typemod(type->type, type->typmod)),
			   way);
	else if (column->not_null && !is->not_null &&
			 !is_pending(look, table, ea_ddl_filled_name(table, column)))
		differ(look, EA_DDL_PART_NOT_NULL, table,
			   psprintf("the column \"%s\" of %s takes nulls", column->name,
						table->qualified), NULL);
	else if (column->sql_default != NULL &&
			 (is->value == NULL ||
			  strcmp(is->value, column->sql_default) != 0))
		differ(look, EA_DDL_PART_DEFAULT, table,
			   psprintf("the column \"%s\" of %s has not the default %s",
						column->name, table->qualified, column->sql_default),
			   NULL);
	if (list_length(look->differences) > before)
		last_difference(look)->column = column;
}

/* `constraint`, `index`, as a message calls it */
static const char *
kind_of(const EaDdlObject *object)
{
	return object->kind == EA_DDL_PLAIN_INDEX ? "index" :
		object->kind == EA_DDL_FOREIGN_KEY ? "foreign key" : "constraint";
}

/* The text after an index's name; the whole text of other objects. */
static const char *
rest_of(const char *body, const char *name)
{
	const char *begin = psprintf(" INDEX %s ON ", quote_identifier(name));
	const char *found = strstr(body, begin);

	return found == NULL ? body : found + strlen(begin);
}

static bool
is_same(const EaDdlObject *object, const Object *is)
{
	return is->body != NULL &&
		strncmp(is->body, object->body, strlen("CREATE U")) == 0 &&
		strcmp(rest_of(is->body, is->name),
			   rest_of(object->body, object->name)) == 0;
}

/* The same thing by another name, as copies of a table have it; or NULL. */
static Object *
find_unnamed(const There *there, const EaDdlObject *object)
{
	ListCell   *lc;

	foreach(lc, there->unnamed)
	{
		if (object->condition == NULL && is_same(object, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

static void
compare_object(Look *look, There *there, EaDdlObject *object)
{
	EaDdlTable *table = there->table;
	Object	   *is = ea_names_map_get(there->objects, object->name);
	Object	   *unnamed = is == NULL ? find_unnamed(there, object) : NULL;
	const char *why = NULL;

	/* promised objects are not there, or not whole */
	if (is_pending(look, table, object->name))
		return;
	if (unnamed != NULL)
		why = psprintf("is called \"%s\"", unnamed->name);
	else if (is == NULL)
		why = "does not exist";
	else if (object->condition == NULL ? !is_same(object, is) :
			 is->check == NULL ||
			 (!look->shapes_differ &&
			  !ea_ddl_same_expression(there->relid, is->check,
									  object->condition, true)))
		why = "is another than was made";
	else if (!is->valid)
		why = object->kind == EA_DDL_PLAIN_INDEX ? "is not valid" :
			"has not been validated";
	if (why == NULL)
		return;
	differ(look, EA_DDL_PART_OBJECT, table,
		   psprintf("the %s \"%s\" of %s %s", kind_of(object), object->name,
					table->qualified, why), NULL);
	last_difference(look)->object = object;
	last_difference(look)->there = is != NULL;
	last_difference(look)->called = unnamed ? unnamed->name : NULL;
}

/* ` (a, b)` of the declared columns that readers may see, "" of all. */
static const char *
readable_columns(const There *there)
{
	StringInfoData buf;
	ListCell   *lc;

	if (there->readable)
		return "";
	initStringInfo(&buf);
	foreach(lc, ea_ddl_sorted_columns(there->table))
	{
		EaDdlColumn *column = lfirst(lc);
		Attribute  *is = ea_names_map_get(there->attributes, column->name);

		if (is != NULL && is->readable)
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : " (",
							 quote_identifier(column->name));
	}
	appendStringInfoChar(&buf, ')');
	return buf.data;
}

static void
compare_security(Look *look, There *there)
{
	EaDdlTable *table = there->table;
	Policy	   *policy = there->policy;

	if (!there->secured)
	{
		differ(look, EA_DDL_PART_ROW_SECURITY, table,
			   psprintf("row-level security of %s is switched off, or forced "
						"on its owner", table->qualified), NULL);
		last_difference(look)->forced = there->forced;
	}
	if (policy == NULL)
		differ(look, EA_DDL_PART_POLICY, table,
			   psprintf("the policy \"entityapi_read\" of %s does not exist",
						table->qualified), NULL);
	else if (!policy->sound || policy->tree == NULL ||
			 (!look->shapes_differ && !look->incomplete &&
			  !ea_ddl_same_expression(there->relid, policy->tree,
									  table->policy, false)))
		differ(look, EA_DDL_PART_POLICY, table,
			   psprintf("the policy \"entityapi_read\" of %s is another than "
						"was made", table->qualified), NULL);
	else if (is_theirs(look, table) && !there->admits)
		differ(look, EA_DDL_PART_POLICY, table,
			   psprintf("the policy \"" READER "\" of %s does not exist",
						table->qualified), NULL);
	if (there->writable ||
		strcmp(readable_columns(there), table->granted) != 0)
		differ(look, EA_DDL_PART_RIGHTS, table,
			   psprintf(READER " has other rights on %s than were granted",
						table->qualified), NULL);
}

static void
compare_shape(Look *look, There *there)
{
	ListCell   *lc;

	if (!there->ordinary)
	{
		differ(look, EA_DDL_PART_TABLE, there->table,
			   psprintf("%s is no %s any more", there->table->qualified,
						there->table->view ? "view" : "ordinary table"),
			   "give it another name, then put the table back");
		last_difference(look)->there = true;
		return;
	}
	foreach(lc, there->table->columns)
		compare_column(look, there, lfirst(lc));
}

static void
compare_rest(Look *look, There *there)
{
	ListCell   *lc;

	if (!there->ordinary)
		return;
	foreach(lc, there->table->objects)
	{
		if (!there->table->existing)
			compare_object(look, there, lfirst(lc));
	}
	if (!there->table->of_application)
		compare_security(look, there);
}

static void
compare_placement(Look *look, There *there)
{
	const char *hint;
	const char *why = !there->ordinary ? NULL :
		ea_ddl_misplaced(there->table, there->relid, &hint);

	if (why != NULL)
		differ(look, EA_DDL_PART_PLACEMENT, there->table, why, hint);
}

/* Of existing tables the additions are their owners' affair. */
static void
find_additions(Look *look)
{
	EaDdlTable **tables = palloc(Max(look->n, 1) * sizeof(EaDdlTable *));
	Oid		   *relids = palloc(Max(look->n, 1) * sizeof(Oid));
	int			n = 0;

	for (int i = 0; i < look->n; i++)
	{
		if (!look->there[i].ordinary || look->there[i].table->existing)
			continue;
		tables[n] = look->there[i].table;
		relids[n++] = look->there[i].relid;
	}
	look->differences = list_concat(look->differences,
									ea_ddl_additions(n, tables, relids));
}

List *
ea_ddl_differences(EaDdlState *stored, EaNameMap *pending)
{
	Look		look = {pending, stored->distributed};

	/* those of the extension go, and come back, ahead of the others */
	bool		placed = stored->distributed && ea_ddl_own_is_distributed();

	look.types = ea_names_map_create(32);
	find_tables(&look, stored);
	read_all(&look);

	/* an expression can only be read over tables as they are declared */
	for (int i = 0; i < look.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		compare_shape(&look, &look.there[i]);
	}
	for (int i = 0; i < look.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		compare_rest(&look, &look.there[i]);
		if (placed)
			compare_placement(&look, &look.there[i]);
	}
	find_additions(&look);
	return look.differences;
}

const char *
ea_ddl_way_out(const EaDdlDifference *difference)
{
	return difference->hint != NULL ? difference->hint :
		"entityapi-shim apply --repair puts it back";
}
