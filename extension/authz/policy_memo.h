/*
 * Cache of read-policy verdicts by caller number.
 */
#ifndef EA_POLICY_MEMO_H
#define EA_POLICY_MEMO_H

#include "model/entity.h"
#include "request/principal.h"

/* The policies of an entity that did not simply say yes. */
typedef struct EaJudged
{
	uint64		caller;			/* 0: nobody's */
	int			n;
	uint16	   *rules;			/* room for all of the entity's */
	uint8	   *verdicts;		/* EaVerdict, or EA_VERDICT_TIMED */
} EaJudged;

#define EA_VERDICT_TIMED 0xff	/* to be asked each time: it looks at the
								 * clock */

/*
 * Of this entity and this caller; *known says if that is filled in already.
 */
extern EaJudged *ea_policy_memo(EaPrincipal *principal, EaEntity *entity,
								bool *known);

#endif							/* EA_POLICY_MEMO_H */
