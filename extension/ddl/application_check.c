/*
 * Nothing of it is changed, and nothing on it has to be the service's: code of
 * the application runs with the rights of its own role.  What is asked for
 * keeps the two apart, and lets the role do what the permissions say.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "ddl/application_check.h"
#include "ddl/crossings.h"
#include "ddl/drift.h"
#include "ddl/name_lists.h"
#include "ddl/rows.h"
#include "ddl/tenants_check.h"
#include "manifest/faults.h"
#include "model/acting_keys.h"
#include "model/application.h"
#include "model/table_check.h"
#include "request/errors.h"
#include "trust/owner.h"
#include "trust/pin.h"

#define AT "/spec/existing"

/* -------- the role -------- */

static void
role_fault(EaManifest *m, const char *message, const char *hint)
{
	ea_manifest_fault(m, m->service.document->label, AT "/role", message,
					  hint);
}

/* Only who may use the role himself lets the service use it. */
static bool
may_lend(Oid role)
{
	Oid			caller = ea_owner_caller();

	return has_privs_of_role(OidIsValid(caller) ? caller :
							 GetSessionUserId(), role);
}

static Oid
find_role(EaManifest *m)
{
	const char *name = m->service.application_role;
	Oid			role = get_role_oid(name, true);
	const char *why;

	if (!OidIsValid(role))
	{
		role_fault(m, psprintf("there is no role \"%s\"", name),
				   "name the owner of the tables, or a role that was made for "
				   "this");
		return InvalidOid;
	}
	why = ea_application_fault(role);
	if (why != NULL)
	{
		role_fault(m, psprintf("the role \"%s\" cannot be used: %s", name,
							   why),
				   psprintf("CREATE ROLE, and GRANT it what %s needs", name));
		return InvalidOid;
	}
	if (!may_lend(role))
	{
		role_fault(m, psprintf("you are no member of the role \"%s\"", name),
				   psprintf("apply as a member of it, or as a superuser"));
		return InvalidOid;
	}
	return role;
}

/* A value of the caller is any text. */
static void
check_settings(EaManifest *m)
{
	const EaJson *settings = m->service.settings;
	EaPin		pin;

	ea_pin_begin(&pin);
	for (const EaJson *setting = settings ? settings->first : NULL; setting;
		 setting = setting->next)
	{
		const char *value = setting->text[0] == '#' ? "" : setting->text;

		if (set_config_option(setting->key, value, PGC_USERSET, PGC_S_SESSION,
							  GUC_ACTION_SAVE, true, DEBUG5, false) <= 0)
			ea_manifest_fault(m, m->service.document->label,
							  ea_errors_pointer(AT "/settings", setting->key),
							  psprintf("cannot be set to \"%s\"",
									   setting->text), NULL);
	}
	ea_pin_end(&pin);
}

/* The first owner that is no superuser; the others are faults then. */
static Oid
find_owner(const EaManifest *m, const EaDdlState *state)
{
	ListCell   *lc;

	foreach(lc, state->tables)
	{
		const EaDdlTable *table = lfirst(lc);
		Oid			owner;

		if (!table->of_application)
			continue;
		owner = ea_owner_of_table(ea_ddl_relation(table));
		if (OidIsValid(owner) && !superuser_arg(owner))
			return owner;
	}
	return ea_ddl_tenants_owner(m);
}

void
ea_ddl_find_application(EaDdlPlan *plan)
{
	if (plan->m->service.application_role == NULL)
		return;
	plan->application_role = find_role(plan->m);
	plan->application_owner = find_owner(plan->m, plan->to);
	check_settings(plan->m);
	ea_ddl_check_tenants(plan);
}

/* -------- its rights -------- */

/* Rights that an operation takes: rows are locked before they are deleted. */
static const struct
{
	const char *name;
	EaOperation operation;
	AclMode		mode;
	const char *words;
}			needed[] = {
	{"read", EA_OP_READ, ACL_SELECT, "SELECT"},
	{"create", EA_OP_CREATE, ACL_SELECT | ACL_INSERT, "SELECT, INSERT"},
	{"update", EA_OP_UPDATE, ACL_SELECT | ACL_UPDATE, "SELECT, UPDATE"},
	{"delete", EA_OP_DELETE, ACL_SELECT | ACL_UPDATE | ACL_DELETE,
	"SELECT, UPDATE, DELETE"}
};

/* The right on each column that the entity has, as good as on the table */
static bool
has_on_columns(const EaDdlTable *table, Oid relid, Oid role, AclMode mode)
{
	ListCell   *lc;

	foreach(lc, table->columns)
	{
		const EaDdlColumn *column = lfirst(lc);
		AttrNumber	number = get_attnum(relid, column->name);

		if (number != InvalidAttrNumber &&
			pg_attribute_aclcheck(relid, number, role, mode) != ACLCHECK_OK)
			return false;
	}
	return true;
}

static bool
has_right(const EaDdlTable *table, Oid relid, Oid role, AclMode modes)
{
	for (AclMode mode = 1; mode <= modes; mode <<= 1)
	{
		if ((modes & mode) != 0 &&
			pg_class_aclcheck(relid, role, mode) != ACLCHECK_OK &&
			(mode == ACL_DELETE || !has_on_columns(table, relid, role, mode)))
			return false;
	}
	return true;
}

static List *
add_missing(List *list, char *message, char *hint)
{
	EaDdlMissing *missing = palloc(sizeof(EaDdlMissing));

	missing->message = message;
	missing->hint = hint;
	return lappend(list, missing);
}

List *
ea_ddl_missing_usage(Oid relid, Oid role)
{
	Oid			schema = get_rel_namespace(relid);
	const char *name = quote_identifier(GetUserNameFromId(role, false));
	const char *quoted;

	if (ea_compat_schema_aclcheck(schema, role, ACL_USAGE) == ACLCHECK_OK)
		return NIL;
	quoted = quote_identifier(get_namespace_name(schema));
	return add_missing(NIL, psprintf("%s may not use the schema", name),
					   psprintf("GRANT USAGE ON SCHEMA %s TO %s", quoted,
								name));
}

/* Of what operations take, a mask of EaOperation; reading is always asked. */
static List *
find_missing(const EaDdlTable *table, Oid relid, Oid role, int operations)
{
	const char *name = quote_identifier(GetUserNameFromId(role, false));
	List	   *list = ea_ddl_missing_usage(relid, role);

	for (int i = 0; i < lengthof(needed); i++)
	{
		if (((operations | EA_OP_READ) & needed[i].operation) != 0 &&
			!has_right(table, relid, role, needed[i].mode))
			list = add_missing(list,
							   psprintf("%s may not do what \"%s\" takes",
										name, needed[i].name),
							   psprintf("GRANT %s ON %s TO %s",
										needed[i].words, table->qualified,
										name));
	}
	return list;
}

/* Rows go, or lose a reference, when others are deleted. */
static int
operations_along(EaEntity *entity)
{
	int			operations = ea_acting_keys_deletes(entity) ? EA_OP_DELETE : 0;

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; m < field->nmembers && ea_catalog_has_column(field) &&
			 field->on_delete == EA_SET_NULL; m++)
		{
			if (ea_acting_keys_deletes(ea_catalog_target(field, m)))
				operations |= EA_OP_UPDATE;
		}
	}
	return operations;
}

static void
check_rights(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	EaEntity   *entity = ea_catalog_entity(plan->wanted, table->entity);
	int			operations = operations_along(entity);
	ListCell   *lc;

	for (int i = 0; i < lengthof(needed); i++)
	{
		if (ea_ddl_permits(plan, table, needed[i].name))
			operations |= needed[i].operation;
	}
	foreach(lc, find_missing(table, relid, plan->application_role,
							 operations))
	{
		const EaDdlMissing *missing = lfirst(lc);

		ea_ddl_lacks(plan, table, missing->message, missing->hint);
	}
}

List *
ea_ddl_missing_sequences(Oid relid, Oid role)
{
	const char *name = GetUserNameFromId(role, false);
	List	   *list = NIL;
	char	   *sql =
		psprintf("SELECT DISTINCT d.refobjid::regclass::text FROM pg_attrdef a"
				 " JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass"
				 " AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass"
				 " JOIN pg_class s ON s.oid = d.refobjid"
				 " WHERE a.adrelid = %u AND CASE WHEN s.relkind = 'S' THEN"
				 " NOT has_sequence_privilege(%s, s.oid, 'USAGE, UPDATE')"
				 " ELSE false END",
				 relid, quote_literal_cstr(name));

	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "a look at the catalogs failed");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *sequence = SPI_getvalue(SPI_tuptable->vals[i],
											SPI_tuptable->tupdesc, 1);

		list = add_missing(list, psprintf("%s may not use the sequence %s",
										  name, sequence),
						   psprintf("GRANT USAGE ON SEQUENCE %s TO %s",
									sequence, quote_identifier(name)));
	}
	return list;
}

static void
check_sequences(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	ListCell   *lc;

	if (!ea_ddl_permits(plan, table, "create"))
		return;
	foreach(lc, ea_ddl_missing_sequences(relid, plan->application_role))
	{
		const EaDdlMissing *missing = lfirst(lc);

		ea_ddl_lacks(plan, table, missing->message, missing->hint);
	}
}

/* An extension changes its tables with the next version. */
static void
check_extension(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	Oid			extension = getExtensionOfObject(RelationRelationId, relid);

	if (OidIsValid(extension))
		ea_ddl_lacks(plan, table,
					 psprintf("it is a part of the extension \"%s\"",
							  get_extension_name(extension)), NULL);
}

void
ea_ddl_check_application(EaDdlPlan *plan, const EaDdlTable *table,
						 Relation rel)
{
	Oid			role = plan->application_role;
	ListCell   *lc;

	if (!OidIsValid(role))
		return;					/* said at the role */
	foreach(lc, ea_application_table_faults(rel, role,
											plan->application_owner,
											table->view, table->row_security))
		ea_ddl_lacks(plan, table, lfirst(lc), NULL);
	check_extension(plan, table, RelationGetRelid(rel));
	check_rights(plan, table, RelationGetRelid(rel));
	check_sequences(plan, table, RelationGetRelid(rel));
}

/* -------- keys between the two -------- */

void
ea_ddl_check_sides(EaDdlPlan *plan, const EaDdlTable *table)
{
	ListCell   *lc;

	foreach(lc, table->columns)
	{
		const EaDdlColumn *column = lfirst(lc);
		const EaDdlTable *target = column->target == NULL ? NULL :
			ea_names_map_get(plan->to->by_key, column->target);

		CHECK_FOR_INTERRUPTS();
		if (target == NULL)
			continue;
		if (table->of_application && !target->of_application)
			ea_ddl_fault(plan, table, column->field,
						 psprintf("leads to %s, whose table is not the "
								  "application's: a foreign key would bind "
								  "the application", column->target),
						 "let the other side refer to this one, or keep the "
						 "id in an attribute");
		else if (table->field != NULL && target->of_application)
			ea_ddl_fault(plan, table, column->field,
						 psprintf("the table of %s is the application's, and "
								  "no join table leads there",
								  column->target),
						 "name one that is there (through), or make an "
						 "entity with two references of it");
	}
}

/* -------- what has changed since -------- */

static List *
differ(List *differences, EaDdlTable *table, const char *message,
	   const char *hint)
{
	EaDdlDifference *difference = palloc0(sizeof(EaDdlDifference));

	difference->table = table;
	difference->message = message;
	difference->hint = hint;
	return lappend(differences, difference);
}

/* Operations that callers have by any role */
static int
operations_of(EaEntity *entity)
{
	int			operations = operations_along(entity);

	for (int i = 0; i < entity->npermissions; i++)
		operations |= entity->permissions[i].operations;
	return operations;
}

static List *
compare_opened(List *differences, EaDdlTable *table, Relation rel,
			   EaCatalog *catalog)
{
	const EaApplicationModel *application = catalog->application;
	EaEntity   *entity = ea_catalog_entity(catalog, table->entity);
	const char *column = ea_table_check_fault(entity, RelationGetDescr(rel));
	const char *key = ea_table_check_key_fault(entity, rel);
	ListCell   *lc;

	foreach(lc, ea_application_table_faults(rel, application->role_oid,
											application->owner, table->view,
											table->row_security))
		differences = differ(differences, table,
							 psprintf("the table %s: %s", table->qualified,
									  (char *) lfirst(lc)), EA_DDL_MEND);
	foreach(lc, ea_ddl_tenant_shared(table, entity, RelationGetRelid(rel)))
		differences = differ(differences, table,
							 psprintf("the unique index or exclusion "
									  "constraint \"%s\" of the table %s "
									  "tells tenants of each other's values",
									  (char *) lfirst(lc), table->qualified),
							 psprintf("add %s to it, or, if it is meant, "
									  "global: [%s]",
									  ea_ddl_names_said(table->lead),
									  (char *) lfirst(lc)));
	foreach(lc, find_missing(table, RelationGetRelid(rel),
							 application->role_oid, operations_of(entity)))
	{
		const EaDdlMissing *missing = lfirst(lc);

		differences = differ(differences, table,
							 psprintf("the table %s: %s", table->qualified,
									  missing->message), missing->hint);
	}
	if (key != NULL)
		differences = differ(differences, table, key, EA_DDL_MEND);
	return column == NULL ? differences :
		differ(differences, table, column, EA_DDL_MEND);
}

static List *
compare_table(List *differences, EaDdlTable *table, EaCatalog *catalog)
{
	Oid			relid = ea_ddl_relation(table);
	Relation	rel;

	/* one that is not there, or no table, is told of all tables alike */
	if (!OidIsValid(relid) ||
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return differences;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return differences;
	if (ea_application_is_kind(rel->rd_rel->relkind, table->view))
		differences = compare_opened(differences, table, rel, catalog);
	relation_close(rel, NoLock);
	return differences;
}

List *
ea_ddl_application_differences(EaDdlState *stored, EaCatalog *catalog)
{
	List	   *differences = NIL;
	const char *why = NULL;
	ListCell   *lc;

	if (catalog->application == NULL)
		return NIL;
	ea_application_read(catalog);
	why = ea_application_named_fault(catalog->application->role_oid,
									 catalog->application->role);
	foreach(lc, stored->tables)
	{
		EaDdlTable *table = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (!table->of_application)
			continue;
		if (why != NULL)
			return differ(NIL, table, why, EA_DDL_MEND);
		differences = compare_table(differences, table, catalog);
	}
	return differences;
}
