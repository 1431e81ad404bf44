/*
 * How much of the tables the values of a statement stand for.
 *
 * A tenant of ten rows wants another plan than one of a million, and so do a
 * common and a rare value of a filter.  What the planner goes by is how many
 * rows a column has of a value: the list of its most common values, and an
 * average for all others.  That is copied once, by hashes of the values, so
 * that a request finds the class of its values without any catalog.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "base/grow.h"
#include "engine/value_class.h"

/* Values that count, and common ones of a column that are remembered. */
#define MAX_MEASURES 10
#define MAX_COMMON 128

/* Bytes of a value that is looked at, and of all that a range keeps. */
#define MAX_WIDTH 256
#define MAX_KEPT_BYTES 2048

/* Values of a range that alone are of another class than those around them. */
#define MAX_ALONE 32

/* A class has so many bits; numbers of one class differ up to fourfold. */
#define CLASS_BITS 6
#define CLASS_OF_NULL ((1 << CLASS_BITS) - 1)

typedef enum MeasureKind
{
	OF_VALUE,					/* rows with the value */
	OF_RANGE,					/* rows below it, or above */
	OF_LIST,					/* values of a list */
	OF_NUMBER					/* the number itself, an int8 */
} MeasureKind;

typedef struct Common
{
	uint32		hash;
	uint8		class;
} Common;

/* A value that statistics name, and the rows that are less, or not more. */
typedef struct Point
{
	Datum		value;
	bool		in_order;		/* of the histogram, else a common value */
	double		share;			/* of all rows, if it is common */
	double		less;
	double		up_to;
	uint8		class;			/* of the value */
	uint8		beyond;			/* of values between it and the next one */
} Point;

typedef struct Measure
{
	MeasureKind kind;
	int			param;			/* from 0 on */
	bool		byval;
	int16		len;
	int			n;

	/* OF_VALUE */
	uint8		others;			/* class of values that are not common */
	Common	   *common;			/* by hash */

	/* OF_RANGE */
	bool		below;			/* rows that are less, not more */
	bool		inclusive;		/* or equal */
	Oid			collation;
	FmgrInfo	compare;		/* a point with a value */
	Point	   *points;			/* in order, where classes change */
	uint8		before;			/* class of values before all points */
	double		rows;			/* that are not null */
} Measure;

struct EaValueClasses
{
	int			n;
	Measure		measures[MAX_MEASURES];
};

/* Where in a statement a walk is. */
typedef struct Place
{
	EaValueClasses *classes;
	Query	   *query;
} Place;

static uint8
class_of(double number)
{
	if (!(number >= 1))
		return 0;
	return 1 + pg_leftmost_one_pos64((uint64) Min(number, 1e18)) / 2;
}

/* What cannot be told by its bytes is like those that are not common. */
static uint32
hash_value(Datum value, bool byval, int16 len)
{
	if (byval)
		return murmurhash32((uint32) value);
	if (len == -1)
	{
		struct varlena *text = (struct varlena *) DatumGetPointer(value);

		if (VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))
			return 0;
		return hash_bytes((unsigned char *) VARDATA_ANY(text),
						  VARSIZE_ANY_EXHDR(text));
	}
	return len > 0 ? hash_bytes((unsigned char *) DatumGetPointer(value), len)
		: 0;
}

/* -------- what statistics say of a column -------- */

static int
compare_common(const void *a, const void *b)
{
	uint32		x = ((const Common *) a)->hash;
	uint32		y = ((const Common *) b)->hash;

	return (x > y) - (x < y);
}

static double
rows_of_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		rows;

	if (!HeapTupleIsValid(tuple))
		return 0;
	rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	ReleaseSysCache(tuple);
	return Max(rows, 0);
}

/* The most common values, and what is left to each of the others. */
static void
read_statistics(Measure *measure, HeapTuple tuple, double rows)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(tuple);
	double		distinct = form->stadistinct < 0 ?
		-form->stadistinct * rows : form->stadistinct;
	double		left = 1 - form->stanullfrac;
	AttStatsSlot slot;

	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		measure->n = Min(Min(slot.nvalues, slot.nnumbers), MAX_COMMON);
		measure->common = palloc(Max(measure->n, 1) * sizeof(Common));
		for (int i = 0; i < measure->n; i++)
		{
			measure->common[i].hash =
				hash_value(slot.values[i], measure->byval, measure->len);
			measure->common[i].class = class_of(slot.numbers[i] * rows);
			left -= slot.numbers[i];
		}
		distinct -= measure->n;
		free_attstatsslot(&slot);
		qsort(measure->common, measure->n, sizeof(Common), compare_common);
	}
	measure->others = class_of(Max(left, 0) * rows / Max(distinct, 1));
}

/* -------- what statistics say of a range -------- */

static int
compare_points(const void *a, const void *b, void *arg)
{
	const Measure *measure = arg;
	FmgrInfo   *compare = (FmgrInfo *) &measure->compare;

	return DatumGetInt32(FunctionCall2Coll(compare, measure->collation,
										   ((const Point *) a)->value,
										   ((const Point *) b)->value));
}

/* Values that are too wide are left out; ranges are rough without them. */
static void
add_points(Measure *measure, const AttStatsSlot *slot, bool in_order,
		   int16 len)
{
	for (int i = 0; i < slot->nvalues; i++)
	{
		Point	   *point = &measure->points[measure->n];

		if (len == -1 &&
			VARSIZE_ANY(DatumGetPointer(slot->values[i])) > MAX_WIDTH)
			continue;
		point->value = slot->values[i];
		point->in_order = in_order;
		point->share = in_order ? 0 : slot->numbers[i];
		measure->n++;
	}
}

/* Rows between two bounds of the histogram are spread evenly. */
static void
sum_up(Measure *measure, double between, double rows)
{
	bool		first = true;
	double		sum = 0;

	for (int i = 0; i < measure->n; i++)
	{
		Point	   *point = &measure->points[i];

		if (point->in_order && !first)
			sum += between;
		if (point->in_order)
			first = false;
		point->less = sum * rows;
		sum += point->share;
		point->up_to = sum * rows;
	}
	measure->rows = sum * rows;
}

static uint8
class_at(const Measure *measure, double less, double up_to)
{
	if (measure->below)
		return class_of(measure->inclusive ? up_to : less);
	return class_of(measure->rows - (measure->inclusive ? less : up_to));
}

/* The class of values between a point and the one before it. */
static uint8
class_between(const Measure *measure, int i)
{
	double		less = i < measure->n ? measure->points[i].less
		: measure->rows;
	double		up_to = i > 0 ? measure->points[i - 1].up_to : 0;

	less = (less + up_to) / 2;
	return class_at(measure, less, less);
}

/*
 * Find the points at which the class changes, and move them to the front.
 * Between points it goes one way only, so it changes there as often as there
 * are classes; values by themselves may differ from their surroundings by the
 * thousand, and the first ones are enough.
 */
static void
thin_out(Measure *measure)
{
	Point	   *points = measure->points;
	int			kept = 0;
	int			alone = 0;
	uint8		last = class_between(measure, 0);
	int			next;

	measure->before = last;
	for (int i = 0; i < measure->n; i = next)
	{
		Point		point = points[i];
		bool		stays;

		CHECK_FOR_INTERRUPTS();
		for (next = i + 1; next < measure->n; next++)
		{
			if (compare_points(&point, &points[next], measure) != 0)
				break;
		}
		point.class = class_at(measure, point.less, point.up_to);
		point.beyond = class_between(measure, next);
		stays = point.beyond != last ||
			(point.class != last && alone++ < MAX_ALONE);
		if (stays)
			points[kept++] = point;
		last = point.beyond;
	}
	measure->n = kept;
}

/*
 * Copy them to where they stay, as long as there is room: a range is rough
 * without those that come last.
 */
static void
keep_points(Measure *measure, MemoryContext mcxt, bool byval, int16 len)
{
	const Point *points = measure->points;
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	Size		bytes = 0;
	int			kept = 0;

	measure->points = palloc(Max(measure->n, 1) * sizeof(Point));
	for (; kept < measure->n; kept++)
	{
		bytes += byval ? 0 : datumGetSize(points[kept].value, byval, len);
		if (bytes > MAX_KEPT_BYTES)
			break;
		measure->points[kept] = points[kept];
		measure->points[kept].value = datumCopy(points[kept].value, byval,
												len);
	}
	measure->n = kept;
	MemoryContextSwitchTo(old);
}

static void
read_range(Measure *measure, HeapTuple tuple, double rows, Oid sort,
		   bool byval, int16 len)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(tuple);
	double		left = 1 - form->stanullfrac;
	AttStatsSlot common;
	AttStatsSlot bounds;
	FmgrInfo	compare = measure->compare;
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi statistics",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext stays = MemoryContextSwitchTo(mcxt);

	/* what is not there is empty */
	get_attstatsslot(&common, tuple, STATISTIC_KIND_MCV, InvalidOid,
					 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	get_attstatsslot(&bounds, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
					 ATTSTATSSLOT_VALUES);
	common.nvalues = Min(common.nvalues, common.nnumbers);
	measure->points = palloc0((common.nvalues + bounds.nvalues + 1) *
							  sizeof(Point));
	add_points(measure, &common, false, len);
	for (int i = 0; i < measure->n; i++)
		left -= measure->points[i].share;
	add_points(measure, &bounds, true, len);

	/* points are of the column's type, all of them */
	fmgr_info(sort, &measure->compare);
	qsort_arg(measure->points, measure->n, sizeof(Point), compare_points,
			  measure);
	sum_up(measure, Max(left, 0) / Max(bounds.nvalues - 1, 1), rows);
	thin_out(measure);
	keep_points(measure, stays, byval, len);
	measure->compare = compare;
	MemoryContextSwitchTo(stays);
	MemoryContextDelete(mcxt);
}

/* -------- what a statement compares -------- */

static Measure *
add_measure(Place *place, MeasureKind kind, Node *value)
{
	EaValueClasses *classes = place->classes;
	Measure    *measure;

	if (!IsA(value, Param) || ((Param *) value)->paramkind != PARAM_EXTERN ||
		classes->n == MAX_MEASURES)
		return NULL;
	measure = &classes->measures[classes->n++];
	measure->kind = kind;
	measure->param = ((Param *) value)->paramid - 1;
	get_typlenbyval(((Param *) value)->paramtype, &measure->len,
					&measure->byval);
	return measure;
}

/* The statistics of a column of a table of this query, or NULL */
static HeapTuple
find_statistics(const Place *place, Node *column, double *rows)
{
	Var		   *var = (Var *) column;
	RangeTblEntry *rte;
	HeapTuple	tuple;

	if (!IsA(column, Var) || var->varlevelsup > 0 || var->varattno <= 0)
		return NULL;
	rte = rt_fetch(var->varno, place->query->rtable);
	if (rte->rtekind != RTE_RELATION)
		return NULL;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
							Int16GetDatum(var->varattno),
							BoolGetDatum(false));
	*rows = rows_of_table(rte->relid);
	return HeapTupleIsValid(tuple) ? tuple : NULL;
}

static void
note_equality(Place *place, const Var *column, Node *value, HeapTuple tuple,
			  double rows)
{
	Measure    *measure = add_measure(place, OF_VALUE, value);
	bool		byval;
	int16		len;

	if (measure == NULL)
		return;
	get_typlenbyval(column->vartype, &len, &byval);
	if (measure->byval == byval && (byval || measure->len == len))
		read_statistics(measure, tuple, rows);
}

static void
note_range(Place *place, const Var *column, const OpExpr *op, Node *value,
		   HeapTuple tuple, double rows)
{
	const RegProcedure estimator = get_oprrest(op->opno);
	Measure    *measure;
	Oid			left;
	Oid			right;
	Oid			family;
	Oid			compare;
	Oid			sort;
	bool		byval;
	int16		len;

	if (estimator != F_SCALARLTSEL && estimator != F_SCALARLESEL &&
		estimator != F_SCALARGTSEL && estimator != F_SCALARGESEL)
		return;
	op_input_types(op->opno, &left, &right);
	family = get_opclass_family(GetDefaultOpClass(left, BTREE_AM_OID));
	compare = get_opfamily_proc(family, left, right, BTORDER_PROC);
	sort = get_opfamily_proc(family, left, left, BTORDER_PROC);
	if (!OidIsValid(compare) || !OidIsValid(sort))
		return;
	measure = add_measure(place, OF_RANGE, value);
	if (measure == NULL)
		return;
	measure->below = estimator == F_SCALARLTSEL || estimator == F_SCALARLESEL;
	measure->inclusive = estimator == F_SCALARLESEL ||
		estimator == F_SCALARGESEL;
	measure->collation = op->inputcollid;
	fmgr_info(compare, &measure->compare);
	get_typlenbyval(column->vartype, &len, &byval);
	read_range(measure, tuple, rows, sort, byval, len);
}

/* A column that is compared with a parameter */
static void
note_comparison(Place *place, const OpExpr *op, Node *column, Node *value)
{
	HeapTuple	tuple;
	double		rows;

	if (!IsA(value, Param))
		return;
	tuple = find_statistics(place, column, &rows);
	if (tuple == NULL)
		return;
	if (get_oprrest(op->opno) == F_EQSEL)
		note_equality(place, (Var *) column, value, tuple, rows);
	else
		note_range(place, (Var *) column, op, value, tuple, rows);
	ReleaseSysCache(tuple);
}

static Node *
without_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

static bool
note_values(Node *node, void *arg)
{
	Place	   *place = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Place		inner = {place->classes, (Query *) node};

		if (inner.query->limitOffset != NULL)
			add_measure(&inner, OF_NUMBER, inner.query->limitOffset);
		return query_tree_walker(inner.query, note_values, &inner, 0);
	}
	if (IsA(node, OpExpr))
	{
		OpExpr	   *op = (OpExpr *) node;

		if (list_length(op->args) == 2)
			note_comparison(place, op, without_relabel(linitial(op->args)),
							without_relabel(lsecond(op->args)));
	}
	else if (IsA(node, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) node;

		add_measure(place, OF_LIST, without_relabel(lsecond(op->args)));
	}
	return expression_tree_walker(node, note_values, arg);
}

EaValueClasses *
ea_value_classes_make(CachedPlanSource *source)
{
	Place		place = {palloc0(sizeof(EaValueClasses)), NULL};
	ListCell   *cell;

	foreach(cell, source->query_list)
		note_values(lfirst(cell), &place);
	return place.classes;
}

/* -------- a request -------- */

static uint8
class_of_value(const Measure *measure, Datum value)
{
	uint32		hash = hash_value(value, measure->byval, measure->len);
	int			low = 0;
	int			high = measure->n;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (measure->common[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < measure->n && measure->common[low].hash == hash ?
		measure->common[low].class : measure->others;
}

static uint8
class_of_range(const Measure *measure, Datum value)
{
	const Point *points = measure->points;
	int			low = 0;
	int			high = measure->n;
	bool		equal = false;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		Datum		order =
			FunctionCall2Coll((FmgrInfo *) &measure->compare,
							  measure->collation, points[middle].value,
							  value);

		equal |= DatumGetInt32(order) == 0;
		if (DatumGetInt32(order) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (equal)
		return points[low].class;
	return low > 0 ? points[low - 1].beyond : measure->before;
}

static uint8
class_of_list(Datum list)
{
	ArrayType  *array = (ArrayType *) DatumGetPointer(list);

	if (VARATT_IS_EXTENDED(array))
		return 0;
	return class_of(ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)));
}

uint64
ea_value_class(const EaValueClasses *classes, EaParams params)
{
	uint64		class = 0;

	for (int i = 0; i < classes->n; i++)
	{
		const Measure *measure = &classes->measures[i];
		const EaValue *value = &params.items[measure->param];
		uint8		one;

		if (value->isnull)
			one = CLASS_OF_NULL;
		else if (measure->kind == OF_VALUE)
			one = class_of_value(measure, value->value);
		else if (measure->kind == OF_RANGE)
			one = class_of_range(measure, value->value);
		else if (measure->kind == OF_LIST)
			one = class_of_list(value->value);
		else
			one = class_of(DatumGetInt64(value->value));
		class = class << CLASS_BITS | one;
	}
	return class;
}
