/*
 * The declarations of this database: entities, fields, versions, service.
 *
 * A catalog is one consistent state of the declarations, kept per backend
 * and filled entity by entity as requests use them.  A request acquires it,
 * holds it to its end, and begins again if another session applies a manifest
 * before its last statement.
 *
 * All strings and structs belong to the catalog's memory context.
 */
#ifndef EA_CATALOG_H
#define EA_CATALOG_H

#include "nodes/pg_list.h"
#include "utils/hsearch.h"
#include "utils/uuid.h"

#include "base/jsonread.h"
#include "model/entity.h"

typedef struct EaVersion
{
	int			number;
	bool		sunset;			/* SUNSET: answers say so */
	char	   *sunset_date;	/* HTTP-date of the Sunset header, or NULL */
} EaVersion;

/* A declared security attribute. */
typedef struct EaAttribute
{
	char	   *name;
	char	   *type;			/* string, boolean, integer, number,
								 * string[] */
	EaJson	   *allowed;		/* ARRAY of allowed values, or NULL */
} EaAttribute;

struct EaCatalog
{
	MemoryContext mcxt;
	int			users;			/* requests that hold it */
	bool		valid;
	char	   *state;			/* as it was stored, in a word */
	int			revision;		/* 0: no manifest applied yet */

	/* of the Service, Versions, Roles and SecurityAttributes documents */
	bool		single;			/* tenancy: SINGLE */
	pg_uuid_t	single_tenant;	/* its built-in tenant */
	bool		tenant_admin_bypass;
	bool		text_numbers;	/* decimals and longs are strings */
	bool		distributed;	/* distribution: citus */
	struct EaApplicationModel *application; /* "existing", or NULL */
	bool		audit_entities;
	bool		audit_identity;
	int			nversions;
	EaVersion  *versions;
	int			nroles;
	char	  **roles;			/* declared domain roles */
	int			nsuper_roles;
	char	  **super_roles;	/* those that only a SuperAdmin assigns */
	int			ndefault_roles;
	char	  **default_roles;
	int			nattributes;
	EaAttribute *attributes;

	bool		purging_known;
	struct List *purging;		/* of management/purge_deleted.c: names of
								 * entities with purgeAfterDays */
	HTAB	   *by_name;		/* entities loaded so far */
	HTAB	   *by_collection;
	HTAB	   *by_type;
};

/*
 * The current state, loaded when needed; release when done with it.  The
 * guard releases it for a request that failed.  Needs SPI to be connected.
 */
extern EaCatalog *ea_catalog_acquire(void);
extern void ea_catalog_release(EaCatalog *catalog);

/* It is not as it was loaded: the next request loads it anew. */
extern void ea_catalog_forget(EaCatalog *catalog);

/* How often this backend found it loaded, and had to load it. */
extern void ea_catalog_stats(int64 *hit_count, int64 *load_count);

/*
 * A catalog of its own from definitions (char *) that need not be stored, in
 * the current memory context: it goes with that.  service may be NULL.
 */
extern EaCatalog *ea_catalog_make(const char *service, List *definitions);

/* Another manifest has been applied since this state was loaded. */
extern bool ea_catalog_is_stale(EaCatalog *catalog);

/*
 * The state is still the one that holds, by the invalidation messages that
 * this backend has processed; it does so whenever it locks a table.
 */
extern bool ea_catalog_is_current(EaCatalog *catalog);

/* The entities (EaEntity *) that have been looked for by now. */
extern List *ea_catalog_loaded(EaCatalog *catalog);
/* Throw 40001 then: the same request may succeed if repeated. */
extern void ea_catalog_require_current(EaCatalog *catalog);

/* An entity by name, by path segment (camelCase plural or its lower-case
 * form), or by resource type; NULL when none is declared. */
extern EaEntity *ea_catalog_entity(EaCatalog *catalog, const char *name);
extern EaEntity *ea_catalog_collection(EaCatalog *catalog,
									   const char *segment);
extern EaEntity *ea_catalog_type(EaCatalog *catalog, const char *type);

/* The entity a member points at (never NULL). */
extern EaEntity *ea_catalog_target(EaField *field, int member);

/* The field of the target that one with mapped_by mirrors (never NULL). */
extern EaField *ea_catalog_mirrored(EaField *field);

/* A declared version, or NULL. */
extern const EaVersion *ea_catalog_version(EaCatalog *catalog, int number);

extern bool ea_catalog_has_role(EaCatalog *catalog, const char *role);

/* Is it one that only a SuperAdmin assigns? */
extern bool ea_catalog_is_super_role(EaCatalog *catalog, const char *role);
extern const EaAttribute *ea_catalog_attribute(EaCatalog *catalog,
											   const char *name);

/*
 * Its resources can be restored, at an address of their own.  Where nothing is
 * deleted softly, and in declarations of before, that is the address of a
 * relationship of this name.
 */
extern bool ea_catalog_restores(EaEntity *entity);

/* The field of entity->references[i]. */
extern EaField *ea_catalog_referring(EaEntity *entity, int i);

#endif							/* EA_CATALOG_H */
