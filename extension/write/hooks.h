/*
 * Call the deployment's own functions around a write.
 */
#ifndef EA_HOOKS_H
#define EA_HOOKS_H

#include "base/compat.h"
#include "model/catalog.h"
#include "request/request.h"

/* A write as its hooks see it: JSON texts, or NULL for null. */
typedef struct EaHookCall
{
	EaRequest  *req;
	EaEntity   *entity;
	EaOperation op;
	const char *before;
	const char *after;
} EaHookCall;

/* The change that a mutating hook asks for. */
typedef struct EaHookChange
{
	const EaHook *hook;
	const EaJson *attributes;	/* an object */
	const char *source;			/* the text it was parsed from */
} EaHookChange;

/* Hooks of one of the phases (mask of 1 << EaHookPhase) wait for this. */
extern bool ea_hooks_wait(EaEntity *entity, EaOperation op, int phases);

/*
 * The n-th hook of the phase, from 0; false when there is none.  A rejection
 * is thrown as 400, an exception as 500, a timeout as 503.  change may be
 * NULL where nothing can be changed; its attributes are NULL when the hook
 * changes nothing.
 */
extern bool ea_hooks_run(const EaHookCall *call, EaHookPhase phase, int n,
						 EaHookChange *change);

/* A hook that does not keep to its contract: 500 naming it. */
extern EA_NORETURN void ea_hooks_fail(EaRequest *req, const EaHook *hook,
									  const char *why);

#endif							/* EA_HOOKS_H */
