#include "postgres.h"

#include "base/compat.h"
#include "base/uuid.h"
#include "identity/account.h"
#include "identity/principal_json.h"

/* Bytes of a user id. */
#define LONGEST_ID 255

/* A member of a kind, or NULL when it is absent or null. */
static const EaJson *
find_member(const EaJson *json, const char *name, EaJsonKind kind,
			const char **why)
{
	const EaJson *value = ea_jsonread_get(json, name);

	if (value == NULL || value->kind == EA_JSON_NULL)
		return NULL;
	if (value->kind != kind)
	{
		*why = psprintf("\"%s\" has a wrong type", name);
		return NULL;
	}
	return value;
}

static bool
read_flag(const EaJson *json, const char *name, const char **why)
{
	const EaJson *value = find_member(json, name, EA_JSON_BOOL, why);

	return value != NULL && value->truth;
}

static char **
read_strings(const EaJson *json, const char *name, int *n, const char **why)
{
	const EaJson *list = find_member(json, name, EA_JSON_ARRAY, why);
	char	  **items;

	*n = 0;
	if (list == NULL)
		return NULL;
	items = palloc(Max(list->count, 1) * sizeof(char *));
	for (const EaJson *item = list->first; item; item = item->next)
	{
		if (item->kind != EA_JSON_STRING)
			*why = psprintf("\"%s\" has a wrong type", name);
		else
			items[(*n)++] = pstrdup(item->text);
	}
	return items;
}

/* The text of an object; an empty one when it is absent. */
static char *
read_object(const EaJson *json, const char *name, const char *source,
			const char **why)
{
	const EaJson *value = find_member(json, name, EA_JSON_OBJECT, why);

	return value == NULL ? pstrdup("{}") :
		pnstrdup(source + value->start, value->end - value->start);
}

static char *
read_text(const EaJson *json, const char *name, const char **why)
{
	const EaJson *value = find_member(json, name, EA_JSON_STRING, why);

	return value == NULL ? NULL : pstrdup(value->text);
}

/* A missing kind is a user's. */
static EaKind
read_kind(const EaJson *json, const char **why)
{
	const char *name = read_text(json, "kind", why);
	EaKind		kind = EA_KIND_USER;

	if (name != NULL && !ea_account_find_kind(name, &kind))
		*why = "\"kind\" is unknown";
	return kind;
}

static void
read_tenant(const EaJson *json, EaPrincipal *principal, const char **why)
{
	const char *tenant = read_text(json, "tenantId", why);

	principal->has_tenant = tenant != NULL;
	if (tenant != NULL &&
		!ea_uuid_parse(tenant, strlen(tenant), &principal->tenant))
		*why = "\"tenantId\" is no tenant's";
	else if (tenant == NULL && !principal->super_admin)
		*why = "\"tenantId\" is missing";
}

EaPrincipal *
ea_principal_read(const EaJson *json, const char *source, const char **why)
{
	EaPrincipal *principal = palloc0(sizeof(EaPrincipal));
	char	  **scopes;
	int			nscopes;

	*why = NULL;
	if (json == NULL || json->kind != EA_JSON_OBJECT)
	{
		*why = "a principal is an object";
		return NULL;
	}
	principal->user_id = read_text(json, "userId", why);
	principal->username = read_text(json, "username", why);
	principal->kind = read_kind(json, why);
	principal->super_admin = read_flag(json, "superAdmin", why);
	principal->tenant_admin = read_flag(json, "tenantAdmin", why);
	principal->roles = read_strings(json, "roles", &principal->nroles, why);
	scopes = read_strings(json, "scopes", &nscopes, why);
	for (int i = 0; i < nscopes; i++)
		principal->force_change |= strcmp(scopes[i], "FORCE_CHANGE") == 0;
	principal->profile = read_object(json, "profile", source, why);
	principal->attributes = read_object(json, "securityAttributes", source,
										why);
	if (principal->kind == EA_KIND_PERSONAL_API_KEY &&
		(principal->super_admin || principal->tenant_admin))
		*why = "a personal key has no authority of an administrator";
	read_tenant(json, principal, why);
	if (principal->user_id == NULL || principal->user_id[0] == '\0')
	{
		if (*why == NULL)
			*why = "\"userId\" is missing";
		return NULL;
	}
	for (const char *c = principal->user_id; *c != '\0'; c++)
	{
		/* it stands in a header and in logs */
		if ((unsigned char) *c < ' ' || *c == 0x7F)
			*why = "\"userId\" has a control character";
	}
	if (strlen(principal->user_id) > LONGEST_ID)
		*why = "\"userId\" is too long";
	if (principal->username == NULL)
		principal->username = principal->user_id;
	if (!ea_uuid_parse(principal->user_id, strlen(principal->user_id),
					   &principal->account))
		memset(&principal->account, 0, sizeof(pg_uuid_t));
	return *why == NULL ? principal : NULL;
}

EaPrincipal *
ea_principal_of_jsonb(Jsonb *jsonb)
{
	char	   *source = JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));
	EaJsonFault fault;
	EaPrincipal *principal;
	const char *why;

	principal = ea_principal_read(ea_jsonread_parse(source, strlen(source),
													EA_JSON_MAX_DEPTH, &fault),
								  source, &why);
	if (principal == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this is no principal: %s", why)));
	return principal;
}
