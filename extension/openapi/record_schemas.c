/*
 * The schemas of /auth, /manage and /actuator.
 *
 * Records and bodies are described by the tables that management/records.c and
 * request/body.c work by.  What is written by hand elsewhere is written by
 * hand here.
 */
#include "postgres.h"

#include "base/jsonfmt.h"
#include "identity/login.h"
#include "identity/me.h"
#include "identity/refresh.h"
#include "identity/token.h"
#include "management/api_key_settings.h"
#include "management/api_keys.h"
#include "management/invites.h"
#include "management/records.h"
#include "management/service_accounts.h"
#include "management/tenants.h"
#include "management/users.h"
#include "openapi/record_schemas.h"
#include "openapi/writer.h"
#include "request/body.h"

/* A record; more: members that are not of the listing, or NULL. */
typedef struct Record
{
	const char *name;
	const EaListing *listing;
	const char *more;
	const char *required;		/* the member of more that is always there */
} Record;

/* Those that refer come first. */
static const Record records[] = {
	{"schemas/NewTenant", &ea_tenants,
	"'admin':{'$ref':'#/components/schemas/NewUser'}", NULL},
	{"schemas/Tenant", &ea_tenants, NULL, NULL},
	{"schemas/NewUser", &ea_users,
		"'temporaryPassword':{'type':'string','description':'Made, as none "
	"was given; shown this once'}", NULL},
	{"schemas/User", &ea_users, NULL, NULL},
	{"schemas/NewInvite", &ea_invites_records,
	"'token':{'type':'string','description':'Shown this once'}", "token"},
	{"schemas/Invite", &ea_invites_records, NULL, NULL},
	{"schemas/NewServiceAccount", &ea_service_accounts_records,
		"'clientSecret':{'type':'string','description':'Shown this once'}",
	"clientSecret"},
	{"schemas/ServiceAccount", &ea_service_accounts_records, NULL, NULL},
	{"schemas/NewApiKey", &ea_api_keys_own,
		"'key':{'type':'string','description':'The value of X-API-Key; shown "
	"this once'}", "key"},
	{"schemas/ApiKey", &ea_api_keys_own, NULL, NULL},
	{"schemas/TenantApiKey", &ea_api_keys_of_tenant, NULL, NULL}
};

static const struct
{
	const char *name;
	const EaBodyForm *form;
}			bodies[] =
{
	{"schemas/LoginRequest", &ea_login_form},
	{"schemas/RefreshRequest", &ea_refresh_form},
	{"schemas/LogoutRequest", &ea_refresh_logout_form},
	{"schemas/TokenRequest", &ea_token_form},
	{"schemas/InviteAcceptance", &ea_invites_accept_form},
	{"schemas/ProfileUpdate", &ea_me_update_form},
	{"schemas/PasswordChange", &ea_login_change_password_form},
	{"schemas/ApiKeyCreation", &ea_api_keys_form},
	{"schemas/TenantCreation", &ea_tenants_form},
	{"schemas/TenantAdminCreation", &ea_tenants_admin_form},
	{"schemas/TenantUpdate", &ea_tenants_change_form},
	{"schemas/UserCreation", &ea_users_form},
	{"schemas/UserUpdate", &ea_users_change_form},
	{"schemas/RoleAssignment", &ea_users_roles_form},
	{"schemas/InviteCreation", &ea_invites_form},
	{"schemas/ServiceAccountCreation", &ea_service_accounts_form},
	{"schemas/ApiKeySettingsUpdate", &ea_api_keys_settings_form}
};

/* In the order of EaListKind, and of EaJsonKind: type, and what goes along. */
typedef struct TypeForm
{
	const char *type;
	const char *more;
} TypeForm;

static const TypeForm list_types[] = {
	[EA_LIST_UUID] = {"string", ",'format':'uuid'"},
	[EA_LIST_STRING] = {"string", ""},
	[EA_LIST_BOOLEAN] = {"boolean", ""},
	[EA_LIST_DATETIME] = {"string", ",'format':'date-time'"},
	[EA_LIST_STRINGS] = {"array", ",'items':{'type':'string'}"},
	[EA_LIST_OBJECT] = {"object", ",'additionalProperties':true"}
};

static const TypeForm body_types[] = {
	[EA_JSON_BOOL] = {"boolean", ""},
	[EA_JSON_NUMBER] = {"integer", ""},
	[EA_JSON_STRING] = {"string", ""},
	[EA_JSON_ARRAY] = {"array", ",'items':{'type':'string'}"},
	[EA_JSON_OBJECT] = {"object", ",'additionalProperties':true"}
};

static const EaApiComponent others[] = {
	{"schemas/TokenPair",
		"{'type':'object','required':['accessToken','refreshToken',"
		"'tokenType','expiresIn'],'properties':{'accessToken':{'type':"
		"'string'},'refreshToken':{'type':'string'},'tokenType':{'type':"
		"'string','const':'Bearer'},'expiresIn':{'type':'integer',"
		"'description':'Seconds'},'forcePasswordChange':{'type':'boolean',"
	"'const':true,'description':'The password must be changed first'}}}"},
	{"schemas/Token",
		"{'anyOf':[{'type':'object','required':['accessToken','tokenType',"
		"'expiresIn'],'properties':{'accessToken':{'type':'string'},"
		"'tokenType':{'type':'string','const':'Bearer'},'expiresIn':{'type':"
		"'integer','description':'Seconds'}}},{'type':'object','description':"
		"'Of a form-encoded request','required':['access_token',"
		"'token_type','expires_in'],'properties':{'access_token':{'type':"
		"'string'},'token_type':{'type':'string','const':'Bearer'},"
	"'expires_in':{'type':'integer','description':'Seconds'}}}]}"},
	{"schemas/ClientCredentials",
		"{'type':'object','description':'OAuth 2.0 client credentials; id and "
		"secret may come by HTTP Basic instead','required':['grant_type'],"
		"'properties':{'grant_type':{'type':'string','const':"
		"'client_credentials'},'client_id':{'type':'string'},"
	"'client_secret':{'type':'string','format':'password'}}}"},
	{"schemas/AcceptedInvite",
		"{'type':'object','required':['userId','username','tenantId'],"
		"'properties':{'userId':{'type':'string','format':'uuid'},'username':"
	"{'type':'string'},'tenantId':{'type':'string','format':'uuid'}}}"},
	{"schemas/Me",
		"{'type':'object','required':['userId','username','email','tenantId',"
		"'roles','profile','securityAttributes','accountKind','isSuperAdmin',"
		"'isTenantAdmin','scope'],'properties':{'userId':{'type':'string'},"
		"'username':{'type':'string'},'email':{'type':['string','null']},"
		"'tenantId':{'type':['string','null'],'format':'uuid'},'roles':"
		"{'type':'array','items':{'type':'string'}},'profile':{'type':"
		"'object','additionalProperties':true},'securityAttributes':{'type':"
		"'object','additionalProperties':true},'accountKind':{'type':"
		"'string','enum':['USER','SERVICE_ACCOUNT','PERSONAL_API_KEY']},"
		"'isSuperAdmin':{'type':'boolean'},'isTenantAdmin':{'type':"
		"'boolean'},'scope':{'type':'array','items':{'type':'string','enum':"
	"['FORCE_CHANGE']}}}}"},
	{"schemas/TenantApiKeySettings",
		"{'type':'object','required':['enabled','allowNonExpiring',"
		"'effective'],'properties':{'enabled':{'type':['boolean','null'],"
		"'description':'null: inherited'},'allowNonExpiring':{'type':"
		"['boolean','null'],'description':'null: inherited'},'effective':"
	"{'$ref':'#/components/schemas/ApiKeySettings'}}}"},
	{"schemas/ApiKeySettings",
		"{'type':'object','required':['enabled','allowNonExpiring'],"
		"'properties':{'enabled':{'type':'boolean'},'allowNonExpiring':"
	"{'type':'boolean'}}}"},
	{"schemas/AuditPage",
		"{'type':'object','required':['data','meta'],'properties':{'data':"
		"{'type':'array','items':{'$ref':'#/components/schemas/AuditRecord'}},"
		"'meta':{'type':'object','required':['page'],'properties':{'page':"
		"{'type':'object','required':['size','after'],'properties':{'size':"
		"{'type':'integer','minimum':1},'after':{'type':['string','null'],"
		"'description':'Cursor of the next page; null at the end'}}}}}}}"},
	{"schemas/AuditRecord",
		"{'type':'object','required':['id','at','tenantId','actor','action',"
		"'outcome','target','changes','requestId','ip','detail'],"
		"'properties':{'id':{'type':'string','format':'uuid'},'at':{'type':"
		"'string','format':'date-time'},'tenantId':{'type':['string','null'],"
		"'format':'uuid'},'actor':{'type':'object','properties':{'id':"
		"{'type':['string','null']},'kind':{'type':['string','null']},"
		"'username':{'type':['string','null']},'keyId':{'type':['string',"
		"'null']}}},'action':{'type':'string'},'outcome':{'type':'string',"
		"'enum':['SUCCESS','FAILURE','DENIED']},'target':{'type':'object',"
		"'properties':{'type':{'type':['string','null']},'id':{'type':"
		"['string','null']}}},'changes':{'type':'object','description':"
		"'By field: what it was, and what it is','additionalProperties':true},"
		"'requestId':{'type':['string','null']},'ip':{'type':['string',"
	"'null']},'detail':{'type':['string','null']}}}"},
	{"schemas/MigrationStatus",
		"{'type':'object','required':['status','extensionVersion',"
		"'manifestRevision','applied','pending','revisions'],'properties':"
		"{'status':{'type':'string','enum':['UP_TO_DATE','PENDING',"
		"'FAILED']},'extensionVersion':{'type':'string'},'manifestRevision':"
		"{'type':['integer','null']},'applied':{'type':'integer'},'pending':"
		"{'type':'array','items':{'type':'object','required':['status',"
		"'what','why','statements'],'properties':{'status':{'type':'string',"
		"'enum':['PENDING','FAILED']},'what':{'type':'string'},'why':{'type':"
		"'string'},'entity':{'type':'string'},'field':{'type':['string',"
		"'null']},'revision':{'type':'integer'},'statements':{'type':'array',"
		"'items':{'type':'string'}},'failedAt':{'type':'string','format':"
		"'date-time'},'reason':{'type':'string'},'hint':{'type':'string'}}}},"
		"'revisions':{'type':'array','items':{'type':"
		"'object','required':['revision','appliedAt','checksum',"
		"'extensionVersion','statements'],'properties':{'revision':{'type':"
		"'integer'},'appliedAt':{'type':'string','format':'date-time'},"
		"'checksum':{'type':'string'},'extensionVersion':{'type':'string'},"
	"'statements':{'type':'array','items':{'type':'string'}}}}}}}"},
	{"schemas/Health",
		"{'type':'object','required':['status'],'properties':{'status':"
		"{'type':'string','enum':['UP','DOWN']},'components':{'type':'object',"
		"'additionalProperties':{'type':'object','required':['status'],"
		"'properties':{'status':{'type':'string','enum':['UP','DOWN']}}}}}}"}
};

/* -------- records -------- */

/* A property; schema: more of it, or NULL. */
static void
put_member(EaApi *api, const char *name, const TypeForm *form, bool nullable,
		   const char *schema)
{
	ea_jsonfmt_put(api->out, nullable ? "%,%q:{'type':['%s','null']"
				   : "%,%q:{'type':'%s'", name, form->type);
	ea_jsonfmt_put(api->out, form->more);
	if (schema != NULL)
	{
		ea_jsonfmt_put(api->out, ",");
		ea_jsonfmt_put(api->out, schema);
	}
	ea_jsonfmt_put(api->out, "}");
}

static void
write_record(EaApi *api, const Record *record)
{
	const EaListing *listing = record->listing;

	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':[",
				   strchr(record->name, '/') + 1);
	for (int i = 0; i < listing->ncolumns; i++)
		ea_jsonfmt_put(api->out, "%,%q", listing->columns[i].name);
	if (record->required != NULL)
		ea_jsonfmt_put(api->out, "%,%q", record->required);
	ea_jsonfmt_put(api->out, "],'properties':{");
	for (int i = 0; i < listing->ncolumns; i++)
	{
		const EaListColumn *column = &listing->columns[i];

		put_member(api, column->name, &list_types[column->kind],
				   column->nullable, column->schema);
	}
	if (record->more != NULL)
	{
		ea_jsonfmt_put(api->out, ",");
		ea_jsonfmt_put(api->out, record->more);
	}
	ea_jsonfmt_put(api->out, "},'additionalProperties':false}");
}

/* A page of them, wherever there is one. */
static void
write_page(EaApi *api, const Record *record)
{
	char	   *name = psprintf("%sPage", record->name);

	if (!ea_openapi_is_used(api, name))
		return;
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':['data',"
				   "'meta'],'properties':{'data':{'type':'array','items':%s},"
				   "'meta':%s}}", strchr(name, '/') + 1,
				   ea_openapi_refer(api, record->name),
				   ea_openapi_refer(api, "schemas/PageMeta"));
}

/* -------- bodies -------- */

static void
write_member(EaApi *api, const EaMemberRule *rule)
{
	/* an object that has a schema of its own */
	if (rule->schema != NULL && strncmp(rule->schema, "'$ref'", 6) == 0)
	{
		ea_jsonfmt_put(api->out, "%,%q:{'anyOf':[{", rule->name);
		ea_jsonfmt_put(api->out, rule->schema);
		ea_jsonfmt_put(api->out, "},{'type':'null'}]}");
		return;
	}

	/* null is as good as absent, where that may be */
	put_member(api, rule->name, &body_types[rule->kind],
			   !rule->required && !rule->never_null, rule->schema);
}

static void
write_body(EaApi *api, const char *name, const EaBodyForm *form)
{
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':[",
				   strchr(name, '/') + 1);
	for (int i = 0; i < form->nrules; i++)
	{
		if (form->rules[i].required)
			ea_jsonfmt_put(api->out, "%,%q", form->rules[i].name);
	}
	ea_jsonfmt_put(api->out, "],'properties':{");
	for (int i = 0; i < form->nrules; i++)
		write_member(api, &form->rules[i]);
	ea_jsonfmt_put(api->out, "},'additionalProperties':false}");
}

void
ea_openapi_records(EaApi *api)
{
	/* referred to by the texts above */
	static const char *const pairs[][2] = {
		{"schemas/NewTenant", "schemas/NewUser"},
		{"schemas/TenantCreation", "schemas/TenantAdminCreation"},
		{"schemas/TenantApiKeySettings", "schemas/ApiKeySettings"},
		{"schemas/AuditPage", "schemas/AuditRecord"}
	};

	for (int i = 0; i < lengthof(pairs); i++)
	{
		if (ea_openapi_is_used(api, pairs[i][0]))
			ea_names_map_put(api->used, pairs[i][1], api);
	}
	for (int i = 0; i < lengthof(records); i++)
		write_page(api, &records[i]);
	for (int i = 0; i < lengthof(records); i++)
	{
		if (ea_openapi_is_used(api, records[i].name))
			write_record(api, &records[i]);
	}
	for (int i = 0; i < lengthof(bodies); i++)
	{
		if (ea_openapi_is_used(api, bodies[i].name))
			write_body(api, bodies[i].name, bodies[i].form);
	}
	ea_openapi_components(api, others, lengthof(others));
}
