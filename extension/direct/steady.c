/*
 * Stands for no function of PostgreSQL: it says of an expression whether what
 * ExecInitExpr() makes of it may outlive the statement.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/lsyscache.h"

#include "direct/steady.h"

static bool
is_foreign(Oid function, void *arg)
{
	return function >= FirstUnpinnedObjectId;
}

/*
 * Functions of PostgreSQL that compare values of the type, or take them apart,
 * call no user-defined function.  The types of the elements of an array, a
 * range or a row say how these are compared, and may do so by a user-defined
 * function.
 */
static bool
is_self_contained(Oid type)
{
	Oid			element;

	check_stack_depth();
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_DOMAIN:
			return is_self_contained(getBaseType(type));
		case TYPTYPE_BASE:
			element = get_element_type(type);
			return OidIsValid(element) ? is_self_contained(element) :
				type < FirstUnpinnedObjectId;
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return type < FirstUnpinnedObjectId;
		default:
			return false;
	}
}

/* Only the functions of a user-defined type know anything of its values. */
static bool
is_steady_type(Oid type)
{
	Oid			base = getBaseType(type);

	return is_self_contained(base) ||
		(get_typtype(base) == TYPTYPE_BASE &&
		 !OidIsValid(get_element_type(base)));
}

/* The node itself, without its children. */
static bool
calls_others(Node *node)
{
	return !IsA(node, List) &&
		(!is_steady_type(exprType(node)) ||
		 check_functions_in_node(node, is_foreign, NULL));
}

/*
 * In expressions of the catalog, lists of values are as they were typed
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
	return calls_others(node) ||
		expression_tree_walker(node, may_change, allowed);
}

bool
ea_steady_is(Node *node, int allowed)
{
	return !may_change(node, &allowed);
}
