#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "ddl/key_columns.h"
#include "ddl/name_lists.h"

char *
ea_ddl_name_array(const EaDdlTable *table, bool scoped, List *columns)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	appendStringInfo(&buf, "ARRAY[%s", scoped ?
					 quote_literal_cstr(table->tenant_column) : "");
	foreach(lc, columns)
		appendStringInfo(&buf, "%s%s", scoped || buf.len > 6 ? ", " : "",
						 quote_literal_cstr(lfirst(lc)));
	appendStringInfoString(&buf, "]::text[]");
	return buf.data;
}

char *
ea_ddl_are_columns(const EaDdlTable *table, const char *names, List *columns,
				   bool begin)
{
	char	   *wanted = ea_ddl_name_array(table, table->tenant_scoped,
										   columns);
	ListCell   *lc;

	foreach(lc, table->lead)
	{
		if (!ea_ddl_names_have(columns, lfirst(lc)))
			names = psprintf("array_remove(%s, %s)", names,
							 quote_literal_cstr(lfirst(lc)));
	}
	if (!begin)
		return ea_ddl_same_names(names, wanted);
	return psprintf("(%s)[1:%d] = %s", names,
					list_length(columns) + table->tenant_scoped, wanted);
}

#define REFERS(near, far) \
	ea_ddl_same_pairs(EA_NAMES("f.conkey", "f.conrelid"), \
					  EA_NAMES("f.confkey", "f.confrelid"), near, far)

char *
ea_ddl_are_references(const EaDdlTable *table, List *columns,
					  const EaDdlTable *target, List *key)
{
	char	   *alone = REFERS(ea_ddl_name_array(table, target->tenant_scoped,
												 columns),
							   ea_ddl_name_array(target,
												 target->tenant_scoped, key));

	if (!table->of_application || !table->owned || !target->owned ||
		table->tenant_column == NULL || target->tenant_column == NULL)
		return alone;
	return psprintf("(%s OR %s)", alone,
					REFERS(ea_ddl_name_array(table, true, columns),
						   ea_ddl_name_array(target, true, key)));
}
