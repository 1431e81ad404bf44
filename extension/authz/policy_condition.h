/*
 * One policy: what can be decided without a row, and a condition for the
 * rest.
 */
#ifndef EA_POLICY_CONDITION_H
#define EA_POLICY_CONDITION_H

#include "authz/policy_writer.h"

extern EaVerdict ea_policy_verdict(EaPolicyWriter *w);

/* A condition for a tree whose verdict is open; null counts as false. */
extern void ea_policy_condition(EaPolicyWriter *w);

#endif							/* EA_POLICY_CONDITION_H */
