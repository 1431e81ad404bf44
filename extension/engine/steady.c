/*
 * Expressions that can be kept compiled from statement to statement.
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"

#include "engine/steady.h"

static bool
is_foreign(Oid function, void *arg)
{
	return function >= FirstUnpinnedObjectId;
}

/*
 * For what the catalog has, lists of values are as they were typed
 * (ARRAY['A'::varchar, ...]::text[]), and the planner makes constants of them.
 */
static bool
may_change(Node *node, void *allowed)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			if (((Var *) node)->varattno < 1)
				return true;
			break;
		case T_Param:
			if ((*(int *) allowed & EA_STEADY_PARAMS) == 0 ||
				((Param *) node)->paramkind != PARAM_EXTERN)
				return true;
			break;
		case T_ScalarArrayOpExpr:
			/* a hash is made in the memory of a statement */
			if (OidIsValid(((ScalarArrayOpExpr *) node)->hashfuncid))
				return true;
			break;
		case T_NullTest:
			if (((NullTest *) node)->argisrow)
				return true;
			break;
		case T_ArrayExpr:
		case T_ArrayCoerceExpr:
		case T_CaseTestExpr:
			if ((*(int *) allowed & EA_STEADY_WRITTEN) == 0)
				return true;
			break;
		case T_Const:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_FuncExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_RelabelType:
		case T_List:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, is_foreign, NULL) ||
		expression_tree_walker(node, may_change, allowed);
}

static bool
calls_others(Node *node, void *arg)
{
	return node != NULL && (IsA(node, CoerceToDomain) ||
							check_functions_in_node(node, is_foreign, arg) ||
							expression_tree_walker(node, calls_others, arg));
}

bool
ea_steady_calls_others(Node *node)
{
	return calls_others(node, NULL);
}

bool
ea_steady_is(Node *node, int allowed)
{
	return !may_change(node, &allowed);
}
