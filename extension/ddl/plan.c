/*
 * Statements are collected by phase, because references need both their
 * tables, and objects in the way have to go first.
 */
#include "postgres.h"

#include "base/format.h"
#include "ddl/plan.h"
#include "ddl/tables.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "model/host.h"
#include "request/errors.h"

/* The document that declares an entity, and the field's place in it. */
static const char *
find_label(EaManifest *m, const char *entity)
{
	EaDeclEntity *declared = ea_names_map_get(m->by_entity, entity);

	return declared ? declared->document->label :
		psprintf("Entity/%s", entity);
}

static const char *
find_pointer(EaManifest *m, const char *entity, const char *field)
{
	EaDeclEntity *declared = ea_names_map_get(m->by_entity, entity);

	if (declared == NULL)
		return "";
	if (field == NULL)
		return "/spec";
	return ea_names_map_get(declared->by_name, field) ?
		ea_errors_pointer("/spec/fields", field) : "/spec/fields";
}

EaDdlStatement *
ea_ddl_add(EaDdlPlan *plan, EaDdlPhase phase, const EaDdlTable *table,
		   const char *field, const char *fmt,...)
{
	EaDdlStatement *statement = palloc0(sizeof(EaDdlStatement));
	va_list		args;

	va_start(args, fmt);
	statement->sql = ea_format(fmt, args);
	va_end(args);
	statement->label = table ? find_label(plan->m, table->entity) : "";
	statement->pointer = table ?
		find_pointer(plan->m, table->entity, field) : "";
	statement->table = table;
	statement->deferred = phase == EA_DDL_LATER;
	plan->phases[phase] = lappend(plan->phases[phase], statement);
	return statement;
}

void
ea_ddl_fault(EaDdlPlan *plan, const EaDdlTable *table, const char *field,
			 const char *message, const char *hint)
{
	ea_manifest_fault(plan->m, find_label(plan->m, table->entity),
					  find_pointer(plan->m, table->entity, field),
					  message, hint);
}

void
ea_ddl_warn(EaDdlPlan *plan, const EaDdlTable *table, const char *field,
			const char *message, const char *hint)
{
	ea_host_warn(psprintf("%s: %s: %s", find_label(plan->m, table->entity),
						  find_pointer(plan->m, table->entity, field),
						  message), hint);
}

void
ea_ddl_lacks(EaDdlPlan *plan, const EaDdlTable *table, const char *message,
			 const char *hint)
{
	ea_manifest_fault(plan->m, find_label(plan->m, table->entity),
					  "/spec/table", message, hint);
}

bool
ea_ddl_is_made(const EaDdlPlan *plan, const EaDdlTable *table)
{
	ListCell   *lc;

	foreach(lc, plan->stored->tables)
	{
		EaDdlTable *stored = lfirst(lc);

		if (!stored->existing &&
			strcmp(stored->qualified, table->qualified) == 0)
			return true;
	}
	return false;
}

bool
ea_ddl_may_lose(EaDdlPlan *plan, const char *entity, const char *field)
{
	const char *name = field ? psprintf("%s.%s", entity, field) : entity;
	EaDdlTable *table = ea_names_map_get(plan->from->by_key, entity);

	if (table != NULL && table->copied)
		return true;
	return ea_names_map_get(plan->allowed, name) != NULL;
}

bool
ea_ddl_permits(const EaDdlPlan *plan, const EaDdlTable *table,
			   const char *operation)
{
	EaDeclEntity *entity = ea_names_map_get(plan->m->by_entity,
											table->entity);
	const EaJson *roles = entity->permissions;

	for (const EaJson *role = roles ? roles->first : NULL; role;
		 role = role->next)
	{
		for (const EaJson *at = role->first; at; at = at->next)
		{
			if (at->kind == EA_JSON_STRING && strcmp(at->text, operation) == 0)
				return true;
		}
	}
	return false;
}
