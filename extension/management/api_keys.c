#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/names.h"
#include "identity/account.h"
#include "management/api_key_settings.h"
#include "management/api_keys.h"
#include "management/members.h"
#include "model/types.h"
#include "request/errors.h"

/* Keys of one user that are active at once. */
#define MAX_KEYS 50

/* A key that outlives this is as good as one that does not expire. */
#define MAX_YEARS 100

static EaValue
read_roles(EaDraft *draft, const EaJson *array, const char *pointer)
{
	const EaPrincipal *principal = draft->req->principal;
	int			most = array == NULL ? 1 : array->count + 1;
	char	  **roles = palloc(most * sizeof(char *));
	int			nroles = 0;
	int			index = 0;

	for (const EaJson *item = array ? array->first : NULL; item;
		 item = item->next, index++)
	{
		const char *why = NULL;

		CHECK_FOR_INTERRUPTS();
		if (item->kind != EA_JSON_STRING)
			why = "A role is named by a string.";
		else if (!ea_names_contain(principal->roles, principal->nroles,
								   item->text))
			why = "You do not have this role.";
		else if (ea_names_contain(roles, nroles, item->text))
			why = "This role is named twice.";
		else
			roles[nroles++] = item->text;
		if (why != NULL)
			ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  ea_errors_index(pointer, index), "%s", why);
	}
	return EA_TEXTS(ea_exec_text_array(roles, nroles));
}

/* Row: an attribute that the caller does not have with that value. */
static void
note_attribute(void *arg, TupleTableSlot *slot)
{
	ea_errors_add((EaRequest *) arg, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
				  ea_errors_pointer("/securityAttributes",
									TextDatumGetCString(slot->tts_values[0])),
				  "You do not have this security attribute with this value.");
}

static EaValue
read_attributes(EaDraft *draft, const EaJson *object, const char *pointer)
{
	EaRequest  *req = draft->req;
	EaValue		wanted = ea_members_object(draft, object, pointer);

	if (!wanted.isnull)
		ea_exec_one(EA_EXEC_READ, "SELECT e.key FROM jsonb_each($1) e"
					" WHERE $2::jsonb->e.key IS DISTINCT FROM e.value",
					ea_params(wanted, EA_TEXT(req->principal->attributes)),
					EA_READER(note_attribute, TEXTOID), req);
	return wanted;
}

/* NULL for a moment that a key may expire at, else why it may not. */
static const char *
expiry_fault(const EaDraft *draft, const EaJson *sent, Datum *at)
{
	const EaKeySettings *settings = draft->own;
	TimestampTz now = draft->req->now;
	int64		longest = INT64CONST(366) * MAX_YEARS * USECS_PER_DAY;
	const char *why;

	if (!ea_types_find("datetime")->read(sent->text, sent->len, true, at,
										 &why))
		return psprintf("The member \"expiresAt\" %s.", why);
	if (DatumGetTimestampTz(*at) <= now)
		return "The member \"expiresAt\" must lie in the future.";
	if (!settings->allow_non_expiring &&
		DatumGetTimestampTz(*at) - now > longest)
		return psprintf("A key expires within %d years.", MAX_YEARS);
	return NULL;
}

static EaValue
read_expiry(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	const EaKeySettings *settings = draft->own;
	const char *fault = NULL;
	Datum		at = 0;

	if (sent != NULL)
		fault = expiry_fault(draft, sent, &at);
	else if (!settings->allow_non_expiring)
		ea_errors_add(draft->req, EA_ERR_REQUIRED, EA_AT_POINTER, "",
					  "The member \"expiresAt\" is required: keys without"
					  " an end are not allowed here.");
	if (fault != NULL)
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "%s", fault);
	return ea_value(TIMESTAMPTZOID, at, sent == NULL);
}

/* The settings become the draft's own. */
static void
check_settings(EaDraft *draft)
{
	const EaPrincipal *principal = draft->req->principal;
	EaKeySettings *settings = palloc(sizeof(EaKeySettings));

	/* this also lets one request at a time count the user's keys */
	ea_account_hold_own(draft->req);
	*settings = ea_api_keys_settings(principal->has_tenant ?
									 &principal->tenant : NULL);
	if (!settings->enabled)
		ea_errors_throw(draft->req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"Personal API keys are switched off.");
	draft->own = settings;
}

static void
check_limit(EaDraft *draft)
{
	if (ea_exec_write("SELECT 1 FROM entityapi.personal_api_key"
					  " WHERE account_id = $1 AND status = 'ACTIVE'"
					  " AND (expires_at IS NULL OR expires_at > $2)",
					  ea_params(EA_UUID(&draft->scope),
								EA_TIMESTAMP(draft->req->now))) >= MAX_KEYS)
		ea_errors_throw(draft->req, EA_ERR_INVALID_VALUE, EA_AT_NONE, NULL,
						"You have %d active keys, and more are not possible.",
						MAX_KEYS);
}

#define KEY_COLUMNS \
	{"id", "r.id", EA_LIST_UUID}, \
	{"name", "r.name", EA_LIST_STRING}, \
	{"status", "CASE WHEN r.status = 'ACTIVE' AND r.expires_at <= $2" \
		" THEN 'EXPIRED' ELSE r.status END", EA_LIST_STRING, false, \
	"'enum':['ACTIVE','DISABLED','REVOKED','EXPIRED']"}, \
	{"expiresAt", "r.expires_at", EA_LIST_DATETIME, true}, \
	{"createdAt", "r.created_at", EA_LIST_DATETIME}, \
	{"lastUsedAt", "r.last_used_at", EA_LIST_DATETIME, true}, \
	{"domainRoles", "r.roles", EA_LIST_STRINGS}, \
	{"securityAttributes", "r.security_attributes::text", EA_LIST_OBJECT}

const EaRecord ea_api_keys = {
	.schema = "ApiKey",
	.scope = EA_OF_CALLER,
	.table = "entityapi.personal_api_key",
	.rows = " WHERE r.account_id = $1",
	EA_RECORD_COLUMNS(KEY_COLUMNS),
	.owner = "account_id",
	.fixed = "status",
	.fixed_values = "'ACTIVE'",
	.secret = "key",
	.secret_prefix = EA_SECRET_KEY,
	.made_schema = "'key':{'type':'string','description':'The value of "
	"X-API-Key; shown this once'}",
	.before = check_settings,
	.store = check_limit
};

const EaBodyForm ea_api_keys_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1", false, ea_members_name,
	"name"},
	{"domainRoles", EA_JSON_ARRAY, false, NULL, false, read_roles, "roles"},
	{"securityAttributes", EA_JSON_OBJECT, false, NULL, false,
	read_attributes, "security_attributes"},
	{"expiresAt", EA_JSON_STRING, false, "'format':'date-time'", false,
	read_expiry, "expires_at"}
);

const EaRecord ea_api_keys_of_tenant = {
	.schema = "TenantApiKey",
	.scope = EA_OF_TENANT,
	.table = "entityapi.personal_api_key",
	.rows = " JOIN entityapi.account a ON a.id = r.account_id"
	" WHERE a.tenant_id = $1",
	EA_RECORD_COLUMNS(
		KEY_COLUMNS,
		{"ownerId", "a.id", EA_LIST_UUID},
		{"ownerUsername", "a.username", EA_LIST_STRING}
	)
};
