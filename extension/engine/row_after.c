/*
 * The condition that a row comes after a cursor, asked of the rows of an
 * index scan.
 *
 * What the executor does for a comparison of rows is in ExecInitExprRec() and
 * ExecInterpExpr(): column by column the function of the operator family that
 * orders (BTORDER_PROC), until one of them differs; null where a value is, and
 * a condition that is null is not met.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "engine/row_after.h"

typedef struct Term
{
	AttrNumber	column;
	TypeCacheEntry *type;		/* that it is compared as */
	Oid			collation;
	Datum		value;
} Term;

struct EaRowAfter
{
	bool		down;			/* less comes after */
	bool		in_order;		/* of the first term */
	bool		past;			/* and all from here on are beyond it */
	int			n;
	Term		terms[FLEXIBLE_ARRAY_MEMBER];
};

/* -------- asking -------- */

static int
compare(const Term *term, Datum value)
{
	return DatumGetInt32(FunctionCall2Coll(&term->type->cmp_proc_finfo,
										   term->collation, value,
										   term->value));
}

static bool
is_after(EaRowAfter *after, TupleTableSlot *row)
{
	for (int i = 0; i < after->n; i++)
	{
		const Term *term = &after->terms[i];
		bool		isnull;
		Datum		value = slot_getattr(row, term->column, &isnull);
		int			differs = isnull ? 0 : compare(term, value);
		bool		beyond = after->down ? differs < 0 : differs > 0;

		if (isnull)
			return false;
		if (differs == 0)
			continue;
		after->past = beyond && i == 0 && after->in_order;
		return beyond;
	}
	return false;
}

/* What the executor calls in the place of a condition that it has compiled. */
static Datum
ask(ExprState *state, ExprContext *context, bool *isnull)
{
	EaRowAfter *after = state->evalfunc_private;

	*isnull = false;
	return BoolGetDatum(after->past ||
						is_after(after, context->ecxt_scantuple));
}

/* -------- the condition -------- */

/* varchar is compared as text, which it is in all but name. */
static Node *
strip(Node *node)
{
	return IsA(node, RelabelType) ? (Node *) ((RelabelType *) node)->arg
		: node;
}

static bool
read_column(Node *node, Index table, AttrNumber *column)
{
	const Var  *var = (const Var *) strip(node);

	if (!IsA(var, Var) || var->varno != table || var->varlevelsup != 0 ||
		var->varattno <= 0)
		return false;
	*column = var->varattno;
	return true;
}

/* The value is one of the statement's, or stands in a plan made for it. */
static bool
read_value(Node *node, ParamListInfo params, Datum *value)
{
	const Const *constant = (const Const *) strip(node);
	const Param *param = (const Param *) constant;
	const ParamExternData *given;

	if (IsA(constant, Const))
	{
		*value = constant->constvalue;
		return !constant->constisnull;
	}
	if (!IsA(param, Param) || param->paramkind != PARAM_EXTERN ||
		params == NULL || params->paramFetch != NULL ||
		param->paramid < 1 || param->paramid > params->numParams)
		return false;
	given = &params->params[param->paramid - 1];
	*value = given->value;
	return !given->isnull && given->ptype == param->paramtype;
}

/*
 * The type that a term is compared as, if the operator and its family are
 * those that order the type.  Then the function is the type's, too: it is the
 * family's for operands of that type.
 */
static TypeCacheEntry *
find_type(const Node *node, Oid op, Oid family, bool down)
{
	TypeCacheEntry *type = lookup_type_cache(exprType(node),
											 (down ? TYPECACHE_LT_OPR
											  : TYPECACHE_GT_OPR) |
											 TYPECACHE_CMP_PROC_FINFO);

	if (type->btree_opf != family ||
		op != (down ? type->lt_opr : type->gt_opr) ||
		!OidIsValid(type->cmp_proc_finfo.fn_oid) ||
		!type->cmp_proc_finfo.fn_strict)
		return NULL;
	return type;
}

static bool
read_term(const RowCompareExpr *rows, int i, Index table,
		  ParamListInfo params, bool down, Term *term)
{
	Node	   *left = list_nth(rows->largs, i);

	term->collation = list_nth_oid(rows->inputcollids, i);
	if (!read_column(left, table, &term->column) ||
		!read_value(list_nth(rows->rargs, i), params, &term->value))
		return false;
	term->type = find_type(left, list_nth_oid(rows->opnos, i),
						   list_nth_oid(rows->opfamilies, i), down);
	return term->type != NULL;
}

EaRowAfter *
ea_row_after_make(List *conditions, Index table, ParamListInfo params)
{
	const RowCompareExpr *rows;
	EaRowAfter *after;

	if (list_length(conditions) != 1 ||
		!IsA(linitial(conditions), RowCompareExpr))
		return NULL;
	rows = linitial(conditions);
	if (rows->rctype != ROWCOMPARE_LT && rows->rctype != ROWCOMPARE_GT)
		return NULL;
	after = palloc0(offsetof(EaRowAfter, terms) +
					list_length(rows->opnos) * sizeof(Term));
	after->down = rows->rctype == ROWCOMPARE_LT;
	for (; after->n < list_length(rows->opnos); after->n++)
	{
		if (!read_term(rows, after->n, table, params, after->down,
					   &after->terms[after->n]))
			return NULL;
	}
	return after;
}

/* -------- the scan -------- */

void
ea_row_after_lend(EaRowAfter *after, ScanState *scan)
{
	ExprState  *state = makeNode(ExprState);

	Assert(scan->ps.qual == NULL);
	state->flags = EEO_FLAG_IS_QUAL;
	state->evalfunc = ask;
	state->evalfunc_private = after;
	state->parent = &scan->ps;
	scan->ps.qual = state;
}

void
ea_row_after_in_order(EaRowAfter *after, Relation index, AttrNumber column,
					  StrategyNumber strategy)
{
	const Term *first = &after->terms[0];
	bool		down = strategy == BTLessStrategyNumber ||
		strategy == BTLessEqualStrategyNumber;

	after->in_order =
		index->rd_index->indkey.values[column - 1] == first->column &&
		index->rd_indcollation[column - 1] == first->collation &&
		index->rd_opfamily[column - 1] == first->type->btree_opf &&
		index->rd_opcintype[column - 1] == first->type->btree_opintype &&
		down == after->down;
}
