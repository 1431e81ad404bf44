/*
 * Choose the plan that a statement is run by: one that was made for its
 * values, or a cached one.
 */
#ifndef EA_PLAN_CHOICE_H
#define EA_PLAN_CHOICE_H

#include "executor/spi.h"
#include "nodes/params.h"

typedef struct EaPlanChoice EaPlanChoice;

/*
 * For a prepared statement of that text, which lives as long; from now on it
 * is planned anew each time when it is run itself.
 */
extern EaPlanChoice *ea_plan_choice_make(const char *sql, SPIPlanPtr anew);
extern void ea_plan_choice_free(EaPlanChoice *choice);

/*
 * The plan to run for these values, with the statement's tables locked, a
 * snapshot active and no other statement running; and when it has been run, so
 * that a plan which did too much is not kept.  The number of the parameter
 * that is the tenant, or 0, is always that of the text.
 */
extern SPIPlanPtr ea_plan_choice_begin(EaPlanChoice *choice,
									   ParamListInfo values, int tenant);
extern void ea_plan_choice_end(EaPlanChoice *choice, ParamListInfo values);

/*
 * Bytes of all it keeps, but for the statement it was made for; 0 if NULL.
 * The function returns those of a plan.
 */
extern Size ea_plan_choice_bytes(const EaPlanChoice *choice,
								 Size (*bytes_of_plan) (SPIPlanPtr plan));

/* Plans that this backend keeps for tenants of some class. */
extern int	ea_plan_choice_kept(void);

#endif							/* EA_PLAN_CHOICE_H */
