/*
 * Members of the role that owns the service call it as they like.  For all
 * others, the shim's role first, a call is a statement of its own in a
 * transaction of its own.  Then none of their code runs beside it, and no
 * later statement can undo its work.  In a transaction block, a
 * subtransaction, a function, a pipeline or an expression that divides by its
 * result it could: a guess at a password would not count.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "parser/parse_expr.h"
#include "parser/parser.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/portal.h"
#include "utils/rls.h"

#include "entry/handle_door.h"
#include "trust/pin.h"

/* -------- where a call stands -------- */

static bool
is_plain_argument(const Node *node)
{
	while (IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	if (IsA(node, Param))
		return ((const Param *) node)->paramkind == PARAM_EXTERN;
	return IsA(node, Const);
}

/* The one expression of SELECT expression, or NULL. */
static const Node *
result_call(const Result *result)
{
	const List *columns = result->plan.targetlist;

	if (result->resconstantqual != NULL || result->plan.lefttree != NULL ||
		list_length(columns) != 1)
		return NULL;
	return (const Node *) linitial_node(TargetEntry, columns)->expr;
}

/* That of SELECT columns FROM expression. */
static const Node *
scan_call(const FunctionScan *scan)
{
	ListCell   *lc;

	if (scan->scan.plan.qual != NIL || list_length(scan->functions) != 1)
		return NULL;
	foreach(lc, scan->scan.plan.targetlist)
	{
		if (!IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return NULL;
	}
	return linitial_node(RangeTblFunction, scan->functions)->funcexpr;
}

/* The call that is all of what a portal runs, or NULL. */
static const Node *
whole_call(Portal portal)
{
	const PlannedStmt *stmt;
	const Node *call = NULL;
	ListCell   *lc;

	if (portal->strategy != PORTAL_ONE_SELECT ||
		list_length(portal->stmts) != 1)
		return NULL;
	stmt = linitial_node(PlannedStmt, portal->stmts);
	if (stmt->subplans != NIL)
		return NULL;
	if (IsA(stmt->planTree, Result))
		call = result_call((const Result *) stmt->planTree);
	else if (IsA(stmt->planTree, FunctionScan))
		call = scan_call((const FunctionScan *) stmt->planTree);
	if (call == NULL || !IsA(call, FuncExpr))
		return NULL;
	foreach(lc, ((const FuncExpr *) call)->args)
	{
		if (!is_plain_argument(lfirst(lc)))
			return NULL;
	}
	return call;
}

/*
 * The client's message runs in the portal without a name: functions and
 * commands make portals with names.  Procedural languages, which could get at
 * it nevertheless, connect to SPI, where this asks for a table.
 */
static bool
is_whole_statement(const FmgrInfo *function)
{
	return ActivePortal != NULL && ActivePortal->name[0] == '\0' &&
		SPI_unregister_relation("") == SPI_ERROR_UNCONNECTED &&
		function->fn_expr != NULL &&
		function->fn_expr == (fmNodePtr) whole_call(ActivePortal);
}

/*
 * Why a call is not alone, or NULL.  A transaction that has no number yet has
 * written nothing, so no deferred trigger waits for its end.
 */
static const char *
why_not_alone(const FmgrInfo *function)
{
	if (!is_whole_statement(function))
		return "The call is a part of something else, "
			"or its arguments are computed.";
	if (IsInTransactionBlock(true) ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return "Other statements belong to its transaction.";
	if (!ThereAreNoReadyPortals())
		return "A cursor is open, "
			"which could fail at the end of the transaction.";
	if (IsolationUsesXactSnapshot())
		return "Its transaction does not see what others commit, "
			"or may fail at its end.";
	return NULL;
}

static void
check_alone(const FmgrInfo *function, const char *name, const char *usage)
{
	const char *why = why_not_alone(function);

	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s must be a statement and a transaction of its own",
						name),
				 errdetail_internal("%s", why),
				 errhint("Send %s, read committed, and nothing with it; "
						 "only members of %s may call it otherwise.",
						 usage, quote_identifier(GetUserNameFromId(GetUserId(),
															false)))));

	/* a pipeline commits before it goes on, even if less was asked for */
	PreventInTransactionBlock(true, name);
	ActivePortal->atEnd = true;
}

/* -------- settings -------- */

/*
 * Settings that would change answers, end the session, or show a caller the
 * values that statements work with.
 */
static const struct
{
	const bool *value;
	bool		wanted;
	const char *name;
}			switches[] =
{
	{&Array_nulls, true, "array_nulls"},
	{&Debug_print_parse, false, "debug_print_parse"},
	{&Debug_print_plan, false, "debug_print_plan"},
	{&Debug_print_rewritten, false, "debug_print_rewritten"},
	{&ExitOnAnyError, false, "exit_on_error"},
	{&Transform_null_equals, false, "transform_null_equals"},
	{&quote_all_identifiers, false, "quote_all_identifiers"},
	{&row_security, true, "row_security"},
	{&standard_conforming_strings, true, "standard_conforming_strings"}
};

void
ea_handle_settings(bool guest)
{
	for (int i = 0; i < lengthof(switches); i++)
	{
		if (*switches[i].value != switches[i].wanted)
			ea_pin_set(switches[i].name, switches[i].wanted ? "on" : "off");
	}

	/* log messages would reveal values, and what other callers call */
	if (guest && client_min_messages != ERROR)
		ea_pin_set("client_min_messages", "error");
}

bool
ea_handle_door(const FmgrInfo *function, const char *name, const char *usage)
{
	bool		guest = !has_privs_of_role(GetSessionUserId(), GetUserId());

	if (guest)
		check_alone(function, name, usage);
	return guest;
}
