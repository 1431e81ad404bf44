/* Until 1.2 documents were jsonb, and their order was lost. */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"

#include "apply/stored.h"
#include "ddl/pending_steps.h"
#include "manifest/compile.h"

static void
select_all(const char *sql)
{
	int			result = SPI_execute(sql, false, 0);

	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not read the declarations: %s",
			 SPI_result_code_string(result));
}

static char *
column_text(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						column);
}

void
ea_stored_load(EaStored *stored)
{
	memset(stored, 0, sizeof(EaStored));
	select_all("SELECT revision, checksum,"
		" extension_version NOT IN ('1.0', '1.1', '1.2')"
		" FROM entityapi.revision ORDER BY revision DESC LIMIT 1");
	if (SPI_processed > 0)
	{
		stored->revision = atoi(column_text(0, 1));
		stored->checksum = column_text(0, 2);
		stored->in_order = *column_text(0, 3) == 't';
	}
	select_all("SELECT definition FROM entityapi.service");
	if (SPI_processed > 0)
	{
		stored->service = column_text(0, 1);
		stored->service_tree = ea_manifest_tree(stored->service);
	}

	select_all("SELECT name, definition FROM entityapi.entity ORDER BY name");
	stored->definitions = ea_names_map_create(256);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *name = column_text(i, 1);
		char	   *definition = column_text(i, 2);

		CHECK_FOR_INTERRUPTS();
		ea_names_map_put(stored->definitions, name, definition);
		stored->names = lappend(stored->names, name);
		stored->trees = lappend(stored->trees, ea_manifest_tree(definition));
		stored->texts = lappend(stored->texts, definition);
	}
	stored->pending = ea_ddl_load_pending(stored->trees);
}

EaJson *
ea_stored_documents(const EaStored *stored)
{
	select_all(psprintf("SELECT documents FROM entityapi.revision"
						" WHERE revision = %d", stored->revision));
	return SPI_processed == 0 ? NULL : ea_manifest_tree(column_text(0, 1));
}
