/*
 * How the constraints and indexes of a table are called.
 */
#include "postgres.h"

#include "base/names.h"
#include "manifest/constraint_names.h"

char *
ea_ddl_name(const char *table, const char *columns, const char *suffix)
{
	return ea_names_identifier(columns ?
							   psprintf("%s__%s_%s", table, columns, suffix) :
							   psprintf("%s__%s", table, suffix));
}
