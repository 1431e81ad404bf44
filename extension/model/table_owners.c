/*
 * The system catalogs are asked, with the latest snapshot: a change may just
 * have been committed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "cluster/distributed.h"
#include "cluster/distributed_settings.h"
#include "engine/exec.h"
#include "model/table_owners.h"
#include "model/used_types.h"
#include "trust/pin.h"

/*
 * The parts of the table that may call functions: each as pg_depend knows it.
 */
#define OWN \
	"WITH RECURSIVE own (class, part) AS (" \
	" SELECT 'pg_class'::regclass, indexrelid FROM pg_index" \
	" WHERE indrelid = asked.rel" \
	" UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef" \
	" WHERE adrelid = asked.rel" \
	" UNION ALL SELECT 'pg_trigger'::regclass, oid FROM pg_trigger" \
	" WHERE tgrelid = asked.rel" \
	" UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint" \
	" WHERE conrelid = asked.rel" \
	" UNION ALL SELECT 'pg_statistic_ext'::regclass, oid" \
	" FROM pg_statistic_ext WHERE stxrelid = asked.rel" \
	" UNION ALL SELECT 'pg_policy'::regclass, oid FROM pg_policy" \
	" WHERE polrelid = asked.rel AND $4" \
	" UNION ALL SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite" \
	" WHERE ev_class = asked.rel AND $4)"

#define PARTS \
	" parts (class, part) AS (SELECT class, part FROM own" \
	" UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint c" \
	" JOIN used u ON u.oid = c.contypid" \
	" UNION ALL SELECT 'pg_type'::regclass, oid FROM used)"

/* The functions of the system that expressions call: pg_depend has none. */
#define CALLED \
	" called (oid) AS (SELECT DISTINCT f[1]::oid FROM (" \
	"SELECT adbin FROM pg_attrdef WHERE adrelid = asked.rel" \
	" UNION ALL SELECT conbin FROM pg_constraint WHERE conrelid = asked.rel" \
	" UNION ALL SELECT c.conbin FROM pg_constraint c" \
	" JOIN used u ON u.oid = c.contypid" \
	" UNION ALL SELECT t.typdefaultbin FROM pg_type t" \
	" JOIN used u ON u.oid = t.oid WHERE t.oid >= 16384" \
	" UNION ALL SELECT tgqual FROM pg_trigger WHERE tgrelid = asked.rel" \
	" UNION ALL SELECT polqual FROM pg_policy" \
	" WHERE polrelid = asked.rel AND $4" \
	" UNION ALL SELECT polwithcheck FROM pg_policy" \
	" WHERE polrelid = asked.rel AND $4" \
	") x (tree) CROSS JOIN LATERAL" \
	" regexp_matches(tree::text, ':(?:op)?funcid ([0-9]+)', 'g') f)"

/*
 * Of these, such as take SQL, a relation or a type as a value, and thus run
 * user-defined code, unseen, or change the session: those with effects, but
 * for the known good, those that make XML of queries, and those that are not
 * for expressions.
 */
#define RUNS_ANYTHING(p) \
	"(" p ".provolatile = 'v' AND " p ".proname NOT IN ('nextval'," \
	" 'currval', 'lastval', 'random', 'random_normal', 'clock_timestamp'," \
	" 'timeofday'," \
	" 'gen_random_uuid', 'uuidv4', 'uuidv7')" \
	" OR " p ".proname ~ '_to_xml'" \
	" OR " p ".proname IN ('pg_input_is_valid', 'pg_input_error_info')" \
	" OR " p ".proargtypes::oid[] && '{cstring,internal}'::regtype[]::oid[])"

/* A role that is neither $2 nor a superuser. */
#define FOREIGN(owner) \
	"EXISTS (SELECT FROM pg_roles r WHERE r.oid = " owner \
	" AND r.oid <> $2 AND NOT r.rolsuper)"

#define OWNER_OF_SCHEMA \
	"CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN" \
	" (SELECT datdba FROM pg_database WHERE datname = current_database())" \
	" ELSE n.nspowner END"

/*
 * Rows of a part, its name, its owner, their oids, the relation of a type,
 * whether it is at fault, and the table it is of: $1 are their oids.  Objects
 * that are not at fault come, too, so as to be watched; but of functions the
 * system's own.  With $3 the rights that a function lends itself do not count;
 * without $4 policies and rules do not.
 */
static const char statement[] =
"SELECT f.*, asked.rel FROM unnest($1) asked (rel) CROSS JOIN LATERAL ("
OWN "," EA_USED_TYPES "," PARTS "," CALLED
" SELECT 0, c.oid::regclass::text, c.relowner::regrole::text,"
" 0::oid, c.relowner, 0::oid, " FOREIGN("c.relowner")
" FROM pg_class c WHERE c.oid = asked.rel"
" UNION ALL SELECT 1, s.oid::regnamespace::text, s.owner::regrole::text,"
" s.oid, s.owner, 0, " FOREIGN("s.owner")
" FROM (SELECT n.oid, " OWNER_OF_SCHEMA " AS owner"
" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
" WHERE c.oid = asked.rel) s"
" UNION ALL SELECT 2, t.oid::regtype::text, t.typowner::regrole::text,"
" t.oid, t.typowner, t.typrelid, " FOREIGN("t.typowner")
" FROM used u JOIN pg_type t ON t.oid = u.oid WHERE t.oid >= 16384"
" UNION ALL (SELECT DISTINCT CASE WHEN p.prosecdef AND $3 THEN 7 ELSE 3 END,"
" p.oid::regprocedure::text,"
" p.proowner::regrole::text, p.oid, p.proowner, 0::oid,"
" (NOT p.prosecdef OR $3) AND " FOREIGN("p.proowner")
" FROM parts JOIN pg_depend d ON d.classid = class AND d.objid = part"
" LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass"
" AND o.oid = d.refobjid"
" JOIN pg_proc p ON p.oid = CASE"
" WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid"
" ELSE o.oprcode END"
" WHERE p.oid >= 16384"
" OR (NOT p.prosecdef OR $3) AND " FOREIGN("p.proowner")
" ORDER BY 2)"
" UNION ALL (SELECT DISTINCT 4, c.oid::regclass::text,"
" CASE WHEN a.grantee = 0 THEN 'public' ELSE a.grantee::regrole::text END,"
" 0::oid, a.grantee, 0::oid, a.grantee = 0 OR " FOREIGN("a.grantee")
" FROM pg_class c CROSS JOIN aclexplode(c.relacl) a"
" WHERE c.oid = asked.rel AND a.privilege_type = 'TRIGGER'"
" AND a.grantee <> c.relowner ORDER BY 3)"
" UNION ALL SELECT 5, i.inhrelid::regclass::text, '', 0, 0, 0, true"
" FROM pg_inherits i WHERE i.inhparent = asked.rel"
" UNION ALL (SELECT 6, p.oid::regprocedure::text, '', 0, 0, 0, true"
" FROM called c JOIN pg_proc p ON p.oid = c.oid"
" WHERE p.oid < 16384 AND " RUNS_ANYTHING("p") " ORDER BY 2)) f";

/* The cache that the object of a part is of, 0 where there is none. */
static const int caches[] = {
	[EA_OWNERS_TABLE] = 0,
	[EA_OWNERS_SCHEMA] = NAMESPACEOID,
	[EA_OWNERS_TYPE] = TYPEOID,
	[EA_OWNERS_CODE] = PROCOID,
	[EA_OWNERS_TRIGGER] = 0,
	[EA_OWNERS_CHILDREN] = 0,
	[EA_OWNERS_RUNS] = 0,
	[EA_OWNERS_CODE_APART] = PROCOID,
	[EA_OWNERS_CITUS] = 0
};

/* Words of each part: %1$s is its name, %2$s its owner, %3$s our role. */
static const struct
{
	const char *message;
	const char *hint;
}			words[] = {
	[EA_OWNERS_TABLE] = {
		"the table %1$s belongs to %2$s, and statements on it run with the "
		"rights of %3$s",
		"ALTER TABLE %1$s OWNER TO %3$s"
	},
	[EA_OWNERS_SCHEMA] = {
		"the schema %1$s belongs to %2$s, who could put another table in the "
		"place of the service's",
		"ALTER SCHEMA %1$s OWNER TO %3$s"
	},
	[EA_OWNERS_TYPE] = {
		"the type %1$s belongs to %2$s, who could give it a check that would "
		"run with the rights of %3$s",
		"ALTER TYPE %1$s OWNER TO %3$s"
	},
	[EA_OWNERS_CODE] = {
		"%1$s is called by the table and would run with the rights of %3$s, "
		"although another role owns it",
		"give it to %3$s or a superuser, or make it SECURITY DEFINER"
	},
	[EA_OWNERS_TRIGGER] = {
		"the role \"%2$s\" has the right TRIGGER, and could run code with "
		"those of %3$s",
		"REVOKE it"
	},
	[EA_OWNERS_CHILDREN] = {
		"the table %1$s inherits from it",
		"ALTER TABLE %1$s NO INHERIT ..."
	},
	[EA_OWNERS_RUNS] = {
		"%1$s is called by the table, and what it is given could be code of "
		"others, which would run with the rights of %3$s",
		"let a trigger do that, with a function that is SECURITY DEFINER"
	},
	[EA_OWNERS_CODE_APART] = {
		"%1$s is called by the table, and %2$s could have it run with the "
		"rights of %3$s on the node that has the row",
		"give it to %3$s or a superuser"
	},
	[EA_OWNERS_CITUS] = {
		"Citus keeps the rows of %1$s, where the service does not look",
		"SELECT undistribute_table('%1$s')"
	}
};

typedef struct Look
{
	List	   *faults;
	const char *role;
} Look;

/* The words with the three names put in. */
static char *
put_in(const char *text, const char *const names[3])
{
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
add_fault(Look *look, Oid relid, EaOwnersPart part, const char *const names[3])
{
	EaOwnersFault *fault = palloc(sizeof(EaOwnersFault));

	fault->relid = relid;
	fault->part = part;
	fault->message = put_in(words[part].message, names);
	fault->hint = put_in(words[part].hint, names);
	look->faults = lappend(look->faults, fault);
}

static void
note_part(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	int			part = DatumGetInt32(slot->tts_values[0]);
	const char *const names[3] = {
		TextDatumGetCString(slot->tts_values[1]),
		TextDatumGetCString(slot->tts_values[2]),
		look->role
	};
	Oid			relation = DatumGetObjectId(slot->tts_values[5]);

	ea_held_watch(caches[part], DatumGetObjectId(slot->tts_values[3]));
	ea_held_watch(AUTHOID, DatumGetObjectId(slot->tts_values[4]));
	if (OidIsValid(relation))
		ea_held_watch_relation(relation);
	if (!DatumGetBool(slot->tts_values[6]))
		return;
	add_fault(look, DatumGetObjectId(slot->tts_values[7]), part, names);
}

/*
 * The use that another extension makes of the tables, which PostgreSQL does
 * not know.
 */
static void
find_elsewhere(Look *look, int n, const Oid *relids)
{
	if (ea_distributed())
		return;
	for (int i = 0; i < n; i++)
	{
		char	   *name;
		char	   *schema;
		const char *names[3] = {NULL, "citus", look->role};

		CHECK_FOR_INTERRUPTS();
		if (!ea_distributed_is(relids[i]))
			continue;
		name = get_rel_name(relids[i]);
		schema = get_namespace_name(get_rel_namespace(relids[i]));
		if (name == NULL || schema == NULL)
			continue;
		names[0] = quote_qualified_identifier(schema, name);
		add_fault(look, relids[i], EA_OWNERS_CITUS, names);
	}
}

List *
ea_table_owners_faults(int n, const Oid *relids, bool distributed,
					   bool policies)
{
	Datum	   *oids;
	ArrayType  *array;
	Look		look = {NIL, GetUserNameFromId(GetUserId(), false)};
	EaPin		pin;

	/* all that is looked up is few of many, which no estimate knows */
	ea_pin_begin(&pin);
	ea_pin_set("enable_seqscan", "off");
	ea_pin_set("enable_hashjoin", "off");
	ea_pin_set("enable_mergejoin", "off");
	ea_distributed_settings_show_shards();

	oids = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		oids[i] = ObjectIdGetDatum(relids[i]);
	array = construct_array(oids, n, OIDOID, sizeof(Oid), true, TYPALIGN_INT);

	/* first, as nothing else means much then */
	find_elsewhere(&look, n, relids);

	/* its owner may be that of a schema */
	ea_held_watch(DATABASEOID, MyDatabaseId);
	ea_exec_latest(EA_EXEC_LOOK, statement,
				   ea_params(EA_VALUE(OIDARRAYOID, PointerGetDatum(array)),
							 EA_OID(GetUserId()),
							 EA_BOOL(distributed), EA_BOOL(policies)),
				   EA_READER(note_part, INT4OID, TEXTOID, TEXTOID, OIDOID,
							 OIDOID, OIDOID, BOOLOID, OIDOID), &look);
	ea_pin_end(&pin);
	return look.faults;
}

void
ea_table_owners_check(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	List	   *faults = ea_table_owners_faults(1, &relid, ea_distributed(),
												true);
	EaOwnersFault *first;

	if (faults == NIL)
		return;
	first = linitial(faults);
	ereport(ERROR,
			(errcode(first->part == EA_OWNERS_CITUS ? ERRCODE_EA_DISTRIBUTED :
					 ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the table %s is not used: %s",
					RelationGetRelationName(rel), first->message),
			 errhint("%s", first->hint)));
}

Oid
ea_table_owners_of_schema(Oid schema)
{
	HeapTuple	tuple = SearchSysCache1(NAMESPACEOID,
										ObjectIdGetDatum(schema));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for schema %u", schema);
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	ReleaseSysCache(tuple);
	if (owner == ROLE_PG_DATABASE_OWNER)
	{
		tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
		owner = ((Form_pg_database) GETSTRUCT(tuple))->datdba;
		ReleaseSysCache(tuple);
	}
	return owner == GetUserId() || superuser_arg(owner) ? InvalidOid : owner;
}
