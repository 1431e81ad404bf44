#include "postgres.h"

#include "manifest/faults.h"
#include "manifest/several_columns.h"
#include "request/errors.h"

static bool
is_repeated(List *columns)
{
	ListCell   *a;
	ListCell   *b;

	foreach(a, columns)
	{
		foreach(b, columns)
		{
			if (a != b && strcmp(lfirst(a), lfirst(b)) == 0)
				return true;
		}
	}
	return false;
}

/* model/id_columns.c has a byte of its own between names. */
static bool
has_odd_name(List *columns)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		for (const char *at = lfirst(lc); *at != '\0'; at++)
		{
			if ((unsigned char) *at < ' ')
				return true;
		}
	}
	return false;
}

const char *
ea_manifest_columns_fault(List *columns)
{
	if (columns == NIL || list_length(columns) > EA_ID_MOST_PARTS)
		return psprintf("has 1 to %d columns", EA_ID_MOST_PARTS);
	if (is_repeated(columns))
		return "names a column twice";
	if (list_length(columns) > 1 && has_odd_name(columns))
		return "has a column among others with a control character in its "
			"name";
	return NULL;
}

List *
ea_manifest_describe_parts(const EaDeclEntity *entity, List *columns)
{
	List	   *parts = NIL;
	ListCell   *lc;

	if (list_length(columns) < 2)
		return NIL;
	foreach(lc, columns)
	{
		EaDeclPart *part = palloc0(sizeof(EaDeclPart));

		part->column = lfirst(lc);
		ea_host_column(entity->schema, entity->table, part->column,
					   &part->key);
		parts = lappend(parts, part);
	}
	return parts;
}

bool
ea_manifest_is_part(const EaDeclEntity *entity, const char *column)
{
	ListCell   *lc;

	foreach(lc, entity->key_parts)
	{
		if (strcmp(((EaDeclPart *) lfirst(lc))->column, column) == 0)
			return true;
	}
	return false;
}

void
ea_manifest_note_part(EaDeclField *field, const char *column)
{
	if (!ea_manifest_is_part(field->entity, column))
		return;
	field->key_part = true;
	field->write_once = !field->read_only;
}

const EaJson *
ea_manifest_column_list(const EaDeclEntity *entity, const char *key)
{
	const EaJson *json = entity->existing_columns == NULL ? NULL :
		ea_jsonread_get(entity->existing_columns, key);

	return json != NULL && json->kind == EA_JSON_ARRAY ? json : NULL;
}

/* NIL where one of them is no name, which has been noted. */
static List *
names_of(const EaJson *list)
{
	List	   *names = NIL;

	for (EaJson *item = list->first; item != NULL; item = item->next)
	{
		if (item->kind != EA_JSON_STRING)
			return NIL;
		names = lappend(names, item->text);
	}
	return names;
}

static void
member_fault(EaManifest *m, EaDeclField *field, const char *message,
			 const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label, field->pointer,
					  message, hint);
	field->sound = false;
}

/* All columns are of the key, or of it there are as many as may be null. */
static void
note_parts(EaDeclField *field, List *columns)
{
	bool		all = true;
	ListCell   *lc;

	foreach(lc, columns)
	{
		ea_manifest_note_part(field, lfirst(lc));
		all &= ea_manifest_is_part(field->entity, lfirst(lc));
	}
	if (all && field->key_part)
		field->required = true;
}

/* Columns of a made table, which are like the parts of the key. */
static void
name_parts(EaDeclField *field, EaDeclMember *member)
{
	const char *stem = ea_names_snake(field->name);
	ListCell   *lc;

	if (field->kind == EA_ONE_OF)
		stem = psprintf("%s_%s", stem, ea_names_snake(member->entity->name));
	foreach(lc, member->entity->key_parts)
	{
		const EaDeclPart *of_key = lfirst(lc);
		EaDeclPart *part = palloc0(sizeof(EaDeclPart));

		part->column = ea_names_identifier(psprintf("%s_%s", stem,
													of_key->column));
		part->key = of_key->key;
		member->parts = lappend(member->parts, part);
	}
	member->column = ((EaDeclPart *) linitial(member->parts))->column;
}

void
ea_manifest_read_member(EaManifest *m, EaDeclField *field,
						EaDeclMember *member, const char *name)
{
	EaDeclEntity *entity = field->entity;
	const EaJson *list = ea_manifest_column_list(entity, name);
	List	   *columns = list == NULL ? lappend(NIL, member->column) :
		names_of(list);
	int			wanted = Max(list_length(member->entity->key_parts), 1);
	const char *why;

	if (columns == NIL && list != NULL && list->count > 0)
		return;
	if (wanted > 1 && entity->existing_table == NULL)
	{
		name_parts(field, member);
		return;
	}
	why = ea_manifest_columns_fault(columns);
	if (why != NULL || list_length(columns) != wanted)
	{
		member_fault(m, field, why != NULL ? why :
					 psprintf("refers to %s, whose key has %d column%s",
							  member->entity->name, wanted,
							  wanted == 1 ? "" : "s"),
					 psprintf("name as many, in the key's order: columns: "
							  "{%s: [...]}", name));
		return;
	}
	member->column = linitial(columns);
	member->parts = ea_manifest_describe_parts(entity, columns);
	note_parts(field, columns);
}
