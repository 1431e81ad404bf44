/*
 * Others made existing tables, with features of which Citus does not take all.
 * Known obstacles are reported before anything is done, each with what to do
 * about it; other errors of Citus are reported as they are (run.c).
 *
 * Foreign keys are found in the catalogs: those of an existing table have the
 * names that others gave them.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "base/names.h"
#include "ddl/existing_cluster.h"
#include "ddl/rows.h"
#include "engine/exec.h"

/* -------- what Citus does not take -------- */

/* Names of the columns of an index, in order. */
#define KEY_OF(i) \
	"ARRAY(SELECT a.attname::text" \
	" FROM unnest(" i ".indkey::int2[]) WITH ORDINALITY k (attnum, n)" \
	" JOIN pg_attribute a" \
	" ON a.attrelid = " i ".indrelid AND a.attnum = k.attnum" \
	" WHERE k.n <= " i ".indnkeyatts ORDER BY k.n)"

/*
 * Queries for what stands against it: $1 is the table, $2 its column of the
 * tenant, "" without one, $3 that of the id.  %1$s in the words is what is
 * found, %2$s the table.
 */
static const struct
{
	const char *query;
	const char *message;
	const char *hint;
}			obstacles[] = {
	{
		"SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a"
		" WHERE a.attrelid = $1 AND a.attname = $2"
		" AND a.atttypid <> 'uuid'::regtype",
		"the column of the tenant is %1$s, and all that is divided by tenant "
		"is so by uuid",
		"ALTER TABLE %2$s ALTER COLUMN %3$s TYPE uuid"
	},
	{
		"SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = $1"
		" AND NOT t.tgisinternal AND t.tgname !~ '^truncate_trigger_'"
		" ORDER BY 1",
		"the trigger \"%1$s\" would run on the node that has the row, and "
		"Citus takes no table with one",
		"drop it, and let a hook of the entity do what it does"
	},
	{
		"SELECT a.attname::text FROM pg_attribute a"
		" LEFT JOIN pg_attrdef d"
		" ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
		" WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped"
		" AND (a.attidentity <> ''"
		" OR d.adbin::text LIKE '%:funcid " CppAsString2(F_NEXTVAL) " %')"
		" ORDER BY a.attnum",
		"the column \"%1$s\" takes its values from a sequence, which the "
		"parts of a table on several nodes do not have",
		"give it another default, such as gen_random_uuid(), or none"
	},
	{
		"SELECT c.relname::text FROM pg_index i"
		" JOIN pg_class c ON c.oid = i.indexrelid"
		" WHERE i.indrelid = $1 AND $2 <> '' AND i.indisunique"
		" AND " KEY_OF("i") " = ARRAY[$3]"
		" AND EXISTS (SELECT FROM pg_index o WHERE o.indrelid = $1"
		" AND o.indisunique AND " KEY_OF("o") " = ARRAY[$2, $3])"
		" ORDER BY 1",
		"the unique index \"%1$s\" lacks the column of the tenant, and rows "
		"of tenants are on several nodes",
		"drop it: a key with the tenant in front is there"
	},
	{
		"SELECT f.conname::text FROM pg_constraint f"
		" JOIN pg_attribute a ON a.attrelid = f.conrelid"
		" AND a.attname = $2 AND a.attnum = ANY (f.conkey)"
		" WHERE f.conrelid = $1 AND f.contype = 'f'"
		" AND (f.confdeltype IN ('n', 'd')"
		" OR f.confupdtype IN ('n', 'd', 'c'))"
		" ORDER BY 1",
		"the foreign key \"%1$s\" has an action that would write the tenant",
		"make it anew without the action"
	},
	{
		"SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = $1"
		" AND p.polname NOT IN ('entityapi_read', 'entityapi_reader',"
		" 'entityapi_others') ORDER BY 1",
		"the policy \"%1$s\" could show readers more than their own, as Citus "
		"knows no restrictive ones that would hold beside it",
		"drop it, or let views hide rows from others"
	}
};

typedef struct Look
{
	EaDdlPlan  *plan;
	const EaDdlTable *table;
	const char *message;
	const char *hint;
} Look;

/* The words with what was found, the table and its column put in. */
static char *
put_in(const Look *look, const char *text, const char *found)
{
	const char *tenant = look->table->tenant_scoped ?
		quote_identifier(look->table->tenant_column) : "";
	const char *const names[] = {found, look->table->qualified, tenant};
	StringInfoData buf;

	initStringInfo(&buf);
	for (; *text != '\0'; text++)
	{
		if (text[0] == '%' && text[1] >= '1' && text[1] <= '3')
		{
			appendStringInfoString(&buf, names[text[1] - '1']);
			text += strlen("1$s");
		}
		else
			appendStringInfoChar(&buf, *text);
	}
	return buf.data;
}

static void
note_obstacle(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	const char *found = TextDatumGetCString(slot->tts_values[0]);

	ea_ddl_lacks(look->plan, look->table,
				 put_in(look, look->message, found),
				 put_in(look, look->hint, found));
}

void
ea_ddl_check_divisible(EaDdlPlan *plan, const EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	const char *tenant = table->tenant_scoped ? table->tenant_column : "";

	if (!OidIsValid(relid))
		return;					/* said already */
	for (int i = 0; i < lengthof(obstacles); i++)
	{
		Look		look = {
			plan, table, obstacles[i].message, obstacles[i].hint
		};

		ea_exec_each(EA_EXEC_LOOK, obstacles[i].query,
					 ea_params(EA_OID(relid), EA_TEXT(tenant),
							   EA_TEXT(table->id_column)),
					 EA_READER(note_obstacle, TEXTOID), &look);
	}
}

/* -------- foreign keys -------- */

typedef struct Keys
{
	EaDdlPlan  *plan;
	EaNameMap  *ours;			/* EaDdlTable * that stay, by their oids */
	EaNameMap  *going;			/* the same that are dropped */
} Keys;

static const char *
oid_name(Oid relid)
{
	return psprintf("%u", relid);
}

/* A table as it is, and what it will be called; the same where it is new. */
static const EaDdlTable *
as_it_is(const EaDdlTable *table)
{
	return table->was != NULL ? table->was : table;
}

static const EaDdlTable *
as_it_will_be(const EaDdlTable *table)
{
	return table->was != NULL ? table->other : table;
}

static bool
is_declared(const EaDdlTable *table, const char *name)
{
	ListCell   *lc;

	if (table->existing)
		return false;
	foreach(lc, table->objects)
	{
		const EaDdlObject *object = lfirst(lc);

		if (object->was != NULL && strcmp(object->was->name, name) == 0)
			return true;
	}
	return false;
}

/* An end of a key: one of ours, and of those that stay. */
static EaDdlTable *
find_end(EaNameMap *map, TupleTableSlot *slot, int column)
{
	return ea_names_map_get(map, oid_name(DatumGetObjectId(
										slot->tts_values[column])));
}

static void
drop_key(Keys *keys, EaDdlTable *near, const char *name)
{
	ea_ddl_add(keys->plan, EA_DDL_DROP_REFERENCES, near, NULL,
			   "ALTER TABLE %s DROP CONSTRAINT %s", as_it_is(near)->qualified,
			   quote_identifier(name));
}

/* Columns: name, near oid, far oid, near, far, definition before and after
 * the far table, Citus has the far one */
static void
note_key(void *arg, TupleTableSlot *slot)
{
	Keys	   *keys = arg;
	const char *name = TextDatumGetCString(slot->tts_values[0]);
	EaDdlTable *near = find_end(keys->ours, slot, 1);
	EaDdlTable *far = find_end(keys->ours, slot, 2);
	EaDdlTable *gone = find_end(keys->going, slot, 1);
	const char *near_name = TextDatumGetCString(slot->tts_values[3]);
	const char *far_name = TextDatumGetCString(slot->tts_values[4]);

	if (gone != NULL)
	{
		drop_key(keys, gone, name);
		return;
	}
	if (near != NULL && is_declared(near, name))
		return;
	if (near == NULL ||
		(far == NULL && !(keys->plan->is_distributed &&
						  DatumGetBool(slot->tts_values[7]))))
	{
		const EaDdlTable *table = as_it_will_be(near != NULL ? near : far);
		const char *hint = psprintf("ALTER TABLE %s DROP CONSTRAINT %s",
									near_name, quote_identifier(name));
		const char *why = psprintf("the foreign key \"%s\" of %s refers to "
								   "%s, and only one of them is the service's",
								   name, near_name, far_name);

		if (table->existing)
			ea_ddl_lacks(keys->plan, table, why, hint);
		else
			ea_ddl_fault(keys->plan, table, table->field, why, hint);
		return;
	}
	drop_key(keys, near, name);
	ea_ddl_add(keys->plan, EA_DDL_ADD_REFERENCES,
			   as_it_will_be(near), NULL,
			   "ALTER TABLE %s ADD CONSTRAINT %s %s%s%s",
			   as_it_will_be(near)->qualified, quote_identifier(name),
			   TextDatumGetCString(slot->tts_values[5]),
			   far == NULL ? far_name : as_it_will_be(far)->qualified,
			   TextDatumGetCString(slot->tts_values[6]))->divides =
		near->existing;
}

#define REFERS "' REFERENCES ' || f.confrelid::regclass::text"

/* $1: the oids of tables that go to Citus or come back */
static const char keys_sql[] =
"SELECT f.conname::text, f.conrelid, f.confrelid,"
" f.conrelid::regclass::text, f.confrelid::regclass::text,"
" split_part(d.text, " REFERS ", 1) || ' REFERENCES ',"
" split_part(d.text, " REFERS ", 2),"
" EXISTS (SELECT FROM pg_dist_partition p"
" WHERE p.logicalrelid = f.confrelid)"
" FROM pg_constraint f"
" CROSS JOIN LATERAL (SELECT pg_get_constraintdef(f.oid) AS text) d"
" WHERE f.contype = 'f' AND f.conparentid = 0"
" AND (f.conrelid = ANY ($1::oid[]) OR f.confrelid = ANY ($1::oid[]))"
" ORDER BY f.conrelid::regclass::text COLLATE \"C\","
" f.conname COLLATE \"C\"";

static void
put_table(EaNameMap *map, EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(as_it_is(table));

	if (OidIsValid(relid))
		ea_names_map_put(map, oid_name(relid), table);
}

void
ea_ddl_untie(EaDdlPlan *plan, List *moved)
{
	Keys		keys = {
		plan, ea_names_map_create(256), ea_names_map_create(16)
	};
	List	   *oids = NIL;
	ListCell   *lc;

	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		if (from->other != NULL)
			put_table(keys.ours, from);
		else if (!from->existing)
			put_table(keys.going, from);
	}
	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		if (to->existing && to->other == NULL)
			put_table(keys.ours, to);
	}
	foreach(lc, moved)
		oids = lappend(oids, unconstify(char *, oid_name(
								ea_ddl_relation(as_it_is(lfirst(lc))))));
	ea_exec_each(EA_EXEC_LOOK, keys_sql,
				 ea_params(EA_TEXTS(ea_exec_text_list(oids))),
				 EA_READER(note_key, TEXTOID, OIDOID, OIDOID, TEXTOID, TEXTOID,
						   TEXTOID, TEXTOID, BOOLOID), &keys);
}
