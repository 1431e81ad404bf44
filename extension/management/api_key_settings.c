/*
 * Settings of personal API keys: of a tenant, and for all that have none.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "audit/audit.h"
#include "base/jsonfmt.h"
#include "engine/exec.h"
#include "identity/api_key.h"
#include "management/api_key_settings.h"
#include "management/users.h"
#include "request/body.h"

/* A setting as it is stored: true, false, or inherited. */
typedef struct Setting
{
	bool		isnull;
	bool		value;
} Setting;

typedef struct SettingRow
{
	Setting		enabled;
	Setting		allow_non_expiring;
} SettingRow;

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

static void
read_own(void *arg, TupleTableSlot *slot)
{
	SettingRow *row = arg;

	row->enabled.isnull = slot->tts_isnull[0];
	row->enabled.value = DatumGetBool(slot->tts_values[0]);
	row->allow_non_expiring.isnull = slot->tts_isnull[1];
	row->allow_non_expiring.value = DatumGetBool(slot->tts_values[1]);
}

/* What is stored for a tenant, or for all that have nothing: as it is held. */
static SettingRow
find_own(const pg_uuid_t *tenant)
{
	SettingRow	row = {{true}, {true}};

	ea_exec_one(EA_EXEC_WRITE, "SELECT enabled, allow_non_expiring"
				" FROM entityapi.personal_api_key_setting"
				" WHERE tenant_id IS NOT DISTINCT FROM $1 FOR NO KEY UPDATE",
				ea_params(EA_NULLABLE_UUID(tenant)),
				EA_READER(read_own, BOOLOID, BOOLOID), &row);
	return row;
}

static const char *
setting_text(Setting setting)
{
	return setting.isnull ? "null" : setting.value ? "true" : "false";
}

static void
note_change(EaRequest *req, const char *name, Setting before,
			const EaJson *after)
{
	Setting		now = {after == NULL, after != NULL && after->truth};

	ea_users_note_change(req, name, setting_text(before), setting_text(now),
						 true);
}

static void
write_effective(StringInfo out, const pg_uuid_t *tenant)
{
	EaKeySettings settings = ea_api_keys_settings(tenant);

	ea_jsonfmt_put(out, "{'enabled':%b,'allowNonExpiring':%b}",
				   settings.enabled, settings.allow_non_expiring);
}

static void
show_tenant(EaRequest *req, const pg_uuid_t *tenant)
{
	SettingRow	row = {{true}, {true}};

	ea_exec_one(EA_EXEC_WRITE, "SELECT enabled, allow_non_expiring"
				" FROM entityapi.personal_api_key_setting"
				" WHERE tenant_id = $1", ea_params(EA_UUID(tenant)),
				EA_READER(read_own, BOOLOID, BOOLOID), &row);
	ea_jsonfmt_put(req->out, "{'enabled':%s,'allowNonExpiring':%s,"
				   "'effective':", setting_text(row.enabled),
				   setting_text(row.allow_non_expiring));
	write_effective(req->out, tenant);
	appendStringInfoChar(req->out, '}');
	req->status = 200;
}

/* GET /manage/settings/personal-api-keys */
void
ea_api_keys_show_global(EaRequest *req)
{
	write_effective(req->out, NULL);
	req->status = 200;
}

/* GET /manage/tenants/{id}/settings/personal-api-keys */
void
ea_api_keys_show_tenant(EaRequest *req)
{
	pg_uuid_t	tenant;

	ea_users_tenant(req, &tenant);
	show_tenant(req, &tenant);
}

static const EaMemberRule setting_rules[] = {
	{"enabled", EA_JSON_BOOL, false},
	{"allowNonExpiring", EA_JSON_BOOL, false}
};

const EaBodyForm ea_api_keys_settings_form = EA_BODY_FORM(setting_rules);

/* A member that is absent or null is inherited from now on. */
static void
replace(EaRequest *req, const pg_uuid_t *tenant)
{
	const EaJson *body = ea_body_read(req, setting_rules,
									  lengthof(setting_rules));
	EaValue		values[lengthof(setting_rules)];
	SettingRow	row = find_own(tenant);
	Setting		before[] = {row.enabled, row.allow_non_expiring};

	for (int i = 0; i < lengthof(setting_rules); i++)
	{
		const EaJson *member = ea_body_member(body, setting_rules[i].name,
											  EA_JSON_BOOL);

		values[i] = EA_NULL_IF(member == NULL,
							   EA_BOOL(member != NULL && member->truth));
		note_change(req, setting_rules[i].name, before[i], member);
	}
	ea_exec_write("INSERT INTO entityapi.personal_api_key_setting"
				  " (tenant_id, enabled, allow_non_expiring)"
				  " VALUES ($1, $2, $3) ON CONFLICT (tenant_id) DO UPDATE"
				  " SET enabled = $2, allow_non_expiring = $3",
				  ea_params(EA_NULLABLE_UUID(tenant), values[0], values[1]));
}

/* PUT /manage/tenants/{id}/settings/personal-api-keys */
void
ea_api_keys_set_tenant(EaRequest *req)
{
	pg_uuid_t	tenant;

	ea_users_tenant(req, &tenant);
	replace(req, &tenant);
	show_tenant(req, &tenant);
}

/* PUT /manage/settings/personal-api-keys */
void
ea_api_keys_set_global(EaRequest *req)
{
	replace(req, NULL);
	ea_api_keys_show_global(req);
}
