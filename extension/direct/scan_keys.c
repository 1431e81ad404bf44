/*
 * Stands for ExecIndexBuildScanKeys().  Read against PostgreSQL 15 to 18.  It
 * leaves out row comparisons, arrays, IS NULL, and values that are neither a
 * parameter nor a constant.
 */
#include "postgres.h"

#include "nodes/primnodes.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "direct/scan_keys.h"

/* The value that a key is compared with: a parameter or a constant. */
static bool
read_source(Node *node, EaKeySource *source)
{
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN)
	{
		source->param = ((Param *) node)->paramid - 1;
		return true;
	}
	if (IsA(node, Const))
	{
		Const	   *constant = (Const *) node;

		source->param = -1;
		source->isnull = constant->constisnull;
		source->value = constant->constisnull ? (Datum) 0 :
			datumCopy(constant->constvalue, constant->constbyval,
					  constant->constlen);
		return true;
	}
	return false;
}

/* One qualification of the index: column, operator, value. */
static bool
read_key(EaScanKeys *keys, Relation index, Node *node)
{
	OpExpr	   *op = (OpExpr *) node;
	Node	   *left;
	Var		   *var;
	int			strategy;
	Oid			left_type;
	Oid			right_type;

	if (!IsA(node, OpExpr) || list_length(op->args) != 2 ||
		keys->n == EA_SCAN_KEYS)
		return false;
	left = linitial(op->args);
	if (IsA(left, RelabelType))
		left = (Node *) ((RelabelType *) left)->arg;
	if (!IsA(left, Var))
		return false;
	var = (Var *) left;
	if (var->varno != INDEX_VAR || var->varattno < 1 ||
		var->varattno > IndexRelationGetNumberOfKeyAttributes(index) ||
		!read_source(lsecond(op->args), &keys->sources[keys->n]))
		return false;
	get_op_opfamily_properties(op->opno, index->rd_opfamily[var->varattno - 1],
							   false, &strategy, &left_type, &right_type);
	ScanKeyEntryInitialize(&keys->keys[keys->n++], 0, var->varattno,
						   strategy, right_type, op->inputcollid,
						   op->opfuncid, (Datum) 0);
	return true;
}

bool
ea_scan_keys_read(EaScanKeys *keys, Relation index, List *quals)
{
	ListCell   *cell;

	keys->n = 0;
	foreach(cell, quals)
	{
		if (!read_key(keys, index, lfirst(cell)))
			return false;
	}
	return true;
}

bool
ea_scan_keys_bind(const EaScanKeys *keys, const EaValue *params, ScanKey bound)
{
	for (int i = 0; i < keys->n; i++)
	{
		const EaKeySource *source = &keys->sources[i];

		if (source->param < 0 ? source->isnull :
			params[source->param].isnull)
			return false;
		bound[i] = keys->keys[i];
		bound[i].sk_argument = source->param < 0 ? source->value :
			params[source->param].value;
	}
	return true;
}
