/*
 * Records and bodies are described by the tables that management/records.h and
 * request/body.h have, which routes name.  Records whose code elsewhere is
 * written by hand are written by hand here.
 */
#include "postgres.h"

#include "base/jsonfmt.h"
#include "management/records.h"
#include "management/tenants.h"
#include "openapi/record_schemas.h"
#include "openapi/writer.h"
#include "request/body.h"

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
	[EA_JSON_NULL] = {"null", ""},
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
		"'string'},'refreshToken':{'type':'string','description':'Works once; "
		"sent again from the same address within 10 seconds it gives the same "
		"successor, as long as that is unused. Used in any other way it ends "
		"the session.'},'tokenType':{'type':"
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
		"'manifestRevision','applied','pending','differences',"
		"'notices','invalidIndexes','revisions'],"
		"'properties':{'status':{'type':'string','enum':['UP_TO_DATE',"
		"'PENDING','FAILED']},'extensionVersion':{'type':'string'},"
		"'manifestRevision':{'type':['integer','null']},'applied':{'type':"
		"'integer'},'pending':"
		"{'type':'array','items':{'type':'object','required':['status',"
		"'what','why','statements'],'properties':{'status':{'type':'string',"
		"'enum':['PENDING','FAILED']},'what':{'type':'string'},'why':{'type':"
		"'string'},'entity':{'type':'string'},'field':{'type':['string',"
		"'null']},'revision':{'type':'integer'},'statements':{'type':'array',"
		"'items':{'type':'string'}},'failedAt':{'type':'string','format':"
		"'date-time'},'reason':{'type':'string'},'hint':{'type':'string'}}}},"
		"'differences':{'type':'array','description':'Where tables are not "
		"what is declared','items':{'type':'object','required':['entity',"
		"'message','hint'],'properties':{'entity':{'type':['string','null']},"
		"'field':{'type':['string','null']},'message':{'type':'string'},"
		"'hint':{'type':'string'}}}},'notices':{'type':'array','description':"
		"'Code that others put on tables: triggers, and functions of checks, "
		"defaults, generated columns and domains','items':{'type':'object',"
		"'required':['entity','message','hint'],'properties':{'entity':"
		"{'type':['string','null']},'field':{'type':['string','null']},"
		"'message':{'type':'string'},'hint':{'type':'string'}}}},"
		"'invalidIndexes':{'type':'array','description':"
		"'Indexes that a statement with CONCURRENTLY has left unfinished',"
		"'items':{'type':'object','required':['entity','table','index',"
		"'hint'],'properties':{'entity':{'type':'string'},'table':{'type':"
		"'string'},'index':{'type':'string'},'hint':{'type':'string'}}}},"
		"'revisions':{'type':'array','items':{'type':"
		"'object','required':['revision','appliedAt','checksum',"
		"'extensionVersion','statements'],'properties':{'revision':{'type':"
		"'integer'},'appliedAt':{'type':'string','format':'date-time'},"
		"'checksum':{'type':'string'},'extensionVersion':{'type':'string'},"
	"'statements':{'type':'array','items':{'type':'string'}}}}}}}"},
	{"schemas/Permissions",
		"{'type':'object','description':'By type of resource; policies may "
		"refuse more','additionalProperties':{'type':'object','required':"
		"['operations','readable','writable'],'properties':{'operations':"
		"{'type':'array','items':{'type':'string','enum':['create','read',"
		"'update','delete','restore','history']}},'readable':{'type':'array',"
		"'description':'Names of fields','items':{'type':'string'}},"
	"'writable':{'type':'array','items':{'type':'string'}}}}}"},
	{"schemas/Health",
		"{'type':'object','required':['status'],'properties':{'status':"
		"{'type':'string','enum':['UP','DOWN']},'components':{'type':'object',"
		"'additionalProperties':{'type':'object','required':['status'],"
		"'properties':{'status':{'type':'string','enum':['UP','DOWN']},"
		"'down':{'type':'array','description':'Nodes of a cluster that cannot "
		"be reached, by their numbers','items':{'type':'integer'}},"
		"'details':{'type':'object','properties':{'invalidIndexes':{'type':"
		"'integer','description':'How many a statement with CONCURRENTLY has "
	"left unfinished'}}}}}}}}"}
};

/* -------- records -------- */

static bool
begins(const char *schema, const char *key)
{
	return schema != NULL && strncmp(schema, key, strlen(key)) == 0;
}

/* A property; schema: more of it, or all, or NULL. */
static void
put_member(EaApi *api, const char *name, const TypeForm *form, bool nullable,
		   const char *schema)
{
	const char *end = "}";

	if (begins(schema, "'$ref'"))
	{
		ea_jsonfmt_put(api->out, nullable ? "%,%q:{'anyOf':[{" : "%,%q:{",
					   name);
		end = nullable ? "},{'type':'null'}]}" : "}";
	}
	else
	{
		ea_jsonfmt_put(api->out, nullable ? "%,%q:{'type':['%s','null']"
					   : "%,%q:{'type':'%s'", name, form->type);
		ea_jsonfmt_put(api->out, begins(schema, "'items'") ? "" : form->more);
		ea_jsonfmt_put(api->out, schema != NULL ? "," : "");
	}
	ea_jsonfmt_put(api->out, schema != NULL ? schema : "");
	ea_jsonfmt_put(api->out, end);
}

/* If something refers to it; made: as it is when it is made. */
static void
write_record(EaApi *api, const EaRecord *record, bool made)
{
	char	   *name = psprintf("schemas/%s%s", made ? "New" : "",
								record->schema);

	if (!ea_openapi_is_used(api, name))
		return;
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':[",
				   strchr(name, '/') + 1);
	for (int i = 0; i < record->ncolumns; i++)
		ea_jsonfmt_put(api->out, "%,%q", record->columns[i].name);
	if (made && record->secret_prefix != NULL)
		ea_jsonfmt_put(api->out, "%,%q", record->secret);
	ea_jsonfmt_put(api->out, "],'properties':{");
	for (int i = 0; i < record->ncolumns; i++)
	{
		const EaListColumn *column = &record->columns[i];

		put_member(api, column->name, &list_types[column->kind],
				   column->nullable, column->schema);
	}
	if (made)
	{
		ea_jsonfmt_put(api->out, ",");
		ea_jsonfmt_put(api->out, record->made_schema);
	}
	ea_jsonfmt_put(api->out, strcmp(record->columns[0].name, "id") == 0 ?
				   "},'additionalProperties':false}" : "}}");
}

/* A page of them, wherever there is one. */
static void
write_page(EaApi *api, const EaRecord *record)
{
	char	   *name = psprintf("schemas/%sPage", record->schema);

	if (!ea_openapi_is_used(api, name))
		return;
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':['data',"
				   "'meta'],'properties':{'data':{'type':'array','items':%s},"
				   "'meta':%s}}", strchr(name, '/') + 1,
				   ea_openapi_refer(api, psprintf("schemas/%s",
												  record->schema)),
				   ea_openapi_refer(api, "schemas/PageMeta"));
}

/* -------- bodies -------- */

static void
write_body(EaApi *api, const char *schema, const EaBodyForm *form)
{
	if (!ea_openapi_is_used(api, psprintf("schemas/%s", schema)))
		return;
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object','required':[", schema);
	for (int i = 0; i < form->nrules; i++)
	{
		if (form->rules[i].required)
			ea_jsonfmt_put(api->out, "%,%q", form->rules[i].name);
	}
	ea_jsonfmt_put(api->out, "],'properties':{");
	for (int i = 0; i < form->nrules; i++)
	{
		const EaMemberRule *rule = &form->rules[i];

		/* null is as good as absent, where that may be */
		put_member(api, rule->name, &body_types[rule->kind],
				   !rule->required && !rule->never_null, rule->schema);
	}
	ea_jsonfmt_put(api->out, "},'additionalProperties':false}");
}

/* -------- all of them -------- */

/* The first route with this record, or this form. */
static bool
is_first(const EaApi *api, const EaRoute *route, bool record)
{
	const EaRoute *first = api->routes;

	while (record ? first->record != route->record :
		   first->form != route->form)
		first++;
	return first == route;
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
	for (int i = 0; i < api->nroutes; i++)
	{
		const EaRoute *route = &api->routes[i];

		if (route->record != NULL && is_first(api, route, true))
		{
			/* a page refers to what it has */
			write_page(api, route->record);
			write_record(api, route->record, false);
			write_record(api, route->record, true);
		}
		if (route->form != NULL && is_first(api, route, false))
			write_body(api, route->request, route->form);
	}
	write_body(api, "TenantAdminCreation", &ea_tenants_admin_form);
	ea_openapi_components(api, others, lengthof(others));
}
