/*
 * No apply makes triggers, or expressions that call functions beyond
 * PostgreSQL's own: so all such are of others.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/array.h"

#include "ddl/notices.h"
#include "ddl/rows.h"
#include "engine/exec.h"
#include "model/used_types.h"
#include "trust/pin.h"

typedef struct Look
{
	EaDdlTable **tables;
	List	   *notices;
} Look;

#define OWN \
	"WITH RECURSIVE own (class, part) AS (" \
	" SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef" \
	" WHERE adrelid = asked.rel" \
	" UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint" \
	" WHERE conrelid = asked.rel AND contype = 'c')"

#define PARTS \
	" parts (class, part, what) AS (SELECT 'pg_attrdef'::regclass, d.oid," \
	" format(CASE a.attgenerated WHEN '' THEN 'the default of \"%s\" of %s'" \
	" ELSE 'the generated column \"%s\" of %s' END, a.attname," \
	" asked.rel::regclass) FROM pg_attrdef d JOIN pg_attribute a" \
	" ON a.attrelid = d.adrelid AND a.attnum = d.adnum" \
	" WHERE d.adrelid = asked.rel" \
	" UNION ALL SELECT 'pg_constraint'::regclass, c.oid," \
	" format('the check \"%s\" of %s', c.conname, asked.rel::regclass)" \
	" FROM pg_constraint c" \
	" WHERE c.conrelid = asked.rel AND c.contype = 'c'" \
	" UNION ALL SELECT x.class, x.oid," \
	" format('the domain %s, which %s has,'," \
	" t.oid::regtype, asked.rel::regclass)" \
	" FROM used u JOIN pg_type t ON t.oid = u.oid AND t.typtype = 'd'" \
	" CROSS JOIN LATERAL (SELECT 'pg_type'::regclass, t.oid" \
	" UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint c" \
	" WHERE c.contypid = t.oid) x (class, oid))"

/* Those of foreign keys, and of Citus, are internal. */
#define TRIGGERS \
	"SELECT format('the trigger \"%s\" of %s', g.tgname," \
	" asked.rel::regclass), g.tgfoid FROM pg_trigger g" \
	" WHERE g.tgrelid = asked.rel AND NOT g.tgisinternal"

#define FUNCTIONS \
	"SELECT DISTINCT parts.what, p.oid FROM parts" \
	" JOIN pg_depend d ON d.classid = parts.class AND d.objid = parts.part" \
	" LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass" \
	" AND o.oid = d.refobjid" \
	" JOIN pg_proc p ON p.oid = CASE" \
	" WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid" \
	" ELSE o.oprcode END WHERE p.oid >= 16384"

static const char statement[] =
"SELECT asked.n, format('%s calls %s', f.what, f.function::regprocedure)"
" FROM unnest($1) WITH ORDINALITY asked (rel, n) CROSS JOIN LATERAL ("
OWN "," EA_USED_TYPES "," PARTS " " TRIGGERS " UNION ALL " FUNCTIONS
") f (what, function) ORDER BY 1, 2";

static void
note_code(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	EaDdlNotice *notice = palloc(sizeof(EaDdlNotice));

	notice->table = look->tables[DatumGetInt64(slot->tts_values[0]) - 1];
	notice->message = TextDatumGetCString(slot->tts_values[1]);
	notice->hint = "it runs with each write; drop it if nobody knows it";
	look->notices = lappend(look->notices, notice);
}

List *
ea_ddl_notices(const EaDdlState *stored)
{
	int			most = Max(list_length(stored->tables), 1);
	Datum	   *oids = palloc(most * sizeof(Datum));
	Look		look = {palloc(most * sizeof(EaDdlTable *))};
	ArrayType  *array;
	int			n = 0;
	ListCell   *lc;
	EaPin		pin;

	foreach(lc, stored->tables)
	{
		EaDdlTable *table = lfirst(lc);
		Oid			relid = table->existing ? InvalidOid :
			ea_ddl_relation(table);

		CHECK_FOR_INTERRUPTS();
		if (!OidIsValid(relid))
			continue;
		look.tables[n] = table;
		oids[n++] = ObjectIdGetDatum(relid);
	}
	array = construct_array(oids, n, OIDOID, sizeof(Oid), true, TYPALIGN_INT);

	/* all that is looked up is few of many, which no estimate knows */
	ea_pin_begin(&pin);
	ea_pin_set("enable_seqscan", "off");
	ea_pin_set("enable_hashjoin", "off");
	ea_pin_set("enable_mergejoin", "off");
	ea_exec_each(EA_EXEC_LOOK, statement,
				 ea_params(EA_VALUE(OIDARRAYOID, PointerGetDatum(array))),
				 EA_READER(note_code, INT8OID, TEXTOID), &look);
	ea_pin_end(&pin);
	return look.notices;
}
