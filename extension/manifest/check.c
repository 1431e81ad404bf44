/*
 * All lookups go through maps, so that the cost grows with the number of
 * declarations and not with its square.
 */
#include "postgres.h"

#include <ctype.h>

#include "miscadmin.h"

#include "manifest/check.h"
#include "manifest/constraint_names.h"
#include "manifest/existing_keys.h"
#include "manifest/existing_tenant.h"
#include "manifest/existing_views.h"
#include "manifest/faults.h"
#include "manifest/fields.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "manifest/policies.h"
#include "manifest/relations.h"
#include "manifest/service.h"
#include "manifest/several_columns.h"
#include "manifest/widths.h"
#include "request/errors.h"

#define MOST_COLUMNS 1500		/* PostgreSQL's limit is 1600 */
#define MOST_DAYS 36500			/* a century */

static const char *const system_columns[] =
{"tenant_id", "id", "version", "created_at", "updated_at", "deleted_at"};

/* Every table has them, and none can have another column of the name. */
static const char *const columns_of_postgres[] =
{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};

/*
 * A role that one tenant assigns must not write data that all tenants share: a
 * TenantAdmin could assign it to its own account.
 */
static void
check_reach(EaManifest *m, EaDeclEntity *entity, const char *pointer,
			const char *role)
{
	bool		everybody = strcmp(role, "*") == 0;
	const char *hint = "declare the role with assignableBy: superAdmin, "
		"or make the entity tenantScoped";

	if (entity->tenant_scoped ||
		(entity->of_application && m->service.tenancy == 1) ||
		ea_names_map_get(m->by_super_role, role) != NULL ||
		(!everybody && ea_names_map_get(m->by_role, role) == NULL))
		return;
	if (everybody)
		hint = "name a role that is declared with assignableBy: superAdmin";
	ea_manifest_fault(m, entity->document->label, pointer,
					  psprintf("\"%s\" would write what all tenants share",
							   role),
					  hint);
}

/* Accounts are written below /manage, never as resources. */
static void
check_only_read(EaManifest *m, EaDeclEntity *entity, const char *pointer,
				int mask)
{
	if (entity->accounts && (mask & ~EA_OP_READ) != 0)
		ea_manifest_fault(m, entity->document->label, pointer,
						  "User is read-only",
						  "leave all but read out; accounts are written below "
						  "/manage");
}

static void
check_permissions(EaManifest *m, EaDeclEntity *entity)
{
	const char *label = entity->document->label;

	if (entity->permissions == NULL)
		return;
	for (EaJson *json = entity->permissions->first; json; json = json->next)
	{
		const char *pointer = ea_errors_pointer("/spec/permissions",
												json->key);
		int			given = ea_manifest_operations(m, label, pointer, json,
												   EA_OPS);

		check_only_read(m, entity, pointer, given);
		if ((given & ~EA_OPS_READING) != 0)
			check_reach(m, entity, pointer, json->key);
		if ((given & EA_OP_RESTORE) != 0 && !entity->soft_delete)
			ea_manifest_fault(m, label, pointer,
							  "restore brings back what softDelete keeps",
							  "give the entity softDelete, or leave it out");
		if (strcmp(json->key, "*") != 0)
			ea_manifest_check_role(m, label, pointer, json->key);
	}
}

static void
check_policies(EaManifest *m, EaDeclEntity *entity)
{
	const char *label = entity->document->label;
	const char *otherwise = "declare it in a Policy document";

	if (entity->policies == NULL)
		return;
	for (EaJson *json = entity->policies->first; json; json = json->next)
	{
		const char *pointer = ea_errors_pointer("/spec/policies", json->key);
		EaDeclPolicy *policy = ea_names_map_get(m->by_policy, json->key);
		int			given = ea_manifest_operations(m, label, pointer, json,
												   EA_OPS_RULED);

		check_only_read(m, entity, pointer, given);
		if (given != 0 && policy)
			policy->used = true;
		if (policy == NULL)
			ea_manifest_fault(m, label, pointer,
							  psprintf("policy \"%s\" is not declared",
									   json->key),
							  ea_manifest_guess_map(json->key, m->by_policy,
													otherwise));
	}
}

/*
 * A renaming: of one thing only, which is either gone or renamed itself, so
 * that names can be exchanged.  renamed: names given away, by whom; still: a
 * renamedFrom of what is still called so, or NULL when nothing is.
 */
static void
check_renaming(EaManifest *m, const char *label, const char *pointer,
			   const char *name, const char *from, EaNameMap *renamed,
			   bool declared, const char *still)
{
	const char *other;

	if (from == NULL)
		return;
	pointer = ea_errors_pointer(pointer, "renamedFrom");
	other = ea_names_map_get(renamed, from);
	if (!ea_names_map_put(renamed, from, unconstify(char *, name)))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" was renamed to \"%s\" already",
								   from, other), NULL);
	if (strcmp(from, name) == 0 || (declared && still == NULL))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" is still declared", from),
						  strcmp(from, name) == 0 ? NULL :
						  "leave it out once the renaming is applied");
}

static void
check_field(EaManifest *m, EaDeclField *field, EaNameMap *renamed)
{
	const char *label = field->entity->document->label;
	EaDeclField *still = field->renamed_from == NULL ? NULL :
		ea_names_map_get(field->entity->by_name, field->renamed_from);
	const char *writers = ea_errors_pointer(field->pointer, "writeRoles");
	ListCell   *lc;

	ea_manifest_check_keys(m, field);
	if (field->entity->soft_delete && field->sound && field->type == NULL &&
		strcmp(field->name, "restore") == 0)
		ea_manifest_fault(m, label, field->pointer,
						  "with softDelete, the address of a relationship "
						  "\"restore\" is the service's own",
						  "rename the field");
	ea_manifest_check_roles(m, label,
							ea_errors_pointer(field->pointer, "readRoles"),
							field->read_roles);
	ea_manifest_check_roles(m, label, writers, field->write_roles);
	foreach(lc, field->write_roles)
		check_reach(m, field->entity,
					ea_errors_index(writers, foreach_current_index(lc)),
					lfirst(lc));
	ea_manifest_check_lifetime(m, label, field->pointer,
							   field->since, field->removed_in);
	if (field->type != NULL)
		ea_manifest_check_attribute(m, field);
	check_renaming(m, label, field->pointer, field->name,
				   field->renamed_from, renamed, still != NULL,
				   still ? still->renamed_from : NULL);
}

/* A key for a table, whatever characters the names have. */
static char *
table_key(EaManifest *m, const char *schema, const char *table)
{
	if (schema == NULL)
		schema = m->service.schema;
	return psprintf("%zu:%s.%s", strlen(schema), schema, table);
}

/*
 * Check the names by which the API tells entities apart, and the tables by
 * which the database does.
 */
static void
check_unique(EaManifest *m, EaDeclEntity *entity, EaNameMap *types,
			 EaNameMap *tables)
{
	EaDeclEntity *other;
	char	   *table;

	if (strcmp(entity->type, "operations") == 0)
		ea_manifest_fault(m, entity->document->label,
						  entity->plural ? "/spec/plural" : "/metadata/name",
						  "the path segment \"operations\" is taken",
						  "give it another plural");
	if (!ea_names_map_put(types, entity->type, entity))
	{
		other = ea_names_map_get(types, entity->type);
		ea_manifest_fault(m, entity->document->label,
						  entity->plural ? "/spec/plural" : "/metadata/name",
						  psprintf("has the type \"%s\" of %s", entity->type,
								   other->name),
						  "give one of them another plural");
	}
	table = table_key(m, entity->schema, entity->table);
	if (!ea_names_map_put(tables, table, entity))
	{
		other = ea_names_map_get(tables, table);
		ea_manifest_fault(m, entity->document->label,
						  entity->schema ? "/spec/table" : "/metadata/name",
						  psprintf("has the table \"%s\" of %s", entity->table,
								   other->name),
						  entity->schema ? "each entity needs its own" :
						  "rename one of them");
	}
}

static void
check_purge(EaManifest *m, EaDeclEntity *entity)
{
	const char *label = entity->document->label;

	if (entity->purge_after_days < 0)
		return;
	if (!entity->soft_delete)
		ea_manifest_fault(m, label, "/spec/purgeAfterDays",
						  "goes with softDelete: nothing else is kept",
						  "give the entity softDelete, or leave it out");
	else if (entity->purge_after_days > MOST_DAYS)
		ea_manifest_fault(m, label, "/spec/purgeAfterDays",
						  psprintf("must be at most %d", MOST_DAYS),
						  "leave it out to keep them for good");
}

static void
check_entity(EaManifest *m, EaDeclEntity *entity, EaNameMap *entities)
{
	EaNameMap  *renamed = ea_names_map_create(8);
	EaDeclEntity *still = entity->renamed_from == NULL ? NULL :
		ea_names_map_get(m->by_entity, entity->renamed_from);
	ListCell   *lc;

	check_renaming(m, entity->document->label, "/spec", entity->name,
				   entity->renamed_from, entities, still != NULL,
				   still ? still->renamed_from : NULL);
	ea_manifest_check_lifetime(m, entity->document->label, "/spec",
							   entity->since, entity->removed_in);
	check_permissions(m, entity);
	check_policies(m, entity);
	check_purge(m, entity);
	foreach(lc, entity->fields)
		check_field(m, lfirst(lc), renamed);
	if (ea_names_map_get(m->by_one_of, entity->name) != NULL)
		ea_manifest_fault(m, entity->document->label, "/metadata/name",
						  "is the name of a OneOf as well",
						  "rename one of them");
}

/* A fault where the column is one of those; the pointer is of its name. */
static bool
is_of_postgres(EaManifest *m, EaDeclEntity *entity, const char *pointer,
			   const char *column)
{
	for (int i = 0; i < lengthof(columns_of_postgres); i++)
	{
		if (strcmp(columns_of_postgres[i], column) != 0)
			continue;
		ea_manifest_fault(m, entity->document->label, pointer,
						  psprintf("its column \"%s\" is one that PostgreSQL "
								   "itself has in every table", column),
						  entity->existing_table ?
						  "name another one in \"columns\"" :
						  "rename the field");
		return true;
	}
	return false;
}

/* The times that the service keeps of each row can be shown. */
static const char *
rename_hint(const char *name)
{
	static const char *const kept[] = {"createdAt", "updatedAt"};

	for (int i = 0; i < lengthof(kept); i++)
	{
		if (strcmp(name, kept[i]) == 0)
			return psprintf("say system: [%s], or rename the field", name);
	}
	return "rename the field";
}

static void
claim_column(EaManifest *m, EaDeclField *field, char *column,
			 EaNameMap *columns)
{
	EaDeclField *other = ea_names_map_get(columns, column);

	if (field == field->entity->key_field ||
		ea_manifest_is_part(field->entity, column) ||
		is_of_postgres(m, field->entity, field->pointer, column) ||
		ea_names_map_put(columns, column, field))
		return;
	if (other->entity == NULL)
		ea_manifest_fault(m, field->entity->document->label, field->pointer,
						  psprintf("its column \"%s\" is one that %s", column,
								   field->entity->existing_table ?
								   "the service keeps itself" :
								   strcmp(column, "deletion_id") == 0 ?
								   "tables with softDelete have" :
								   "every table may have"),
						  rename_hint(field->name));
	else
		ea_manifest_fault(m, field->entity->document->label, field->pointer,
						  psprintf("its column \"%s\" is that of \"%s\" as "
								   "well", column, other->name),
						  field->entity->existing_table ?
						  "give each its own in \"columns\"" :
						  "rename one of them");
}

/*
 * Of tables of an application the version may be PostgreSQL's, and the key of
 * the table of tenants is the tenant.
 */
static bool
is_own(const EaDeclEntity *entity, EaDeclColumn column)
{
	const char *name = entity->columns[column];

	return entity->of_application &&
		((column == EA_DECL_VERSION && strcmp(name, EA_XMIN) == 0) ||
		 (column == EA_DECL_TENANT_ID &&
		  strcmp(name, entity->columns[EA_DECL_ID]) == 0));
}

/* What is only read may have columns of other references, too. */
static void
claim_member(EaManifest *m, EaDeclField *field, EaDeclMember *member,
			 EaNameMap *columns)
{
	ListCell   *lc;

	if (member->parts == NIL)
		claim_column(m, field, member->column, columns);
	foreach(lc, member->parts)
	{
		if (!field->read_only)
			claim_column(m, field, ((EaDeclPart *) lfirst(lc))->column,
						 columns);
	}
}

/* A column of an existing table that has no field. */
static void
claim_existing(EaManifest *m, EaDeclEntity *entity, EaDeclColumn column,
			   EaDeclField *system_field, EaNameMap *columns)
{
	const char *key = ea_manifest_column_key(column);
	const char *pointer = column == EA_DECL_TENANT_ID &&
	entity->of_application ? "/spec/tenant/column" :
	ea_errors_pointer("/spec/columns", key);
	EaDeclField *field = ea_names_map_get(entity->by_name, key);

	if (entity->columns[column] != NULL && !is_own(entity, column) &&
		!is_of_postgres(m, entity, pointer, entity->columns[column]) &&
		!ea_names_map_put(columns, entity->columns[column], system_field))
		ea_manifest_fault(m, entity->document->label, pointer,
						  psprintf("the column \"%s\" is named twice",
								   entity->columns[column]), NULL);
	if (entity->existing_table != NULL && column != EA_DECL_ID &&
		field != NULL && !field->system)
		ea_manifest_fault(m, entity->document->label,
						  ea_errors_pointer("/spec/fields", key),
						  psprintf("in \"columns\", \"%s\" is the service's "
								   "own column", key),
						  rename_hint(key));
}

static void
check_columns(EaManifest *m, EaDeclEntity *entity)
{
	static EaDeclField system_field;
	EaNameMap  *columns = ea_names_map_create(32);
	int			ncolumns;
	ListCell   *lc;

	if (entity->existing_table == NULL)
	{
		for (int i = 0; i < lengthof(system_columns); i++)
			ea_names_map_put(columns, system_columns[i], &system_field);

		/* younger than the others, and only where it is needed */
		if (entity->soft_delete)
			ea_names_map_put(columns, "deletion_id", &system_field);
	}
	for (int i = 0; i < EA_DECL_NCOLUMNS; i++)
		claim_existing(m, entity, i, &system_field, columns);
	foreach(lc, entity->fields)
	{
		EaDeclField *field = lfirst(lc);
		ListCell   *member;

		/* a name that is refused anyway needs no second fault */
		if (!field->sound)
			continue;
		if (field->column && !field->system)
			claim_column(m, field, field->column, columns);
		if (field->kind != EA_TO_ONE && field->kind != EA_ONE_OF)
			continue;
		foreach(member, field->members)
			claim_member(m, field, lfirst(member), columns);
	}
	(void) ea_names_map_list(columns, &ncolumns);
	if (ncolumns > MOST_COLUMNS)
		ea_manifest_fault(m, entity->document->label, "/spec/fields",
						  psprintf("needs more than %d columns", MOST_COLUMNS),
						  NULL);
}

static void
check_index_field(EaManifest *m, EaDeclEntity *entity, const char *pointer,
				  const EaJson *json)
{
	const char *label = entity->document->label;
	EaDeclField *field;

	if (json->kind != EA_JSON_STRING)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("must be the name of a field, not %s",
								   ea_jsonread_kind(json)), NULL);
		return;
	}
	field = ea_names_map_get(entity->by_name, json->text);
	if (field == NULL)
		ea_manifest_fault(m, label, pointer,
						  psprintf("%s has no field \"%s\"", entity->name,
								   json->text),
						  ea_manifest_guess_map(json->text, entity->by_name,
												NULL));
	else if (field->sound &&
			 (field->type ? (field->type->keys & EA_KEYS_INDEX) == 0 :
			  field->kind != EA_TO_ONE))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" has no column to index",
								   json->text),
						  "attributes and to-one references have one");
	else if (field->sound && field->type &&
			 field->type->form == EA_FORM_TEXT &&
			 !entity->of_application &&
			 (field->max_length < 0 ||
			  field->max_length > EA_MANIFEST_MAX_KEY))
		ea_manifest_fault(m, label, pointer,
						  psprintf("values of \"%s\" may be too long for an "
								   "index", json->text),
						  psprintf("give it a maxLength of at most %d",
								   EA_MANIFEST_MAX_KEY));
}

static void
check_indexes(EaManifest *m, EaDeclEntity *entity)
{
	int			i = 0;

	if (entity->indexes == NULL)
		return;
	for (EaJson *index = entity->indexes->first; index; index = index->next)
	{
		const char *pointer = ea_errors_index("/spec/indexes", i++);
		EaNameMap  *seen = ea_names_map_create(8);
		int			j = 0;

		if (index->kind != EA_JSON_ARRAY || index->count == 0 ||
			index->count > 16)
		{
			ea_manifest_fault(m, entity->document->label, pointer,
							  "must be a list of 1 to 16 fields", NULL);
			continue;
		}
		for (EaJson *json = index->first; json; json = json->next, j++)
		{
			const char *place = ea_errors_index(pointer, j);

			check_index_field(m, entity, place, json);
			if (json->kind == EA_JSON_STRING &&
				!ea_names_map_put(seen, json->text, json))
				ea_manifest_fault(m, entity->document->label, place,
								  psprintf("\"%s\" is named twice",
										   json->text), NULL);
		}
		ea_manifest_check_entry(m, entity, pointer, index);
	}
}

/* Two identifiers with a dot between. */
static bool
is_function_name(const char *name)
{
	int			dots = 0;

	for (const char *p = name; *p != '\0'; p++)
	{
		bool		first = p == name || p[-1] == '.';

		if (*p == '.' && !first)
			dots++;
		else if (!isalpha((unsigned char) *p) && *p != '_' &&
				 (first || !isdigit((unsigned char) *p)))
			return false;
	}
	return dots == 1 && name[strlen(name) - 1] != '.';
}

static void
check_hook(EaManifest *m, EaDeclHook *hook)
{
	static const char *const operations[] = {"create", "update", "delete"};
	const char *otherwise = "known: create, update, delete";
	const char *label = hook->document->label;
	ListCell   *lc;

	if (hook->entity && strcmp(hook->entity, "*") != 0 &&
		ea_names_map_get(m->by_entity, hook->entity) == NULL)
		ea_manifest_fault(m, label, "/spec/entity",
						  psprintf("entity \"%s\" is not declared",
								   hook->entity),
						  ea_manifest_guess_map(hook->entity, m->by_entity,
												"an entity, or *"));
	if (hook->entity && strcmp(hook->entity, EA_USER_ENTITY) == 0)
		ea_manifest_fault(m, label, "/spec/entity",
						  "no hook is called for accounts", NULL);
	foreach(lc, hook->on)
	{
		const char *name = lfirst(lc);
		int			i = 0;

		while (i < lengthof(operations) && strcmp(operations[i], name) != 0)
			i++;
		if (i == lengthof(operations) && *name != '\0')
			ea_manifest_fault(m, label,
							  ea_errors_index("/spec/on",
											  foreach_current_index(lc)),
							  psprintf("\"%s\" is no operation of a hook",
									   name),
							  ea_manifest_guess(name, operations,
												lengthof(operations),
												otherwise));
	}
	if (hook->on == NIL && ea_jsonread_get(hook->document->spec, "on"))
		ea_manifest_fault(m, label, "/spec/on",
						  "must name an operation", NULL);
	if (hook->function && !is_function_name(hook->function))
	{
		ea_manifest_fault(m, label, "/spec/function",
						  "must be schema.name", NULL);
		hook->function = NULL;
	}
}

void
ea_manifest_check(EaManifest *m)
{
	EaNameMap  *types = ea_names_map_create(256);
	EaNameMap  *tables = ea_names_map_create(256);
	EaNameMap  *renamed = ea_names_map_create(16);
	EaNameMap  *constraints = ea_names_map_create(16);
	EaNameMap  *joins = ea_names_map_create(16);
	ListCell   *lc;

	ea_manifest_check_service(m);
	foreach(lc, m->entities)
	{
		CHECK_FOR_INTERRUPTS();
		check_unique(m, lfirst(lc), types, tables);
		check_entity(m, lfirst(lc), renamed);
	}
	ea_manifest_check_relations(m);
	foreach(lc, m->entities)
	{
		EaDeclEntity *entity = lfirst(lc);
		ListCell   *cell;

		CHECK_FOR_INTERRUPTS();
		check_columns(m, entity);
		ea_manifest_check_table(m, entity);
		ea_manifest_check_view(m, entity);
		ea_manifest_check_tenant(m, entity);
		check_indexes(m, entity);
		if (entity->existing_table == NULL && entity->table != NULL)
		{
			ea_manifest_check_row(m, entity);
			ea_manifest_check_names(m, entity, constraints);
		}
		foreach(cell, entity->fields)
		{
			EaDeclField *field = lfirst(cell);
			const char *key = field->join_table == NULL ? NULL :
				table_key(m, field->join_schema, field->join_table);

			/* one that is there may be an entity's as well */
			field->join_served = field->join_schema != NULL && key != NULL &&
				ea_names_map_get(tables, key) != NULL;
			if (key == NULL ||
				ea_names_map_put(field->join_schema == NULL ? tables : joins,
								 key, entity))
				continue;
			ea_manifest_fault(m, entity->document->label, field->pointer,
							  psprintf("its join table \"%s\" is taken",
									   field->join_table),
							  field->join_schema == NULL ?
							  "rename the field" :
							  "let one be mappedBy the other");
		}
	}
	ea_manifest_check_policies(m);
	foreach(lc, m->hooks)
		check_hook(m, lfirst(lc));
}
