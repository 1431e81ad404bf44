/*
 * Names in statements are resolved again whenever a cached plan has become
 * invalid, or the search path is another one than when it was made.  So a path
 * that a function left behind would give the operators of our statements to
 * the owner of a schema on it.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

#include "trust/pin.h"

#define SEARCH_PATH "pg_catalog, pg_temp"

bool
ea_pin_holds(void)
{
	return strcmp(namespace_search_path, SEARCH_PATH) == 0;
}

void
ea_pin_begin(EaPin *pin)
{
	GetUserIdAndSecContext(&pin->user, &pin->security);
	pin->nest = NewGUCNestLevel();
	if (!ea_pin_holds())
		ea_pin_set("search_path", SEARCH_PATH);
}

void
ea_pin_end(const EaPin *pin)
{
	AtEOXact_GUC(false, pin->nest);
	SetUserIdAndSecContext(pin->user, pin->security);
}

void
ea_pin_set(const char *name, const char *value)
{
	set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
					  GUC_ACTION_SAVE, true, 0, false);
}

void
ea_pin_times(void)
{
	if (DateStyle != USE_ISO_DATES && planner_hook != NULL)
		ea_pin_set("datestyle", "ISO");
}
