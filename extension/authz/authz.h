/*
 * May this caller? The one place that decides.
 */
#ifndef EA_AUTHZ_H
#define EA_AUTHZ_H

#include "model/catalog.h"
#include "request/request.h"

/* Do roles and policies of this entity not bind the caller? */
extern bool ea_authz_bypasses(EaRequest *req, EaEntity *entity);

/* Roles of the caller allow op on the entity at all. */
extern bool ea_authz_allows(EaRequest *req, EaEntity *entity, EaOperation op);

/* The same, or throw 403. */
extern void ea_authz_require(EaRequest *req, EaEntity *entity,
							 EaOperation op);

/* 403 where all rows are one tenant's, and the caller acts in another. */
extern void ea_authz_require_open(EaRequest *req, const EaEntity *entity);

/*
 * A field of an entity as this caller sees it in the version of the request:
 * NULL for a field that is not declared, not shown in that version, or not
 * readable, all alike.
 */
extern EaField *ea_authz_field(EaRequest *req, EaEntity *entity,
							   const char *name, int len);

/* The field's own read roles let the caller see it, in some version. */
extern bool ea_authz_open(EaRequest *req, EaField *field);

/* The field's own version window and read roles let the caller see it. */
extern bool ea_authz_shown(EaRequest *req, EaField *field);

/*
 * The caller may see the field: shown, and for a relationship some target is
 * an entity the caller may read.  The caller may set it: write roles.
 */
extern bool ea_authz_readable(EaRequest *req, EaField *field);
extern bool ea_authz_writable(EaRequest *req, EaField *field);

/* Readable, and so are resources of its entity: it may be told of. */
extern bool ea_authz_knows(EaRequest *req, EaField *field);

/*
 * The caller as a resource of User: false for a SuperAdmin, which belongs to
 * no tenant, and for a caller that has no account here.
 */
extern bool ea_authz_author(const EaRequest *req, pg_uuid_t *id);

#endif							/* EA_AUTHZ_H */
