/*
 * The condition that a row comes after a cursor, asked of the rows of an
 * index scan.
 *
 * What the executor does for a comparison of rows is in ExecInitExprRec() and
 * ExecInterpExpr(): column by column the function of the operator family that
 * orders (BTORDER_PROC), until one of them differs; null where a value is, and
 * a condition that is null is not met.  Of several of which one is enough, a
 * null is as good as one that is not met.  These ask operators, which say what
 * that function says.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "engine/row_after.h"

/* What a term is to its value; by the sign of their comparison. */
typedef enum Wanted
{
	LESS = 1,
	GREATER = 2,
	OTHER = LESS | GREATER
} Wanted;

typedef struct Term
{
	AttrNumber	column;
	TypeCacheEntry *type;		/* that it is compared as */
	Oid			collation;
	Datum		value;
	Wanted		wanted;
} Term;

struct EaRowAfter
{
	bool		any;			/* one term is enough, whatever others are */
	Wanted		in_order;		/* what of the first term is met for good */
	bool		past;			/* and has been met */
	int			n;
	Term		terms[FLEXIBLE_ARRAY_MEMBER];
};

/* -------- asking -------- */

/* LESS or GREATER; 0 is neither, and what a null is. */
static int
compare(const Term *term, TupleTableSlot *row, bool *isnull)
{
	Datum		value = slot_getattr(row, term->column, isnull);
	int32		order;

	if (*isnull)
		return 0;
	order = DatumGetInt32(FunctionCall2Coll(&term->type->cmp_proc_finfo,
											term->collation, value,
											term->value));
	return order < 0 ? LESS : order > 0 ? GREATER : 0;
}

static bool
is_after(EaRowAfter *after, TupleTableSlot *row)
{
	for (int i = 0; i < after->n; i++)
	{
		const Term *term = &after->terms[i];
		bool		isnull;
		int			is = compare(term, row, &isnull);

		if ((is & term->wanted) != 0)
		{
			after->past = i == 0 && (is & after->in_order) != 0;
			return true;
		}
		if (!after->any && (isnull || is != 0))
			return false;
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

bool
ea_row_after_value(const Param *param, ParamListInfo params, Datum *value)
{
	const ParamExternData *given;

	if (param->paramkind != PARAM_EXTERN || params == NULL ||
		params->paramFetch != NULL || param->paramid < 1 ||
		param->paramid > params->numParams)
		return false;
	given = &params->params[param->paramid - 1];
	*value = given->value;
	return !given->isnull && given->ptype == param->paramtype;
}

/* The value is one of the statement's, or stands in a plan made for it. */
static bool
read_value(Node *node, ParamListInfo params, Datum *value)
{
	node = strip(node);
	if (IsA(node, Const))
	{
		*value = ((Const *) node)->constvalue;
		return !((Const *) node)->constisnull;
	}
	return IsA(node, Param) &&
		ea_row_after_value((Param *) node, params, value);
}

/*
 * Whether the operator is one that a type is ordered by.  Then the function
 * that orders it does so for operands of that type.
 */
static bool
read_operator(Oid op, Term *term)
{
	const TypeCacheEntry *type = term->type;

	if (!OidIsValid(type->cmp_proc_finfo.fn_oid) ||
		!type->cmp_proc_finfo.fn_strict)
		return false;
	if (op == type->lt_opr)
		term->wanted = LESS;
	else if (op == type->gt_opr)
		term->wanted = GREATER;
	else if (OidIsValid(type->eq_opr) && get_negator(op) == type->eq_opr)
		term->wanted = OTHER;
	else
		return false;
	return true;
}

static bool
read_term(Node *left, Oid op, Node *right, Oid collation, Index table,
		  ParamListInfo params, Term *term)
{
	if (!read_column(left, table, &term->column) ||
		!read_value(right, params, &term->value))
		return false;
	term->collation = collation;
	term->type = lookup_type_cache(exprType(left),
								   TYPECACHE_LT_OPR | TYPECACHE_GT_OPR |
								   TYPECACHE_EQ_OPR |
								   TYPECACHE_CMP_PROC_FINFO);
	return read_operator(op, term);
}

static EaRowAfter *
allocate(int n)
{
	return palloc0(offsetof(EaRowAfter, terms) + n * sizeof(Term));
}

static EaRowAfter *
read_rows(const RowCompareExpr *rows, Index table, ParamListInfo params)
{
	EaRowAfter *after = allocate(list_length(rows->opnos));
	Wanted		wanted = rows->cmptype == COMPARE_LT ? LESS : GREATER;

	if (rows->cmptype != COMPARE_LT && rows->cmptype != COMPARE_GT)
		return NULL;
	for (; after->n < list_length(rows->opnos); after->n++)
	{
		int			i = after->n;
		Term	   *term = &after->terms[i];

		if (!read_term(list_nth(rows->largs, i), list_nth_oid(rows->opnos, i),
					   list_nth(rows->rargs, i),
					   list_nth_oid(rows->inputcollids, i), table, params,
					   term) ||
			term->wanted != wanted ||
			list_nth_oid(rows->opfamilies, i) != term->type->btree_opf)
			return NULL;
	}
	return after;
}

static EaRowAfter *
read_any(const BoolExpr *any, Index table, ParamListInfo params)
{
	EaRowAfter *after = allocate(list_length(any->args));
	ListCell   *cell;

	after->any = true;
	foreach(cell, any->args)
	{
		const OpExpr *op = lfirst(cell);

		if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
			!read_term(linitial(op->args), op->opno, lsecond(op->args),
					   op->inputcollid, table, params,
					   &after->terms[after->n++]))
			return NULL;
	}
	return after;
}

EaRowAfter *
ea_row_after_make(List *conditions, Index table, ParamListInfo params)
{
	Node	   *condition;

	if (list_length(conditions) != 1)
		return NULL;
	condition = linitial(conditions);
	if (IsA(condition, RowCompareExpr))
		return read_rows((RowCompareExpr *) condition, table, params);
	return is_orclause(condition)
		? read_any((BoolExpr *) condition, table, params) : NULL;
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

	if (index->rd_index->indkey.values[column - 1] != first->column ||
		index->rd_indcollation[column - 1] != first->collation ||
		index->rd_opfamily[column - 1] != first->type->btree_opf ||
		index->rd_opcintype[column - 1] != first->type->btree_opintype)
		return;
	after->in_order = strategy == BTLessStrategyNumber ||
		strategy == BTLessEqualStrategyNumber ? LESS : GREATER;
}
