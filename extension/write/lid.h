/*
 * Local ids of an atomic request (JSON:API "lid").
 *
 * The ids of all resources that a request adds are made before its first
 * operation runs; a local id is a name for one of them.
 */
#ifndef EA_LID_H
#define EA_LID_H

#include "base/uuid.h"
#include "model/catalog.h"
#include "request/request.h"

typedef struct EaLid
{
	const char *type;
	const char *lid;
	pg_uuid_t	id;
	int			operation;		/* which defines it */
} EaLid;

typedef struct EaLids
{
	int			n;
	EaLid	   *items;			/* sorted by type and lid */
	int			operation;		/* which runs: it may use earlier ones */
	EaIds		made;			/* ids of resources added so far, ascending */
} EaLids;

/* Sort the items; returns the operation of a repeated definition, or -1. */
extern int	ea_lid_sort(EaLids *lids);

/* Find a definition, whatever its operation; NULL when there is none. */
extern const EaLid *ea_lid_find(const EaLids *lids, const char *type,
								const char *lid);

/*
 * The id that a local id stands for in the running operation.  Notes a fault
 * at pointer, and returns false, for one that is no string, unknown, of
 * another type, or not defined yet.
 */
extern bool ea_lid_resolve(EaRequest *req, const char *type,
						   const EaJson *lid, const char *pointer,
						   pg_uuid_t *id);

/* An earlier operation of this request added the resource. */
extern bool ea_lid_made(EaRequest *req, EaEntity *entity,
						const pg_uuid_t *id);

/* Note that the running operation adds a resource. */
extern void ea_lid_add_made(EaLids *lids, const pg_uuid_t *id);

/* It has got another id: local ids stand for that from now on. */
extern void ea_lid_change(EaLids *lids, const pg_uuid_t *from,
						  const pg_uuid_t *to);

#endif							/* EA_LID_H */
