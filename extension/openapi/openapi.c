/*
 * Serving the description of the API.
 *
 * The documents are made when declarations are applied, and stored, so that a
 * fresh backend answers at once.  A backend that was asked keeps what it
 * served: putting it together from its pieces in the table is most of the
 * work, and any client may ask for any version, without a credential and as
 * often as it likes.  A stored document counts as long as it was made for the
 * present revision, by this program, under the settings of this session;
 * otherwise, or when there is nothing stored (a restored database, a version
 * that nobody applied anything to), the backend makes the document itself.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/sha256.h"
#include "engine/exec.h"
#include "model/catalog.h"
#include "openapi/components.h"
#include "openapi/entities.h"
#include "openapi/labels.h"
#include "openapi/openapi.h"
#include "openapi/paths.h"
#include "openapi/record_schemas.h"
#include "openapi/writer.h"
#include "request/query_string.h"
#include "trust/owner.h"

/* A checksum of the sources, from the Makefile. */
#ifndef EA_SOURCES
#define EA_SOURCES "0"
#endif

/* Characters of a tag: enough of a hash that no two documents share it. */
#define ETAG_LENGTH 32

typedef struct Document
{
	char		etag[ETAG_LENGTH + 3];	/* with its quotes; "": none */
	char	   *text;
	int			len;
} Document;

/* A document that this backend has served; it lies in its own context. */
typedef struct Kept
{
	dlist_node	node;
	MemoryContext mcxt;
	int			version;
	Document	document;
} Kept;

/* All of them, of one state of the declarations. */
static struct
{
	MemoryContext mcxt;			/* parent of theirs; NULL: nothing is kept */
	uint64		generation;
	char	   *made_for;
	dlist_head	documents;		/* the one served last comes first */
	Size		size;
}			kept;

/*
 * Bytes of documents that a backend keeps.  Half a dozen versions of a
 * thousand entities fit; where more are declared those asked for least go.
 */
#define MAX_KEPT ((Size) 64 * 1024 * 1024)

/* All that a document depends on but the version. */
static char *
made_for(const EaCatalog *catalog)
{
	return psprintf("%s %s %d %d %d %d %d %s%s", EA_VERSION, EA_SOURCES,
					catalog->revision,
					ea_guc_credential_validator[0] != '\0',
					ea_guc_max_filter_length, ea_guc_max_page_size,
					ea_guc_max_operations, ea_guc_base_url,
					ea_openapi_labels_state(catalog));
}

static void
make_etag(const char *text, char *etag)
{
	uint8		hash[PG_SHA256_DIGEST_LENGTH];
	char	   *p = etag;

	ea_sha256(text, strlen(text), hash);
	*p++ = '"';
	for (int i = 0; i < ETAG_LENGTH / 2; i++)
		p += sprintf(p, "%02x", hash[i]);
	strcpy(p, "\"");
}

/* Of the whole service; they are of a layer above. */
static const EaRoute *routes = NULL;
static int	nroutes = 0;

void
ea_openapi_install(const EaRoute *table, int n)
{
	routes = table;
	nroutes = n;
}

/* -------- what is declared -------- */

static void
add_definition(void *arg, TupleTableSlot *slot)
{
	List	  **definitions = arg;

	*definitions = lappend(*definitions,
						   TextDatumGetCString(slot->tts_values[0]));
}

static void
load_entity(EaApi *api, const char *definition)
{
	EaApiEntity *item = &api->entities[api->nentities];
	EaJsonFault fault;

	item->json = ea_jsonread_parse(definition, strlen(definition),
								   EA_JSON_MAX_DEPTH, &fault);
	if (item->json == NULL)
		elog(ERROR, "a stored definition is damaged: %s", fault.message);
	item->entity = ea_catalog_entity(api->catalog,
									 ea_jsonread_string(item->json, "name"));
	if (ea_catalog_shows(item->entity, api->version))
		api->nentities++;
}

/*
 * The declarations are read anew, apart from those that requests use: these
 * have no descriptions, and what is read here is needed once.
 */
static void
load_entities(EaApi *api, bool fresh)
{
	EaExecMode	mode = fresh ? EA_EXEC_WRITE : EA_EXEC_READ;
	const EaVersion *version;
	List	   *service = NIL;
	List	   *definitions = NIL;
	ListCell   *lc;

	ea_exec_one(mode, "SELECT definition FROM entityapi.service", EA_NO_PARAMS,
				EA_READER(add_definition, TEXTOID), &service);
	ea_exec_each(mode, "SELECT definition FROM entityapi.entity ORDER BY name",
				 EA_NO_PARAMS, EA_READER(add_definition, TEXTOID),
				 &definitions);
	api->catalog = ea_catalog_make(service == NIL ? NULL : linitial(service),
								   definitions);
	version = ea_catalog_version(api->catalog, api->version);
	api->sunset = version != NULL && version->sunset;
	api->entities = palloc0(Max(list_length(definitions), 1) *
							sizeof(EaApiEntity));
	foreach(lc, definitions)
	{
		CHECK_FOR_INTERRUPTS();
		load_entity(api, lfirst(lc));
	}
}

/* -------- the document -------- */

/* A tag for what is not of an entity, by the beginning of its addresses. */
static const struct
{
	const char *name;
	const char *description;
}			tags[] =
{
	{"auth", "Login, tokens, the own account and its keys"},
	{"manage", "Tenants, users, invites, accounts, keys, audit, migrations"},
	{"actuator", "Health of the service"},
	{"api", "What is about several entities"}
};

static void
write_tags(EaApi *api)
{
	ea_jsonfmt_put(api->out, ",'tags':[");
	for (int i = 0; i < lengthof(tags); i++)
	{
		if (i > 0 || ea_guc_credential_validator[0] == '\0')
			ea_jsonfmt_put(api->out, "%,{'name':%q,'description':%q}",
						   tags[i].name, tags[i].description);
	}
	for (int i = 0; i < api->nentities; i++)
	{
		const char *name = api->entities[i].entity->name;
		const char *text = ea_jsonread_string(api->entities[i].json,
											  "description");

		ea_jsonfmt_put(api->out, "%,{'name':%q,'description':%q}", name,
					   text != NULL ? text : name);
	}
	ea_jsonfmt_put(api->out, "]");
}

static void
write_document(EaApi *api)
{
	ea_jsonfmt_put(api->out,
				   "{'openapi':'3.1.0','info':{'title':'Entity API',"
				   "'version':'%d','description':"
				   "'Entities as JSON:API 1.1 resources, with the identity "
				   "system and the management of their tenants. HEAD answers "
				   "as GET does, without a body. Every answer has an "
				   "X-Request-Id, which is that of the request if it sent "
				   "one.'},'servers':[{'url':%q}],"
				   "'security':[{'bearerAuth':[]}",
				   api->version,
				   ea_guc_base_url[0] != '\0' ? ea_guc_base_url : "/");
	if (ea_guc_credential_validator[0] == '\0')
		ea_jsonfmt_put(api->out, ",{'apiKey':[]}");
	ea_jsonfmt_put(api->out, "]");
	write_tags(api);
	ea_jsonfmt_put(api->out, ",'paths':{");
	ea_openapi_paths(api);

	/* the referring part comes before its target */
	ea_jsonfmt_put(api->out, "},'components':{");
	ea_openapi_common(api);
	ea_jsonfmt_put(api->out, ",'schemas':{");
	ea_openapi_entities(api);
	ea_openapi_records(api);
	ea_openapi_base(api);
	ea_jsonfmt_put(api->out, "}}}");
}

/*
 * The document of a version as palloc'd text.  fresh: read declarations as of
 * now, instead of by the statement's snapshot.
 */
static char *
write_version(int version, bool fresh)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt = AllocSetContextCreate(caller, "entityapi openapi",
											   ALLOCSET_DEFAULT_SIZES);
	EaApi		api = {
		.routes = routes, .nroutes = nroutes, .version = version
	};
	StringInfoData out;

	initStringInfo(&out);
	MemoryContextSwitchTo(mcxt);
	api.out = &out;
	api.schemas = ea_names_map_create(256);
	api.taken = ea_names_map_create(256);
	api.ids = ea_names_map_create(256);
	api.used = ea_names_map_create(256);
	load_entities(&api, fresh);
	write_document(&api);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(mcxt);
	return out.data;
}

/* -------- in the database -------- */

static void
read_stored(void *arg, TupleTableSlot *slot)
{
	Document   *document = arg;

	text_to_cstring_buffer(DatumGetTextPP(slot->tts_values[0]),
						   document->etag, sizeof(document->etag));
	document->text = TextDatumGetCString(slot->tts_values[1]);
}

static void
read_text(void *arg, TupleTableSlot *slot)
{
	*(char **) arg = TextDatumGetCString(slot->tts_values[0]);
}

/* In one statement: with Citus another one may see other rows. */
static void
find_stored(const char *state, int version, Document *document)
{
	ea_exec_one(EA_EXEC_READ,
				"SELECT etag, document FROM entityapi.openapi_document"
				" WHERE version = $1 AND made_for = $2",
				ea_params(EA_INT4(version), EA_TEXT(state)),
				EA_READER(read_stored, TEXTOID, TEXTOID), document);
}

/* -------- in this backend -------- */

/* Begin anew, with nothing. */
static void
forget_documents(const char *state, uint64 generation)
{
	if (kept.mcxt != NULL)
		MemoryContextDelete(kept.mcxt);
	kept.mcxt = NULL;
	kept.mcxt = AllocSetContextCreate(TopMemoryContext, "entityapi openapi",
									  ALLOCSET_SMALL_SIZES);
	dlist_init(&kept.documents);
	kept.size = 0;
	kept.generation = generation;
	kept.made_for = NULL;
	kept.made_for = MemoryContextStrdup(kept.mcxt, state);
}

static Kept *
make_document(int version, const char *state)
{
	/* a child of the request's, until it is complete */
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi openapi document",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	Kept	   *made = palloc0(sizeof(Kept));
	Document   *document = &made->document;

	made->mcxt = mcxt;
	made->version = version;
	find_stored(state, version, document);
	if (document->text == NULL)
	{
		document->text = write_version(version, false);
		make_etag(document->text, document->etag);
	}
	document->len = strlen(document->text);
	document->text = repalloc(document->text, document->len + 1);
	MemoryContextSwitchTo(old);
	return made;
}

/* Keep a document, in place of those that were served least lately. */
static void
keep_document(Kept *made)
{
	while (!dlist_is_empty(&kept.documents) &&
		   kept.size + made->document.len > MAX_KEPT)
	{
		Kept	   *last = dlist_tail_element(Kept, node, &kept.documents);

		dlist_delete(&last->node);
		kept.size -= last->document.len;
		MemoryContextDelete(last->mcxt);
	}
	MemoryContextSetParent(made->mcxt, kept.mcxt);
	dlist_push_head(&kept.documents, &made->node);
	kept.size += made->document.len;
}

static const Document *
kept_document(EaCatalog *catalog, int version)
{
	/* taken first: a change meanwhile outdates it again */
	uint64		generation = ea_invalidate_generation();
	char	   *state = made_for(catalog);
	dlist_iter	iter;
	Kept	   *made;

	if (kept.mcxt == NULL || kept.generation != generation ||
		kept.made_for == NULL || strcmp(kept.made_for, state) != 0)
		forget_documents(state, generation);
	dlist_foreach(iter, &kept.documents)
	{
		made = dlist_container(Kept, node, iter.cur);
		if (made->version == version)
		{
			dlist_move_head(&kept.documents, &made->node);
			return &made->document;
		}
	}
	made = make_document(version, state);
	keep_document(made);
	return &made->document;
}

static void
store_document(int version, const char *state)
{
	char	   *text = write_version(version, true);
	char		etag[ETAG_LENGTH + 3];

	make_etag(text, etag);
	ea_exec_write("INSERT INTO entityapi.openapi_document"
				  " (version, made_for, etag, document)"
				  " VALUES ($1, $2, $3, $4)"
				  " ON CONFLICT (version) DO UPDATE SET made_for = $2,"
				  " etag = $3, document = $4",
				  ea_params(EA_INT4(version), EA_TEXT(state), EA_TEXT(etag),
							EA_TEXT(text)));
	pfree(text);
}

/* The service just applied: the backend's own catalog may be older. */
static EaCatalog *
applied_service(void)
{
	char	   *service = NULL;

	ea_exec_one(EA_EXEC_WRITE, "SELECT definition FROM entityapi.service",
				EA_NO_PARAMS, EA_READER(read_text, TEXTOID), &service);
	return service == NULL ? NULL : ea_catalog_make(service, NIL);
}

/*
 * With more entities than this a document would take a third of the time of
 * every change, however small: then each backend makes it when it is asked.
 */
#define MAX_STORED 500

void
ea_openapi_store(void)
{
	EaCatalog  *catalog = applied_service();
	char	   *state;
	int64		entities;

	if (catalog == NULL)
		return;
	state = made_for(catalog);
	if (ea_exec_int64(EA_EXEC_WRITE,
					  "SELECT count(*) FROM entityapi.openapi_document"
					  " WHERE made_for = $1",
					  ea_params(EA_TEXT(state))) == catalog->nversions)
		return;
	ea_exec_write("DELETE FROM entityapi.openapi_document", EA_NO_PARAMS);
	entities = ea_exec_int64(EA_EXEC_WRITE,
							 "SELECT count(*) FROM entityapi.entity",
							 EA_NO_PARAMS);
	for (int i = 0; entities <= MAX_STORED && i < catalog->nversions; i++)
		store_document(catalog->versions[i].number, state);
}

/* -------- to callers -------- */

/* If-None-Match names it: tags hold no quotes, so it can only stand whole. */
static bool
is_known(EaRequest *req, const char *etag)
{
	const char *header = ea_request_list(req, "if-none-match");

	return header != NULL &&
		(strcmp(header, "*") == 0 || strstr(header, etag) != NULL);
}

void
ea_openapi_show(EaRequest *req)
{
	const Document *document;

	ea_query_read(req, 0);
	document = kept_document(req->catalog, req->version);
	ea_request_answer(req, "etag", pstrdup(document->etag));
	if (is_known(req, document->etag))
	{
		req->status = 304;
		return;
	}
	req->status = 200;
	appendBinaryStringInfo(req->out, document->text, document->len);
}

/*
 * openapi(version int) returns json
 *
 * NULL for a version that is not declared.
 */
EA_CONFINED_FUNCTION(ea_sql_openapi)
{
	MemoryContext caller = CurrentMemoryContext;
	int			version = PG_GETARG_INT32(0);
	EaCatalog  *catalog;
	text	   *volatile result = NULL;
	StringInfoData out;

	SPI_connect();
	initStringInfo(&out);
	catalog = ea_catalog_acquire();
	PG_TRY();
	{
		if (ea_catalog_version(catalog, version) != NULL)
			appendStringInfoString(&out,
								   kept_document(catalog, version)->text);
	}
	PG_FINALLY();
	{
		ea_catalog_release(catalog);
	}
	PG_END_TRY();
	if (out.len > 0)
	{
		MemoryContextSwitchTo(caller);
		result = cstring_to_text_with_len(out.data, out.len);
	}
	SPI_finish();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}
