/*
 * The current catalog is replaced, not changed, when a manifest has been
 * applied: requests under way keep the one they acquired, and the last to
 * release it frees it.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/names.h"
#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "cluster/undecided.h"
#include "engine/exec.h"
#include "model/application.h"
#include "model/catalog.h"
#include "model/catalog_load.h"
#include "model/entity.h"
#include "trust/owner.h"

/* Longest name, collection or type: an SQL identifier. */
#define KEY_SIZE 256

typedef struct EntityEntry
{
	char		key[KEY_SIZE];	/* hash key - must be first */
	EaEntity   *entity;
} EntityEntry;

static EaCatalog *current = NULL;
static uint64 current_generation;
static int64 hits = 0;
static int64 loads = 0;

static void
keep_definition(void *arg, TupleTableSlot *slot)
{
	*(char **) arg = TextDatumGetCString(slot->tts_values[0]);
}

/*
 * Until ALTER EXTENSION has made the column no declaration has changed since.
 */
static const char *
applied_at(void)
{
	Oid			schema = get_namespace_oid("entityapi", false);
	Oid			relid = get_relname_relid("entity", schema);

	return get_attnum(relid, "applied_at") != InvalidAttrNumber ?
		"applied_at" : "'-infinity'::pg_catalog.timestamptz";
}

/* A row of entityapi.entity */
typedef struct StoredEntity
{
	char	   *definition;
	TimestampTz applied_at;
} StoredEntity;

static void
keep_entity(void *arg, TupleTableSlot *slot)
{
	StoredEntity *stored = arg;

	stored->definition = TextDatumGetCString(slot->tts_values[0]);
	stored->applied_at = slot->tts_isnull[1] ? DT_NOEND :
		DatumGetTimestampTz(slot->tts_values[1]);
}

/*
 * The mark of one state of the declarations among all others, of which some
 * may have been undone: each application of a manifest writes the service
 * anew.
 */
#define SERVICE "entityapi.service"
#define STATE "s.tableoid::text || ' ' || s.xmin::text || ' '" \
	" || hashtextextended(s.definition, 0)::text"

typedef struct Service
{
	char	   *definition;
	char	   *state;
} Service;

static void
keep_service(void *arg, TupleTableSlot *slot)
{
	Service    *service = arg;

	service->definition = TextDatumGetCString(slot->tts_values[0]);
	service->state = TextDatumGetCString(slot->tts_values[1]);
}

static HTAB *
create_table(EaCatalog *catalog, const char *name)
{
	HASHCTL		ctl = {0};

	ctl.keysize = KEY_SIZE;
	ctl.entrysize = sizeof(EntityEntry);
	ctl.hcxt = catalog->mcxt;
	return hash_create(name, 64, &ctl,
					   HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

/* Without a Versions document there is version 1. */
static void
set_defaults(EaCatalog *catalog)
{
	static EaVersion first = {1, false, NULL};

	catalog->tenant_admin_bypass = true;
	catalog->audit_entities = true;
	catalog->audit_identity = true;
	catalog->versions = &first;
	catalog->nversions = 1;
}

static EaCatalog *
create_catalog(MemoryContext mcxt)
{
	EaCatalog  *catalog = MemoryContextAllocZero(mcxt, sizeof(EaCatalog));

	catalog->mcxt = mcxt;
	catalog->by_name = create_table(catalog, "entityapi names");
	catalog->by_collection = create_table(catalog, "entityapi collections");
	catalog->by_type = create_table(catalog, "entityapi types");
	return catalog;
}

EaCatalog *
ea_catalog_make(const char *service, List *definitions)
{
	EaCatalog  *catalog = create_catalog(CurrentMemoryContext);
	ListCell   *lc;

	if (service != NULL)
		ea_catalog_load_service(catalog, service);
	foreach(lc, definitions)
	{
		EaEntity   *entity = ea_catalog_load_entity(catalog, lfirst(lc));
		EntityEntry *entry = hash_search(catalog->by_name, entity->name,
										 HASH_ENTER, NULL);

		entry->entity = entity;
	}
	return catalog;
}

static EaCatalog *
load_catalog(void)
{
	MemoryContext mcxt = AllocSetContextCreate(TopMemoryContext,
											   "entityapi catalog",
											   ALLOCSET_DEFAULT_SIZES);
	EaCatalog  *catalog = create_catalog(mcxt);

	PG_TRY();
	{
		Service		service = {NULL, ""};

		ea_exec_latest(EA_EXEC_READ, psprintf("SELECT s.definition, " STATE
												  " FROM %s s",
												  ea_shards_name(SERVICE)),
					   EA_NO_PARAMS,
					   EA_READER(keep_service, TEXTOID, TEXTOID), &service);
		if (service.definition != NULL)
			ea_catalog_load_service(catalog, service.definition);
		if (catalog->application != NULL)
			ea_application_read(catalog);
		catalog->state = MemoryContextStrdup(mcxt, service.state);
		if (catalog->nversions == 0)
			set_defaults(catalog);
	}
	PG_CATCH();
	{
		MemoryContextDelete(mcxt);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return catalog;
}

static void
drop_if_unused(EaCatalog *catalog)
{
	if (catalog->users == 0 && !catalog->valid)
		MemoryContextDelete(catalog->mcxt);
}

/*
 * Does the current one still match the declarations?  An invalidation message
 * for its tables says that something was done to them, and that may have been
 * a vacuum: so the present rows are compared, once for all messages that have
 * come.  They may come while a statement waits as the role of an application,
 * which may not see the rows.
 */
static bool
still_holds(void)
{
	uint64		generation = ea_invalidate_generation();
	char	   *state = "";
	EaPin		before;

	if (current_generation == generation)
		return true;

	/* the caller may have a plan in hand, which the look must not push out */
	ea_plancache_enter();
	ea_owner_enter(&before);
	ea_invalidate_watch();
	ea_exec_latest(EA_EXEC_LOOK, psprintf("SELECT " STATE " FROM %s s",
											  ea_shards_name(SERVICE)),
				   EA_NO_PARAMS, EA_READER(keep_definition, TEXTOID), &state);
	ea_owner_leave(&before);
	ea_plancache_leave();
	if (strcmp(state, current->state) != 0)
		return false;

	/* that of before: a message during the look leads to another look */
	current_generation = generation;
	return true;
}

/*
 * The catalog is kept for later requests, so it is read as it is by now and
 * not as the calling statement sees it.  Invalidation messages are asked for,
 * as a transaction that has its locks already would not process any.
 */
EaCatalog *
ea_catalog_acquire(void)
{
	AcceptInvalidationMessages();
	if (ea_distributed())
		ea_undecided_look();
	else
		ea_distributed_refuse_own();
	if (current != NULL && !still_holds())
	{
		EaCatalog  *old = current;

		current = NULL;
		old->valid = false;
		drop_if_unused(old);

		/* other declarations want other tables */
		ea_held_all_changed();
	}
	if (current == NULL)
	{
		EaCatalog  *catalog;
		uint64		generation;

		/* taken first: a change during the load outdates it again */
		ea_invalidate_watch();
		generation = ea_invalidate_generation();
		catalog = load_catalog();
		catalog->valid = true;
		current = catalog;
		current_generation = generation;
		loads++;
	}
	else
		hits++;
	if (ea_distributed() && !current->distributed)
		ea_distributed_refuse_own();
	if (*current->state == '\0')
		ea_distributed_refuse_idle();
	current->users++;
	return current;
}

void
ea_catalog_forget(EaCatalog *catalog)
{
	catalog->state = MemoryContextStrdup(catalog->mcxt, "forgotten");
	current_generation = ea_invalidate_generation() - 1;
}

void
ea_catalog_stats(int64 *hit_count, int64 *load_count)
{
	*hit_count = hits;
	*load_count = loads;
}

void
ea_catalog_release(EaCatalog *catalog)
{
	catalog->users--;
	drop_if_unused(catalog);
}

/*
 * A change that another node has committed may have reached a table here and
 * not yet the row that reports it: this waits for the row.
 */
bool
ea_catalog_is_stale(EaCatalog *catalog)
{
	AcceptInvalidationMessages();
	if (ea_distributed())
		ea_undecided_look();
	return !ea_catalog_is_current(catalog);
}

bool
ea_catalog_is_current(EaCatalog *catalog)
{
	return catalog == current && still_holds();
}

void
ea_catalog_require_current(EaCatalog *catalog)
{
	if (ea_catalog_is_stale(catalog))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("the declarations changed during the request")));
}

List *
ea_catalog_loaded(EaCatalog *catalog)
{
	List	   *entities = NIL;
	HASH_SEQ_STATUS status;
	EntityEntry *entry;

	hash_seq_init(&status, catalog->by_name);
	while ((entry = hash_seq_search(&status)) != NULL)
		entities = lappend(entities, entry->entity);
	return entities;
}

/* Look in one table, else load by the query and enter into all three. */
static EaEntity *
find_entity(EaCatalog *catalog, HTAB *table, const char *key,
			const char *condition)
{
	EntityEntry *entry;
	EaEntity   *entity;
	StoredEntity stored = {NULL};

	if (strlen(key) >= KEY_SIZE)
		return NULL;
	entry = hash_search(table, key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->entity;

	ea_exec_latest(EA_EXEC_READ,
				   psprintf("SELECT definition, %s FROM %s WHERE %s",
							applied_at(), ea_shards_name("entityapi.entity"),
							condition),
				   ea_params(EA_TEXT(key)),
				   EA_READER(keep_entity, TEXTOID, TIMESTAMPTZOID), &stored);

	/* one made of definitions has no state that it could have missed */
	if (catalog->users > 0)
		ea_catalog_require_current(catalog);
	if (stored.definition == NULL)
		return NULL;
	entity = ea_catalog_load_entity(catalog, stored.definition);
	entity->applied_at = stored.applied_at;

	/* it may be there already, found by another key */
	entry = hash_search(catalog->by_name, entity->name, HASH_FIND, NULL);
	if (entry != NULL)
		entity = entry->entity;
	else
	{
		entry = hash_search(catalog->by_name, entity->name, HASH_ENTER, NULL);
		entry->entity = entity;
		entry = hash_search(catalog->by_type, entity->type, HASH_ENTER, NULL);
		entry->entity = entity;
	}
	entry = hash_search(table, key, HASH_ENTER, NULL);
	entry->entity = entity;
	return entity;
}

EaEntity *
ea_catalog_entity(EaCatalog *catalog, const char *name)
{
	return find_entity(catalog, catalog->by_name, name,
					   "name = $1");
}

EaEntity *
ea_catalog_collection(EaCatalog *catalog, const char *segment)
{
	return find_entity(catalog, catalog->by_collection, segment,
					   "collection = $1 OR collection_lower = $1");
}

EaEntity *
ea_catalog_type(EaCatalog *catalog, const char *type)
{
	return find_entity(catalog, catalog->by_type, type,
					   "type = $1");
}

EaField *
ea_catalog_mirrored(EaField *field)
{
	EaField    *mirrored = ea_catalog_field(ea_catalog_target(field, 0),
											field->mapped_by,
											strlen(field->mapped_by));

	if (mirrored == NULL)
		elog(ERROR, "relationship \"%s\" mirrors no field", field->name);
	return mirrored;
}

bool
ea_catalog_restores(EaEntity *entity)
{
	static const char name[] = "restore";
	EaField    *field;

	if (!entity->soft_delete)
		return false;
	field = ea_catalog_field(entity, name, strlen(name));
	return field == NULL || field->kind == EA_ATTRIBUTE;
}

EaField *
ea_catalog_referring(EaEntity *entity, int i)
{
	EaReference *reference = &entity->references[i];
	EaEntity   *other = ea_catalog_entity(entity->catalog,
										  reference->entity_name);
	EaField    *field = other == NULL ? NULL :
		ea_catalog_field(other, reference->field_name,
						 strlen(reference->field_name));

	if (field == NULL)
		elog(ERROR, "the reference %s.%s is not declared",
			 reference->entity_name, reference->field_name);
	return field;
}

EaEntity *
ea_catalog_target(EaField *field, int member)
{
	EaMember   *m = &field->members[member];

	if (m->entity == NULL)
		m->entity = ea_catalog_entity(field->entity->catalog, m->entity_name);
	if (m->entity == NULL)
		elog(ERROR, "entity \"%s\" is not declared", m->entity_name);
	return m->entity;
}

const EaVersion *
ea_catalog_version(EaCatalog *catalog, int number)
{
	for (int i = 0; i < catalog->nversions; i++)
	{
		if (catalog->versions[i].number == number)
			return &catalog->versions[i];
	}
	return NULL;
}

bool
ea_catalog_has_role(EaCatalog *catalog, const char *role)
{
	return ea_names_contain(catalog->roles, catalog->nroles, role);
}

bool
ea_catalog_is_super_role(EaCatalog *catalog, const char *role)
{
	return ea_names_contain(catalog->super_roles, catalog->nsuper_roles, role);
}

const EaAttribute *
ea_catalog_attribute(EaCatalog *catalog, const char *name)
{
	for (int i = 0; i < catalog->nattributes; i++)
	{
		if (strcmp(catalog->attributes[i].name, name) == 0)
			return &catalog->attributes[i];
	}
	return NULL;
}
