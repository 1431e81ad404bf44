/*
 * Values and paths of policies: their meaning, and their SQL.
 */
#ifndef EA_POLICY_OPERAND_H
#define EA_POLICY_OPERAND_H

#include "authz/policy_writer.h"

/* A path that the tree looks at as #input; name NULL: any at all. */
extern bool ea_policy_mentions_input(const EaPolicy *tree, const char *name);

/* The tree looks at another row than its own. */
extern bool ea_policy_crosses(const EaPolicy *tree);

/* It follows a reference to a table of an application. */
extern bool ea_policy_leaves(const EaPolicy *tree);

/* The tree looks at the clock. */
extern bool ea_policy_mentions_now(const EaPolicy *tree);

extern void ea_policy_operand(EaPolicyWriter *w, const EaPolicy *node,
							  EaOperand *operand);

/* Write it; a number is given the type of the column it is compared with. */
extern void ea_policy_operand_write(EaPolicyWriter *w, const EaPolicy *node,
									const EaOperand *operand,
									const EaType *against);

/* ` = ANY (...)` with the constant members of a list, or of strings. */
extern void ea_policy_operand_write_any(EaPolicyWriter *w,
										const EaPolicy *list,
										const EaType *against);

#endif							/* EA_POLICY_OPERAND_H */
