/*
 * A view has neither constraints nor NOT NULL, whatever its tables have, so
 * nothing may be declared that only these could keep.
 */
#include "postgres.h"

#include "manifest/existing_views.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "request/errors.h"

static void
fault(EaManifest *m, EaDeclEntity *entity, const char *pointer,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, entity->document->label, pointer, message, hint);
}

static void
check_permissions(EaManifest *m, EaDeclEntity *entity)
{
	const char *label = entity->document->label;

	for (const EaJson *json = entity->permissions ?
		 entity->permissions->first : NULL; json; json = json->next)
	{
		const char *pointer = ea_errors_pointer("/spec/permissions",
												json->key);

		for (const EaJson *name = json->kind == EA_JSON_ARRAY ?
			 json->first : NULL; name; name = name->next)
		{
			if (name->kind == EA_JSON_STRING &&
				strcmp(name->text, "read") != 0)
				ea_manifest_fault(m, label, pointer,
								  psprintf("a view is only read, so there is "
										   "no \"%s\"", name->text),
								  "leave all but read out");
		}
	}
}

/* Keys of the entity that ask for what a view does not have. */
static void
check_keys(EaManifest *m, EaDeclEntity *entity)
{
	const struct
	{
		bool		given;
		const char *pointer;
		const char *message;
	}			closed[] = {
		{entity->soft_delete, "/spec/softDelete",
		"a view is only read: nothing is deleted"},
		{entity->locking, "/spec/optimisticLocking",
		"a view is only read: nothing is changed"},
		{entity->indexes != NULL, "/spec/indexes",
		"a view has no indexes that an entity could ask for"},
		{!entity->others_write, "/spec/othersWrite",
		"rows of a view are always written by others"}
	};

	if (entity->key == NULL)
		fault(m, entity, "/spec/table", "it is a view, which has no key",
			  "name one: key: column");
	for (int i = 0; i < lengthof(closed); i++)
	{
		if (closed[i].given)
			fault(m, entity, closed[i].pointer, closed[i].message,
				  "leave it out");
	}
}

static void
field_fault(EaManifest *m, EaDeclField *field, const char *key,
			const char *message, const char *hint)
{
	fault(m, field->entity, key == NULL ? field->pointer :
		  ea_errors_pointer(field->pointer, key), message, hint);
}

/* No statement is over tables of both sides, as one that joins them is. */
static void
check_target(EaManifest *m, EaDeclField *field)
{
	ListCell   *lc;

	foreach(lc, field->members)
	{
		const EaDeclEntity *target = ((EaDeclMember *) lfirst(lc))->entity;

		if (!target->of_application)
			field_fault(m, field, NULL,
						psprintf("leads to %s, whose table is not the "
								 "application's", target->name),
						"keep the id in an attribute");
	}
}

static void
check_field(EaManifest *m, EaDeclField *field)
{
	if (field->required && field != field->entity->key_field &&
		!field->key_part)
		field_fault(m, field, "required",
					"a view cannot tell that there is a value",
					"leave it out");
	if (field->kind == EA_TO_ONE && field->unique)
		field_fault(m, field, "relation",
					"a view cannot tell that there is one row of each target",
					"use ManyToOne");
	else if (field->unique)
		field_fault(m, field, "unique", "a view has no unique index",
					"leave it out");
	if (field->index)
		field_fault(m, field, "index",
					"a view has no indexes that an entity could ask for",
					"leave it out");
	if (field->kind == EA_MANY_TO_MANY)
		field_fault(m, field, NULL, "a view has no many-to-many relationships",
					"leave it out");
	if (!ea_catalog_has_column(field))
		return;
	if (ea_jsonread_get(field->json, "onDelete") != NULL)
		field_fault(m, field, "onDelete",
					"rows of a view go with those of its tables",
					"leave it out");
	check_target(m, field);
}

/*
 * A row is held while a made table comes to refer to it, as no foreign key
 * does, and rows of views cannot be held.
 */
static void
check_no_views(EaManifest *m, EaDeclField *field)
{
	ListCell   *lc;

	foreach(lc, field->members)
	{
		const EaDeclEntity *target = ((EaDeclMember *) lfirst(lc))->entity;

		if (target->view)
			field_fault(m, field, NULL,
						psprintf("leads to %s, a view, whose rows cannot be "
								 "held while they are referred to",
								 target->name),
						"refer to a table, or keep the id in an attribute");
	}
}

void
ea_manifest_check_view(EaManifest *m, EaDeclEntity *entity)
{
	ListCell   *lc;

	foreach(lc, entity->fields)
	{
		EaDeclField *field = lfirst(lc);

		if (!field->sound || field->json == NULL)
			continue;
		if (entity->view)
			check_field(m, field);
		else if (!entity->of_application && ea_catalog_has_column(field))
			check_no_views(m, field);
	}
	if (!entity->view)
		return;
	check_keys(m, entity);
	check_permissions(m, entity);
}
