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

	/* foreign tables, too */
	[SERVED_VIEWS] = {true, NULL},

	/* and keys, of an application only */
	[SERVED_PARTITIONED] = {true, NULL},
	[SERVED_NUMBER_KEYS] = {true, NULL},
	[SERVED_TEXT_KEYS] = {true, NULL},
	[SERVED_DATE_KEYS] = {true, NULL},
	[SERVED_KEYS_OF_SEVERAL] = {true, NULL},
	[SERVED_REFERRING_KEYS] = {true, NULL},

	/* "through" */
	[SERVED_JOIN_TABLES] = {true, NULL},

	[SERVED_TIMESTAMP] = {true, NULL},
	[SERVED_ENUM] = {true, NULL},
	[SERVED_SMALLINT] = {true, NULL},
	[SERVED_FLOAT] = {true, NULL},
	[SERVED_OPEN_NUMERIC] = {true, NULL},
	[SERVED_CHAR] = {true, NULL},
	[SERVED_CITEXT] = {true, NULL},
	[SERVED_ARRAY] = {true, NULL},
	[SERVED_BYTEA] = {true, NULL},
	[SERVED_JSON_TEXT] = {true, NULL},
	[SERVED_NATIVE] = {true, NULL},

	/* of fewer digits than six */
	[SERVED_ROUNDED_TIMES] = {true, NULL},

	/* "unique" without "maxLength" */
	[SERVED_UNIQUE_TEXT] = {true, NULL}
};

const char *
introspect_lacks(enum introspect_construct construct)
{
	return constructs[construct].served ? NULL :
		constructs[construct].why_not;
}
