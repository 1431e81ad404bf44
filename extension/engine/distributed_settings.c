/*
 * The settings that a request of a distributed deployment needs, most of them
 * of Citus.
 *
 * Anybody may set most of them, and by some of them answers would be others,
 * writes would not be on all nodes, or values would be logged.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/proc.h"
#include "utils/guc_tables.h"

#include "base/compat.h"
#include "engine/distributed_settings.h"
#include "engine/exec.h"
#include "engine/pin.h"

static const struct
{
	const char *name;
	const char *value;
}			settings[] =
{
	/* a statement over several shards has one connection to each node */
	{"citus.multi_shard_modify_mode", "sequential"},

	/* what only reads needs no transaction on other nodes */
	{"citus.select_opens_transaction_block", "off"},
	{"citus.function_opens_transaction_block", "on"},

	/* answers */
	{"citus.limit_clause_row_fetch_count", "-1"},
	{"citus.subquery_pushdown", "off"},
	{"citus.enable_router_execution", "on"},
	{"citus.enable_local_execution", "on"},
	{"citus.allow_nested_distributed_execution", "off"},

	/* without its values Citus may not know where a statement goes */
	{"plan_cache_mode", "auto"},

	/* values go to other nodes as text, which has to say all of them */
	{"extra_float_digits", "1"},
	{"intervalstyle", "postgres"},

	/* what is done is done on all nodes */
	{"citus.enable_ddl_propagation", "on"},
	{"citus.enable_metadata_sync", "on"},
	{"citus.all_modifications_commutative", "off"},
	{"citus.allow_modifications_from_workers_to_replicated_tables", "on"},
	{"citus.enable_unsafe_triggers", "off"},
	{"citus.propagate_set_commands", "none"},

	/* shards that are here are written to by their own names */
	{"citus.enable_manual_changes_to_shards", "on"},

	/* what would tell of values */
	{"citus.log_remote_commands", "off"},
	{"citus.log_local_commands", "off"},
	{"citus.log_intermediate_results", "off"},
	{"citus.multi_task_query_log_level", "off"},
};

#define SHARDS_ARE_HIDDEN "citus.override_table_visibility"

/* Where a setting is kept, and what it has there when it is as it must be. */
typedef struct Place
{
	struct config_generic *setting;
	int			wanted;
} Place;

static int
value_of(const struct config_generic *setting)
{
	switch (setting->vartype)
	{
		case PGC_BOOL:
			return *((const struct config_bool *) setting)->variable;
		case PGC_INT:
			return *((const struct config_int *) setting)->variable;
		case PGC_ENUM:
			return *((const struct config_enum *) setting)->variable;
		default:
			elog(ERROR, "unexpected kind of setting \"%s\"", setting->name);
	}
	return 0;
}

/* A version of Citus may have less of them. */
static void
find_place(int i, Place *place)
{
	place->setting = ea_compat_find_setting(settings[i].name);
	if (place->setting == NULL)
		return;
	ea_pin_set(settings[i].name, settings[i].value);
	place->wanted = value_of(place->setting);
}

void
ea_distributed_settings_pin(void)
{
	static Place places[lengthof(settings)];
	static bool known = false;

	for (int i = 0; i < lengthof(settings); i++)
	{
		if (!known)
			find_place(i, &places[i]);
		else if (places[i].setting != NULL &&
				 value_of(places[i].setting) != places[i].wanted)
			ea_pin_set(settings[i].name, settings[i].value);
	}
	known = true;
}

void
ea_distributed_settings_show_shards(void)
{
	/* it is the planner that leaves them out */
	if (planner_hook != NULL &&
		ea_compat_find_setting(SHARDS_ARE_HIDDEN) != NULL)
		ea_pin_set(SHARDS_ARE_HIDDEN, "off");
}

/* A declaration may be about to give Citus the tables. */
void
ea_distributed_settings_text(void)
{
	if (DateStyle != USE_ISO_DATES && planner_hook != NULL)
		ea_pin_set("datestyle", "ISO");
}

/* SPI leaves its own memory current, which dies with the connection. */
static void
carry(const char *name, int ms)
{
	MemoryContext caller = CurrentMemoryContext;

	SPI_execute(psprintf("SET LOCAL %s = %d", name, ms), false, 0);
	MemoryContextSwitchTo(caller);
}

/*
 * Citus repeats SET LOCAL on each node as the transaction comes there, if it
 * is told to.  Here that changes nothing.
 */
void
ea_distributed_settings_carry(void)
{
	EaPin		pin;

	if (LockTimeout == 0 && StatementTimeout == 0)
		return;
	ea_pin_begin(&pin);
	ea_pin_set("citus.propagate_set_commands", "local");
	if (LockTimeout > 0)
		carry("lock_timeout", LockTimeout);
	if (StatementTimeout > 0)
		carry("statement_timeout", StatementTimeout);
	ea_pin_end(&pin);
}
