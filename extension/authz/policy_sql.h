/*
 * Policies of an entity to predicates over its rows.
 *
 * The caller's values, the clock and the input are constants; a part that they
 * decide alone is decided here, and only the rest becomes SQL.  A null or a
 * missing value makes a policy false, wherever it stands, except in a
 * comparison with the literal null.
 *
 * A path through a reference sees the parts of its target that the caller may
 * read.
 */
#ifndef EA_POLICY_SQL_H
#define EA_POLICY_SQL_H

#include "authz/policy.h"
#include "model/catalog.h"
#include "model/sqlbuf.h"
#include "request/request.h"

typedef enum EaVerdict
{
	EA_VERDICT_NO,
	EA_VERDICT_YES,
	EA_VERDICT_OPEN				/* depends on the row */
} EaVerdict;

/*
 * The incoming values of a write: false for a field that it does not set.
 * Only attributes and to-one relationships (a uuid) are asked for.
 */
typedef struct EaPolicyInput
{
	bool		(*value) (void *arg, EaField *field, Datum *value,
						  bool *isnull);
	void	   *arg;
} EaPolicyInput;

/* Let the statement builder narrow all that is read by the read policies. */
extern void ea_policy_sql_init(void);

/*
 * The verdict of an operation's policies for this caller before a row is
 * looked at.  Without input (NULL), parts that depend on it are open.
 */
extern EaVerdict ea_policy_sql_judge(EaRequest *req, EaEntity *entity,
									 EaOperation op,
									 const EaPolicyInput *input);

/*
 * Append a condition over row t<alias> that holds when the policies of the
 * operation do, and, for an update with input, when they do for the row as it
 * will be, too: there a field that a policy looks at as #input counts as it
 * was.  Never null.  Without input, policies that ask for it are left out.
 * For a create there is no row, and alias is not used.
 */
extern void ea_policy_sql_write(EaSqlBuf *b, EaEntity *entity, int alias,
								EaOperation op, const EaPolicyInput *input);

/*
 * The read policies as a condition for CREATE POLICY on the entity's table,
 * with the caller's values from entityapi.caller_*(); "true" without any.
 * With Citus it holds no sub-select, and is NULL where one looks at another
 * row.
 */
extern char *ea_policy_sql_row_security(EaEntity *entity);

#endif							/* EA_POLICY_SQL_H */
