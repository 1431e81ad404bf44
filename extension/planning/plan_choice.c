/*
 * PostgreSQL compares costs: as long as a plan for any values looks dearer
 * than those for the values at hand do on average, it plans at each run.  With
 * tenants of different size that is always so for the small ones, though most
 * often the very same scan comes out, and planning takes longer than running
 * it.  So this module compares the shape (plan_shape.c), by classes of tenants
 * (tenant_share.c): when plans for tenants of a class come out the same some
 * times in a row, one plan of that shape is kept for the class.
 *
 * That plan has parameters where the values were, like PostgreSQL's generic
 * plan, and is made and held as such, so all that invalidates a plan
 * invalidates it.  But it is estimated for values of the class, not for any:
 * the planner is handed values that it may estimate with and not build upon.
 * Where it does better when it may build upon them (a pattern that becomes a
 * range of an index), the shapes differ, and each run is planned.
 *
 * Two things are not left to costs: where they are the same, a plan that reads
 * and sorts all rows gives way to one that takes a page of them in the order
 * of an index, or one whose index is entered by more conditions
 * (plan_order.c).
 *
 * A kept plan is compared with a new one now and then, and whenever a run with
 * it touched many more pages than runs with plans of their own: other values
 * of a filter may want another.  Each time the new one differs, it takes
 * longer until a plan is kept again.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "optimizer/planner.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

#include "planning/plan_choice.h"
#include "planning/plan_order.h"
#include "planning/plan_shape.h"
#include "planning/tenant_share.h"
#include "trust/pin.h"

/* Runs that are planned without a look: most texts are not seen again. */
#define PLAIN_RUNS 2

/* Equal shapes in a row before a plan is kept, at first and at last. */
#define ALIKE 4
#define ALIKE_MOST 256

/* Runs with a kept plan before it is looked at again. */
#define KEPT 32
#define KEPT_MOST 1024

/* Pages that a run may touch: of one with a plan of its own, and any. */
#define PAGES_FACTOR 4
#define PAGES_MORE 64

#define MAX_KEPT_PLANS 6
#define MAX_CLASSES 32
#define NONE (-1)

typedef struct KeptPlan
{
	SPIPlanPtr	plan;			/* NULL: none */
	CachedPlanSource *source;
	int			generation;
	uint64		shape;
} KeptPlan;

/* Tenants of one class. */
typedef struct TenantClass
{
	uint64		class;
	uint64		used;			/* when, for replacement */
	int			kept;			/* the last shape's plan, or NONE */
	int			alike;			/* plans in a row that had it */
	int			wanted;			/* as many as that */
	int			runs;			/* until the next look */
	int			interval;
	int64		pages;			/* touched by runs that were planned */
} TenantClass;

struct EaPlanChoice
{
	const char *sql;
	SPIPlanPtr	anew;
	CachedPlanSource *source;
	int			runs;
	uint64		clock;
	KeptPlan	kept[MAX_KEPT_PLANS];
	MemoryContext mcxt;			/* of what follows */
	EaTenantShares *shares;
	int			nclasses;
	TenantClass *items;

	/* the run under way */
	TenantClass *class;
	bool		looked;
	int64		pages;
};

static int	nkept = 0;

/* -------- kept plans -------- */

static CachedPlanSource *
source_of(SPIPlanPtr plan)
{
	return linitial(SPI_plan_get_plan_sources(plan));
}

/*
 * A plan that may be run: PostgreSQL would make another one, without
 * estimates.
 */
static bool
is_valid(const KeptPlan *kept)
{
	return kept->source->is_valid && kept->source->gplan != NULL &&
		kept->source->gplan->is_valid &&
		kept->source->generation == kept->generation;
}

static void
free_kept(KeptPlan *kept)
{
	if (kept->plan == NULL)
		return;
	SPI_freeplan(kept->plan);
	kept->plan = NULL;
	kept->shape = 0;			/* until the next plan is made */
	nkept--;
}

static void
forget_plans(EaPlanChoice *choice)
{
	for (int i = 0; i < MAX_KEPT_PLANS; i++)
		free_kept(&choice->kept[i]);
	MemoryContextReset(choice->mcxt);
	choice->shares = NULL;
	choice->items = NULL;
	choice->nclasses = 0;
	choice->class = NULL;
	choice->runs = 0;
}

/*
 * The shape of the plan for these values, be it the planner's first choice or
 * a better one, and the way to it.
 */
static uint64
shape_of(CachedPlanSource *source, ParamListInfo values, EaPlanWay *way)
{
	CachedPlan *plan = ea_plan_order_get(source, values, EA_WAY_FREELY);
	uint64		shape = ea_plan_shape(plan->stmt_list);

	*way = EA_WAY_FREELY;
	for (EaPlanWay next = EA_WAY_IN_ORDER;
		 next < EA_WAYS && *way == EA_WAY_FREELY; next++)
	{
		CachedPlan *other;

		if (!ea_plan_order_is_open(next, plan->stmt_list))
			continue;
		other = ea_plan_order_get(source, values, next);
		if (ea_plan_order_is_better(next, other->stmt_list, plan->stmt_list))
		{
			*way = next;
			shape = ea_plan_shape(other->stmt_list);
		}
		ReleaseCachedPlan(other, CurrentResourceOwner);
	}
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	return shape;
}

/* Values that the next statement to be planned is estimated with. */
static ParamListInfo estimates = NULL;
static planner_hook_type next_planner = NULL;

static PlannedStmt *
plan_with_estimates(Query *query, const char *text, int options,
					ParamListInfo values)
{
	planner_hook = next_planner;
	if (values == NULL)
		values = estimates;
	return planner_hook != NULL ?
		planner_hook(query, text, options, values)
		: standard_planner(query, text, options, values);
}

static uint64
plan_for_class(CachedPlanSource *source, ParamListInfo values, EaPlanWay way)
{
	uint64		shape;

	estimates = copyParamList(values);
	for (int i = 0; i < estimates->numParams; i++)
		estimates->params[i].pflags = 0;
	next_planner = planner_hook;
	planner_hook = plan_with_estimates;
	PG_TRY();
	{
		CachedPlan *plan = ea_plan_order_get(source, NULL, way);

		shape = ea_plan_shape(plan->stmt_list);
		ReleaseCachedPlan(plan, CurrentResourceOwner);
	}
	PG_FINALLY();
	{
		planner_hook = next_planner;
	}
	PG_END_TRY();
	return shape;
}

static bool
is_used(const EaPlanChoice *choice, int kept)
{
	if (choice->kept[kept].plan == NULL)
		return false;
	for (int i = 0; i < choice->nclasses; i++)
	{
		if (choice->items[i].kept == kept)
			return true;
	}
	return false;
}

static void
make_kept(EaPlanChoice *choice, KeptPlan *kept, ParamListInfo values,
		  EaPlanWay way)
{
	SPIPlanPtr	plan;

	free_kept(kept);
	plan = SPI_prepare_cursor(choice->sql, choice->source->num_params,
							  choice->source->param_types,
							  CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "could not prepare a statement: %s",
			 SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);
	kept->plan = plan;
	nkept++;
	kept->source = source_of(plan);
	kept->generation = NONE;
	kept->shape = plan_for_class(kept->source, values, way);
	kept->generation = kept->source->generation;
}

/* A plan of that shape, if need be one for values like these, or NONE. */
static int
find_plan(EaPlanChoice *choice, uint64 shape, ParamListInfo values,
		  EaPlanWay way)
{
	int			slot = NONE;

	for (int i = 0; i < MAX_KEPT_PLANS; i++)
	{
		if (choice->kept[i].plan != NULL && choice->kept[i].shape == shape)
			return i;
		if (!is_used(choice, i))
			slot = i;
	}
	if (slot == NONE)
		return NONE;
	make_kept(choice, &choice->kept[slot], values, way);
	if (choice->kept[slot].shape == shape)
		return slot;
	free_kept(&choice->kept[slot]);
	return NONE;
}

/* -------- classes -------- */

/* The class not used for the longest time gives way to a new one. */
static TenantClass *
find_class(EaPlanChoice *choice, uint64 class)
{
	TenantClass *item = choice->items;

	for (int i = 0; i < choice->nclasses; i++)
	{
		if (choice->items[i].class == class)
			return &choice->items[i];
		if (choice->items[i].used < item->used)
			item = &choice->items[i];
	}
	if (choice->nclasses < MAX_CLASSES)
		item = &choice->items[choice->nclasses++];
	*item = (TenantClass) {.class = class, .kept = NONE, .wanted = ALIKE,
	.interval = KEPT};
	return item;
}

static void
read_shares(EaPlanChoice *choice, int tenant)
{
	MemoryContext old;

	/* an error may have left half of it */
	MemoryContextReset(choice->mcxt);
	old = MemoryContextSwitchTo(choice->mcxt);
	choice->items = palloc(MAX_CLASSES * sizeof(TenantClass));
	choice->shares = ea_tenant_share_read(choice->source, tenant);
	MemoryContextSwitchTo(old);
}

/* From now on no shape is as good as another. */
static void
tell_shapes_apart(TenantClass *class)
{
	class->pages = Max(class->pages, PAGES_MORE + 1);
}

/* The plan that the class has been run by does not suit all of it. */
static void
doubt_class(TenantClass *class)
{
	class->wanted = Min(class->wanted * 2, ALIKE_MOST);
	class->alike = 0;
	class->runs = 0;
	class->interval = KEPT;
	tell_shapes_apart(class);
}

/* Plan for these values, and compare that with the plan kept for the class. */
static void
replan_and_compare(EaPlanChoice *choice, TenantClass *class,
				   ParamListInfo values)
{
	EaPlanWay	way;
	uint64		shape = shape_of(choice->source, values, &way);
	int			kept = find_plan(choice, shape, values, way);

	/* where a run touches few pages, planning takes longer than any plan */
	bool		same = kept == class->kept ||
		(kept != NONE && class->pages <= PAGES_MORE);

	if (!same && class->alike >= class->wanted)
		doubt_class(class);
	class->alike = same ? class->alike + 1 : 1;
	class->kept = kept;

	/* a class whose runs are all planned needs no look at each run */
	if (class->alike >= class->wanted || kept == NONE)
	{
		class->runs = class->interval;
		class->interval = Min(class->interval * 2, KEPT_MOST);
	}
}

static int64
pages_touched(void)
{
	return pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read;
}

/* -------- entry -------- */

EaPlanChoice *
ea_plan_choice_make(const char *sql, SPIPlanPtr anew)
{
	MemoryContext mcxt = AllocSetContextCreate(TopMemoryContext,
											   "entityapi plan choice",
											   ALLOCSET_SMALL_SIZES);
	EaPlanChoice *choice;

	choice = MemoryContextAllocZero(TopMemoryContext, sizeof(EaPlanChoice));
	choice->sql = sql;
	choice->anew = anew;
	choice->source = source_of(anew);
	choice->source->cursor_options |= CURSOR_OPT_CUSTOM_PLAN;
	choice->mcxt = mcxt;
	return choice;
}

void
ea_plan_choice_free(EaPlanChoice *choice)
{
	if (choice == NULL)
		return;
	forget_plans(choice);
	MemoryContextDelete(choice->mcxt);
	pfree(choice);
}

SPIPlanPtr
ea_plan_choice_begin(EaPlanChoice *choice, ParamListInfo values, int tenant)
{
	TenantClass *class = choice->class;

	/* a run that did not end may have been an endless one */
	if (class != NULL && !choice->looked)
		doubt_class(class);
	choice->class = NULL;
	if (plan_cache_mode != PLAN_CACHE_MODE_AUTO)
		return choice->anew;
	if (choice->runs > 0 && !choice->source->is_valid)
		forget_plans(choice);
	if (choice->runs++ < PLAIN_RUNS)
		return choice->anew;
	if (choice->shares == NULL)
		read_shares(choice, tenant);

	class = find_class(choice, ea_tenant_share_class(choice->shares, values));
	if (class->kept != NONE && !is_valid(&choice->kept[class->kept]))
	{
		forget_plans(choice);
		return choice->anew;
	}
	class->used = ++choice->clock;
	choice->looked = class->runs == 0;
	if (choice->looked)
		replan_and_compare(choice, class, values);
	else
		class->runs--;
	choice->class = class;
	choice->pages = pages_touched();
	return class->kept == NONE ? choice->anew
		: choice->kept[class->kept].plan;
}

void
ea_plan_choice_end(EaPlanChoice *choice, ParamListInfo values)
{
	TenantClass *class = choice->class;
	int64		pages = pages_touched() - choice->pages;

	choice->class = NULL;
	if (class == NULL || class->kept == NONE)
		return;
	if (!choice->looked)
	{
		int			kept = class->kept;

		if (pages <= PAGES_FACTOR * class->pages + PAGES_MORE)
			return;
		class->runs = 0;
		tell_shapes_apart(class);
		replan_and_compare(choice, class, values);
		if (class->kept != kept)
			return;
	}
	class->pages = Max(class->pages, pages);
}

Size
ea_plan_choice_bytes(const EaPlanChoice *choice,
					 Size (*bytes_of_plan) (SPIPlanPtr plan))
{
	Size		bytes = 0;

	if (choice == NULL)
		return 0;
	for (int i = 0; i < MAX_KEPT_PLANS; i++)
	{
		if (choice->kept[i].plan != NULL)
			bytes += bytes_of_plan(choice->kept[i].plan);
	}
	return bytes + sizeof(EaPlanChoice) +
		MemoryContextMemAllocated(choice->mcxt, true);
}

int
ea_plan_choice_kept(void)
{
	return nkept;
}
