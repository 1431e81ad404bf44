/*
 * Personal API keys: delegations of a user's identity.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "base/names.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/secret.h"
#include "management/api_key_settings.h"
#include "management/api_keys.h"
#include "management/records.h"
#include "management/users.h"
#include "model/types.h"
#include "request/body.h"
#include "request/errors.h"

/* Keys of one user that are active at once. */
#define MAX_KEYS 50

/* A key that outlives this is as good as one that does not expire. */
#define MAX_YEARS 100

#define KEY_STATUS \
	"CASE WHEN k.status = 'ACTIVE' AND k.expires_at <= $2" \
	" THEN 'EXPIRED' ELSE k.status END"

#define KEY_COLUMNS \
	{"id", "k.id", EA_LIST_UUID}, \
	{"name", "k.name", EA_LIST_STRING}, \
	{"status", KEY_STATUS, EA_LIST_STRING, false, \
	"'enum':['ACTIVE','DISABLED','REVOKED','EXPIRED']"}, \
	{"expiresAt", "k.expires_at", EA_LIST_DATETIME, true}, \
	{"createdAt", "k.created_at", EA_LIST_DATETIME}, \
	{"lastUsedAt", "k.last_used_at", EA_LIST_DATETIME, true}, \
	{"domainRoles", "k.roles", EA_LIST_STRINGS}, \
	{"securityAttributes", "k.security_attributes::text", EA_LIST_OBJECT}

const EaListing ea_api_keys_own = EA_LISTING(
	"entityapi.personal_api_key k WHERE k.account_id = $1",
	KEY_COLUMNS
);

const EaListing ea_api_keys_of_tenant = EA_LISTING(
	"entityapi.personal_api_key k JOIN entityapi.account a"
	" ON a.id = k.account_id WHERE a.tenant_id = $1",
	KEY_COLUMNS,
	{"ownerId", "a.id", EA_LIST_UUID},
	{"ownerUsername", "a.username", EA_LIST_STRING}
);

/* -------- making one -------- */

typedef struct NewKey
{
	char	   *name;
	Datum		roles;			/* text[] */
	Datum		attributes;		/* jsonb */
	bool		expires;
	TimestampTz expires_at;
} NewKey;

static Datum
read_roles(EaRequest *req, const EaJson *array)
{
	const EaPrincipal *principal = req->principal;
	char	  **roles;
	int			nroles = 0;
	int			index = 0;

	if (array == NULL)
		return ea_exec_text_array(NULL, 0);
	roles = palloc(Max(array->count, 1) * sizeof(char *));
	for (const EaJson *item = array->first; item; item = item->next, index++)
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
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  ea_errors_index("/domainRoles", index), "%s", why);
	}
	return ea_exec_text_array(roles, nroles);
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

static Datum
read_attributes(EaRequest *req, const EaJson *object)
{
	const char *json = "{}";
	int			before = req->nproblems;
	Datum		wanted;
	Datum		held;

	if (object != NULL)
		json = pnstrdup(req->body + object->start,
						object->end - object->start);
	wanted = ea_account_object(req, json, "/securityAttributes");
	if (req->nproblems > before)
		return (Datum) 0;
	held = DirectFunctionCall1(jsonb_in,
							   CStringGetDatum(req->principal->attributes));
	ea_exec_one(EA_EXEC_READ, "SELECT e.key FROM jsonb_each($1) e"
				" WHERE $2->e.key IS DISTINCT FROM e.value",
				ea_params(EA_JSONB(wanted), EA_JSONB(held)),
				EA_READER(note_attribute, TEXTOID), req);
	return wanted;
}

static void
read_expiry(EaRequest *req, const EaJson *value, bool needed, NewKey *key)
{
	const char *fault = NULL;
	const char *why;
	int64		longest = INT64CONST(366) * MAX_YEARS * USECS_PER_DAY;
	Datum		at;

	if (value == NULL)
	{
		if (needed)
			ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, "",
						  "The member \"expiresAt\" is required: keys without"
						  " an end are not allowed here.");
		return;
	}
	if (!ea_types_find("datetime")->read(value->text, value->len, true, &at,
										 &why))
		fault = psprintf("\"expiresAt\" %s.", why);
	else if (DatumGetTimestampTz(at) <= req->now)
		fault = "\"expiresAt\" must lie in the future.";
	else if (needed && DatumGetTimestampTz(at) - req->now > longest)
		fault = psprintf("A key expires within %d years.", MAX_YEARS);
	if (fault != NULL)
	{
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, "/expiresAt",
					  "%s", fault);
		return;
	}
	key->expires = true;
	key->expires_at = DatumGetTimestampTz(at);
}

const EaBodyForm ea_api_keys_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1"},
	{"domainRoles", EA_JSON_ARRAY, false},
	{"securityAttributes", EA_JSON_OBJECT, false},
	{"expiresAt", EA_JSON_STRING, false, "'format':'date-time'"}
);

static void
read_new_key(EaRequest *req, const EaKeySettings *settings, NewKey *key)
{
	const EaJson *body = ea_body_json(req);

	ea_body_check(req, body, "", &ea_api_keys_form);
	key->name = ea_account_name(req, body, "", "name");
	key->roles = read_roles(req, ea_body_member(body, "domainRoles",
												EA_JSON_ARRAY));
	key->attributes = read_attributes(req, ea_body_member(body,
														  "securityAttributes",
														  EA_JSON_OBJECT));
	read_expiry(req, ea_body_member(body, "expiresAt", EA_JSON_STRING),
				!settings->allow_non_expiring, key);
	ea_errors_check(req);
}

static void
check_limit(EaRequest *req)
{
	if (ea_exec_write("SELECT 1 FROM entityapi.personal_api_key"
					  " WHERE account_id = $1 AND status = 'ACTIVE'"
					  " AND (expires_at IS NULL OR expires_at > $2)",
					  ea_params(EA_UUID(&req->principal->account),
								EA_TIMESTAMP(req->now))) >= MAX_KEYS)
		ea_errors_throw(req, EA_ERR_INVALID_VALUE, EA_AT_NONE, NULL,
						"You have %d active keys, and more are not possible.",
						MAX_KEYS);
}

static void
insert_key(EaRequest *req, const NewKey *key, const EaSecret *secret,
		   const pg_uuid_t *id)
{
	ea_exec_write("INSERT INTO entityapi.personal_api_key (id, account_id,"
				  " token_id, secret_hash, name, status, roles,"
				  " security_attributes, expires_at, created_at)"
				  " VALUES ($1, $2, $3, $4, $5, 'ACTIVE', $6, $7, $8, $9)",
				  ea_params(EA_UUID(id), EA_UUID(&req->principal->account),
							EA_TEXT(secret->id),
							EA_BYTEA(ea_sha256_stored(secret->hash)),
							EA_TEXT(key->name), EA_TEXTS(key->roles),
							EA_JSONB(key->attributes),
							EA_NULL_IF(!key->expires,
									   EA_TIMESTAMP(key->expires_at)),
							EA_TIMESTAMP(req->now)));
}

/* POST /auth/me/api-keys */
void
ea_api_keys_create(EaRequest *req)
{
	const EaPrincipal *principal = req->principal;
	EaKeySettings settings;
	NewKey		key = {0};
	EaSecret	secret;
	char	   *shown;
	pg_uuid_t	id;

	/* this also lets one request at a time count his keys */
	ea_account_hold_own(req);
	settings = ea_api_keys_settings(principal->has_tenant ?
									&principal->tenant : NULL);
	if (!settings.enabled)
		ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"Personal API keys are switched off.");
	read_new_key(req, &settings, &key);
	check_limit(req);
	shown = ea_secret_make(&secret, EA_SECRET_KEY);
	ea_uuid_make(&id);
	insert_key(req, &key, &secret, &id);
	ea_records_made(req, &ea_api_keys_own, &principal->account, &id, "key",
					shown);
}

/* GET /auth/me/api-keys */
void
ea_api_keys_list(EaRequest *req)
{
	ea_records_page(req, &ea_api_keys_own, &req->principal->account);
}

/* POST /auth/me/api-keys/{keyId}/disable */
void
ea_api_keys_disable(EaRequest *req)
{
	const pg_uuid_t *owner = &req->principal->account;
	pg_uuid_t	id;

	ea_users_id(req, 0, &id);
	ea_exec_write("UPDATE entityapi.personal_api_key SET status = 'DISABLED'"
				  " WHERE id = $1 AND account_id = $2 AND status = 'ACTIVE'",
				  ea_params(EA_UUID(&id), EA_UUID(owner)));
	ea_records_one(req, &ea_api_keys_own, owner, &id, NULL, NULL);
}

/* POST /manage/tenants/{id}/personal-api-keys/{keyId}/revoke */
void
ea_api_keys_revoke(EaRequest *req)
{
	pg_uuid_t	tenant;
	pg_uuid_t	id;

	ea_users_tenant(req, &tenant);
	ea_users_id(req, 1, &id);
	ea_exec_write("UPDATE entityapi.personal_api_key k SET status = 'REVOKED'"
				  " FROM entityapi.account a WHERE k.id = $1"
				  " AND a.id = k.account_id AND a.tenant_id = $2",
				  ea_params(EA_UUID(&id), EA_UUID(&tenant)));
	ea_records_one(req, &ea_api_keys_of_tenant, &tenant, &id, NULL, NULL);
}
