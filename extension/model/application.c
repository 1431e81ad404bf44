/*
 * Checks of a table here keep two owners apart: no statement of the service
 * writes it with other rights than those of the role, and no code on it is of
 * a third one.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "base/grow.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "model/application.h"
#include "model/tenant_table.h"
#include "trust/owner.h"

/* Of PostgreSQL, where neither the Service nor the role says another. */
#define USUAL_PATH "\"$user\", public"

/* -------- as it is declared -------- */

static void
add_setting(EaApplicationModel *model, int *most, const char *name,
			char *value, bool declared)
{
	EaApplicationSetting *setting =
		EA_GROW_ARRAY(model->settings, model->nsettings, *most);

	setting->name = pstrdup(name);
	setting->value = value;
	setting->declared = declared;
}

/* Names of schemas, as the setting search_path takes them. */
static char *
make_path(const EaJson *schemas)
{
	StringInfoData path;

	initStringInfo(&path);
	for (const EaJson *schema = schemas->first; schema; schema = schema->next)
		appendStringInfo(&path, "%s, ", quote_identifier(schema->text));
	appendStringInfoString(&path, "pg_temp");
	return path.data;
}

static EaTenantTable *
load_tenants(const EaJson *json)
{
	EaTenantTable *table;

	if (json == NULL)
		return NULL;
	table = palloc(sizeof(EaTenantTable));
	table->schema = pstrdup(ea_jsonread_string(json, "schema"));
	table->table = pstrdup(ea_jsonread_string(json, "table"));
	table->id = pstrdup(ea_jsonread_string(json, "id"));
	table->name = pstrdup(ea_jsonread_string(json, "name"));
	return table;
}

void
ea_application_load(EaCatalog *catalog, const EaJson *json)
{
	EaApplicationModel *model;
	const EaJson *schemas;
	const EaJson *settings;
	int			most = 0;

	if (json == NULL)
		return;
	model = palloc0(sizeof(EaApplicationModel));
	model->role = pstrdup(ea_jsonread_string(json, "role"));
	schemas = ea_jsonread_get(json, "searchPath");
	if (schemas != NULL && schemas->first != NULL)
		add_setting(model, &most, "search_path", make_path(schemas), true);
	settings = ea_jsonread_get(json, "settings");
	for (const EaJson *setting = settings ? settings->first : NULL;
		 setting; setting = setting->next)
		add_setting(model, &most, setting->key, pstrdup(setting->text), true);
	model->tenants = load_tenants(ea_jsonread_get(json, "tenants"));
	catalog->application = model;
}

/* -------- as it was applied -------- */

/*
 * The role, the owner of its tables, and what ALTER ROLE and ALTER DATABASE
 * set of what the Service may: the nearest of these counts, as at a login.
 */
static const char statement[] =
"SELECT a.role::oid, coalesce(a.owner, 0)::oid, c.name, c.value"
" FROM entityapi.application a LEFT JOIN LATERAL ("
"SELECT DISTINCT ON (lower(n.name)) n.name,"
" substr(x.setting, length(n.name) + 2) AS value"
" FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) x (setting)"
" CROSS JOIN LATERAL split_part(x.setting, '=', 1) n (name)"
" WHERE s.setrole IN (0, a.role::oid) AND s.setdatabase IN (0,"
" (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))"
" AND (lower(n.name) IN ('search_path', 'timezone') OR n.name ~ '[.]'"
" AND n.name !~* '^(entityapi|citus|plpgsql|auto_explain"
"|pg_stat_statements)[.]')"
" ORDER BY lower(n.name), s.setrole <> 0 DESC, s.setdatabase <> 0 DESC"
") c ON true";

typedef struct Reading
{
	EaCatalog  *catalog;
	int			most;
} Reading;

static bool
has_setting(const EaApplicationModel *model, const char *name)
{
	for (int i = 0; i < model->nsettings; i++)
	{
		if (pg_strcasecmp(model->settings[i].name, name) == 0)
			return true;
	}
	return false;
}

static void
read_row(void *arg, TupleTableSlot *slot)
{
	Reading    *reading = arg;
	EaApplicationModel *model = reading->catalog->application;
	MemoryContext old = MemoryContextSwitchTo(reading->catalog->mcxt);

	model->role_oid = DatumGetObjectId(slot->tts_values[0]);
	model->owner = DatumGetObjectId(slot->tts_values[1]);
	if (!slot->tts_isnull[2])
	{
		char	   *name = TextDatumGetCString(slot->tts_values[2]);

		if (!has_setting(model, name))
			add_setting(model, &reading->most, name,
						TextDatumGetCString(slot->tts_values[3]), false);
	}
	MemoryContextSwitchTo(old);
}

void
ea_application_read(EaCatalog *catalog)
{
	EaApplicationModel *model = catalog->application;
	Reading		reading = {catalog, model->nsettings};
	MemoryContext old;

	ea_exec_latest(EA_EXEC_LOOK, statement, EA_NO_PARAMS,
				   EA_READER(read_row, OIDOID, OIDOID, TEXTOID, TEXTOID),
				   &reading);
	old = MemoryContextSwitchTo(catalog->mcxt);
	if (!has_setting(model, "search_path"))
		add_setting(model, &reading.most, "search_path", USUAL_PATH, false);
	MemoryContextSwitchTo(old);

	/* tables that are known are so as those of the role of before */
	ea_held_all_changed();
}

/* -------- for a request -------- */

/* The text of a member of an object of the caller's; "" if there is none. */
static const char *
text_of_member(const char *object, const char *key, int len)
{
	EaJsonFault fault;
	const EaJson *json = object == NULL ? NULL :
		ea_jsonread_parse(object, strlen(object), EA_JSON_MAX_DEPTH, &fault);
	const EaJson *value = json == NULL ? NULL :
		ea_jsonread_get(json, pnstrdup(key, len));

	if (value == NULL || value->text == NULL)
		return value != NULL && value->kind == EA_JSON_BOOL ?
			(value->truth ? "true" : "false") : "";
	return value->text;
}

static const char *
text_of_caller(const EaPrincipal *principal, const char *path)
{
	static const char *const kinds[] = {
		[EA_KIND_USER] = "USER",
		[EA_KIND_SERVICE_ACCOUNT] = "SERVICE_ACCOUNT",
		[EA_KIND_PERSONAL_API_KEY] = "PERSONAL_API_KEY"
	};
	static const char profile[] = "#user.profile['";
	static const char attributes[] = "#user.securityAttributes['";
	int			len = strlen(path) - 2;

	if (principal == NULL)
		return "";
	if (strcmp(path, "#user.userId") == 0)
		return principal->user_id;
	if (strcmp(path, "#user.username") == 0)
		return principal->username == NULL ? "" : principal->username;
	if (strcmp(path, "#user.kind") == 0)
		return kinds[principal->kind];
	if (strcmp(path, "#user.tenantId") == 0)
		return principal->has_tenant ? ea_uuid_text(&principal->tenant) : "";
	if (strncmp(path, profile, sizeof(profile) - 1) == 0)
		return text_of_member(principal->profile, path + sizeof(profile) - 1,
							  len - (int) sizeof(profile) + 1);
	return text_of_member(principal->attributes,
						  path + sizeof(attributes) - 1,
						  len - (int) sizeof(attributes) + 1);
}

/*
 * One that the role has of its own may be of an extension's that takes it of
 * superusers alone: then it is as the session has it.
 */
static void
set_all(void *arg, bool path)
{
	const EaRequest *req = arg;
	const EaApplicationModel *model = req->catalog->application;

	for (int i = 0; i < model->nsettings; i++)
	{
		const EaApplicationSetting *setting = &model->settings[i];
		const char *value = setting->value;

		if (!path && strcmp(setting->name, "search_path") == 0)
			continue;
		if (setting->declared && value[0] == '#')
			value = text_of_caller(req->principal, value);
		(void) set_config_option(setting->name, value, PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true,
								 setting->declared ? 0 : DEBUG5, false);
	}
}

bool
ea_application_has_tenants(const EaCatalog *catalog)
{
	return catalog->application != NULL &&
		catalog->application->tenants != NULL;
}

const EaApplication *
ea_application_of(EaRequest *req)
{
	const EaApplicationModel *model = req->catalog->application;
	EaApplication *application;

	if (req->application != NULL)
		return req->application;
	application = MemoryContextAllocZero(req->mcxt, sizeof(EaApplication));
	application->name = model->role;
	application->role = model->role_oid;
	application->owner = model->owner;
	application->set = set_all;
	application->arg = req;
	req->application = application;
	return application;
}

/* -------- tables -------- */

#define ACL_WRITES (ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE)

static bool
may_write(Oid relid, Oid role)
{
	return pg_class_aclmask(relid, role, ACL_WRITES, ACLMASK_ANY) != 0 ||
		pg_attribute_aclcheck_all(relid, role, ACL_INSERT,
								  ACLMASK_ANY) == ACLCHECK_OK ||
		pg_attribute_aclcheck_all(relid, role, ACL_UPDATE,
								  ACLMASK_ANY) == ACLCHECK_OK;
}

bool
ea_application_is_kind(char relkind, bool view)
{
	switch (relkind)
	{
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
			return view;
		default:
			return !view && (relkind == RELKIND_RELATION ||
							 relkind == RELKIND_PARTITIONED_TABLE);
	}
}

/*
 * Rows that are written to a table with partitions are written to these, and
 * so is what others have put on them.
 */
static List *
partition_faults(Relation rel, Oid owner, List *faults)
{
	ListCell   *lc;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return faults;
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), NoLock, NULL))
	{
		Oid			relid = lfirst_oid(lc);
		Oid			own = ea_owner_of_table(relid);
		char		kind = get_rel_relkind(relid);

		CHECK_FOR_INTERRUPTS();
		if (relid == RelationGetRelid(rel) || !OidIsValid(own))
			continue;
		ea_held_watch(AUTHOID, own);
		if (!superuser_arg(own) && own != owner)
			faults = lappend(faults,
							 psprintf("its partition %s belongs to %s",
									  get_rel_name(relid),
									  GetUserNameFromId(own, true)));
		if (may_write(relid, get_role_oid(EA_OWNER, false)))
			faults = lappend(faults,
							 psprintf(EA_OWNER " may write its partition %s",
									  get_rel_name(relid)));
		if ((kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE) ||
			get_rel_persistence(relid) != RELPERSISTENCE_PERMANENT)
			faults = lappend(faults,
							 psprintf("its partition %s is no ordinary table",
									  get_rel_name(relid)));
	}
	return faults;
}

List *
ea_application_table_faults(Relation rel, Oid role, Oid owner,
							bool view, bool may_hide)
{
	Oid			relid = RelationGetRelid(rel);
	Oid			own = rel->rd_rel->relowner;
	List	   *faults = NIL;

	if (!ea_application_is_kind(rel->rd_rel->relkind, view))
		faults = lappend(faults, view ? "it is no view by now" :
						 "it is no table by now");
	else if (rel->rd_rel->relispartition)
		faults = lappend(faults, "it is a partition of another table by now");
	ea_held_watch(AUTHOID, own);
	ea_held_watch(AUTHOID, role);
	if (!superuser_arg(own) && own != owner)
		faults = lappend(faults,
						 psprintf("it belongs to %s, and the other tables of "
								  "the application do not",
								  GetUserNameFromId(own, true)));
	if (may_write(relid, get_role_oid(EA_OWNER, false)))
		faults = lappend(faults,
						 EA_OWNER " may write it, and so would run code of "
						 "the application that is on it");
	if (!may_hide && check_enable_rls(relid, role, true) == RLS_ENABLED)
		faults = lappend(faults,
						 psprintf("row-level security binds %s, so not all "
								  "rows would be seen",
								  GetUserNameFromId(role, true)));
	if (!view && rel->rd_rules != NULL)
		faults = lappend(faults, "rewrite rules change what the service's "
						 "statements do");
	if (rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relhassubclass &&
		find_inheritance_children(relid, NoLock) != NIL)
		faults = lappend(faults, "another table inherits from it, whose rows "
						 "would be among its own");
	return partition_faults(rel, owner, faults);
}

void
ea_application_check_table(const EaCatalog *catalog, Relation rel, bool view,
						   bool may_hide)
{
	const EaApplicationModel *model = catalog->application;
	List	   *faults;

	if (model == NULL)
		elog(ERROR, "a table of an application without one");
	faults = ea_application_table_faults(rel, model->role_oid, model->owner,
										 view, may_hide);
	if (rel->rd_rel->relowner == get_role_oid(EA_OWNER, false))
		faults = list_make1("it belongs to " EA_OWNER " by now, and to no "
							"application");
	if (faults != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table %s is not used: %s",
						RelationGetRelationName(rel),
						(char *) linitial(faults)),
				 errhint("Applying the manifests again tells what is "
						 "missing.")));
}
