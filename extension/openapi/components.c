/*
 * Only components with references to them are written.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "openapi/components.h"
#include "openapi/writer.h"
#include "request/errors.h"
#include "request/negotiation.h"
#include "request/route.h"

static const EaApiComponent parameters[] = {
	{"parameters/filter",
		"{'name':'filter','in':'query','description':'RSQL: comparisons with"
#define EA_OPERATOR_NAME(name, other, title) " " name " (" title ")"
#define EA_OPERATOR(id, name, ...) name
#include "query/operatorlist.h"
		" joined by ; (and) and , (or)','schema':{'type':'string',"
	"'minLength':1,'maxLength':%d}}", &ea_guc_max_filter_length},
	{"parameters/sort",
		"{'name':'sort','in':'query','description':'Names separated by "
		"commas; a name after - sorts descending','schema':{'type':'string',"
	"'minLength':1}}"},
	{"parameters/pageNumber",
		"{'name':'page[number]','in':'query','description':'Which page, "
		"from 1','schema':{'type':'integer','format':'int64','minimum':1,"
	"'default':1}}"},
	{"parameters/pageSize",
		"{'name':'page[size]','in':'query','description':'Members of a page',"
	"'schema':{'type':'integer','minimum':1,'maximum':%d}}",
	&ea_guc_max_page_size},
	{"parameters/pageTotals",
		"{'name':'page[totals]','in':'query','description':'false leaves "
		"totalPages and totalRecords out, and the count that they need',"
	"'schema':{'type':'boolean','default':true}}"},
	{"parameters/pageAfter",
		"{'name':'page[after]','in':'query','description':'The cursor that "
		"meta.page.after of the page before gave','schema':{'type':'string',"
	"'minLength':1}}"},
	{"parameters/pageAfterCursor",
		"{'name':'page[after]','in':'query','description':'Instead of a "
		"number: start, or the cursor in links.next of the page before',"
	"'schema':{'type':'string','minLength':1}}"},
	{"parameters/pageBeforeCursor",
		"{'name':'page[before]','in':'query','description':'Instead of a "
		"number: end, or the cursor in links.prev of the page after',"
	"'schema':{'type':'string','minLength':1}}"},
	{"parameters/showDeleted",
		"{'name':'show[deleted]','in':'query','description':'Deleted "
		"resources only, or with the others; for who may restore them',"
	"'schema':{'type':'string','enum':['only','with']}}"},
	{"parameters/asOf",
		"{'name':'asOf','in':'query','description':'A time: what the resource "
		"was then, as far as the audit log tells; for who may read the "
		"resource and its history','schema':{'type':'string',"
	"'format':'date-time'}}"},
	{"parameters/include",
		"{'name':'include','in':'query','description':'Paths of "
		"relationships, separated by commas, whose resources come along in "
		"included','allowEmptyValue':true,'schema':{'type':'string'}}"},
	{"parameters/fields",
		"{'name':'fields','in':'query','style':'deepObject','explode':true,"
		"'description':'fields[type]: the attributes and relationships to be "
		"shown of resources of that type, separated by commas',"
		"'schema':{'type':'object','additionalProperties':"
	"{'type':'string'}}}"},
	{"parameters/ifMatch",
		"{'name':'If-Match','in':'header','required':true,'description':"
		"'The ETag of the version that is to be changed',"
	"'schema':{'type':'string'},'example':'\\'3\\''}"},
	{"parameters/mayIfMatch",
		"{'name':'If-Match','in':'header','description':'The ETag of the "
		"version that is to be changed','schema':{'type':'string'},"
	"'example':'\\'3\\''}"},
	{"parameters/ifNoneMatch",
		"{'name':'If-None-Match','in':'header','description':'An ETag: 304 "
		"while it holds. For a resource it counts if fields[type] names "
		"nothing but attributes without readRoles, and no include and no "
		"show[deleted] is given','schema':{'type':'string'},"
	"'example':'\\'3\\''}"},
	{"parameters/tenant",
		"{'name':'X-Tenant-Id','in':'header','description':'The tenant that a "
		"SuperAdmin acts in; of others only their own','schema':{'type':"
	"'string','format':'uuid'}}"}
};

static const EaApiComponent headers[] = {
	{"headers/Location",
		"{'description':'The address of what was created',"
	"'schema':{'type':'string','format':'uri-reference'}}"},
	{"headers/ETag",
		"{'description':'The quoted version, for If-Match and "
	"If-None-Match','schema':{'type':'string'},'example':'\\'3\\''}"},
	{"headers/Deprecation",
		"{'description':'This version of the API will go',"
	"'schema':{'type':'string','const':'true'}}"},
	{"headers/Sunset",
		"{'description':'When this version of the API will go (RFC 8594)',"
	"'schema':{'type':'string'}}"}
};

/* The headers of every refusal, and those of some. */
static const char request_id[] =
"'X-Request-Id':{'description':'The id of the request','schema':"
"{'type':'string'}}";
static const char authenticate[] =
",'WWW-Authenticate':{'description':'The kind of credential that is "
"needed','schema':{'type':'string'}}";
static const char retry_after[] =
",'Retry-After':{'description':'Seconds to wait','schema':"
"{'type':'integer'}}";

static const struct
{
	const char *status;
	const char *meaning;
	const char *header;			/* one more, or "" */
}			errors[] =
{
	{"400", "The request is not understood.", ""},
	{"401", "There is no credential, or it does not hold.", authenticate},
	{"403", "The caller has no authority for this.", ""},
	{"404", "There is nothing here that the caller could see.", ""},
	{"409", "It cannot be reconciled with what is stored.", ""},
	{"410", "The audit log does not reach back to that time.", ""},
	{"412", "If-Match names another version.", ""},
	{"415", "The body is of another media type.", ""},
	{"428", "If-Match is missing, and meta.version.", ""},
	{"429", "Too many attempts.", retry_after},
	{"503", "It cannot be served now. OUTCOME_UNKNOWN, without Retry-After: "
		"it may have been done, so look before it is sent again.",
	retry_after},
	{"default", "Any other refusal.", ""}
};

/* The kinds of answers with an error, by media type and schema. */
static const struct
{
	const char *name;
	EaMedia		media;
	const char *schema;
}			kinds[] =
{
	{"", EA_MEDIA_JSONAPI, "schemas/Errors"},
	{"Plain", EA_MEDIA_JSON, "schemas/Errors"},
	{"Atomic", EA_MEDIA_ATOMIC, "schemas/Errors"},
	{"Token", EA_MEDIA_JSON, "schemas/TokenErrors"},
	{"Actuator", EA_MEDIA_JSON, "schemas/Errors"}
};

static const EaApiComponent schemas[] = {
	{"schemas/Included",
		"{'type':'array','description':'Resources that include led to, each "
	"once','items':{'$ref':'#/components/schemas/ResourceObject'}}"},
	{"schemas/JsonApi",
		"{'type':'object','required':['version'],'properties':{'version':"
	"{'type':'string','const':'1.1'},'ext':{'type':'array','items':"
	"{'type':'string'}}}}"},
	{"schemas/SelfLink",
		"{'type':'object','required':['self'],'properties':{'self':{'type':"
	"'string','format':'uri-reference'}}}"},
	{"schemas/RelationshipLinks",
		"{'type':'object','properties':{'self':{'type':'string','format':"
	"'uri-reference'},'related':{'type':'string','format':"
	"'uri-reference'}}}"},
	{"schemas/ListLinks",
		"{'type':'object','required':['self','first','prev','next'],"
		"'properties':{'self':{'type':'string','format':'uri-reference'},"
		"'first':{'type':'string','format':'uri-reference'},"
		"'prev':{'type':['string','null'],'format':'uri-reference'},"
		"'next':{'type':['string','null'],'format':'uri-reference'},"
	"'last':{'type':'string','format':'uri-reference'}}}"},
	{"schemas/Version",
		"{'type':'object','required':['version'],'properties':{'version':"
	"{'type':'integer','format':'int64','minimum':0}}}"},
	{"schemas/Deletion",
		"{'type':'object','properties':{'deletedAt':{'type':'string',"
	"'format':'date-time','description':'Of deleted resources'}}}"},
	{"schemas/VersionAndDeletion",
		"{'type':'object','required':['version'],'properties':{'version':"
		"{'type':'integer','format':'int64','minimum':0},'deletedAt':"
		"{'type':'string','format':'date-time','description':'Of deleted "
	"resources'}}}"},
	{"schemas/PageMeta",
		"{'type':'object','required':['pagination'],'properties':"
		"{'pagination':{'type':'object','required':['size'],'description':"
		"'With number, or with before and after where the request used "
		"cursors','properties':{'number':{'type':'integer','format':'int64',"
		"'minimum':1},'size':{'type':'integer','minimum':1},"
		"'before':{'type':['string','null']},'after':{'type':['string',"
		"'null']},'totalPages':"
		"{'type':'integer','format':'int64','minimum':0},'totalRecords':"
	"{'type':'integer','format':'int64','minimum':0}}}}}"},
	{"schemas/ChangesDocument",
		"{'type':'object','required':['links','data','meta'],'properties':"
		"{'jsonapi':{'$ref':'#/components/schemas/JsonApi'},"
		"'links':{'$ref':'#/components/schemas/ListLinks'},"
		"'data':{'type':'array','items':{'type':'object','required':['type',"
		"'id','attributes'],'properties':{'type':{'type':'string','const':"
		"'changes'},'id':{'type':'string','format':'uuid'},'attributes':"
		"{'type':'object','required':['at','action','actor','changes',"
		"'version'],'properties':{'at':{'type':'string','format':"
		"'date-time'},'action':{'type':'string'},'actor':{'anyOf':["
		"{'type':'object','required':['id','kind','username'],'properties':"
		"{'id':{'type':['string','null']},'kind':{'type':['string','null']},"
		"'username':{'type':['string','null']}},'additionalProperties':"
		"false},{'type':'null'}]},"
		"'changes':{'type':'object','description':'By names of today; "
		"relationships to one resource are identifiers, others lists of ids',"
		"'additionalProperties':{'type':'object','required':['from','to'],"
		"'properties':{'from':{},'to':{}},'additionalProperties':false}},"
		"'version':{'type':['integer','null'],'format':'int64'}},"
		"'additionalProperties':false}},'additionalProperties':false}},"
		"'meta':{'$ref':'#/components/schemas/PageMeta'}},"
	"'additionalProperties':false}"},
	{"schemas/AtomicOperations",
		"{'type':'object','required':['atomic:operations'],'properties':"
		"{'atomic:operations':{'type':'array','minItems':1,'maxItems':%d,"
		"'items':{'type':'object','required':['op'],'properties':{"
		"'op':{'type':'string','enum':['add','update','remove']},"
		"'ref':{'$ref':'#/components/schemas/AtomicReference'},"
		"'href':{'type':'string','format':'uri-reference'},"
		"'data':{'description':'A resource object, or the linkage of a "
		"relationship','anyOf':[{'$ref':"
		"'#/components/schemas/AtomicResourceObject'},{'type':'array',"
		"'items':{'$ref':'#/components/schemas/AtomicIdentifier'}},"
		"{'type':'null'}]}}}}}}",
	&ea_guc_max_operations},
	{"schemas/AtomicReference",
		"{'type':'object','required':['type'],'description':'Either id or "
		"lid','properties':{'type':{'$ref':"
		"'#/components/schemas/ResourceType'},"
		"'id':{'$ref':'#/components/schemas/ResourceId'},"
		"'lid':{'type':'string'},"
	"'relationship':{'type':'string'},'meta':{'$ref':"
	"'#/components/schemas/Version'}}}"},
	{"schemas/AtomicResourceObject",
		"{'type':'object','required':['type'],'properties':{'type':{'$ref':"
		"'#/components/schemas/ResourceType'},'id':{'$ref':"
		"'#/components/schemas/ResourceId'},'lid':{'type':'string'},"
		"'attributes':{'type':'object',"
		"'additionalProperties':true},'relationships':{'type':'object',"
		"'additionalProperties':{'type':'object','required':['data'],"
		"'properties':{'data':{'anyOf':[{'$ref':"
		"'#/components/schemas/AtomicIdentifier'},{'type':'array','items':"
		"{'$ref':'#/components/schemas/AtomicIdentifier'}},{'type':'null'}]"
	"}}}},'meta':{'type':'object','properties':{'version':{'type':"
	"'integer','format':'int64','minimum':0}}}}}"},
	{"schemas/AtomicIdentifier",
		"{'type':'object','required':['type'],'description':'Either id or "
		"lid','properties':{'type':{'$ref':"
		"'#/components/schemas/ResourceType'},"
		"'id':{'$ref':'#/components/schemas/ResourceId'},"
	"'lid':{'type':'string'}}}"},
	{"schemas/AtomicResults",
		"{'type':'object','required':['atomic:results'],'properties':{"
		"'jsonapi':{'$ref':'#/components/schemas/JsonApi'},"
		"'atomic:results':{'type':'array','description':'One for each "
		"operation; {} for those that answer nothing','items':{'type':"
	"'object','properties':{'data':{'$ref':"
	"'#/components/schemas/ResourceObject'}}}}}}"},
	{"schemas/OpenApi",
		"{'type':'object','required':['openapi','info','paths'],"
		"'properties':{'openapi':{'type':'string'},'info':{'type':'object',"
		"'additionalProperties':true},'paths':{'type':'object',"
	"'additionalProperties':true}}}"},
	{"schemas/TokenErrors",
		"{'anyOf':[{'$ref':'#/components/schemas/Errors'},{'type':'object',"
		"'description':'Of a form-encoded request (RFC 6749 section 5.2)',"
		"'required':['error'],'properties':{'error':{'type':'string','enum':"
		"['invalid_request','invalid_client','unsupported_grant_type']},"
	"'error_description':{'type':'string'}}}]}"},
	{"schemas/Errors",
		"{'type':'object','required':['errors'],'properties':{'errors':"
		"{'type':'array','minItems':1,'items':{'type':'object','required':"
		"['status','code','title','detail'],'properties':{'id':{'type':"
		"'string','description':'The id of the request'},'status':{'type':"
		"'string','pattern':'^[45][0-9][0-9]$'},'code':{'type':'string',"
		"'pattern':'^[A-Z][A-Z_0-9]*$','description':'A stable word'},"
		"'title':{'type':'string'},'detail':{'type':'string'},'source':"
		"{'type':'object','description':'What is at fault','properties':"
		"{'pointer':{'type':'string','description':"
		"'Into the body (RFC 6901)'},"
		"'parameter':{'type':'string','description':'Of the query'},"
	"'header':{'type':'string'}}}}}}}}"}
};

/* Names of parameters that are no UUID. */
static bool
is_plain_name(const char *name)
{
	return strcmp(name, "name") == 0;
}

/* The {parameters} of all addresses. */
static void
write_path_parameters(EaApi *api)
{
	EaNameMap  *seen = ea_names_map_create(16);

	for (int i = 0; i < api->nroutes; i++)
	{
		const char *p = api->routes[i].pattern;

		while ((p = strchr(p, '{')) != NULL)
		{
			char	   *name = pnstrdup(p + 1, strcspn(p + 1, "}"));

			p++;
			if (!ea_openapi_is_used(api, psprintf("parameters/%s", name)) ||
				!ea_names_map_put(seen, name, api))
				continue;
			ea_jsonfmt_put(api->out, "%,%q:{'name':%q,'in':'path','required':"
						   "true,'schema':{'type':'string'%s}}", name, name,
						   is_plain_name(name) ? "" : ",\"format\":\"uuid\"");
		}
	}
}

/* "NOT_FOUND, RELATED_NOT_FOUND" */
static char *
codes_of(const char *status)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int code = 0; code <= EA_ERR_UNAVAILABLE; code++)
	{
		if (ea_errors_status(code) == atoi(status))
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : " Codes: ",
							 ea_errors_word(code));
	}
	return text.data;
}

static void
write_errors(EaApi *api)
{
	for (int k = 0; k < lengthof(kinds); k++)
	{
		for (int i = 0; i < lengthof(errors); i++)
		{
			char	   *name = psprintf("responses/%s%s", kinds[k].name,
										errors[i].status);
			bool		down = strcmp(name, "responses/Actuator503") == 0;

			if (!ea_openapi_is_used(api, name))
				continue;
			ea_jsonfmt_put(api->out, "%,%q:{'description':%q,'headers':{",
						   strchr(name, '/') + 1,
						   psprintf("%s%s", errors[i].meaning,
									codes_of(errors[i].status)));
			ea_jsonfmt_put(api->out, request_id);
			ea_jsonfmt_put(api->out, errors[i].header);
			ea_jsonfmt_put(api->out, "},'content':{%q:{'schema':%s}}}",
						   ea_negotiation_answer(kinds[k].media),
						   ea_openapi_refer(api, down ? "schemas/Health"
											: kinds[k].schema));
		}
	}
	if (ea_openapi_is_used(api, "responses/304"))
		ea_jsonfmt_put(api->out, "%,'304':{'description':'What the ETag "
					   "names still holds.'}");
}

static void
write_security(EaApi *api)
{
	if (ea_guc_credential_validator[0] != '\0')
	{
		ea_jsonfmt_put(api->out, "'bearerAuth':{'type':'http','scheme':"
					   "'bearer','description':'What the credential validator "
					   "of this deployment takes.'}");
		return;
	}
	ea_jsonfmt_put(api->out, "'bearerAuth':{'type':'http','scheme':'bearer',"
				   "'bearerFormat':'JWT','description':'An access token of "
				   "/auth/login, /auth/refresh or /auth/token.'},"
				   "'apiKey':{'type':'apiKey','in':'header',"
				   "'name':'X-API-Key',"
				   "'description':'A personal key of /auth/me/api-keys.'}");
}

void
ea_openapi_common(EaApi *api)
{
	ea_jsonfmt_put(api->out, "'parameters':{");
	write_path_parameters(api);
	ea_openapi_components(api, parameters, lengthof(parameters));
	ea_jsonfmt_put(api->out, "},'headers':{");
	ea_openapi_components(api, headers, lengthof(headers));
	ea_jsonfmt_put(api->out, "},'responses':{");
	write_errors(api);
	ea_jsonfmt_put(api->out, "},'securitySchemes':{");
	write_security(api);
	ea_jsonfmt_put(api->out, "}");
}

/* Some entity has ids that are no UUIDs. */
static bool
has_other_ids(EaApi *api)
{
	for (int i = 0; i < api->nentities; i++)
	{
		if (api->entities[i].entity->key.form != EA_ID_UUID)
			return true;
	}
	return false;
}

/* All types and ids, and any one resource, of this version. */
static void
write_unions(EaApi *api)
{
	ea_jsonfmt_put(api->out, "%,'ResourceType':{'type':'string'");
	if (api->nentities > 0)
		ea_jsonfmt_put(api->out, ",'enum':[");
	for (int i = 0; i < api->nentities; i++)
		ea_jsonfmt_put(api->out, "%,%q", api->entities[i].entity->type);
	ea_jsonfmt_put(api->out, api->nentities > 0 ? "]}" : "}");
	ea_jsonfmt_put(api->out, has_other_ids(api) ?
				   ",'ResourceId':{'type':'string'}" :
				   ",'ResourceId':{'type':'string','format':'uuid'}");

	ea_jsonfmt_put(api->out, ",'ResourceObject':{");
	ea_jsonfmt_put(api->out, api->nentities > 0 ? "'anyOf':["
				   : "'type':'object'}");
	for (int i = 0; i < api->nentities; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ea_jsonfmt_put(api->out, "%,%s",
					   ea_openapi_refer_schema(api, api->entities[i].entity,
											   NULL, "Resource"));
	}
	if (api->nentities > 0)
		ea_jsonfmt_put(api->out, "]}");
}

void
ea_openapi_base(EaApi *api)
{
	/* these refer to each other, and the atomic endpoint needs them all */
	static const char *const always[] = {
		"schemas/JsonApi", "schemas/Version", "schemas/AtomicReference",
		"schemas/AtomicResourceObject", "schemas/AtomicIdentifier",
		"schemas/Errors"
	};

	for (int i = 0; i < lengthof(always); i++)
		ea_names_map_put(api->used, always[i], api);
	ea_openapi_components(api, schemas, lengthof(schemas));
	write_unions(api);
}
