/*
 * Local ids of an atomic request (JSON:API "lid").
 *
 * The ids of all resources that a request adds are made before its first
 * operation runs; a local id is a name for one of them.
 */
#ifndef EA_LID_H
#define EA_LID_H

#include "model/catalog.h"
#include "request/request.h"

typedef struct EaLid
{
	const char *type;
	const char *lid;
	bool		known;			/* its id is: else when it has been added */
	EaId		id;
	int			operation;		/* which defines it */
} EaLid;

/* A resource that an operation has added. */
typedef struct EaAdded
{
	const EaEntity *entity;
	EaId		id;
} EaAdded;

typedef struct EaLids
{
	int			n;
	EaLid	   *items;			/* sorted by type and lid */
	int			operation;		/* which runs: it may use earlier ones */
	EaIds		made;			/* UUIDs that were added so far, ascending */
	int			nadded;
	int			maxadded;
	EaAdded    *added;			/* the same of those with other ids */
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
extern bool ea_lid_resolve(EaRequest *req, const EaEntity *entity,
						   const EaJson *lid, const char *pointer,
						   EaId *id);

/* An earlier operation of this request added the resource. */
extern bool ea_lid_made(EaRequest *req, EaEntity *entity,
						const EaId *id);

/* Note that the running operation adds a resource. */
extern void ea_lid_add_made(EaLids *lids, const EaId *id);

/* It has got its id, which was not known before; lid may be NULL. */
extern void ea_lid_know(EaLids *lids, const EaEntity *entity,
						const char *lid, const EaId *id);

/* It has got another id: local ids stand for that from now on. */
extern void ea_lid_change(EaLids *lids, const EaId *from,
						  const EaId *to);

#endif							/* EA_LID_H */
