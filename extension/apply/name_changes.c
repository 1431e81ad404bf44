/*
 * ddl/match.c decides what continues under which name.  An entity or field
 * that goes takes its past along: something else may have its name later, and
 * must not get at its values.  While the audit log is off for entities nothing
 * is kept, so that nobody takes a gap in the log for a time without changes.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "apply/name_changes.h"
#include "engine/exec.h"

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

/* An id names the row that it named before. */
static bool
keeps_rows(const EaDdlAlias *alias)
{
	return !alias->replaced && !alias->other_ids;
}

/* The entity that a list is of; ids alone do not say it. */
static bool
target_continues(const EaApplyPlan *plan, const EaJson *was,
				 const EaJson *now)
{
	const char *from = text_of(ea_jsonread_get(was, "members")->first,
							   "entity");
	const char *to = text_of(ea_jsonread_get(now, "members")->first,
							 "entity");
	const EaDdlAlias *alias = ea_names_map_get(plan->change.aliases, from);

	return alias->entity != NULL && keeps_rows(alias) &&
		strcmp(alias->entity, to) == 0;
}

/* A column that is dropped for one of another type takes its values along. */
static bool
continues(const EaApplyPlan *plan, const EaDdlAlias *alias,
		  const EaJson *was, const EaJson *now)
{
	const char *form = form_of(was);

	if (now == NULL || strcmp(form, form_of(now)) != 0)
		return false;
	if (strcmp(form, "attribute") == 0)
		return ea_names_map_get(alias->columns,
								text_of(was, "column")) != NULL;
	return strcmp(form, "toOne") == 0 || target_continues(plan, was, now);
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
		if (alias->entity == NULL || !keeps_rows(alias))
			continue;
		add_continued(continued, name, "", alias->entity, "");
		now = find_tree(plan->wanted.trees, alias->entity);
		for (const EaJson *field = fields_of(was); field;
			 field = field->next)
		{
			const char *from = text_of(field, "name");
			const char *to = ea_names_map_get(alias->fields, from);

			if (to != NULL &&
				continues(plan, alias, field,
						  find_named(fields_of(now), to)))
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

/* -------- rows that go and come -------- */

/* Whatever is known of a row, as text, in lists of equal length. */
typedef struct Rows
{
	List	   *columns[5];		/* entity, field, name, first and last */
} Rows;

struct EaNameChanges
{
	Rows		gone;
	Rows		come;
};

static void
read_change(void *arg, TupleTableSlot *slot)
{
	EaNameChanges *changes = arg;
	Rows	   *rows = DatumGetBool(slot->tts_values[0]) ? &changes->come :
		&changes->gone;

	for (int i = 0; i < lengthof(rows->columns); i++)
		rows->columns[i] =
			lappend(rows->columns[i],
					TextDatumGetCString(slot->tts_values[i + 1]));
}

/*
 * Names that continue, $1 to $4, keep their rows, under the names of now; of
 * those, the ones that are good no more, as they are not among $5 to $7, end
 * with the revision before $8.  Names that are new begin with it.
 */
#define WANTED_ROWS \
	"WITH kept AS (" \
	"SELECT m.new_entity AS entity, m.new_field AS field, n.name, n.first," \
	" CASE WHEN n.last IS NULL AND NOT EXISTS" \
	" (SELECT FROM unnest($5, $6, $7) c (entity, field, name)" \
	" WHERE c.entity = m.new_entity AND c.field = m.new_field" \
	" AND c.name = n.name) THEN $8 - 1 ELSE n.last END AS last" \
	" FROM entityapi.past_name n" \
	" JOIN unnest($1, $2, $3, $4) m (entity, field, new_entity, new_field)" \
	" ON m.entity = n.entity AND m.field = n.field), " \
	"wanted AS (" \
	"SELECT k.entity, k.field, k.name, k.first, k.last FROM kept k" \
	" UNION ALL " \
	"SELECT c.entity, c.field, c.name, $8, NULL" \
	" FROM unnest($5, $6, $7) c (entity, field, name)" \
	" WHERE NOT EXISTS (SELECT FROM kept k WHERE k.entity = c.entity" \
	" AND k.field = c.field AND k.last IS NULL)), " \
	"stored AS (SELECT n.entity, n.field, n.name, n.first, n.last" \
	" FROM entityapi.past_name n) "

#define CHANGED(comes, from, without) \
	"SELECT " comes ", x.entity, x.field, x.name, x.first::text," \
	" coalesce(x.last::text, '')" \
	" FROM (SELECT * FROM " from " EXCEPT SELECT * FROM " without ") x"

static void
find_rows(const Continued *continued, const Current *current, int revision,
		  EaNameChanges *changes)
{
	Datum		new_entities = ea_exec_text_list(continued->new_entities);
	Datum		new_fields = ea_exec_text_list(continued->new_fields);

	ea_exec_each(EA_EXEC_LOOK,
				 WANTED_ROWS CHANGED("false", "stored", "wanted")
				 " UNION ALL " CHANGED("true", "wanted", "stored"),
				 ea_params(EA_TEXTS(ea_exec_text_list(continued->entities)),
						   EA_TEXTS(ea_exec_text_list(continued->fields)),
						   EA_TEXTS(new_entities), EA_TEXTS(new_fields),
						   EA_TEXTS(ea_exec_text_list(current->entities)),
						   EA_TEXTS(ea_exec_text_list(current->fields)),
						   EA_TEXTS(ea_exec_text_list(current->names)),
						   EA_INT4(revision)),
				 EA_READER(read_change, BOOLOID, TEXTOID, TEXTOID, TEXTOID,
						   TEXTOID, TEXTOID), changes);
}

EaNameChanges *
ea_name_changes_find(const EaApplyPlan *plan, int revision)
{
	EaNameChanges *changes = palloc0(sizeof(EaNameChanges));
	Continued	continued = {NIL};
	Current		current = {NIL};

	if (plan->m->service.audit_entities)
	{
		find_continued(plan, &continued);
		find_current(plan, &current);
	}
	find_rows(&continued, &current, revision, changes);
	return changes;
}

/* -------- as a statement has them -------- */

#define ROWS \
	"(SELECT r.entity, r.field, r.name, r.first::integer," \
	" nullif(r.last, '')::integer AS last" \
	" FROM unnest($1, $2, $3, $4, $5) r (entity, field, name, first, last))"

#define PARAMS(rows) \
	ea_params(EA_TEXTS(ea_exec_text_list((rows)->columns[0])), \
			  EA_TEXTS(ea_exec_text_list((rows)->columns[1])), \
			  EA_TEXTS(ea_exec_text_list((rows)->columns[2])), \
			  EA_TEXTS(ea_exec_text_list((rows)->columns[3])), \
			  EA_TEXTS(ea_exec_text_list((rows)->columns[4])))

void
ea_name_changes_seal(const EaNameChanges *changes, EaReadSeals read, void *arg)
{
	read(arg, "SELECT entityapi.seal('-past_name', to_jsonb(n))"
		 " FROM " ROWS " n", PARAMS(&changes->gone));
	read(arg, "SELECT entityapi.seal('+past_name', to_jsonb(n))"
		 " FROM " ROWS " n", PARAMS(&changes->come));
}

/* Changed rows go first, so that names may change hands. */
void
ea_name_changes_store(const EaNameChanges *changes)
{
	if (changes->gone.columns[0] != NIL)
		ea_exec_write("DELETE FROM entityapi.past_name n USING " ROWS " g"
					  " WHERE g.entity = n.entity AND g.field = n.field"
					  " AND g.first = n.first", PARAMS(&changes->gone));
	if (changes->come.columns[0] != NIL)
		ea_exec_write("INSERT INTO entityapi.past_name"
					  " (entity, field, name, first, last)"
					  " SELECT c.entity, c.field, c.name, c.first, c.last"
					  " FROM " ROWS " c", PARAMS(&changes->come));
}
