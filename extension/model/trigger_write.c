#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "engine/exec.h"
#include "model/table_owners.h"
#include "model/trigger_write.h"
#include "trust/owner.h"

static void
execute_statement(const char *sql, int n, Oid *types, Datum *values)
{
	int			result = SPI_execute_with_args(sql, n, types, values, NULL,
											   false, 0);

	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(result));
}

/* The value that a query finds about a table; *found: there is one. */
static Datum
find_value(const char *sql, const char *table, bool *found)
{
	Oid			types[] = {TEXTOID};
	Datum		values[] = {CStringGetTextDatum(table)};
	Datum		value;
	bool		isnull;

	*found = false;
	execute_statement(sql, 1, types, values);
	if (SPI_processed == 0)
		return (Datum) 0;
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
						  &isnull);
	*found = !isnull;
	return value;
}

uint64
ea_trigger_write_count(const char *sql, int n, Oid *types, Datum *values)
{
	execute_statement(sql, n, types, values);
	return SPI_processed;
}

bool
ea_trigger_write_asks(const char *sql, const char *table)
{
	bool		found;

	find_value(sql, table, &found);
	return found;
}

/*
 * Somebody may have put another table in the place of this one, or attached
 * code to it, which would run with the rights of the owner.
 */
void
ea_trigger_write_check(const char *table)
{
	bool		found;
	Datum		value;
	Oid			relid;
	Relation	rel;

	value = find_value("SELECT pg_catalog.to_regclass($1)::oid", table,
					   &found);
	if (!found)
		elog(ERROR, "there is no table %s", table);
	relid = DatumGetObjectId(value);
	rel = table_open(relid, RowExclusiveLock);
	if (!ea_held_is_known(relid))
		ea_table_owners_check(rel);
	table_close(rel, NoLock);
}

/*
 * Constraint triggers have constraints, too.  Triggers that wait for these are
 * of the caller's transaction, and run as the owner, where guard.c refuses
 * user-defined code, rather than as a superuser at its commit.
 */
static void
let_nothing_wait(const char *table)
{
	static const char query[] =
		"WITH RECURSIVE reached (rel) AS ("
		" SELECT pg_catalog.to_regclass($1)::oid"
		" UNION SELECT f.conrelid FROM reached r"
		" JOIN pg_catalog.pg_constraint f ON f.confrelid = r.rel"
		" WHERE f.contype = 'f')"
		" SELECT pg_catalog.string_agg("
		"pg_catalog.format('%I.%I', n.nspname, c.conname), ', ')"
		" FROM reached r"
		" JOIN pg_catalog.pg_constraint c ON c.conrelid = r.rel"
		" JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace"
		" WHERE c.condeferrable";
	bool		found;
	Datum		names = find_value(query, table, &found);

	if (found)
		execute_statement(psprintf("SET CONSTRAINTS %s IMMEDIATE",
								   TextDatumGetCString(names)), 0, NULL, NULL);
}

void
ea_trigger_write(const char *table, const char *sql, int n, Oid *types,
				 Datum *values)
{
	ea_trigger_write_check(table);
	if (!ea_owner_settles())
	{
		if (!InSecurityRestrictedOperation())
			elog(ERROR, "a trigger writes to %s and is not confined", table);
		let_nothing_wait(table);
	}
	execute_statement(sql, n, types, values);
}
