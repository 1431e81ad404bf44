/*
 * An entity or a field continues the one that its renamedFrom names, if that
 * is stored and the renaming was not carried out before; otherwise the one of
 * its own name.  The stored renamedFrom shows that it was carried out, so the
 * key may stay, and names can be exchanged.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "ddl/convert.h"
#include "ddl/match.h"
#include "ddl/plan.h"
#include "ddl/tables.h"
#include "model/host.h"

/* Rounds over all fields */
enum
{
	COLUMNS,
	KEPT_JOINS,
	TURNED_JOINS
};

typedef struct Matcher
{
	EaDdlPlan  *plan;
	EaNameMap  *aliases;		/* EaDdlAlias by stored entity */
	EaNameMap  *pairs;			/* stored trees by the names of wanted ones */
	EaNameMap  *claimed;		/* keys of join tables that continue one */
} Matcher;

static const char *
name_of(const EaJson *json)
{
	const char *name = ea_jsonread_string(json, "name");

	if (name == NULL)
		elog(ERROR, "a stored definition lacks \"%s\"", "name");
	return name;
}

static EaNameMap *
index_names(List *trees)
{
	EaNameMap  *map = ea_names_map_create(Max(list_length(trees), 8));
	ListCell   *lc;

	foreach(lc, trees)
		ea_names_map_put(map, name_of(lfirst(lc)), lfirst(lc));
	return map;
}

/* Names that wanted trees have to what they continue; others are new. */
static EaNameMap *
find_pairs(List *stored, List *wanted)
{
	EaNameMap  *by_name = index_names(stored);
	EaNameMap  *taken = ea_names_map_create(Max(list_length(wanted), 8));
	EaNameMap  *pairs = ea_names_map_create(Max(list_length(wanted), 8));
	ListCell   *lc;

	foreach(lc, wanted)
	{
		EaJson	   *tree = lfirst(lc);
		const char *from = ea_jsonread_string(tree, "renamedFrom");
		EaJson	   *was = from ? ea_names_map_get(by_name, from) : NULL;
		EaJson	   *same = ea_names_map_get(by_name, name_of(tree));
		const char *before = same ? ea_jsonread_string(same, "renamedFrom") :
			NULL;

		if (was != NULL && (before == NULL || strcmp(before, from) != 0) &&
			ea_names_map_put(taken, from, tree))
			ea_names_map_put(pairs, name_of(tree), was);
	}
	foreach(lc, wanted)
	{
		EaJson	   *tree = lfirst(lc);
		EaJson	   *same = ea_names_map_get(by_name, name_of(tree));

		if (same != NULL && ea_names_map_get(pairs, name_of(tree)) == NULL &&
			ea_names_map_put(taken, name_of(tree), tree))
			ea_names_map_put(pairs, name_of(tree), same);
	}
	return pairs;
}

static List *
fields_of(const EaJson *tree)
{
	List	   *fields = NIL;

	for (EaJson *field = ea_jsonread_get(tree, "fields")->first;
		 field != NULL; field = field->next)
		fields = lappend(fields, field);
	return fields;
}

static EaDdlAlias *
make_alias(Matcher *at, const char *stored)
{
	EaDdlAlias *alias = palloc0(sizeof(EaDdlAlias));

	alias->fields = ea_names_map_create(16);
	alias->columns = ea_names_map_create(16);
	alias->joins = ea_names_map_create(4);
	ea_names_map_put(at->aliases, stored, alias);
	return alias;
}

static bool
is_kind(const EaJson *field, const char *kind)
{
	return strcmp(ea_jsonread_string(field, "kind"), kind) == 0;
}

static bool
is_reference(const EaJson *field)
{
	return is_kind(field, "toOne") || is_kind(field, "oneOf");
}

/* The other end of a relationship of one target. */
static const char *
target_of(const EaJson *field)
{
	return ea_jsonread_string(ea_jsonread_get(field, "members")->first,
							  "entity");
}

/* The new name of a stored entity, NULL when it goes. */
static const char *
new_entity(Matcher *at, const char *entity)
{
	return ((EaDdlAlias *) ea_names_map_get(at->aliases, entity))->entity;
}

/* No foreign key holds ids of an application's rows to them. */
static bool
means_same_rows(Matcher *at, const char *was, const char *target)
{
	EaDdlAlias *alias = ea_names_map_get(at->aliases, was);
	EaDdlTable *from = ea_names_map_get(at->plan->stored->by_key, was);
	EaDdlTable *to = ea_names_map_get(at->plan->to->by_key, target);

	return (!from->of_application && !to->of_application) ||
		(!alias->replaced && !alias->other_ids);
}

/* A column of a reference continues as another one, if its type can. */
static void
match_column(EaDdlAlias *alias, EaDdlTable *from, EaDdlTable *to,
			 const EaJson *was, const EaJson *now)
{
	const char *name = ea_jsonread_string(was, "column");
	const char *column = ea_jsonread_string(now, "column");

	if (ea_ddl_compare_ids(ea_names_map_get(from->by_column, name),
						   ea_names_map_get(to->by_column, column)) !=
		EA_DDL_OTHER)
		ea_names_map_put(alias->columns, name, unconstify(char *, column));
}

/* The columns of members, one or several, as far as these are as many. */
static void
match_columns(EaDdlAlias *alias, EaDdlTable *from, EaDdlTable *to,
			  const EaJson *was, const EaJson *now)
{
	const EaJson *before = ea_jsonread_get(was, "parts");
	const EaJson *after = ea_jsonread_get(now, "parts");

	if (before == NULL && after == NULL)
		match_column(alias, from, to, was, now);
	if (before == NULL || after == NULL || before->count != after->count)
		return;
	for (before = before->first, after = after->first; before != NULL;
		 before = before->next, after = after->next)
		match_column(alias, from, to, before, after);
}

/*
 * The columns of a reference go on pointing at the same rows, unless there is
 * no way from one type of ids to the other.
 */
static void
match_members(Matcher *at, EaDdlAlias *alias, EaDdlTable *from,
			  EaDdlTable *to, const EaJson *was, const EaJson *now)
{
	for (EaJson *member = ea_jsonread_get(was, "members")->first;
		 member != NULL; member = member->next)
	{
		const char *before = ea_jsonread_string(member, "entity");
		const char *target = new_entity(at, before);

		for (EaJson *other = ea_jsonread_get(now, "members")->first;
			 target != NULL && other != NULL; other = other->next)
		{
			if (strcmp(ea_jsonread_string(other, "entity"), target) == 0 &&
				means_same_rows(at, before, target))
				match_columns(alias, from, to, member, other);
		}
	}
}

/* The column of an attribute, unless there is no way from type to type. */
static void
match_attribute(EaDdlAlias *alias, EaDdlTable *from, EaDdlTable *to,
				const EaJson *was, const EaJson *now)
{
	const char *old_name = ea_jsonread_string(was, "column");
	const char *new_name = ea_jsonread_string(now, "column");
	EaDdlColumn *stored = ea_names_map_get(from->by_column, old_name);
	EaDdlColumn *column = ea_names_map_get(to->by_column, new_name);

	/* the columns of system attributes are no field's, and all of one type */
	if ((stored->type == NULL || column->type == NULL) ?
		stored->type == column->type :
		ea_ddl_compare_types(stored, column) != EA_DDL_OTHER)
		ea_names_map_put(alias->columns, old_name,
						 unconstify(char *, new_name));
}

/*
 * The join table of a stored ManyToMany continues as that of the new one, or
 * as that of its inverse side, if the sides have changed places.
 */
static void
match_join(Matcher *at, EaDdlAlias *alias, const EaJson *was,
		   const EaJson *now, EaDdlTable *from)
{
	const char *target = new_entity(at, target_of(was));
	const char *mapped_by = ea_jsonread_string(now, "mappedBy");
	EaDdlAlias *far = ea_names_map_get(at->aliases, target_of(was));
	EaDdlJoin  *join;
	EaDdlTable *table;
	char	   *key;

	if (target == NULL || strcmp(target, target_of(now)) != 0 ||
		alias->replaced || far->replaced)
		return;
	key = mapped_by ? psprintf("%s.%s", target, mapped_by) :
		psprintf("%s.%s", alias->entity, name_of(now));
	table = ea_names_map_get(at->plan->to->by_key, key);
	if (table == NULL || table->tenant_scoped != from->tenant_scoped ||
		!ea_names_map_put(at->claimed, key, table))
		return;
	join = palloc0(sizeof(EaDdlJoin));
	join->table = table;
	join->turned = mapped_by != NULL;
	ea_names_map_put(alias->joins, name_of(was), join);
}

/*
 * Fields of an entity that stays.  Join tables come in further rounds: first
 * those whose sides stay, then those whose sides change places.
 */
static void
match_fields(Matcher *at, const EaJson *tree, EaNameMap *pairs, int round)
{
	const EaJson *stored = ea_names_map_get(at->pairs, name_of(tree));
	EaDdlAlias *alias = ea_names_map_get(at->aliases, name_of(stored));
	EaDdlTable *from = ea_names_map_get(at->plan->stored->by_key,
										name_of(stored));
	EaDdlTable *to = ea_names_map_get(at->plan->to->by_key, name_of(tree));

	for (EaJson *now = ea_jsonread_get(tree, "fields")->first;
		 now != NULL; now = now->next)
	{
		const EaJson *was = ea_names_map_get(pairs, name_of(now));
		bool		turned = ea_jsonread_string(now, "mappedBy") != NULL;

		if (was == NULL)
			continue;
		if (round == KEPT_JOINS || round == TURNED_JOINS)
		{
			if (is_kind(was, "manyToMany") && is_kind(now, "manyToMany") &&
				ea_jsonread_string(was, "mappedBy") == NULL &&
				turned == (round == TURNED_JOINS))
				match_join(at, alias, was, now, from);
			continue;
		}
		ea_names_map_put(alias->fields, name_of(was),
						 unconstify(char *, name_of(now)));
		if (alias->replaced)
			continue;
		if (is_kind(was, "attribute") && is_kind(now, "attribute"))
			match_attribute(alias, from, to, was, now);
		else if (is_reference(was) && is_reference(now))
			match_members(at, alias, from, to, was, now);
	}
}

/*
 * Do ids of a table that is there name the same rows as before, by the same
 * columns in one order?  A column that is gone has been renamed.
 */
static bool
keeps_ids(const EaDdlTable *from, const EaDdlTable *to)
{
	EaHostColumn before;
	ListCell   *a;
	ListCell   *b;

	if (list_length(from->key_columns) != list_length(to->key_columns))
		return false;
	forboth(a, from->key_columns, b, to->key_columns)
	{
		if (strcmp(lfirst(a), lfirst(b)) != 0 &&
			ea_host_column(from->schema, from->name, lfirst(a), &before))
			return false;
	}
	return true;
}

static void
match_entities(Matcher *at, List *stored, List *wanted)
{
	ListCell   *lc;

	foreach(lc, wanted)
	{
		const EaJson *tree = lfirst(lc);
		const EaJson *was = ea_names_map_get(at->pairs, name_of(tree));
		EaDdlTable *to = ea_names_map_get(at->plan->to->by_key,
										  name_of(tree));
		EaDdlTable *from;
		EaDdlAlias *alias;

		if (was == NULL)
			continue;
		from = ea_names_map_get(at->plan->stored->by_key, name_of(was));
		alias = make_alias(at, name_of(was));
		alias->entity = name_of(tree);
		alias->replaced = from->existing || to->existing ?
			!from->existing || !to->existing ||
			strcmp(from->qualified, to->qualified) != 0 :
			from->tenant_scoped != to->tenant_scoped;
		alias->other_ids = !alias->replaced && to->existing &&
			!keeps_ids(from, to);
		if (!alias->replaced)
			alias->table = to;
	}
	foreach(lc, stored)
	{
		if (ea_names_map_get(at->aliases, name_of(lfirst(lc))) == NULL)
			make_alias(at, name_of(lfirst(lc)));
	}
}

/* Lead from the renamed state to the stored one, and to what continues it. */
static void
link_states(EaDdlPlan *plan)
{
	ListCell   *a;
	ListCell   *b;

	forboth(a, plan->from->tables, b, plan->stored->tables)
	{
		EaDdlTable *from = lfirst(a);
		EaDdlTable *stored = lfirst(b);
		EaDdlTable *to = ea_names_map_get(plan->to->by_key, from->key);
		ListCell   *c;
		ListCell   *d;

		from->was = stored;
		forboth(c, from->columns, d, stored->columns)
			((EaDdlColumn *) lfirst(c))->was = lfirst(d);
		if (list_length(from->objects) != list_length(stored->objects))
			elog(ERROR, "names of \"%s\" collide", stored->key);
		forboth(c, from->objects, d, stored->objects)
			((EaDdlObject *) lfirst(c))->was = lfirst(d);
		if (to != NULL && strcmp(to->qualified, from->qualified) == 0)
		{
			from->other = to;
			to->other = from;
		}
	}
}

void
ea_ddl_match(EaDdlPlan *plan, List *stored, List *wanted)
{
	Matcher		at = {plan};
	EaNameMap  *fields = ea_names_map_create(256);
	ListCell   *lc;

	plan->stored = ea_ddl_state(stored, NULL, plan->was_distributed);
	plan->to = ea_ddl_state(wanted, NULL, plan->is_distributed);
	at.aliases = ea_names_map_create(256);
	at.claimed = ea_names_map_create(16);
	at.pairs = find_pairs(stored, wanted);
	match_entities(&at, stored, wanted);
	for (int round = COLUMNS; round <= TURNED_JOINS; round++)
	{
		foreach(lc, wanted)
		{
			EaJson	   *tree = lfirst(lc);
			EaJson	   *was = ea_names_map_get(at.pairs, name_of(tree));

			CHECK_FOR_INTERRUPTS();
			if (was == NULL)
				continue;
			if (round == COLUMNS)
				ea_names_map_put(fields, name_of(tree),
								 find_pairs(fields_of(was), fields_of(tree)));
			match_fields(&at, tree, ea_names_map_get(fields, name_of(tree)),
						 round);
		}
	}
	plan->aliases = at.aliases;
	plan->from = ea_ddl_state(stored, at.aliases,
							  plan->was_distributed);
	link_states(plan);
}
