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
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "common/hashfn.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "base/grow.h"
#include "engine/value_class.h"

/* Values that count, and common ones of a column that are remembered. */
#define MAX_MEASURES 10
#define MAX_COMMON 128

/* A class has so many bits; numbers of one class differ up to fourfold. */
#define CLASS_BITS 6
#define CLASS_OF_NULL ((1 << CLASS_BITS) - 1)

typedef enum MeasureKind
{
	OF_VALUE,					/* rows with the value */
	OF_LIST,					/* values of a list */
	OF_NUMBER					/* the number itself, an int8 */
} MeasureKind;

typedef struct Common
{
	uint32		hash;
	uint8		class;
} Common;

typedef struct Measure
{
	MeasureKind kind;
	int			param;			/* from 0 on */
	bool		byval;
	int16		len;
	uint8		others;			/* class of values that are not common */
	int			n;
	Common	   *common;			/* by hash */
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

/* A column of a table of this query, equal to a parameter */
static void
note_equality(Place *place, Node *column, Node *value)
{
	Var		   *var = (Var *) column;
	RangeTblEntry *rte;
	Measure    *measure;
	HeapTuple	tuple;
	bool		byval;
	int16		len;

	if (!IsA(column, Var) || var->varlevelsup > 0 || var->varattno <= 0)
		return;
	rte = rt_fetch(var->varno, place->query->rtable);
	if (rte->rtekind != RTE_RELATION)
		return;
	get_typlenbyval(var->vartype, &len, &byval);
	measure = add_measure(place, OF_VALUE, value);
	if (measure == NULL || measure->byval != byval ||
		(!byval && measure->len != len))
		return;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
							Int16GetDatum(var->varattno),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return;
	read_statistics(measure, tuple, rows_of_table(rte->relid));
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

		if (list_length(op->args) == 2 && get_oprrest(op->opno) == F_EQSEL)
			note_equality(place, without_relabel(linitial(op->args)),
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
		else if (measure->kind == OF_LIST)
			one = class_of_list(value->value);
		else
			one = class_of(DatumGetInt64(value->value));
		class = class << CLASS_BITS | one;
	}
	return class;
}
