#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "ddl/key_columns.h"

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

static bool
has_name(const List *list, const char *name)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

char *
ea_ddl_are_columns(const EaDdlTable *table, const char *names, List *columns,
				   bool begin)
{
	char	   *wanted = ea_ddl_name_array(table, table->tenant_scoped,
										   columns);

	if (table->lead != NULL && !has_name(columns, table->lead))
		names = psprintf("array_remove(%s, %s)", names,
						 quote_literal_cstr(table->lead));
	if (!begin)
		return psprintf("%s = %s", names, wanted);
	return psprintf("(%s)[1:%d] = %s", names,
					list_length(columns) + table->tenant_scoped, wanted);
}

#define REFERS(near, far) \
	psprintf(EA_NAMES("f.conkey", "f.conrelid") " = %s AND " \
			 EA_NAMES("f.confkey", "f.confrelid") " = %s", near, far)

/* Both sides, with the tenants behind */
static char *
tenants_behind(const EaDdlTable *table, List *columns,
			   const EaDdlTable *target, List *key)
{
	char	   *near = unconstify(char *, table->tenant_column);
	char	   *far = unconstify(char *, target->tenant_column);

	return REFERS(ea_ddl_name_array(table, false,
									lappend(list_copy(columns), near)),
				  ea_ddl_name_array(target, false,
									lappend(list_copy(key), far)));
}

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
	return psprintf("(%s OR %s OR %s)", alone,
					REFERS(ea_ddl_name_array(table, true, columns),
						   ea_ddl_name_array(target, true, key)),
					tenants_behind(table, columns, target, key));
}
