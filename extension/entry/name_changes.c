/*
 * What entities and fields were called, kept for the audit log's sake.
 *
 * ddl/match.c says what continues under which name.  What goes takes its past
 * along: something else may have its name later, and must not come to its
 * values.  While the log is off for entities nothing is kept, so that what it
 * does not know is never taken for what did not happen.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "engine/exec.h"
#include "entry/name_changes.h"

/* Lists of char *, of equal length. */
typedef struct Continued
{
	List	   *entities;		/* as they were called until now, */
	List	   *fields;			/* "" for an entity itself, */
	List	   *new_entities;	/* and as they will be */
	List	   *new_fields;
} Continued;

typedef struct Current
{
	List	   *entities;
	List	   *fields;
	List	   *names;
} Current;

static char *
text_of(const EaJson *tree, const char *key)
{
	const char *text = ea_jsonread_string(tree, key);

	if (text == NULL)
		elog(ERROR, "a definition lacks \"%s\"", key);
	return unconstify(char *, text);
}

static EaJson *
fields_of(const EaJson *tree)
{
	return ea_jsonread_get(tree, "fields")->first;
}

static EaJson *
find_named(EaJson *first, const char *name)
{
	while (first != NULL && strcmp(text_of(first, "name"), name) != 0)
		first = first->next;
	return first;
}

static EaJson *
find_tree(List *trees, const char *name)
{
	ListCell   *lc;

	foreach(lc, trees)
	{
		if (strcmp(text_of(lfirst(lc), "name"), name) == 0)
			return lfirst(lc);
	}
	return NULL;
}

/* In whichever way its values are kept: the column, references, a list. */
static const char *
form_of(const EaJson *field)
{
	const char *kind = text_of(field, "kind");

	return strcmp(kind, "oneOf") == 0 ? "toOne" : kind;
}

/* A column that is dropped for one of another type takes its values along. */
static bool
continues(const EaDdlAlias *alias, const EaJson *was, const EaJson *now)
{
	if (now == NULL || strcmp(form_of(was), form_of(now)) != 0)
		return false;
	return strcmp(form_of(was), "attribute") != 0 ||
		ea_names_map_get(alias->columns, text_of(was, "column")) != NULL;
}

static void
add_continued(Continued *to, const char *entity, const char *field,
			  const char *new_entity, const char *new_field)
{
	to->entities = lappend(to->entities, unconstify(char *, entity));
	to->fields = lappend(to->fields, unconstify(char *, field));
	to->new_entities = lappend(to->new_entities,
							   unconstify(char *, new_entity));
	to->new_fields = lappend(to->new_fields, unconstify(char *, new_field));
}

static void
find_continued(const EaApplyPlan *plan, Continued *continued)
{
	ListCell   *lc;

	foreach(lc, plan->stored.trees)
	{
		const EaJson *was = lfirst(lc);
		const char *name = text_of(was, "name");
		const EaDdlAlias *alias = ea_names_map_get(plan->change.aliases,
												   name);
		EaJson	   *now;

		CHECK_FOR_INTERRUPTS();
		if (alias->entity == NULL || alias->replaced)
			continue;
		add_continued(continued, name, "", alias->entity, "");
		now = find_tree(plan->wanted.trees, alias->entity);
		for (const EaJson *field = fields_of(was); field;
			 field = field->next)
		{
			const char *from = text_of(field, "name");
			const char *to = ea_names_map_get(alias->fields, from);

			if (to != NULL &&
				continues(alias, field, find_named(fields_of(now), to)))
				add_continued(continued, name, from, alias->entity, to);
		}
	}
}

static void
add_current(Current *to, char *entity, char *field, char *name)
{
	to->entities = lappend(to->entities, entity);
	to->fields = lappend(to->fields, field);
	to->names = lappend(to->names, name);
}

static void
find_current(const EaApplyPlan *plan, Current *current)
{
	static char itself[] = "";
	ListCell   *lc;

	foreach(lc, plan->wanted.trees)
	{
		const EaJson *tree = lfirst(lc);
		char	   *entity = text_of(tree, "name");

		CHECK_FOR_INTERRUPTS();
		add_current(current, entity, itself, text_of(tree, "type"));
		for (const EaJson *field = fields_of(tree); field;
			 field = field->next)
			add_current(current, entity, text_of(field, "name"),
						text_of(field, "name"));
	}
}

static void
rename_continued(const Continued *continued)
{
	Datum		entities = ea_exec_text_list(continued->entities);
	Datum		fields = ea_exec_text_list(continued->fields);
	Datum		new_entities = ea_exec_text_list(continued->new_entities);
	Datum		new_fields = ea_exec_text_list(continued->new_fields);

	ea_exec_write("DELETE FROM entityapi.past_name n WHERE NOT EXISTS"
				  " (SELECT FROM unnest($1, $2) m (entity, field)"
				  " WHERE m.entity = n.entity AND m.field = n.field)",
				  ea_params(EA_TEXTS(entities), EA_TEXTS(fields)));
	ea_exec_write("UPDATE entityapi.past_name n"
				  " SET entity = m.new_entity, field = m.new_field"
				  " FROM unnest($1, $2, $3, $4)"
				  " m (entity, field, new_entity, new_field)"
				  " WHERE m.entity = n.entity AND m.field = n.field"
				  " AND (m.new_entity <> n.entity OR m.new_field <> n.field)",
				  ea_params(EA_TEXTS(entities), EA_TEXTS(fields),
							EA_TEXTS(new_entities), EA_TEXTS(new_fields)));
}

/* Names that are good no more end, and those that are new begin. */
static void
store_current(const Current *current, int revision)
{
	Datum		entities = ea_exec_text_list(current->entities);
	Datum		fields = ea_exec_text_list(current->fields);
	Datum		names = ea_exec_text_list(current->names);

	ea_exec_write("UPDATE entityapi.past_name n SET last = $4 - 1"
				  " WHERE n.last IS NULL AND NOT EXISTS"
				  " (SELECT FROM unnest($1, $2, $3) c (entity, field, name)"
				  " WHERE c.entity = n.entity AND c.field = n.field"
				  " AND c.name = n.name)",
				  ea_params(EA_TEXTS(entities), EA_TEXTS(fields),
							EA_TEXTS(names), EA_INT4(revision)));
	ea_exec_write("INSERT INTO entityapi.past_name"
				  " (entity, field, name, first)"
				  " SELECT c.entity, c.field, c.name, $4"
				  " FROM unnest($1, $2, $3) c (entity, field, name)"
				  " WHERE NOT EXISTS (SELECT FROM entityapi.past_name n"
				  " WHERE n.entity = c.entity AND n.field = c.field"
				  " AND n.last IS NULL)",
				  ea_params(EA_TEXTS(entities), EA_TEXTS(fields),
							EA_TEXTS(names), EA_INT4(revision)));
}

void
ea_name_changes_store(const EaApplyPlan *plan, int revision)
{
	Continued	continued = {NIL};
	Current		current = {NIL};

	if (!plan->m->service.audit_entities)
	{
		ea_exec_write("DELETE FROM entityapi.past_name", EA_NO_PARAMS);
		return;
	}
	find_continued(plan, &continued);
	find_current(plan, &current);
	rename_continued(&continued);
	store_current(&current, revision);
}
