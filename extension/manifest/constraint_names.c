#include "postgres.h"

#include "miscadmin.h"

#include "manifest/constraint_names.h"
#include "manifest/faults.h"
#include "request/errors.h"

static const char *const suffixes[] = {
	EA_DDL_KEY, EA_DDL_INDEX, EA_DDL_LOOKUP, EA_DDL_REFERENCE, EA_DDL_ENUM,
	EA_DDL_MINIMUM, EA_DDL_MAXIMUM, EA_DDL_ONE_OF, EA_DDL_FILLED
};

static char *
whole_name(const char *table, const char *columns, const char *suffix)
{
	return columns ? psprintf("%s__%s_%s", table, columns, suffix) :
		psprintf("%s__%s", table, suffix);
}

char *
ea_ddl_name(const char *table, const char *columns, const char *suffix)
{
	return ea_names_identifier(whole_name(table, columns, suffix));
}

/* -------- names that are taken -------- */

/* Whichever of them there will be, none is another's; one fault is enough. */
static void
claim_name(EaManifest *m, EaDeclEntity *entity, EaNameMap *taken,
		   const char *pointer, const char *columns)
{
	for (int i = 0; i < lengthof(suffixes); i++)
	{
		char	   *whole = whole_name(entity->table, columns, suffixes[i]);
		char	   *name = ea_names_identifier(whole);

		CHECK_FOR_INTERRUPTS();
		if (strcmp(name, whole) == 0 || ea_names_map_put(taken, name, whole) ||
			strcmp(ea_names_map_get(taken, name), whole) == 0)
			continue;
		ea_manifest_fault(m, entity->document->label, pointer,
						  psprintf("a constraint or index would be called "
								   "\"%s\", as another is", name),
						  "rename a field of it");
		return;
	}
}

static void
claim_member(EaManifest *m, EaDeclField *field, EaNameMap *taken,
			 const EaDeclMember *member)
{
	const char *id = field->entity->columns[EA_DECL_ID];

	claim_name(m, field->entity, taken, field->pointer, member->column);
	claim_name(m, field->entity, taken, field->pointer,
			   psprintf("%s__%s", member->column, id ? id : "id"));
}

static void
claim_field(EaManifest *m, EaDeclField *field, EaNameMap *taken)
{
	ListCell   *lc;

	if (field->column != NULL)
		claim_name(m, field->entity, taken, field->pointer, field->column);
	if (field->kind != EA_TO_ONE && field->kind != EA_ONE_OF)
		return;
	if (field->kind == EA_ONE_OF)
		claim_name(m, field->entity, taken, field->pointer,
				   ea_names_snake(field->name));
	foreach(lc, field->members)
		claim_member(m, field, taken, lfirst(lc));
}

/* The columns of an index, or NULL where one of its fields has a fault. */
static char *
index_columns(EaDeclEntity *entity, const EaJson *index)
{
	char	   *columns = NULL;

	if (index->kind != EA_JSON_ARRAY)
		return NULL;
	for (EaJson *name = index->first; name; name = name->next)
	{
		EaDeclField *field = name->kind == EA_JSON_STRING ?
			ea_names_map_get(entity->by_name, name->text) : NULL;
		const char *column = field == NULL ? NULL : field->column;

		CHECK_FOR_INTERRUPTS();
		if (column == NULL && field != NULL && field->kind == EA_TO_ONE &&
			field->members != NIL)
			column = ((EaDeclMember *) linitial(field->members))->column;
		if (column == NULL)
			return NULL;
		columns = columns ? psprintf("%s__%s", columns, column) :
			pstrdup(column);
	}
	return columns;
}

void
ea_manifest_check_names(EaManifest *m, EaDeclEntity *entity, EaNameMap *taken)
{
	int			i = 0;
	ListCell   *lc;

	foreach(lc, entity->fields)
	{
		EaDeclField *field = lfirst(lc);

		if (field->sound && !field->system)
			claim_field(m, field, taken);
	}
	if (entity->indexes == NULL)
		return;
	for (EaJson *index = entity->indexes->first; index; index = index->next)
	{
		char	   *columns = index_columns(entity, index);
		const char *pointer = ea_errors_index("/spec/indexes", i++);

		if (columns != NULL)
			claim_name(m, entity, taken, pointer, columns);
	}
}
