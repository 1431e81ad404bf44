/*
 * Before a row is looked at a policy knows the caller, and nothing else that
 * changes but the clock.  The caller's principal comes from the database at
 * every request; if that is to the byte what it was before, the policies'
 * verdicts are the same.  So each entity keeps the verdicts for the last
 * callers, by the number of each (caller_number.h).  It goes with the
 * declarations.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "authz/caller_number.h"
#include "authz/policy_memo.h"
#include "model/catalog.h"

/* Callers that an entity has verdicts for. */
#define JUDGED 16

static void
make_room(EaJudged *judged, const EaEntity *entity, MemoryContext mcxt)
{
	if (judged->rules != NULL)
		return;
	judged->verdicts = MemoryContextAlloc(mcxt, entity->nrules);
	judged->rules = MemoryContextAlloc(mcxt, entity->nrules * sizeof(uint16));
}

EaJudged *
ea_policy_memo(EaPrincipal *principal, EaEntity *entity, bool *known)
{
	MemoryContext mcxt = entity->catalog->mcxt;
	uint64		caller = ea_caller_number(principal, EA_CALLER_WHOLE);
	EaJudged   *judged;

	*known = false;
	if (caller == 0)
	{
		judged = palloc0(sizeof(EaJudged));
		make_room(judged, entity, CurrentMemoryContext);
		return judged;
	}
	if (entity->judged == NULL)
		entity->judged = MemoryContextAllocZero(mcxt,
												JUDGED * sizeof(EaJudged));
	judged = &entity->judged[caller % JUDGED];
	*known = judged->caller == caller;
	if (!*known)
	{
		/* nobody's until all policies have been asked */
		judged->caller = 0;
		judged->n = 0;
		make_room(judged, entity, mcxt);
	}
	return judged;
}
