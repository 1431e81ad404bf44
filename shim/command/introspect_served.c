#include "command/introspect_served.h"

static const struct
{
	bool		served;
	const char *why_not;
}			constructs[SERVED_COUNT] =
{
	/* "existing" of the service; and no entity has to say tenantScoped */
	[SERVED_ROLE] = {true, NULL},

	/* User, createdAt, updatedAt, deletedAt, version */
	[SERVED_ORDINARY_NAMES] = {false, "the name is the service's"},

	/* "tenant: {column: ...}", and keys without the tenant */
	[SERVED_TENANT_COLUMN] =
	{false, "keys without the tenant are not served yet"},

	/* foreign tables, too */
	[SERVED_VIEWS] = {false, "not served yet"},
	[SERVED_PARTITIONED] = {false, "not served yet"},
	[SERVED_NUMBER_KEYS] = {true, NULL},
	[SERVED_TEXT_KEYS] = {true, NULL},
	[SERVED_DATE_KEYS] = {true, NULL},
	[SERVED_KEYS_OF_SEVERAL] =
	{false, "keys of several columns are not served yet"},
	[SERVED_REFERRING_KEYS] = {true, NULL},

	/* "through" */
	[SERVED_JOIN_TABLES] = {false, "join tables are not served yet"},

	[SERVED_TIMESTAMP] =
	{false, "timestamps without time zone are not served yet"},
	[SERVED_ENUM] = {false, "enums of the database are not served yet"},
	[SERVED_SMALLINT] = {false, "smallint is not served yet"},
	[SERVED_FLOAT] = {false, "floating-point numbers are not served yet"},
	[SERVED_OPEN_NUMERIC] =
	{false, "numeric without precision is not served yet"},
	[SERVED_CHAR] = {false, "char(n) is not served yet"},
	[SERVED_CITEXT] = {false, "citext is not served yet"},
	[SERVED_ARRAY] = {false, "arrays are not served yet"},
	[SERVED_BYTEA] = {false, "bytea is not served yet"},
	[SERVED_JSON_TEXT] = {false, "json is not served yet, only jsonb is"},
	[SERVED_NATIVE] = {false, "other types are not served yet"},

	/* of fewer digits than six */
	[SERVED_ROUNDED_TIMES] =
	{false, "times that are rounded are not served yet"},

	/* "unique" without "maxLength" */
	[SERVED_UNIQUE_TEXT] = {false, "unique text without a limit"}
};

const char *
introspect_lacks(enum introspect_construct construct)
{
	return constructs[construct].served ? NULL :
		constructs[construct].why_not;
}
