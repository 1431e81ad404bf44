/*-------------------------------------------------------------------------
 *
 * atomic.h
 *	  Atomic operations (JSON:API extension "Atomic Operations").
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_ATOMIC_H
#define EA_ATOMIC_H

#include "model/catalog.h"
#include "read/document.h"
#include "request/request.h"
#include "write/lid.h"

/* POST /api/v{n}/operations */
extern void ea_atomic_run(EaRequest *req);

/* -------- between atomic.c and its parts -------- */

typedef enum EaAtomicVerb
{
	EA_ATOMIC_ADD,
	EA_ATOMIC_UPDATE,
	EA_ATOMIC_REMOVE
} EaAtomicVerb;

/* One operation, its form checked, its names not looked up yet. */
typedef struct EaAtomicOp
{
	EaAtomicVerb verb;
	char	   *pointer;		/* "/atomic:operations/3" */
	const EaJson *json;
	const EaJson *data;			/* NULL when absent */
	const char *target;			/* pointer of what names the target */
	const char *type;			/* resource type, or NULL: */
	const char *collection;		/* of an href */
	const EaJson *lid;			/* one of these names the resource, */
	const char *id;				/* or neither: an add */
	const char *relationship;	/* NULL: the resource itself */
	bool		has_version;	/* meta.version */
	int64		version;

	/* filled when the operation is looked up */
	EaEntity   *entity;
	EaField    *field;
} EaAtomicOp;

typedef struct EaAtomicOps
{
	int			n;
	EaAtomicOp *items;
	EaLids	   *lids;
} EaAtomicOps;

/* Read the form of the body; throws 400 and 409 (atomic_form.c). */
extern EaAtomicOps *ea_atomic_read(EaRequest *req);

/*
 * Look up entity and relationship; false when there are none (404 for the
 * caller to throw).
 */
extern bool ea_atomic_lookup(EaRequest *req, EaAtomicOp *op);

/*
 * The target that a later operation gives a required to-one relationship of
 * the resource with this local id (atomic_later.c); false when none does.
 */
extern bool ea_atomic_later(EaRequest *req, EaAtomicOps *ops, int after,
							EaField *field, const char *lid,
							EaTarget *target);

#endif							/* EA_ATOMIC_H */
