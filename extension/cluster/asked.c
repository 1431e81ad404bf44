/*
 * Tables are compared for a superuser, whom their owners could give a view in
 * the place of one: PostgreSQL would run its functions with his rights.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

#include "trust/owner.h"

PG_FUNCTION_INFO_V1(ea_sql_ask_as_owner);

/*
 * entityapi.ask_as_owner(relation regclass, query text) returns jsonb: what a
 * query of one row and column gives, with the rights of the relation's owner.
 */
Datum
ea_sql_ask_as_owner(PG_FUNCTION_ARGS)
{
	const char *query = text_to_cstring(PG_GETARG_TEXT_PP(1));
	EaPin		before;
	Datum		result;
	bool		isnull;

	SPI_connect();
	ea_owner_of(&before, PG_GETARG_OID(0));
	if (SPI_execute(query, false, 0) != SPI_OK_SELECT || SPI_processed != 1 ||
		SPI_gettypeid(SPI_tuptable->tupdesc, 1) != JSONBOID)
		elog(ERROR, "a query does not give one jsonb");
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
						   &isnull);
	if (isnull)
		elog(ERROR, "a query gives null");
	result = SPI_datumTransfer(result, false, -1);
	ea_owner_leave(&before);
	SPI_finish();
	PG_RETURN_DATUM(result);
}
