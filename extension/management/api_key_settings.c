#include "postgres.h"

#include "audit/audit.h"
#include "engine/exec.h"
#include "identity/api_key.h"
#include "management/api_key_settings.h"
#include "request/route.h"

/* Enabled and allowNonExpiring; stored as null where they are inherited. */
#define NSETTINGS 2

/* The settings of tenants that have none of their own. */
const EaRecord ea_api_key_settings = {
	.schema = "ApiKeySettings",
	.scope = EA_OF_SERVICE,
	.table = "(SELECT '00000000-0000-0000-0000-000000000000'::uuid AS id)",
	.rows = " WHERE $1 IS NULL",
	EA_RECORD_COLUMNS(
		{"enabled", EA_KEYS_ENABLED("$1"), EA_LIST_BOOLEAN},
		{"allowNonExpiring", EA_KEYS_NON_EXPIRING("$1"), EA_LIST_BOOLEAN}
	)
};

const EaRecord ea_api_key_settings_of_tenant = {
	.schema = "TenantApiKeySettings",
	.scope = EA_OF_TENANT,
	.table = "entityapi.tenant",
	.rows = " LEFT JOIN entityapi.personal_api_key_setting s"
	" ON s.tenant_id = r.id WHERE r.id = $1",
	EA_RECORD_COLUMNS(
		{"enabled", "s.enabled", EA_LIST_BOOLEAN, true,
		"'description':'null: inherited'"},
		{"allowNonExpiring", "s.allow_non_expiring", EA_LIST_BOOLEAN, true,
		"'description':'null: inherited'"},
		{"effective", "pg_catalog.json_build_object('enabled', "
			EA_KEYS_ENABLED("$1") ", 'allowNonExpiring', "
			EA_KEYS_NON_EXPIRING("$1") ")::text", EA_LIST_OBJECT, false,
		"'$ref':'#/components/schemas/ApiKeySettings'"}
	)
};

const EaBodyForm ea_api_key_settings_form = EA_BODY_FORM(
	{"enabled", EA_JSON_BOOL, false},
	{"allowNonExpiring", EA_JSON_BOOL, false}
);

static void
read_effective(void *arg, TupleTableSlot *slot)
{
	EaKeySettings *settings = arg;

	settings->enabled = DatumGetBool(slot->tts_values[0]);
	settings->allow_non_expiring = DatumGetBool(slot->tts_values[1]);
}

EaKeySettings
ea_api_keys_settings(const pg_uuid_t *tenant)
{
	EaKeySettings settings;

	ea_exec_one(EA_EXEC_WRITE, "SELECT " EA_KEYS_ENABLED("$1") ", "
				EA_KEYS_NON_EXPIRING("$1"),
				ea_params(EA_NULLABLE_UUID(tenant)),
				EA_READER(read_effective, BOOLOID, BOOLOID), &settings);
	return settings;
}

static const char *
setting_text(bool isnull, bool value)
{
	return isnull ? "null" : value ? "true" : "false";
}

static void
read_own(void *arg, TupleTableSlot *slot)
{
	const char **own = arg;

	for (int i = 0; i < NSETTINGS; i++)
		own[i] = setting_text(slot->tts_isnull[i],
							  DatumGetBool(slot->tts_values[i]));
}

/* A member that is absent or null is inherited from now on. */
static void
replace_settings(EaRequest *req, const EaJson *body, const pg_uuid_t *tenant)
{
	EaValue		values[NSETTINGS];
	const char *before[NSETTINGS] = {"null", "null"};

	ea_exec_one(EA_EXEC_WRITE, "SELECT enabled, allow_non_expiring"
				" FROM entityapi.personal_api_key_setting"
				" WHERE tenant_id IS NOT DISTINCT FROM $1 FOR NO KEY UPDATE",
				ea_params(EA_NULLABLE_UUID(tenant)),
				EA_READER(read_own, BOOLOID, BOOLOID), before);
	for (int i = 0; i < NSETTINGS; i++)
	{
		const char *name = ea_api_key_settings_form.rules[i].name;
		const EaJson *member = ea_body_member(body, name, EA_JSON_BOOL);
		const char *after = setting_text(member == NULL,
										 member != NULL && member->truth);

		values[i] = EA_NULL_IF(member == NULL,
							   EA_BOOL(member != NULL && member->truth));
		if (strcmp(before[i], after) != 0)
			ea_audit_own_change(req, name, before[i], after, true);
	}
	ea_exec_write("INSERT INTO entityapi.personal_api_key_setting"
				  " (tenant_id, enabled, allow_non_expiring)"
				  " VALUES ($1, $2, $3) ON CONFLICT (tenant_id) DO UPDATE"
				  " SET enabled = $2, allow_non_expiring = $3",
				  ea_params(EA_NULLABLE_UUID(tenant), values[0], values[1]));
}

/* PUT .../settings/personal-api-keys */
void
ea_api_keys_set(EaRequest *req)
{
	EaDraft		draft = {.req = req, .record = req->route->record};
	const EaJson *body = ea_body_read(req, &ea_api_key_settings_form);

	ea_records_locate(&draft);
	replace_settings(req, body, draft.record->scope == EA_OF_TENANT ?
					 &draft.scope : NULL);
	ea_records_show(req);
}
