/*
 * The tables do not show rights, policies, hooks, or the contents of versions.
 * This module compares the stored definitions with the new ones, member by
 * member, and each difference becomes a line, so that the reviewer of a change
 * sees all of it.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "base/format.h"
#include "base/jsonwrite.h"
#include "base/names.h"
#include "manifest/rights_changes.h"

typedef struct Changes
{
	List	   *lines;			/* of char * */
	EaNameMap  *seen;			/* a hook of all entities is reported once */
	EaNameMap  *renamed;		/* entities, by the names that they had */
	bool		in_order;		/* before and after: fields may change it */
} Changes;

static const char *const operations[] =
{"create", "read", "update", "delete", "restore", "history"};

/* Members that other lines report, or the statements. */
static const char *const service_own[] =
{"revision", "singleTenant", "roles", "superRoles", "defaultRoles", "versions",
"securityAttributes", NULL};
static const char *const entity_own[] =
{"name", "renamedFrom", "permissions", "policies", "hooks", "fields",
"references", "constraints", NULL};
static const char *const field_own[] =
{"name", "members", "join", "renamedFrom", "readRoles", "writeRoles", NULL};

/* More that statements report, where the table is made here. */
static const char *const entity_made[] =
{"schema", "table", "columns", "indexes", "tenantScoped", "softDelete",
"deletionId", "optimisticLocking", NULL};
static const char *const field_made[] =
{"kind", "column", "type", "required", "unique", "index", "enum", "minimum",
"maximum", "precision", "scale", NULL};
static const char *const named_own[] = {"name", "number", NULL};
static const char *const none[] = {NULL};

static void add_line(Changes *changes, const char *fmt,...)
			pg_attribute_printf(2, 3);

static void
add_line(Changes *changes, const char *fmt,...)
{
	char	   *line;
	va_list		args;

	va_start(args, fmt);
	line = ea_format(fmt, args);
	va_end(args);
	if (ea_names_map_put(changes->seen, line, line))
		changes->lines = lappend(changes->lines, line);
}

static const char *
text_of(const EaJson *json)
{
	StringInfoData text;

	if (json == NULL)
		return "none";
	if (json->kind == EA_JSON_STRING)
		return json->text;
	initStringInfo(&text);
	ea_jsonwrite_tree(&text, json);
	return text.data;
}

static bool
is_named(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool
has_item(const EaJson *list, const char *item)
{
	for (const EaJson *at = list ? list->first : NULL; at; at = at->next)
	{
		if (at->kind == EA_JSON_STRING && strcmp(at->text, item) == 0)
			return true;
	}
	return false;
}

static void
append_item(StringInfo out, const char *sign, const char *item)
{
	appendStringInfo(out, "%s%s %s", out->len > 0 ? ", " : "", sign, item);
}

/* Names that a list gains and loses: "+ A, - B". */
static void
compare_lists(Changes *changes, const char *what, const EaJson *before,
			  const EaJson *after)
{
	StringInfoData items;

	initStringInfo(&items);
	for (const EaJson *at = after ? after->first : NULL; at; at = at->next)
	{
		if (!has_item(before, at->text))
			append_item(&items, "+", at->text);
	}
	for (const EaJson *at = before ? before->first : NULL; at; at = at->next)
	{
		if (!has_item(after, at->text))
			append_item(&items, "-", at->text);
	}
	if (items.len > 0)
		add_line(changes, "%s: %s", what, items.data);
}

static void
compare_member(Changes *changes, const char *what, const char *key,
			   const EaJson *before, const EaJson *after)
{
	const char *old = text_of(before);
	const char *new = text_of(after);

	if (strcmp(old, new) != 0)
		add_line(changes, "%s: %s %s -> %s", what, key, old, new);
}

/* Members of two objects, but for some, and for others. */
static void
compare_members(Changes *changes, const char *what, const EaJson *before,
				const EaJson *after, const char *const *but,
				const char *const *nor)
{
	for (const EaJson *at = after->first; at; at = at->next)
	{
		if (!is_named(at->key, but) && !is_named(at->key, nor))
			compare_member(changes, what, at->key,
						   ea_jsonread_get(before, at->key), at);
	}
	for (const EaJson *at = before->first; at; at = at->next)
	{
		if (!is_named(at->key, but) && !is_named(at->key, nor) &&
			!ea_jsonread_get(after, at->key))
			compare_member(changes, what, at->key, at, NULL);
	}
}

/* The object of an array that has this value as that member. */
static const EaJson *
find_object(const EaJson *array, const char *key, const char *value)
{
	for (const EaJson *at = array ? array->first : NULL; at; at = at->next)
	{
		if (strcmp(text_of(ea_jsonread_get(at, key)), value) == 0)
			return at;
	}
	return NULL;
}

/* Arrays of objects with names; what: one of them, before its name. */
static void
compare_named(Changes *changes, const char *what, const char *key,
			  const EaJson *before, const EaJson *after,
			  const char *(*describe) (const EaJson *object))
{
	for (const EaJson *at = after ? after->first : NULL; at; at = at->next)
	{
		const char *name = text_of(ea_jsonread_get(at, key));
		const EaJson *old = find_object(before, key, name);

		CHECK_FOR_INTERRUPTS();
		if (old == NULL)
			add_line(changes, "%s %s: + %s", what, name, describe(at));
		else
			compare_members(changes, psprintf("%s %s", what, name), old, at,
							named_own, none);
	}
	for (const EaJson *at = before ? before->first : NULL; at; at = at->next)
	{
		const char *name = text_of(ea_jsonread_get(at, key));

		if (find_object(after, key, name) == NULL)
			add_line(changes, "%s %s: - %s", what, name, describe(at));
	}
}

static const char *
describe_policy(const EaJson *policy)
{
	return psprintf("%s: %s", text_of(ea_jsonread_get(policy, "operations")),
					text_of(ea_jsonread_get(policy, "expression")));
}

static const char *
describe_hook(const EaJson *hook)
{
	return psprintf("%s %s: %s.%s", text_of(ea_jsonread_get(hook, "phase")),
					text_of(ea_jsonread_get(hook, "on")),
					text_of(ea_jsonread_get(hook, "schema")),
					text_of(ea_jsonread_get(hook, "function")));
}

/* Roles that have an operation, as a list of its own. */
static EaJson *
roles_with(const EaJson *permissions, const char *operation)
{
	EaJson	   *list = palloc0(sizeof(EaJson));
	EaJson	  **end = &list->first;

	list->kind = EA_JSON_ARRAY;
	for (const EaJson *at = permissions ? permissions->first : NULL; at;
		 at = at->next)
	{
		if (!has_item(at, operation))
			continue;
		*end = palloc0(sizeof(EaJson));
		(*end)->kind = EA_JSON_STRING;
		(*end)->text = at->key;
		end = &(*end)->next;
	}
	return list;
}

/* Roles of a field; without a list it is everybody. */
static void
compare_field_roles(Changes *changes, const char *what, const char *key,
					const EaJson *before, const EaJson *after)
{
	const EaJson *old = ea_jsonread_get(before, key);
	const EaJson *new = ea_jsonread_get(after, key);

	if (old != NULL && new != NULL)
		compare_lists(changes, psprintf("%s: %s", what, key), old, new);
	else if (old != NULL || new != NULL)
		add_line(changes, "%s: %s %s -> %s", what, key,
				 old ? text_of(old) : "everybody",
				 new ? text_of(new) : "everybody");
}

/* The entities that a relationship leads to, by the names that they get. */
static EaJson *
targets_of(Changes *changes, const EaJson *field)
{
	const EaJson *members = ea_jsonread_get(field, "members");
	EaJson	   *list = palloc0(sizeof(EaJson));
	EaJson	  **end = &list->first;

	list->kind = EA_JSON_ARRAY;
	for (const EaJson *at = members ? members->first : NULL; at;
		 at = at->next)
	{
		const char *name = ea_jsonread_string(at, "entity");
		char	   *now = ea_names_map_get(changes->renamed, name);

		*end = palloc0(sizeof(EaJson));
		(*end)->kind = EA_JSON_STRING;
		(*end)->text = now ? now : pstrdup(name);
		end = &(*end)->next;
	}
	return list;
}

/* Over a join table that is there. */
static bool
is_through(const EaJson *field)
{
	const EaJson *join = field == NULL ? NULL : ea_jsonread_get(field, "join");

	return join != NULL && ea_jsonread_bool(join, "application", false);
}

/*
 * Does no statement show it?  One that mirrors another has nothing of its own,
 * and an existing table has its columns, but not links.
 */
static bool
is_unseen(const EaJson *field, bool existing)
{
	return field != NULL &&
		((existing && ea_jsonread_get(field, "join") == NULL) ||
		 is_through(field) || ea_jsonread_get(field, "mappedBy") != NULL);
}

static void
compare_field(Changes *changes, const char *what, const EaJson *before,
			  const EaJson *after, bool existing)
{
	bool		unseen = is_unseen(before, existing) ||
		is_unseen(after, existing);

	compare_members(changes, what, before, after, field_own,
					unseen ? none : field_made);
	if (unseen)
		compare_lists(changes, psprintf("%s: members", what),
					  targets_of(changes, before), targets_of(changes, after));
	if (is_through(before) && is_through(after))
		compare_member(changes, what, "through",
					   ea_jsonread_get(before, "join"),
					   ea_jsonread_get(after, "join"));
}

/* The field that this one is the next of, under whatever name. */
static const EaJson *
find_former(const EaJson *fields, const EaJson *field, const EaJson *now)
{
	const char *from = ea_jsonread_string(field, "renamedFrom");
	const EaJson *same = find_object(fields, "name",
									 ea_jsonread_string(field, "name"));

	if (same != NULL || from == NULL || find_object(now, "name", from) != NULL)
		return same;
	return find_object(fields, "name", from);
}

/* Do fields that were there before stand in another order among themselves? */
static bool
is_reordered(const EaJson *before, const EaJson *after)
{
	EaNameMap  *places = ea_names_map_create(16);
	intptr_t	place = 0;
	intptr_t	last = 0;

	for (const EaJson *at = before->first; at; at = at->next)
		ea_names_map_put(places, ea_jsonread_string(at, "name"),
						 (void *) ++place);
	for (const EaJson *at = after->first; at; at = at->next)
	{
		const EaJson *old = find_former(before, at, after);

		CHECK_FOR_INTERRUPTS();
		if (old == NULL)
			continue;
		place = (intptr_t) ea_names_map_get(places,
											ea_jsonread_string(old, "name"));
		if (place < last)
			return true;
		last = place;
	}
	return false;
}

/* before: NULL where the entity is new */
static void
compare_fields(Changes *changes, const char *entity, const EaJson *before,
			   const EaJson *after, bool existing)
{
	EaNameMap  *former = ea_names_map_create(16);

	for (const EaJson *at = after->first; at; at = at->next)
	{
		const char *name = ea_jsonread_string(at, "name");
		const EaJson *old = find_former(before, at, after);
		const char *from = old ? ea_jsonread_string(old, "name") : name;
		char	   *what = psprintf("field %s.%s", entity, name);

		CHECK_FOR_INTERRUPTS();
		compare_field_roles(changes, what, "readRoles", old, at);
		compare_field_roles(changes, what, "writeRoles", old, at);
		if (old == NULL && before != NULL && is_unseen(at, existing))
			add_line(changes, "%s: +", what);
		if (old == NULL)
			continue;
		ea_names_map_put(former, from, former);
		if (strcmp(from, name) != 0 && is_unseen(at, existing))
			add_line(changes, "%s: renamed from %s", what, from);
		compare_field(changes, what, old, at, existing);
	}
	for (const EaJson *at = before ? before->first : NULL; at; at = at->next)
	{
		const char *name = ea_jsonread_string(at, "name");

		if (ea_names_map_get(former, name) == NULL && is_unseen(at, existing))
			add_line(changes, "field %s.%s: -", entity, name);
	}
}

/* before: NULL for an entity that is new */
static void
compare_entity(Changes *changes, const EaJson *before, const EaJson *after)
{
	const char *name = ea_jsonread_string(after, "name");
	bool		existing = ea_jsonread_get(after, "columns") != NULL;

	for (int i = 0; i < lengthof(operations); i++)
		compare_lists(changes,
					  psprintf("permission %s.%s", name, operations[i]),
					  roles_with(ea_jsonread_get(before, "permissions"),
								 operations[i]),
					  roles_with(ea_jsonread_get(after, "permissions"),
								 operations[i]));
	compare_named(changes, psprintf("policy of %s", name), "name",
				  ea_jsonread_get(before, "policies"),
				  ea_jsonread_get(after, "policies"), describe_policy);
	compare_named(changes, psprintf("hook of %s", name), "name",
				  ea_jsonread_get(before, "hooks"),
				  ea_jsonread_get(after, "hooks"), describe_hook);
	compare_fields(changes, name, ea_jsonread_get(before, "fields"),
				   ea_jsonread_get(after, "fields"), existing);
	if (before != NULL && changes->in_order &&
		is_reordered(ea_jsonread_get(before, "fields"),
					 ea_jsonread_get(after, "fields")))
		add_line(changes, "entity %s: fields in another order", name);
	if (before != NULL)
		compare_members(changes, psprintf("entity %s", name), before, after,
						entity_own, existing ? none : entity_made);
}

/* The assigner of a role, by the lists of a service. */
static const char *
assigner_of(const EaJson *service, const char *role)
{
	if (!has_item(ea_jsonread_get(service, "roles"), role))
		return NULL;
	return has_item(ea_jsonread_get(service, "superRoles"), role) ?
		"superAdmin" : "tenantAdmin";
}

static void
compare_roles(Changes *changes, const EaJson *before, const EaJson *after)
{
	const EaJson *roles = ea_jsonread_get(after, "roles");

	for (const EaJson *at = roles ? roles->first : NULL; at; at = at->next)
	{
		const char *old = assigner_of(before, at->text);
		const char *new = assigner_of(after, at->text);

		if (old == NULL || strcmp(old, new) != 0)
			add_line(changes, "role %s:%s assignable by %s", at->text,
					 old ? "" : " +", new);
	}
	roles = ea_jsonread_get(before, "roles");
	for (const EaJson *at = roles ? roles->first : NULL; at; at = at->next)
	{
		if (assigner_of(after, at->text) == NULL)
			add_line(changes, "role %s: -", at->text);
	}
}

static void
compare_service(Changes *changes, const EaJson *before, const EaJson *after)
{
	compare_roles(changes, before, after);
	compare_lists(changes, "service: defaultRoles",
				  ea_jsonread_get(before, "defaultRoles"),
				  ea_jsonread_get(after, "defaultRoles"));

	/* a first service stands in its documents */
	if (before == NULL)
		return;
	compare_named(changes, "version", "number",
				  ea_jsonread_get(before, "versions"),
				  ea_jsonread_get(after, "versions"), text_of);
	compare_named(changes, "security attribute", "name",
				  ea_jsonread_get(before, "securityAttributes"),
				  ea_jsonread_get(after, "securityAttributes"), text_of);
	compare_members(changes, "service", before, after, service_own, none);
}

/* -------- descriptions, which are in the documents alone -------- */

/* How lines call the documents of a kind. */
static const struct
{
	const char *kind;
	const char *what;
}			described[] =
{
	{"OneOf", "one-of"},
	{"Policy", "policy"},
	{"Hook", "hook"}
};

static const EaJson *
find_document(const EaJson *documents, const char *kind, const char *name)
{
	for (const EaJson *at = documents->first; at; at = at->next)
	{
		const EaJson *metadata = ea_jsonread_get(at, "metadata");

		if (strcmp(ea_jsonread_string(at, "kind"), kind) == 0 &&
			strcmp(ea_jsonread_string(metadata, "name"), name) == 0)
			return at;
	}
	return NULL;
}

/* Roles may be declared in several documents. */
static const EaJson *
find_role(const EaJson *documents, const char *name)
{
	for (const EaJson *at = documents->first; at; at = at->next)
	{
		const EaJson *spec = ea_jsonread_get(at, "spec");
		const EaJson *roles = ea_jsonread_get(spec, "roles");
		const EaJson *role = roles && roles->kind == EA_JSON_OBJECT ?
			ea_jsonread_get(roles, name) : NULL;

		if (strcmp(ea_jsonread_string(at, "kind"), "Roles") == 0 &&
			role != NULL)
			return role;
	}
	return NULL;
}

static void
compare_description(Changes *changes, const char *what, const EaJson *before,
					const EaJson *after)
{
	if (before != NULL && after != NULL)
		compare_member(changes, what, "description",
					   ea_jsonread_get(before, "description"),
					   ea_jsonread_get(after, "description"));
}

static void
compare_descriptions(Changes *changes, const EaManifestState *before,
					 const EaManifestState *after)
{
	const EaJson *roles = ea_jsonread_get(after->service, "roles");

	for (const EaJson *at = roles ? roles->first : NULL; at; at = at->next)
		compare_description(changes, psprintf("role %s", at->text),
							find_role(before->documents, at->text),
							find_role(after->documents, at->text));
	for (const EaJson *at = after->documents->first; at; at = at->next)
	{
		const char *kind = ea_jsonread_string(at, "kind");
		const char *name = ea_jsonread_string(ea_jsonread_get(at, "metadata"),
											  "name");
		const EaJson *old = find_document(before->documents, kind, name);

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; old != NULL && i < lengthof(described); i++)
		{
			if (strcmp(described[i].kind, kind) == 0)
				compare_description(changes, psprintf("%s %s",
													  described[i].what, name),
									ea_jsonread_get(old, "spec"),
									ea_jsonread_get(at, "spec"));
		}
	}
}

/* The names of entities that are renamed, by those that they had. */
static void
note_renamed(Changes *changes, EaNameMap *old, List *entities)
{
	ListCell   *lc;

	foreach(lc, entities)
	{
		const char *name = ea_jsonread_string(lfirst(lc), "name");
		const char *from = ea_jsonread_string(lfirst(lc), "renamedFrom");

		if (from != NULL && ea_names_map_get(old, name) == NULL &&
			ea_names_map_get(old, from) != NULL)
			ea_names_map_put(changes->renamed, from, pstrdup(name));
	}
}

static EaNameMap *
by_name(List *trees)
{
	EaNameMap  *map = ea_names_map_create(256);
	ListCell   *lc;

	foreach(lc, trees)
		ea_names_map_put(map, ea_jsonread_string(lfirst(lc), "name"),
						 lfirst(lc));
	return map;
}

List *
ea_manifest_changes(const EaManifestState *before,
					const EaManifestState *after)
{
	Changes		changes = {NIL, ea_names_map_create(64),
	ea_names_map_create(8), before->in_order && after->in_order};
	EaNameMap  *old = by_name(before->entities);
	EaNameMap  *new = by_name(after->entities);
	ListCell   *lc;

	note_renamed(&changes, old, after->entities);
	compare_service(&changes, before->service, after->service);
	if (before->documents != NULL)
		compare_descriptions(&changes, before, after);
	foreach(lc, after->entities)
	{
		const EaJson *tree = lfirst(lc);
		const char *from = ea_jsonread_string(tree, "renamedFrom");
		const EaJson *was = ea_names_map_get(old, ea_jsonread_string(tree,
																	 "name"));

		CHECK_FOR_INTERRUPTS();
		if (was == NULL && from != NULL &&
			(was = ea_names_map_get(old, from)) != NULL)
		{
			add_line(&changes, "entity %s: renamed from %s",
					 ea_jsonread_string(tree, "name"), from);
			ea_names_map_put(new, from, lfirst(lc));
		}
		compare_entity(&changes, was, tree);
	}
	foreach(lc, before->entities)
	{
		const char *name = ea_jsonread_string(lfirst(lc), "name");

		if (ea_names_map_get(new, name) == NULL)
			add_line(&changes, "entity %s: -", name);
	}
	return changes.lines;
}
