/*
 * A row of pending_step names an index or a constraint.  The statements for it
 * are worked out anew each time, from the declarations and from what the table
 * has by now; no row holds text that is executed.  Members of entityapi_owner
 * can write rows and declarations, and tables can have triggers and checks of
 * theirs, while a superuser may be running the steps.  So everything here
 * happens with the rights of the owner, with no way out of them: within an
 * operation that is restricted as an index function is, with all settings put
 * back at its end.
 *
 * The shim sends the statements that cannot run within a transaction, as they
 * are given here.  They make and drop indexes, and PostgreSQL itself restricts
 * what runs then.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "cluster/distributed.h"
#include "cluster/turn.h"
#include "ddl/effects.h"
#include "ddl/online.h"
#include "ddl/pending_steps.h"
#include "ddl/tables.h"
#include "engine/exec.h"
#include "manifest/compile.h"
#include "trust/owner.h"

/* A row of pending_step, what the database has of it, and its declaration. */
typedef struct Promise
{
	int			step;
	char	   *entity;
	char	   *field;
	char	   *kind;
	char	   *schema;
	char	   *table;
	char	   *name;
	char	   *column;
	bool		fills;
	int			revision;
	char	   *failure;
	Datum		failed_at;
	bool		has_failed;

	bool		has_index;
	bool		valid;
	bool		has_constraint;
	bool		validated;
	bool		not_null;

	EaDdlTable *declared;
	EaDdlObject *object;		/* NULL: a required column */
	EaDdlColumn *required;
} Promise;

/* -------- what is promised -------- */

static bool
is_unique_key(const Promise *p)
{
	return strcmp(p->kind, "unique") == 0;
}

static bool
is_index(const Promise *p)
{
	return is_unique_key(p) || strcmp(p->kind, "index") == 0;
}

static bool
needs_drop(const Promise *p)
{
	return is_index(p) && p->has_index && !p->valid;
}

static bool
needs_index(const Promise *p)
{
	return is_index(p) && !p->valid;
}

static bool
needs_key(const Promise *p)
{
	return is_unique_key(p) && !p->has_constraint;
}

static bool
needs_not_null(const Promise *p)
{
	return p->required != NULL && !p->not_null;
}

static bool
needs_values(const Promise *p)
{
	return needs_not_null(p) && !p->validated && p->fills &&
		p->required->fill != NULL;
}

static bool
needs_check(const Promise *p)
{
	return needs_not_null(p) && !p->has_constraint;
}

static bool
needs_validation(const Promise *p)
{
	if (strcmp(p->kind, "validate") == 0)
		return p->has_constraint && !p->validated;
	return needs_not_null(p) && !p->validated;
}

static bool
needs_no_check(const Promise *p)
{
	return p->required != NULL && (p->has_constraint || !p->not_null);
}

static const char *
drop_index(const Promise *p)
{
	return psprintf("DROP INDEX CONCURRENTLY IF EXISTS %s",
					quote_qualified_identifier(p->schema, p->name));
}

static const char *
create_index(const Promise *p)
{
	return ea_ddl_concurrently(p->declared, p->object);
}

static const char *
add_key(const Promise *p)
{
	const char *name = quote_identifier(p->name);

	return psprintf("ALTER TABLE %s ADD CONSTRAINT %s UNIQUE USING INDEX %s",
					p->declared->qualified, name, name);
}

static const char *
fill_values(const Promise *p)
{
	return ea_ddl_fill(p->declared, p->required);
}

static const char *
add_check(const Promise *p)
{
	return psprintf("ALTER TABLE %s ADD CONSTRAINT %s"
					" CHECK (%s IS NOT NULL) NOT VALID",
					p->declared->qualified, quote_identifier(p->name),
					quote_identifier(p->required->name));
}

static const char *
validate_check(const Promise *p)
{
	return psprintf("ALTER TABLE %s VALIDATE CONSTRAINT %s",
					p->declared->qualified, quote_identifier(p->name));
}

static const char *
set_not_null(const Promise *p)
{
	return psprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
					p->declared->qualified,
					quote_identifier(p->required->name));
}

static const char *
drop_check(const Promise *p)
{
	return psprintf("ALTER TABLE %s DROP CONSTRAINT %s",
					p->declared->qualified, quote_identifier(p->name));
}

/*
 * The parts of a step, from 1 on; those that are needed run in this order.
 * alone: outside of any transaction.
 */
static const struct
{
	bool		(*needed) (const Promise *p);
	const char *(*statement) (const Promise *p);
	LOCKMODE	lock;
	bool		alone;
}			parts[] =
{
	{needs_drop, drop_index, ShareUpdateExclusiveLock, true},
	{needs_index, create_index, ShareUpdateExclusiveLock, true},
	{needs_key, add_key, AccessExclusiveLock, false},
	{needs_values, fill_values, RowExclusiveLock, false},
	{needs_check, add_check, AccessExclusiveLock, false},
	{needs_validation, validate_check, ShareUpdateExclusiveLock, false},
	{needs_not_null, set_not_null, AccessExclusiveLock, false},
	{needs_no_check, drop_check, AccessExclusiveLock, false}
};

/* -------- reading it -------- */

static char *
text_at(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						column);
}

static bool
truth_at(uint64 row, int column)
{
	const char *text = text_at(row, column);

	return text != NULL && *text == 't';
}

static Promise *
read_promise(uint64 row)
{
	Promise    *p = palloc0(sizeof(Promise));
	bool		isnull;

	p->step = atoi(text_at(row, 1));
	p->entity = text_at(row, 2);
	p->field = text_at(row, 3);
	p->kind = text_at(row, 4);
	p->schema = text_at(row, 5);
	p->table = text_at(row, 6);
	p->name = text_at(row, 7);
	p->column = text_at(row, 8);
	p->fills = truth_at(row, 9);
	p->revision = atoi(text_at(row, 10));
	p->failed_at = SPI_getbinval(SPI_tuptable->vals[row],
								 SPI_tuptable->tupdesc, 11, &isnull);
	p->has_failed = !isnull;
	p->failure = text_at(row, 12);
	p->has_index = text_at(row, 13) != NULL;
	p->valid = truth_at(row, 13);
	p->has_constraint = text_at(row, 14) != NULL;
	p->validated = truth_at(row, 14);
	p->not_null = text_at(row, 15) == NULL || truth_at(row, 15);
	return p;
}

/* The rows, as the casts make sure of whatever has become of the table. */
static List *
read_promises(void)
{
	List	   *promises = NIL;
	int			result = SPI_execute(
		"SELECT p.step::int4, p.entity::text, p.field::text, p.kind::text,"
		" p.schema_name::text, p.table_name::text, p.name::text,"
		" p.column_name::text, p.definition IS NOT NULL, p.revision::int4,"
		" p.failed_at::timestamptz, p.failure::text,"
		" i.indisvalid, c.convalidated, a.attnotnull"
		" FROM entityapi.pending_step p"
		" JOIN pg_catalog.pg_namespace n ON n.nspname = p.schema_name"
		" JOIN pg_catalog.pg_class t"
		" ON t.relnamespace = n.oid AND t.relname = p.table_name"
		" LEFT JOIN pg_catalog.pg_class r"
		" ON r.relnamespace = n.oid AND r.relname = p.name"
		" LEFT JOIN pg_catalog.pg_index i"
		" ON i.indexrelid = r.oid AND i.indrelid = t.oid"
		" LEFT JOIN pg_catalog.pg_constraint c"
		" ON c.conrelid = t.oid AND c.conname = p.name"
		" LEFT JOIN pg_catalog.pg_attribute a"
		" ON a.attrelid = t.oid AND a.attname = p.column_name"
		" ORDER BY p.step", true, 0);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not read the pending steps: %s",
			 SPI_result_code_string(result));
	for (uint64 i = 0; i < SPI_processed; i++)
		promises = lappend(promises, read_promise(i));
	return promises;
}

static List *
read_declarations(void)
{
	List	   *trees = NIL;

	if (SPI_execute("SELECT definition FROM entityapi.entity ORDER BY name",
					true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the declarations");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		CHECK_FOR_INTERRUPTS();
		trees = lappend(trees, ea_manifest_tree(text_at(i, 1)));
	}
	return trees;
}

/* The declarations have exactly what a row promises. */
static bool
find_declared(Promise *p, EaNameMap *by_qualified)
{
	p->declared = ea_names_map_get(by_qualified,
								   quote_qualified_identifier(p->schema,
															  p->table));
	if (p->declared == NULL || p->declared->existing)
		return false;
	if (strcmp(p->kind, "required") == 0)
	{
		p->required = p->column == NULL ? NULL :
			ea_names_map_get(p->declared->by_column, p->column);
		return p->required != NULL && p->required->not_null &&
			strcmp(ea_ddl_filled_name(p->declared, p->required), p->name) == 0;
	}
	p->object = ea_names_map_get(p->declared->by_object, p->name);
	return p->object != NULL && ea_ddl_step_kind(p->object) != NULL &&
		strcmp(ea_ddl_step_kind(p->object), p->kind) == 0;
}

/* The promises that are still declared (Promise); needs SPI. */
static List *
load_promises(List *trees)
{
	List	   *promises = read_promises();
	List	   *sound = NIL;
	EaNameMap  *by_qualified;
	ListCell   *lc;

	/* the usual case, in which the declarations need not be looked at */
	if (promises == NIL)
		return NIL;
	if (trees == NIL)
		trees = read_declarations();
	by_qualified = ea_names_map_create(256);
	foreach(lc, ea_ddl_state(trees, NULL, ea_distributed())->tables)
	{
		EaDdlTable *table = lfirst(lc);

		ea_names_map_put(by_qualified, table->qualified, table);
	}
	foreach(lc, promises)
	{
		if (find_declared(lfirst(lc), by_qualified))
			sound = lappend(sound, lfirst(lc));
	}
	return sound;
}

EaNameMap *
ea_ddl_load_pending(List *trees)
{
	EaNameMap  *pending = ea_names_map_create(16);
	ListCell   *lc;

	foreach(lc, load_promises(trees))
	{
		Promise    *p = lfirst(lc);
		char	   *key = ea_ddl_pending_key(p->schema, p->name);

		for (int i = 0; i < lengthof(parts); i++)
		{
			if (parts[i].needed(p))
				ea_names_map_put(pending, key, key);
		}
	}
	return pending;
}

/* -------- functions of SQL -------- */

static Datum
text_or_null(const char *value, bool *isnull)
{
	*isnull = value == NULL;
	return value == NULL ? (Datum) 0 : CStringGetTextDatum(value);
}

static void
return_part(ReturnSetInfo *rsinfo, const Promise *p, int i)
{
	Datum		values[13];
	bool		nulls[13] = {false};

	values[0] = Int32GetDatum(p->step);
	values[1] = Int32GetDatum(i + 1);
	values[2] = CStringGetTextDatum(p->entity);
	values[3] = text_or_null(p->field, &nulls[3]);
	values[4] = CStringGetTextDatum(p->kind);
	values[5] = CStringGetTextDatum(p->schema);
	values[6] = CStringGetTextDatum(p->name);
	values[7] = CStringGetTextDatum(parts[i].statement(p));
	values[8] = CStringGetTextDatum(ea_ddl_lock_name(parts[i].lock));
	values[9] = Int32GetDatum(p->revision);
	values[10] = p->failed_at;
	nulls[10] = !p->has_failed;
	values[11] = text_or_null(p->failure, &nulls[11]);
	values[12] = BoolGetDatum(parts[i].alone);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* list_steps(): statements that are left, in the order in which they run */
EA_CONFINED_FUNCTION(ea_sql_list_steps)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	foreach(lc, load_promises(NIL))
	{
		for (int i = 0; i < lengthof(parts); i++)
		{
			if (parts[i].needed(lfirst(lc)))
				return_part(rsinfo, lfirst(lc), i);
		}
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * Nobody else's table: its triggers would run with the rights of the owner.
 * It stays locked, so that it stays the same.
 */
static void
check_owned(const Promise *p, LOCKMODE lock)
{
	Oid			namespace = get_namespace_oid(p->schema, false);
	Oid			relid = get_relname_relid(p->table, namespace);
	Relation	relation;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no table %s", p->declared->qualified)));
	relation = table_open(relid, lock);
	if (relation->rd_rel->relowner != GetUserId())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the table %s does not belong to " EA_OWNER,
						p->declared->qualified)));
	table_close(relation, NoLock);
}

/*
 * Each node of a cluster is to know that its tables will be locked for this
 * (engine/applying.h).  It is not by ea_exec_write(), for which logins would
 * wait.
 */
static void
take_node_turns(void)
{
	char	   *sql;

	if (!ea_distributed())
		return;
	sql = psprintf("UPDATE entityapi.declaring SET present = present"
				   " WHERE entityapi.take_turn(present::int, %d, true) > 0",
				   EA_TURN_DECLARING);
	if (SPI_execute(sql, false, 0) != SPI_OK_UPDATE)
		elog(ERROR, "the nodes do not know that a step runs");
}

static bool
run_part(int step, int part)
{
	ListCell   *lc;
	int			i = part - 1;

	if (i < 0 || i >= lengthof(parts))
		return false;
	if (parts[i].alone)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("part %d of a step runs outside of a transaction",
						part),
				 errhint("Run \"entityapi-shim apply --resume\".")));
	foreach(lc, load_promises(NIL))
	{
		Promise    *p = lfirst(lc);
		int			result;

		if (p->step != step || !parts[i].needed(p))
			continue;
		take_node_turns();
		check_owned(p, parts[i].lock);
		result = SPI_execute(parts[i].statement(p), false, 0);
		if (result < 0)
			elog(ERROR, "a step failed: %s", SPI_result_code_string(result));
		return true;
	}
	return false;
}

/*
 * run_step(step int, part int): run what list_steps() shows, unless it has
 * to be alone; false when it is not needed
 */
EA_CONFINED_FUNCTION(ea_sql_run_step)
{
	bool		done;

	SPI_connect();
	done = run_part(PG_GETARG_INT32(0), PG_GETARG_INT32(1));
	SPI_finish();
	PG_RETURN_BOOL(done);
}

/*
 * note_step(step int, sqlstate text): how it went, by the SQLSTATE alone, as
 * messages quote values of tenants; null: it is being tried
 */
EA_CONFINED_FUNCTION(ea_sql_note_step)
{
	SPI_connect();
	ea_exec_write("UPDATE entityapi.pending_step"
				  " SET failed_at = CASE WHEN $2 IS NOT NULL"
				  " THEN $3 END,"
				  " failure = $2 WHERE step = $1",
				  ea_params(EA_NULL_IF(PG_ARGISNULL(0),
									   EA_INT4(PG_GETARG_INT32(0))),
							EA_NULL_IF(PG_ARGISNULL(1),
									   EA_TEXT_DATUM(PG_GETARG_DATUM(1))),
							EA_TIMESTAMP(GetCurrentTimestamp())));
	SPI_finish();
	PG_RETURN_VOID();
}
