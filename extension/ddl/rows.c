/*
 * The rows are checked before the statements run, so that a dry run refuses
 * what the real one would.  Another session may still change rows in between;
 * then the statement itself fails, and ea_ddl_run() makes a fault of that.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/guc.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"
#include "model/table_owners.h"

bool
ea_ddl_owns_schemas(EaDdlPlan *plan)
{
	const char *role = GetUserNameFromId(GetUserId(), false);
	int			before = plan->m->nfaults;
	ListCell   *lc;

	foreach(lc, plan->stored->tables)
	{
		EaDdlTable *table = lfirst(lc);
		Oid			schema = get_namespace_oid(table->schema, true);
		Oid			owner;

		CHECK_FOR_INTERRUPTS();
		if (table->existing || !OidIsValid(schema) ||
			!OidIsValid(ea_ddl_relation(table)))
			continue;
		owner = ea_table_owners_of_schema(schema);
		if (OidIsValid(owner))
			ea_ddl_fault(plan, table, NULL,
						 psprintf("the schema \"%s\" belongs to %s, who could "
								  "put other tables in the place of the "
								  "service's", table->schema,
								  GetUserNameFromId(owner, false)),
						 psprintf("ALTER SCHEMA %s OWNER TO %s",
								  quote_identifier(table->schema),
								  quote_identifier(role)));
	}
	return plan->m->nfaults == before;
}

static bool
has_row(const char *sql)
{
	int			result = SPI_execute(sql, false, 1);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "a look at the data failed: %s",
			 SPI_result_code_string(result));
	return SPI_processed > 0;
}

bool
ea_ddl_has_rows(EaDdlTable *table)
{
	EaDdlTable *stored = table->was;

	if (stored->has_rows < 0)
		stored->has_rows = has_row(psprintf("SELECT 1 FROM %s LIMIT 1",
											stored->qualified));
	return stored->has_rows;
}

bool
ea_ddl_is_live(EaDdlTable *table)
{
	EaDdlTable *stored = table->was;

	if (ea_guc_online_rows == 0)
		return false;
	if (stored->is_live < 0)
		stored->is_live = has_row(psprintf("SELECT 1 FROM %s"
										   " OFFSET %d LIMIT 1",
										   stored->qualified,
										   ea_guc_online_rows - 1));
	return stored->is_live;
}

/* The one number that a query gives. */
static int64
count_of(const char *sql)
{
	bool		isnull;
	int			result = SPI_execute(sql, false, 0);

	if (result != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "a look at the data failed: %s",
			 SPI_result_code_string(result));
	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, 1, &isnull));
}

int64
ea_ddl_count(const char *rows, const char *condition)
{
	return count_of(psprintf("SELECT count(*) FROM %s r WHERE %s", rows,
							 condition));
}

int64
ea_ddl_count_duplicates(EaDdlTable *to, EaDdlObject *object)
{
	StringInfoData columns;
	StringInfoData filled;
	ListCell   *lc;

	initStringInfo(&columns);
	initStringInfo(&filled);
	if (to->tenant_scoped)
		appendStringInfoString(&columns, quote_identifier(to->tenant_column));
	foreach(lc, object->columns)
	{
		const char *quoted = quote_identifier(lfirst(lc));

		appendStringInfo(&columns, "%s%s", columns.len > 0 ? ", " : "",
						 quoted);
		appendStringInfo(&filled, "%s%s IS NOT NULL",
						 filled.len > 0 ? " AND " : "", quoted);
	}
	if (object->partial)
		appendStringInfo(&filled, " AND %s IS NULL",
						 quote_identifier(to->deleted_column));
	return count_of(psprintf("SELECT count(*) FROM (SELECT 1 FROM %s r"
							 " WHERE %s GROUP BY %s HAVING count(*) > 1) d",
							 to->after, filled.data, columns.data));
}

void
ea_ddl_check_dropped(EaDdlPlan *plan, EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	StringInfoData ours;
	ListCell   *lc;

	if (!OidIsValid(relid))
		return;
	initStringInfo(&ours);
	foreach(lc, plan->stored->tables)
	{
		EaDdlTable *other = lfirst(lc);

		if (!other->existing)
			appendStringInfo(&ours, "%s%u", ours.len > 0 ? ", " : "",
							 ea_ddl_relation(other));
	}
	if (has_row(psprintf("SELECT f.conname,"
						 " f.conrelid::pg_catalog.regclass::text"
						 " FROM pg_constraint f"
						 " WHERE f.contype = 'f' AND f.confrelid = %u"
						 " AND f.conrelid <> ALL (ARRAY[%s]::oid[])",
						 relid, ours.data)))
		ea_ddl_fault(plan, table, table->field,
					 psprintf("the foreign key \"%s\" of %s refers to the "
							  "table %s, which goes",
							  SPI_getvalue(SPI_tuptable->vals[0],
										   SPI_tuptable->tupdesc, 1),
							  SPI_getvalue(SPI_tuptable->vals[0],
										   SPI_tuptable->tupdesc, 2),
							  table->qualified),
					 "drop that foreign key first");
}

Oid
ea_ddl_relation(const EaDdlTable *table)
{
	Oid			namespace = get_namespace_oid(table->schema, true);

	return OidIsValid(namespace) ?
		get_relname_relid(table->name, namespace) : InvalidOid;
}
