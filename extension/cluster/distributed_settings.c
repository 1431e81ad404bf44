/*
 * Anybody may set most of these settings.  With other values of some of them
 * answers would be others, writes would not be on all nodes, or values would
 * be logged.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

#include "base/compat.h"
#include "cluster/distributed_settings.h"
#include "engine/exec.h"
#include "trust/pin.h"

static const struct
{
	const char *name;
	const char *value;
}			settings[] =
{
	/* a statement over several shards has one connection to each node */
	{"citus.multi_shard_modify_mode", "sequential"},

	/* a read needs no transaction on other nodes */
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

	/* a write is done on all nodes */
	{"citus.enable_ddl_propagation", "on"},
	{"citus.enable_metadata_sync", "on"},
	{"citus.all_modifications_commutative", "off"},
	{"citus.allow_modifications_from_workers_to_replicated_tables", "on"},
	{"citus.enable_unsafe_triggers", "off"},
	{"citus.propagate_set_commands", "none"},

	/* shards that are here are written to by their own names */
	{"citus.enable_manual_changes_to_shards", "on"},

	/* settings that would reveal values */
	{"citus.log_remote_commands", "off"},
	{"citus.log_local_commands", "off"},
	{"citus.log_intermediate_results", "off"},
	{"citus.multi_task_query_log_level", "off"},
};

#define SHARDS_ARE_HIDDEN "citus.override_table_visibility"

/* The place of a setting, and its value to be. */
typedef struct Place
{
	bool	   *flag;			/* one of these two, or none */
	int		   *number;
	bool		pinned;			/* a hook is called at each change */
	int			wanted;
} Place;

StaticAssertDecl(lengthof(settings) <= EA_DISTRIBUTED_SETTINGS,
				 "there are more settings than EaDistributedSettings has");

/* A version of Citus may have less of them. */
static void
find_place(int i, Place *place)
{
	struct config_generic *setting = ea_compat_find_setting(settings[i].name);
	const char *value = settings[i].value;
	bool		flag = false;
	bool		read = false;

	memset(place, 0, sizeof(*place));
	if (setting == NULL)
		return;
	if (setting->vartype == PGC_BOOL)
	{
		struct config_bool *kind = (struct config_bool *) setting;

		read = parse_bool(value, &flag);
		place->wanted = flag;
		place->flag = kind->variable;
		place->pinned = kind->assign_hook != NULL;
	}
	else if (setting->vartype == PGC_INT)
	{
		struct config_int *kind = (struct config_int *) setting;

		read = parse_int(value, &place->wanted, setting->flags, NULL);
		place->number = kind->variable;
		place->pinned = kind->assign_hook != NULL;
	}
	else if (setting->vartype == PGC_ENUM)
	{
		struct config_enum *kind = (struct config_enum *) setting;

		read = config_enum_lookup_by_name(kind, value, &place->wanted);
		place->number = kind->variable;
		place->pinned = kind->assign_hook != NULL;
	}
	if (!read)
		elog(ERROR, "setting \"%s\" cannot be \"%s\"", settings[i].name,
			 value);
}

static const Place *
find_places(void)
{
	static Place places[lengthof(settings)];
	static bool known = false;

	for (int i = 0; !known && i < lengthof(settings); i++)
		find_place(i, &places[i]);
	known = true;
	return places;
}

static int
value_of(const Place *place)
{
	return place->flag != NULL ? *place->flag :
		place->number != NULL ? *place->number : place->wanted;
}

static void
put_setting(const Place *place, int value)
{
	if (place->flag != NULL)
		*place->flag = value != 0;
	else if (place->number != NULL)
		*place->number = value;
}

/*
 * Their variables are set directly, as a request switches JIT off: after
 * set_config_option() each end of a level, of which a request has some, would
 * look at all settings that there are.  A setting made meanwhile is undone
 * with its level, to the value before, which is the one put there.
 */
void
ea_distributed_settings_begin(EaDistributedSettings *before)
{
	const Place *places = find_places();

	before->nest = NewGUCNestLevel();
	for (int i = 0; i < lengthof(settings); i++)
	{
		before->values[i] = value_of(&places[i]);
		if (places[i].pinned && before->values[i] != places[i].wanted)
			ea_pin_set(settings[i].name, settings[i].value);
	}

	/* nothing fails from here on */
	for (int i = 0; i < lengthof(settings); i++)
	{
		if (!places[i].pinned && before->values[i] != places[i].wanted)
			put_setting(&places[i], places[i].wanted);
	}
}

/*
 * After an error, too, levels are undone before: the end of the transaction
 * would put what they had found there in the place of what is put back here.
 */
void
ea_distributed_settings_end(const EaDistributedSettings *before)
{
	const Place *places = find_places();

	AtEOXact_GUC(false, before->nest);
	for (int i = 0; i < lengthof(settings); i++)
	{
		if (!places[i].pinned)
			put_setting(&places[i], before->values[i]);
	}
}

void
ea_distributed_settings_show_shards(void)
{
	/* it is the planner that leaves them out */
	if (planner_hook != NULL &&
		ea_compat_find_setting(SHARDS_ARE_HIDDEN) != NULL)
		ea_pin_set(SHARDS_ARE_HIDDEN, "off");
}

/* SPI leaves its own memory current, which dies with the connection. */
static void
carry_timeout(const char *name, int ms)
{
	MemoryContext caller = CurrentMemoryContext;

	SPI_execute(psprintf("SET LOCAL %s = %d", name, ms), false, 0);
	MemoryContextSwitchTo(caller);
}

/*
 * Citus repeats SET LOCAL on each node as the transaction comes there, if it
 * is set to.  Here that changes nothing.
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
		carry_timeout("lock_timeout", LockTimeout);
	if (StatementTimeout > 0)
		carry_timeout("statement_timeout", StatementTimeout);
	ea_pin_end(&pin);
}
