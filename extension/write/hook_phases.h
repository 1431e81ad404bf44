/*
 * The hooks around a write of one resource, in their phases.
 */
#ifndef EA_HOOK_PHASES_H
#define EA_HOOK_PHASES_H

#include "write/hooks.h"
#include "write/input.h"

typedef struct EaAround
{
	EaRequest  *req;
	EaEntity   *entity;
	EaOperation op;
	EaId		id;
	char	   *before;			/* the stored row as JSON, or NULL */
	bool		changed;		/* a hook has set attributes of the input */
} EaAround;

/*
 * guard hooks: the form of the request is known, the row is not.  id is NULL
 * for a create, data the resource object as it came, or NULL.
 */
extern void ea_hook_phases_guard(EaAround *around, EaRequest *req,
								 EaEntity *entity, EaOperation op,
								 const EaId *id,
								 const EaJson *attributes);

/*
 * mutate and validate hooks: everything has been checked, and the row is
 * held.  Sets attributes of the input; input is NULL for a delete.
 */
extern void ea_hook_phases_before(EaAround *around, EaInput *input,
								  const EaId *id);

/* after hooks: the write is done. */
extern void ea_hook_phases_after(EaAround *around);

/* Some hook waits for writes of this kind to the entity. */
extern bool ea_hook_phases_waits(EaEntity *entity, EaOperation op);

#endif							/* EA_HOOK_PHASES_H */
