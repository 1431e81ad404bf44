#include "postgres.h"

#include "base/names.h"
#include "ddl/acting_check.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"
#include "model/acting_keys.h"

/* The table as it is so far, whatever it is to be called. */
static Oid
table_so_far(const EaEntity *entity, void *arg)
{
	EaDdlPlan  *plan = arg;
	EaDdlTable *to = ea_names_map_get(plan->to->by_key, entity->name);

	if (to == NULL || (!to->existing && to->other == NULL))
		return InvalidOid;
	return ea_ddl_relation(to->existing ? to : to->other->was);
}

/*
 * One that an apply has made is compared with what was made (drift.c), and a
 * repair makes it anew.
 */
static bool
is_made_key(EaDdlPlan *plan, const EaActingKey *key)
{
	ListCell   *lc;

	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		if (!to->existing && to->other != NULL &&
			ea_names_map_get(to->by_object, key->name) != NULL &&
			ea_ddl_relation(to->other->was) == key->relid)
			return true;
	}
	foreach(lc, plan->stored->tables)
	{
		EaDdlTable *stored = lfirst(lc);

		if (!stored->existing &&
			ea_names_map_get(stored->by_object, key->name) != NULL &&
			ea_ddl_relation(stored) == key->relid)
			return true;
	}
	return false;
}

void
ea_ddl_check_acting(EaDdlPlan *plan, EaCatalog *wanted)
{
	ListCell   *lc;

	foreach(lc, ea_acting_keys(wanted, table_so_far, plan))
	{
		EaActingKey *key = lfirst(lc);
		EaDdlTable *to = ea_names_map_get(plan->to->by_key,
										  key->entity->name);

		if (is_made_key(plan, key))
			continue;
		if (to->existing)
			ea_ddl_lacks(plan, to, key->message, key->hint);
		else
			ea_ddl_fault(plan, to, NULL, key->message, key->hint);
	}
}
