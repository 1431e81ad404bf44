/*
 * Values in policies: literals and the caller's.
 */
#ifndef EA_POLICY_VALUE_H
#define EA_POLICY_VALUE_H

#include "authz/policy.h"
#include "model/types.h"
#include "request/request.h"

/* A literal as a value of its type. */
extern Datum ea_policy_value_literal(const EaPolicy *node);

/* Order of two values of a type, by the database's collation. */
extern int	ea_policy_value_compare(EaPolicyType type, Datum a, Datum b);

/*
 * A text as the type of a column compares it: citext without its case, char
 * without its padding.  type may be NULL.
 */
extern Datum ea_policy_value_fold(const EaType *type, Datum value);

/* A value of an attribute as one of its policy type: numbers are numeric. */
extern Datum ea_policy_value_of(const EaType *type, Datum value);

/* A number that is a whole one within 64 bits. */
extern bool ea_policy_value_whole(Datum number, int64 *whole);

/* The object of the caller's that a property is; parsed once, and kept. */
extern EaJson *ea_policy_sql_object(EaPrincipal *principal,
									const char *property);

/* A value of the caller by its path in an expression, of the given type. */
extern bool ea_policy_sql_caller(EaPrincipal *principal, const char *property,
								 const char *key, EaPolicyType type,
								 Datum *value);

#endif							/* EA_POLICY_VALUE_H */
