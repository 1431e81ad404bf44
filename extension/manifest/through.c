/*
 * What the documents say of it; whether the table is as it has to be is for
 * ddl/through_check.c.
 */
#include "postgres.h"

#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "manifest/through.h"
#include "request/errors.h"

static void
fault(EaManifest *m, EaDeclField *field, const char *pointer,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label, pointer, message,
					  hint);
	field->sound = false;
}

static bool
is_name(const EaJson *json)
{
	return json != NULL && json->kind == EA_JSON_STRING &&
		json->text[0] != '\0' && strlen(json->text) < NAMEDATALEN;
}

/* The column of the own side, then that of the other. */
static void
read_columns(EaManifest *m, EaDeclField *field)
{
	const EaJson *columns = field->entity->existing_columns;
	const EaJson *json = columns == NULL ? NULL :
		ea_jsonread_get(columns, field->name);
	const char *pointer = ea_errors_pointer("/spec/columns", field->name);

	if (json == NULL)
		return;
	if (json->kind != EA_JSON_ARRAY || json->count != 2 ||
		!is_name(json->first) || !is_name(json->first->next))
	{
		fault(m, field, pointer,
			  psprintf("must be the names of two columns of the join table, "
					   "of 1 to %d bytes", NAMEDATALEN - 1),
			  psprintf("that which refers to %s, then the other",
					   field->entity->name));
		return;
	}
	field->join_near = pstrdup(json->first->text);
	field->join_far = pstrdup(json->first->next->text);
	if (strcmp(field->join_near, field->join_far) == 0)
		fault(m, field, pointer, "must be two columns", NULL);
}

/* Both ends have tables whose keys those of the join table refer to. */
static bool
check_ends(EaManifest *m, EaDeclField *field, const EaDeclEntity *target)
{
	const char *pointer = ea_errors_pointer(field->pointer, "through");
	const EaDeclEntity *ends[] = {field->entity, target};

	for (int i = 0; i < lengthof(ends); i++)
	{
		if (!ends[i]->of_application)
		{
			fault(m, field, pointer,
				  psprintf("the table of %s is not an application's, as that "
						   "of the join table is", ends[i]->name),
				  "leave it out, and one is made");
			return false;
		}
		if (ends[i]->key_parts != NIL)
		{
			fault(m, field, pointer,
				  psprintf("leads to %s, whose key has several columns",
						   ends[i]->name),
				  "declare the join table as an entity");
			return false;
		}
		if (ends[i]->view)
		{
			fault(m, field, pointer,
				  psprintf("leads to %s, a view, to which there is no "
						   "foreign key", ends[i]->name),
				  "name the table that the view is of");
			return false;
		}
	}
	return true;
}

void
ea_manifest_settle_through(EaManifest *m, EaDeclField *field,
						   EaDeclEntity *target)
{
	if (field->through == NULL || !check_ends(m, field, target))
		return;
	if (!ea_manifest_table_name(m, field->entity->document->label,
								ea_errors_pointer(field->pointer, "through"),
								field->through, &field->join_schema,
								&field->join_table))
	{
		field->sound = false;
		return;
	}
	read_columns(m, field);
	ea_host_column(field->join_schema, field->join_table, field->join_near,
				   &field->near_key);
	ea_host_column(field->join_schema, field->join_table, field->join_far,
				   &field->far_key);
	field->join_repeats = !ea_host_is_unique(field->join_schema,
											 field->join_table,
											 field->join_near,
											 field->join_far);
}
