/*
 * Such a statement runs as the role of the application, by its rights: what
 * is put in the place of a call while it is planned, and all that runs
 * meanwhile, has these and no others.  The tables of the service that stand in
 * the text itself, and nowhere else, are checked as entityapi_owner's.
 *
 * The text is known by the state of the parser that analyzes it, which only
 * the plan of this text comes by (begin_analysis()): not by a time, since
 * functions of others are parsed within it, and not by its words.
 *
 * Names in it are found by a superuser, as no other role may use the schemas
 * of both.  Analysis calls nothing that others could have made: operators are
 * PostgreSQL's, by the pinned path, and there is no constant of another type.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/own_text.h"
#include "trust/owner.h"
#include "trust/pin.h"

static post_parse_analyze_hook_type next_analyzed = NULL;

/* -------- while it is analyzed -------- */

/* It also shows whose text a state of the parser is for. */
static Node *
read_param(ParseState *pstate, ParamRef *ref)
{
	const EaOwnText *own = pstate->p_ref_hook_state;
	Param	   *param = makeNode(Param);

	if (ref->number <= 0 || ref->number > own->ntypes)
		elog(ERROR, "there is no parameter $%d", ref->number);
	param->paramkind = PARAM_EXTERN;
	param->paramid = ref->number;
	param->paramtype = own->types[ref->number - 1];
	param->paramtypmod = -1;
	param->paramcollid = get_typcollation(param->paramtype);
	param->location = ref->location;
	return (Node *) param;
}

/* After an error, the end of the (sub)transaction restores the user. */
static void
begin_analysis(ParseState *pstate, void *arg)
{
	EaOwnText  *own = arg;

	/* code that ran while it was planned may have left another one */
	if (!ea_pin_holds())
		elog(ERROR, "a statement of the service under another search path");
	pstate->p_ref_hook_state = own;
	pstate->p_paramref_hook = read_param;
	GetUserIdAndSecContext(&own->user, &own->security);
	if (own->of_both)
		SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
							   own->security | SECURITY_LOCAL_USERID_CHANGE);
}

/*
 * A table of the service.  Forced on its owner, row-level security would run
 * code of deployers.
 */
static bool
is_of_service(Oid relid, Oid service)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		is;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	is = form->relowner == service && form->relkind == RELKIND_RELATION &&
		!form->relforcerowsecurity;
	ReleaseSysCache(tuple);
	return is;
}

static void
mark_tables(Query *query)
{
	Oid			service = get_role_oid(EA_OWNER, false);
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION && is_of_service(rte->relid, service))
			ea_compat_permissions(query, rte)->checkAsUser = service;
	}
}

/*
 * Rows that are locked so that they stay, and not to be written: SELECT is
 * enough, as it is for PostgreSQL's own look at what a foreign key refers to.
 */
static void
take_update_off(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rowMarks)
	{
		const RowMarkClause *mark = lfirst(lc);
		RangeTblEntry *rte = rt_fetch(mark->rti, query->rtable);

		if (rte->rtekind == RTE_RELATION && mark->strength <= LCS_FORSHARE)
			ea_compat_permissions(query, rte)->requiredPerms &=
				~ACL_SELECT_FOR_UPDATE;
	}
}

static bool
mark_query(Node *node, void *arg)
{
	EaOwnText  *own = arg;
	Query	   *query = (Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, mark_query, arg);

	/* that of EXPLAIN stands within */
	if (query->commandType == CMD_UTILITY)
		return query->utilityStmt != NULL &&
			IsA(query->utilityStmt, ExplainStmt) &&
			mark_query(((ExplainStmt *) query->utilityStmt)->query, arg);
	if (own->of_both)
		mark_tables(query);
	if (query->commandType == CMD_SELECT)
		take_update_off(query);
	return query_tree_walker(query, mark_query, arg, 0);
}

static void
end_analysis(ParseState *pstate, Query *query, JumbleState *jumble)
{
	if (next_analyzed != NULL)
		next_analyzed(pstate, query, jumble);
	if (pstate->p_paramref_hook == read_param)
	{
		EaOwnText  *own = pstate->p_ref_hook_state;

		SetUserIdAndSecContext(own->user, own->security);
		(void) mark_query((Node *) query, own);
	}
}

void
ea_own_text_init(void)
{
	next_analyzed = post_parse_analyze_hook;
	post_parse_analyze_hook = end_analysis;
}

/* -------- preparing it -------- */

SPIPlanPtr
ea_own_text_prepare(EaOwnText *own, const char *sql, int options)
{
	return SPI_prepare_params(sql, begin_analysis, own, options);
}

void
ea_own_text_keep(SPIPlanPtr plan, EaOwnText *own)
{
	ListCell   *lc;

	foreach(lc, SPI_plan_get_plan_sources(plan))
		((CachedPlanSource *) lfirst(lc))->parserSetupArg = own;
}
