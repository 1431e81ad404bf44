/*
 * Every value a policy looks at must be there, wherever it stands; only then
 * does the expression itself count, and it has two truth values.  Below
 * conjunctions alone a comparison with null is as good as a false one, so
 * that no test for null is written there and an index serves.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "authz/policy_condition.h"
#include "authz/policy_operand.h"
#include "authz/policy_writer.h"
#include "engine/exec.h"

static const char *const operators[] = {
	[EA_POLICY_EQ] = " = ",
	[EA_POLICY_NE] = " <> ",
	[EA_POLICY_LT] = " < ",
	[EA_POLICY_LE] = " <= ",
	[EA_POLICY_GT] = " > ",
	[EA_POLICY_GE] = " >= "
};

static EaVerdict
verdict_of(bool truth)
{
	return truth ? EA_VERDICT_YES : EA_VERDICT_NO;
}

static EaVerdict
negate(EaVerdict verdict)
{
	if (verdict == EA_VERDICT_OPEN)
		return verdict;
	return verdict_of(verdict == EA_VERDICT_NO);
}

static EaVerdict
both(EaVerdict a, EaVerdict b)
{
	if (a == EA_VERDICT_NO || b == EA_VERDICT_NO)
		return EA_VERDICT_NO;
	return a == EA_VERDICT_OPEN ? a : b;
}

static bool
order_holds(EaPolicyOp op, int order)
{
	switch (op)
	{
		case EA_POLICY_EQ:
			return order == 0;
		case EA_POLICY_NE:
			return order != 0;
		case EA_POLICY_LT:
			return order < 0;
		case EA_POLICY_LE:
			return order <= 0;
		case EA_POLICY_GT:
			return order > 0;
		case EA_POLICY_GE:
			return order >= 0;
	}
	return false;
}

/* -------- decisions -------- */

static EaVerdict decide_node(EaPolicyWriter *w, const EaPolicy *node);

static const EaPolicy *
tested_path(const EaPolicy *node)
{
	return node->children[node->children[0]->kind == EA_POLICY_LITERAL];
}

static EaVerdict
decide_null_test(EaPolicyWriter *w, const EaPolicy *node)
{
	EaOperand	path;

	ea_policy_operand(w, tested_path(node), &path);
	if (path.constant)
		return verdict_of(path.isnull == (node->op == EA_POLICY_EQ));
	if (path.never_null)
		return verdict_of(node->op == EA_POLICY_NE);
	return EA_VERDICT_OPEN;
}

/* The type that folds texts, of either side; or NULL. */
static const EaType *
folding_type(const EaType *a, const EaType *b)
{
	if (a != NULL && (a->id == EA_TYPE_CITEXT || a->id == EA_TYPE_CHAR))
		return a;
	return b != NULL && (b->id == EA_TYPE_CITEXT || b->id == EA_TYPE_CHAR) ?
		b : NULL;
}

static bool
is_among(const EaType *fold, Datum array, Datum string)
{
	char	   *wanted;
	int			n;
	char	  **items = ea_exec_array_text(array, &n);

	wanted = TextDatumGetCString(ea_policy_value_fold(fold, string));
	for (int i = 0; i < n; i++)
	{
		Datum		item = fold == NULL ? (Datum) 0 :
			ea_policy_value_fold(fold, CStringGetTextDatum(items[i]));

		if (strcmp(fold == NULL ? items[i] : TextDatumGetCString(item),
				   wanted) == 0)
			return true;
	}
	return false;
}

static int
compare_folded(EaPolicyType type, const EaOperand *a, const EaOperand *b)
{
	const EaType *fold = folding_type(a->type, b->type);

	return ea_policy_value_compare(type, ea_policy_value_fold(fold, a->value),
								   ea_policy_value_fold(fold, b->value));
}

static EaVerdict
decide_in(EaPolicyWriter *w, const EaPolicy *node)
{
	const EaPolicy *list = node->children[1];
	EaVerdict	verdict = EA_VERDICT_NO;
	EaOperand	value;
	EaOperand	item;

	ea_policy_operand(w, node->children[0], &value);
	if (!value.constant)
		return EA_VERDICT_OPEN;
	if (list->kind != EA_POLICY_LIST)
	{
		ea_policy_operand(w, list, &item);
		if (!item.constant)
			return EA_VERDICT_OPEN;
		return verdict_of(!value.isnull && !item.isnull &&
						  is_among(folding_type(value.type, NULL),
								   item.value, value.value));
	}
	for (int i = 0; i < list->nchildren; i++)
	{
		ea_policy_operand(w, list->children[i], &item);
		if (!item.constant)
			verdict = EA_VERDICT_OPEN;
		else if (!value.isnull && !item.isnull &&
				 compare_folded(list->type, &value, &item) == 0)
			return EA_VERDICT_YES;
	}
	return verdict;
}

/* Comparisons and methods of two constants. */
static EaVerdict
decide_pair(EaPolicyWriter *w, const EaPolicy *node)
{
	EaOperand	a;
	EaOperand	b;
	EaPolicyType type;
	const EaType *fold;

	ea_policy_operand(w, node->children[0], &a);
	ea_policy_operand(w, node->children[1], &b);
	if (!a.constant || !b.constant)
		return EA_VERDICT_OPEN;
	if (a.isnull || b.isnull)
		return EA_VERDICT_NO;
	type = node->children[0]->type;
	if (node->kind == EA_POLICY_COMPARE)
		return verdict_of(order_holds(node->op,
									  compare_folded(type, &a, &b)));
	fold = folding_type(a.type, b.type);
	if (type == EA_POLICY_STRINGS)
		return verdict_of(is_among(fold, a.value, b.value));
	a.value = ea_policy_value_fold(fold, a.value);
	b.value = ea_policy_value_fold(fold, b.value);
	if (node->kind == EA_POLICY_STARTS_WITH)
	{
		Datum		starts = DirectFunctionCall2Coll(text_starts_with,
													 DEFAULT_COLLATION_OID,
													 a.value, b.value);

		return verdict_of(DatumGetBool(starts));
	}
	return verdict_of(strstr(TextDatumGetCString(a.value),
							 TextDatumGetCString(b.value)) != NULL);
}

static EaVerdict
decide_node(EaPolicyWriter *w, const EaPolicy *node)
{
	EaVerdict	verdict;
	EaOperand	operand;

	check_stack_depth();
	switch (node->kind)
	{
		case EA_POLICY_AND:
			verdict = EA_VERDICT_YES;
			for (int i = 0; i < node->nchildren; i++)
				verdict = both(verdict, decide_node(w, node->children[i]));
			return verdict;
		case EA_POLICY_OR:
			verdict = EA_VERDICT_YES;
			for (int i = 0; i < node->nchildren; i++)
				verdict = both(verdict,
							   negate(decide_node(w, node->children[i])));
			return negate(verdict);
		case EA_POLICY_NOT:
			return negate(decide_node(w, node->children[0]));
		case EA_POLICY_COMPARE:
			if (node->null_test)
				return decide_null_test(w, node);
			return decide_pair(w, node);
		case EA_POLICY_IN:
			return decide_in(w, node);
		case EA_POLICY_CONTAINS:
		case EA_POLICY_STARTS_WITH:
			return decide_pair(w, node);
		default:
			ea_policy_operand(w, node, &operand);
			if (!operand.constant)
				return EA_VERDICT_OPEN;
			return verdict_of(!operand.isnull && DatumGetBool(operand.value));
	}
}

/* -------- presence -------- */

/* Citus reads a policy twice, and the operand of IS NULL must be a column. */
static bool
takes_no_test(const EaPolicyWriter *w, const EaPolicy *node)
{
	return w->req == NULL && node->kind == EA_POLICY_USER &&
		w->entity->catalog->distributed;
}

static void
write_presence(EaPolicyWriter *w, const EaPolicy *node,
			   const EaOperand *operand, bool present)
{
	bool		counts = takes_no_test(w, node);

	if (counts)
		ea_sqlbuf_add(w->b, present ? "pg_catalog.num_nonnulls(" :
					  "pg_catalog.num_nulls(");
	ea_policy_operand_write(w, node, operand, NULL);
	ea_sqlbuf_add(w->b, counts ? ") = 1" : present ? " IS NOT NULL" :
				  " IS NULL");
}

/*
 * Are all values there?  strict: nothing but conjunctions above.  With write,
 * the tests that are needed are appended, ` AND` before each.
 */
static EaVerdict
require_values(EaPolicyWriter *w, const EaPolicy *node, bool strict,
			   bool write)
{
	EaVerdict	verdict = EA_VERDICT_YES;
	EaOperand	operand;

	if (node->null_test)
		return EA_VERDICT_YES;
	if (node->kind == EA_POLICY_OR || node->kind == EA_POLICY_NOT ||
		node->kind == EA_POLICY_LIST)
		strict = false;
	if (node->nchildren > 0)
	{
		for (int i = 0; i < node->nchildren; i++)
			verdict = both(verdict,
						   require_values(w, node->children[i], strict,
										  write));
		return verdict;
	}
	ea_policy_operand(w, node, &operand);
	if (operand.constant)
		return verdict_of(!operand.isnull);
	if (strict || operand.never_null || node->kind == EA_POLICY_NOW)
		return EA_VERDICT_YES;
	if (write)
	{
		ea_sqlbuf_add(w->b, " AND ");
		write_presence(w, node, &operand, true);
	}
	return EA_VERDICT_OPEN;
}

EaVerdict
ea_policy_verdict(EaPolicyWriter *w)
{
	return both(require_values(w, w->tree, true, false),
				decide_node(w, w->tree));
}

/* -------- conditions -------- */

static void write_node(EaPolicyWriter *w, const EaPolicy *node);

/* Children that are open, with a joint between them. */
static void
write_joined(EaPolicyWriter *w, const EaPolicy *node, const char *joint)
{
	bool		any = false;

	ea_sqlbuf_add(w->b, "(");
	for (int i = 0; i < node->nchildren; i++)
	{
		if (decide_node(w, node->children[i]) != EA_VERDICT_OPEN)
			continue;
		if (any)
			ea_sqlbuf_add(w->b, joint);
		write_node(w, node->children[i]);
		any = true;
	}
	ea_sqlbuf_add(w->b, ")");
}

static void
write_null_test(EaPolicyWriter *w, const EaPolicy *node)
{
	const EaPolicy *path = tested_path(node);
	EaOperand	operand;

	ea_policy_operand(w, path, &operand);
	if (path->type != EA_POLICY_ANY)
		write_presence(w, path, &operand, node->op != EA_POLICY_EQ);
	else if (takes_no_test(w, path))
	{
		ea_sqlbuf_add(w->b, node->op == EA_POLICY_EQ ? "NOT " : "");
		ea_policy_operand_write(w, path, &operand, NULL);
	}
	else
	{
		ea_policy_operand_write(w, path, &operand, NULL);
		ea_sqlbuf_add(w->b, node->op == EA_POLICY_EQ ? " IS NOT TRUE" :
					  " IS TRUE");
	}
}

/* The same in SQL, up to the parenthesis; or nothing. */
static const char *
fold_function(const EaType *type)
{
	return type == NULL ? "" : type->id == EA_TYPE_CITEXT ?
		"pg_catalog.lower(" : "pg_catalog.rtrim(";
}

/* Two values with text before, between and after. */
static void
write_pair(EaPolicyWriter *w, const EaPolicy *a, const EaPolicy *b,
		   const char *before, const char *between, const char *after)
{
	EaOperand	x;
	EaOperand	y;
	const char *fold;

	ea_policy_operand(w, a, &x);
	ea_policy_operand(w, b, &y);
	fold = fold_function(folding_type(x.type, y.type));
	ea_sqlbuf_add(w->b, before);
	ea_sqlbuf_add(w->b, fold);
	ea_policy_operand_write(w, a, &x, y.constant ? NULL : y.type);
	ea_sqlbuf_add(w->b, *fold != '\0' ? ")" : "");
	ea_sqlbuf_add(w->b, between);
	ea_sqlbuf_add(w->b, fold);
	ea_policy_operand_write(w, b, &y, x.constant ? NULL : x.type);
	ea_sqlbuf_add(w->b, *fold != '\0' ? ")" : "");
	ea_sqlbuf_add(w->b, after);
}

static bool
all_constant(EaPolicyWriter *w, const EaPolicy *list)
{
	EaOperand	item;

	for (int i = 0; i < list->nchildren; i++)
	{
		ea_policy_operand(w, list->children[i], &item);
		if (!item.constant)
			return false;
	}
	return true;
}

static void
write_in(EaPolicyWriter *w, const EaPolicy *value, const EaPolicy *list)
{
	EaOperand	operand;

	if (list->kind != EA_POLICY_LIST || all_constant(w, list))
	{
		const char *fold;

		ea_policy_operand(w, value, &operand);
		fold = fold_function(folding_type(operand.type, NULL));
		ea_sqlbuf_add(w->b, fold);
		ea_policy_operand_write(w, value, &operand, NULL);
		ea_sqlbuf_add(w->b, *fold != '\0' ? ")" : "");
		ea_policy_operand_write_any(w, list, operand.type);
		return;
	}
	ea_sqlbuf_add(w->b, "(");
	for (int i = 0; i < list->nchildren; i++)
		write_pair(w, value, list->children[i], i > 0 ? " OR " : "", " = ",
				   "");
	ea_sqlbuf_add(w->b, ")");
}

static void
write_node(EaPolicyWriter *w, const EaPolicy *node)
{
	const EaPolicy *a = node->nchildren > 0 ? node->children[0] : NULL;
	const EaPolicy *b = node->nchildren > 1 ? node->children[1] : NULL;
	EaOperand	operand;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (node->kind)
	{
		case EA_POLICY_AND:
			write_joined(w, node, " AND ");
			break;
		case EA_POLICY_OR:
			write_joined(w, node, " OR ");
			break;
		case EA_POLICY_NOT:
			ea_sqlbuf_add(w->b, "NOT (");
			write_node(w, a);
			ea_sqlbuf_add(w->b, ")");
			break;
		case EA_POLICY_COMPARE:
			if (node->null_test)
				write_null_test(w, node);
			else
				write_pair(w, a, b, "", operators[node->op], "");
			break;
		case EA_POLICY_IN:
			write_in(w, a, b);
			break;
		case EA_POLICY_CONTAINS:
			if (a->type == EA_POLICY_STRINGS)
				write_in(w, b, a);
			else
				write_pair(w, a, b, "pg_catalog.strpos(", ", ", ") > 0");
			break;
		case EA_POLICY_STARTS_WITH:
			write_pair(w, a, b, "pg_catalog.starts_with(", ", ", ")");
			break;
		default:
			ea_policy_operand(w, node, &operand);
			ea_policy_operand_write(w, node, &operand, NULL);
			break;
	}
}

void
ea_policy_condition(EaPolicyWriter *w)
{
	if (decide_node(w, w->tree) == EA_VERDICT_OPEN)
		write_node(w, w->tree);
	else
		ea_sqlbuf_add(w->b, "true");
	require_values(w, w->tree, true, true);
}
