/*
 * Between the parts of policy_sql: one policy being written.
 *
 * policy_sql.c has the trees and the whole of an entity's policies,
 * policy_operand.c resolves a node and writes it, policy_condition.c decides
 * and writes conditions.
 */
#ifndef EA_POLICY_WRITER_H
#define EA_POLICY_WRITER_H

#include "authz/policy_sql.h"
#include "authz/policy_value.h"

typedef struct EaPolicyWriter
{
	EaRequest  *req;			/* NULL: for row-level security */
	EaSqlBuf   *b;
	EaEntity   *entity;
	int			alias;
	EaOperation op;
	const EaPolicyInput *input; /* NULL: not known yet */
	const EaPolicy *tree;
	bool		moved;			/* #record is the row as it will be */
} EaPolicyWriter;

/* A value node, resolved. */
typedef struct EaOperand
{
	bool		constant;		/* value, or null */
	bool		isnull;
	Datum		value;			/* also where the path of a column starts, */
	bool		starts;			/* when this is set */
	bool		never_null;
	const EaType *type;			/* of a column */
	const EaColumn *column;		/* whose values cross as texts; or NULL */
} EaOperand;

#endif							/* EA_POLICY_WRITER_H */
