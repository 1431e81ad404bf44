/*
 * A tenant of ten rows wants another plan than one of a million.  The planner
 * goes by the list of a table's most common tenants, and an average for all
 * others.  That list is copied once, so that a request finds the class of its
 * tenant without any catalog.
 */
#include "postgres.h"

#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

#include "planning/tenant_share.h"

/* Tables that count, and tenants of one that are remembered. */
#define MAX_TABLES 10
#define MAX_TENANTS 128

/*
 * Of each table a class has so many bits; UNKNOWN is a tenant that is not
 * remembered.
 */
#define CLASS_BITS 6
#define UNKNOWN 0

typedef struct Share
{
	pg_uuid_t	tenant;
	uint8		class;
} Share;

/* The most common tenants of a table, in order. */
typedef struct Table
{
	int			n;
	Share	   *shares;
} Table;

struct EaTenantShares
{
	int			tenant;			/* the parameter */
	int			n;
	Table		tables[MAX_TABLES];
};

/* Where in a statement a walk is. */
typedef struct Place
{
	EaTenantShares *shares;
	Query	   *query;
} Place;

/* Shares of one class differ up to fourfold. */
static uint8
class_of(double share)
{
	return 1 + pg_leftmost_one_pos64((uint64) Max(1 / share, 1)) / 2;
}

static int
compare_tenants(const void *a, const void *b)
{
	return memcmp(&((const Share *) a)->tenant, &((const Share *) b)->tenant,
				  sizeof(pg_uuid_t));
}

/* -------- what statistics say -------- */

static void
read_shares(Table *table, const AttStatsSlot *common)
{
	table->n = Min(Min(common->nvalues, common->nnumbers), MAX_TENANTS);
	table->shares = palloc(Max(table->n, 1) * sizeof(Share));
	for (int i = 0; i < table->n; i++)
	{
		table->shares[i].tenant = *DatumGetUUIDP(common->values[i]);
		table->shares[i].class = class_of(common->numbers[i]);
	}
	qsort(table->shares, table->n, sizeof(Share), compare_tenants);
}

static void
note_table(EaTenantShares *shares, Oid relid, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH,
										ObjectIdGetDatum(relid),
										Int16GetDatum(column),
										BoolGetDatum(false));
	AttStatsSlot common;

	if (!HeapTupleIsValid(tuple))
		return;
	if (shares->n < MAX_TABLES &&
		get_attstatsslot(&common, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		read_shares(&shares->tables[shares->n++], &common);
		free_attstatsslot(&common);
	}
	ReleaseSysCache(tuple);
}

/* A column of a table that is to equal the tenant */
static void
note_condition(const Place *place, const OpExpr *op)
{
	const Var  *column = linitial(op->args);
	const Param *value = lsecond(op->args);
	const RangeTblEntry *rte;

	if (!IsA(column, Var) || column->varlevelsup > 0 ||
		column->vartype != UUIDOID || get_oprrest(op->opno) != F_EQSEL ||
		!IsA(value, Param) || value->paramkind != PARAM_EXTERN ||
		value->paramid != place->shares->tenant)
		return;
	rte = rt_fetch(column->varno, place->query->rtable);
	if (rte->rtekind == RTE_RELATION)
		note_table(place->shares, rte->relid, column->varattno);
}

static bool
note_tables(Node *node, void *arg)
{
	Place	   *place = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Place		inner = {place->shares, (Query *) node};

		return query_tree_walker(inner.query, note_tables, &inner, 0);
	}
	if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
		note_condition(place, (OpExpr *) node);
	return expression_tree_walker(node, note_tables, arg);
}

EaTenantShares *
ea_tenant_share_read(CachedPlanSource *source, int tenant)
{
	Place		place = {palloc0(sizeof(EaTenantShares)), NULL};

	place.shares->tenant = tenant;
	(void) note_tables((Node *) source->query_list, &place);
	return place.shares;
}

/* -------- a request -------- */

static uint8
class_in(const Table *table, const Share *sought)
{
	const Share *share = bsearch(sought, table->shares, table->n,
								 sizeof(Share), compare_tenants);

	return share == NULL ? UNKNOWN : share->class;
}

uint64
ea_tenant_share_class(const EaTenantShares *shares, ParamListInfo values)
{
	uint64		class = 0;
	Share		sought;

	if (shares->n == 0)
		return class;
	sought.tenant = *DatumGetUUIDP(values->params[shares->tenant - 1].value);
	for (int i = 0; i < shares->n; i++)
		class = class << CLASS_BITS | class_in(&shares->tables[i], &sought);
	return class;
}
