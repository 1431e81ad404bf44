/*
 * Stands for no function of PostgreSQL: it reads the trigger descriptor that
 * ExecInsert(), ExecUpdate() and ExecDelete() go by.
 */
#include "postgres.h"

#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/rel.h"

#include "direct/triggers.h"

bool
ea_triggers_of_others(Relation table)
{
	const TriggerDesc *triggers = table->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (!trigger->tgisinternal &&
			trigger->tgenabled != TRIGGER_DISABLED &&
			(TRIGGER_FOR_INSERT(trigger->tgtype) ||
			 TRIGGER_FOR_UPDATE(trigger->tgtype) ||
			 TRIGGER_FOR_DELETE(trigger->tgtype)))
			return true;
	}
	return false;
}
