/*
 * The types of a policy expression, and whether they fit together.
 */
#ifndef EA_POLICY_TYPES_H
#define EA_POLICY_TYPES_H

#include "authz/policy.h"

/*
 * Find the type of every node, and whether all fit.  False with *fault for
 * the first that does not.
 */
extern bool ea_policy_check(EaPolicy *tree, EaPolicyScope *scope,
							EaPolicyFault *fault);

/*
 * Warn where an expression asks for values that users write themselves: a user
 * that it is meant to bind could choose the value.  Fields of User that are
 * such are known to who checks its paths.
 */
extern void ea_policy_warn_profile(const EaPolicy *tree, const char *what);
extern void ea_policy_warn_own(const char *asks);

/* The attribute type that reads values of a type; NULL where none does. */
extern const EaType *ea_policy_type_reader(EaPolicyType type);

/* The type of values of a security attribute, by the name of its type. */
extern EaPolicyType ea_policy_type_of(const char *type_name);

#endif							/* EA_POLICY_TYPES_H */
