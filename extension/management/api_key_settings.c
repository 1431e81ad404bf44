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

/* Enabled and allowNonExpiring; stored as null where they are inherited. */
#define NSETTINGS 2
#define OWN_SETTINGS \
	"SELECT enabled, allow_non_expiring" \
	" FROM entityapi.personal_api_key_setting WHERE tenant_id"

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

/* What is stored for a tenant, or for all that have nothing. */
static void
find_own(const char *sql, const pg_uuid_t *tenant, const char **own)
{
	own[0] = own[1] = "null";
	ea_exec_one(EA_EXEC_WRITE, sql, ea_params(EA_NULLABLE_UUID(tenant)),
				EA_READER(read_own, BOOLOID, BOOLOID), own);
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
	const char *own[NSETTINGS];

	find_own(OWN_SETTINGS " = $1", tenant, own);
	ea_jsonfmt_put(req->out, "{'enabled':%s,'allowNonExpiring':%s,"
				   "'effective':", own[0], own[1]);
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

const EaBodyForm ea_api_keys_settings_form = EA_BODY_FORM(
	{"enabled", EA_JSON_BOOL, false},
	{"allowNonExpiring", EA_JSON_BOOL, false}
);

/* A member that is absent or null is inherited from now on. */
static void
replace(EaRequest *req, const pg_uuid_t *tenant)
{
	const EaJson *body = ea_body_read(req, &ea_api_keys_settings_form);
	EaValue		values[NSETTINGS];
	const char *before[NSETTINGS];

	find_own(OWN_SETTINGS " IS NOT DISTINCT FROM $1 FOR NO KEY UPDATE", tenant,
			 before);
	for (int i = 0; i < NSETTINGS; i++)
	{
		const char *name = ea_api_keys_settings_form.rules[i].name;
		const EaJson *member = ea_body_member(body, name, EA_JSON_BOOL);
		bool		value = member != NULL && member->truth;

		values[i] = EA_NULL_IF(member == NULL, EA_BOOL(value));
		ea_users_note_change(req, name, before[i],
							 setting_text(member == NULL, value), true);
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
