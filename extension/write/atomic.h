/*
 * Atomic operations (JSON:API extension "Atomic Operations").
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

#endif							/* EA_ATOMIC_H */
