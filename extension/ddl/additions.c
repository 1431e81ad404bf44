/*
 * All of it is in the catalogs, and asked of all tables together.  pg_class
 * has flags for rules and children, which stay set for a while after the last
 * one is gone; so these are looked up themselves.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "ddl/additions.h"
#include "ddl/drift.h"
#include "engine/exec.h"
#include "trust/owner.h"

#define READER "entityapi_reader"

typedef struct Look
{
	EaDdlTable *const *tables;
	List	   *differences;
} Look;

/* The parts of differences, as parameters. */
#define ADDITION "$2"
#define OWNER "$3"
#define KIN "$4"

/* c: the table; name: as SQL writes it */

#define OWNERS \
	"SELECT " OWNER ", format('the table %s belongs to %s', name," \
	" pg_get_userbyid(c.relowner))," \
	" format('ALTER TABLE %s OWNER TO " EA_OWNER "', name), c.relowner" \
	" WHERE c.relowner <> '" EA_OWNER "'::regrole"

#define POLICIES \
	"SELECT " ADDITION "," \
	" format('the policy \"%s\" of %s was made by others', p.polname, name)," \
	" format('DROP POLICY %I ON %s', p.polname, name), 0::oid" \
	" FROM pg_policy p WHERE p.polrelid = c.oid" \
	" AND p.polname <> 'entityapi_read'"

#define RULES \
	"SELECT " ADDITION "," \
	" format('the rule \"%s\" of %s was made by others', r.rulename, name)," \
	" format('DROP RULE %I ON %s', r.rulename, name), 0::oid" \
	" FROM pg_rewrite r WHERE r.ev_class = c.oid"

/* Rights that were passed on go along with those that allowed it. */
#define RIGHTS \
	"SELECT " ADDITION "," \
	" format('%s has rights on %s that others granted: %s', role, name," \
	" string_agg(what, ', ' ORDER BY what))," \
	" format('REVOKE ALL ON %s FROM %s CASCADE', name, role), 0::oid" \
	" FROM (SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC'" \
	" ELSE a.grantee::regrole::text END, a.privilege_type || a.columns FROM" \
	" (SELECT grantee, privilege_type, '' FROM aclexplode(c.relacl)" \
	" UNION ALL SELECT x.grantee, x.privilege_type," \
	" format(' (%I)', k.attname) FROM pg_attribute k, aclexplode(k.attacl) x" \
	" WHERE k.attrelid = c.oid AND NOT k.attisdropped)" \
	" a (grantee, privilege_type, columns)" \
	" WHERE a.grantee <> c.relowner AND a.grantee <> '" EA_OWNER "'::regrole" \
	" AND a.grantee <> '" READER "'::regrole) g (role, what) GROUP BY role"

/* Nobody else can alter a temporary one, which goes with its session. */
#define CHILDREN \
	"SELECT " KIN ", format('%s inherits from %s', k.oid::regclass, name)," \
	" CASE WHEN k.relpersistence <> 't' THEN" \
	" format('ALTER TABLE %s NO INHERIT %s', k.oid::regclass, name) END," \
	" k.relowner FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid" \
	" WHERE i.inhparent = c.oid"

#define PARENTS \
	"SELECT " KIN ", format(CASE WHEN c.relispartition" \
	" THEN '%1$s is a partition of %2$s' ELSE '%1$s inherits from %2$s' END," \
	" name, k.oid::regclass), format(CASE WHEN c.relispartition" \
	" THEN 'ALTER TABLE %2$s DETACH PARTITION %1$s'" \
	" ELSE 'ALTER TABLE %1$s NO INHERIT %2$s' END, name, k.oid::regclass)," \
	" CASE WHEN c.relispartition THEN k.relowner ELSE c.relowner END" \
	" FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhparent" \
	" WHERE i.inhrelid = c.oid"

static const char statement[] =
"SELECT t.n, x.* FROM unnest($1) WITH ORDINALITY t (relid, n)"
" JOIN pg_class c ON c.oid = t.relid"
" CROSS JOIN LATERAL (SELECT c.oid::regclass::text) q (name)"
" CROSS JOIN LATERAL (" OWNERS " UNION ALL " POLICIES " UNION ALL " RULES
" UNION ALL " RIGHTS " UNION ALL " CHILDREN " UNION ALL " PARENTS
") x (part, message, undo, whose) ORDER BY t.n, x.part, x.message";

static void
note_addition(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	EaDdlDifference *difference = palloc0(sizeof(EaDdlDifference));
	int64		n = DatumGetInt64(slot->tts_values[0]);

	difference->table = look->tables[n - 1];
	difference->part = DatumGetInt32(slot->tts_values[1]);
	difference->message = TextDatumGetCString(slot->tts_values[2]);
	if (!slot->tts_isnull[3])
		difference->undo = TextDatumGetCString(slot->tts_values[3]);
	else
		difference->hint = "end the session that has it";
	difference->whose = DatumGetObjectId(slot->tts_values[4]);
	look->differences = lappend(look->differences, difference);
}

List *
ea_ddl_additions(int n, EaDdlTable *const *tables, const Oid *relids)
{
	Datum	   *oids = palloc(Max(n, 1) * sizeof(Datum));
	Look		look = {tables};
	ArrayType  *array;

	for (int i = 0; i < n; i++)
		oids[i] = ObjectIdGetDatum(relids[i]);
	array = construct_array(oids, n, OIDOID, sizeof(Oid), true, TYPALIGN_INT);
	ea_exec_each(EA_EXEC_LOOK, statement,
				 ea_params(EA_VALUE(OIDARRAYOID, PointerGetDatum(array)),
						   EA_INT4(EA_DDL_PART_ADDITION),
						   EA_INT4(EA_DDL_PART_OWNER),
						   EA_INT4(EA_DDL_PART_KIN)),
				 EA_READER(note_addition, INT8OID, INT4OID, TEXTOID, TEXTOID,
						   OIDOID), &look);
	return look.differences;
}
