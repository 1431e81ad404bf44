/*
 * Rows put at the end of a partitioned table, without the executor.
 *
 * It does what ExecInsert() does for a leaf partition that is a plain heap
 * with B-trees over columns and nothing else: no triggers, row security,
 * rules, check constraints, generated columns, expressions, exclusion or
 * deferrable constraints.  All that is looked at, in each call and under the
 * locks that an INSERT takes, before the first row is written; whatever else
 * is there leaves the rows to the executor.  heap_insert() and index_insert()
 * do the rest as ever: toast, WAL with what logical decoding needs, conflicts
 * of serializable transactions, unique keys.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "direct/append.h"
#include "direct/keyscan.h"

/* More indexes than a table has of ours. */
#define MAX_INDEXES 16

/* An index, and which rows are in it: <column> <function> <constant> */
typedef struct TargetIndex
{
	Relation	relation;
	AttrNumber	column;			/* 0: all rows */
	FmgrInfo	function;
	Oid			collation;
	Datum		constant;
} TargetIndex;

typedef struct Target
{
	const EaAppendTable *table;
	const EaValue *shared;
	Relation	parent;
	Relation	leaf;
	int			nindexes;
	TargetIndex indexes[MAX_INDEXES];
} Target;

/* The value of a column, counted from 0, in a row. */
static const EaValue *
value_of(const Target *target, const EaValue *own, int column)
{
	int			n = target->table->columns[column].value;

	return n < target->table->nshared ? &target->shared[n] :
		&own[n - target->table->nshared];
}

/* -------- what may be written -------- */

static bool
has_triggers(Relation relation)
{
	const TriggerDesc *triggers = relation->trigdesc;

	return triggers != NULL &&
		(triggers->trig_insert_before_row ||
		 triggers->trig_insert_after_row ||
		 triggers->trig_insert_instead_row ||
		 triggers->trig_insert_before_statement ||
		 triggers->trig_insert_after_statement ||
		 triggers->trig_insert_new_table);
}

static bool
may_insert(Relation parent)
{
	return parent->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		!parent->rd_rel->relrowsecurity && !parent->rd_rel->relhasrules &&
		!has_triggers(parent) &&
		pg_class_aclcheck(RelationGetRelid(parent), GetUserId(),
						  ACL_INSERT) == ACLCHECK_OK;
}

/* A plain heap with the columns as they must be, and no constraints. */
static bool
is_plain(const Target *target, const EaValue *own)
{
	Relation	leaf = target->leaf;
	TupleDesc	desc = RelationGetDescr(leaf);

	if (leaf->rd_rel->relkind != RELKIND_RELATION ||
		leaf->rd_tableam != GetHeapamTableAmRoutine() ||
		leaf->rd_rel->relhasrules || has_triggers(leaf) ||
		desc->natts != target->table->ncolumns ||
		(desc->constr != NULL &&
		 (desc->constr->num_check > 0 || desc->constr->has_generated_stored)))
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped ||
			att->atttypid != value_of(target, own, i)->type ||
			strcmp(NameStr(att->attname),
				   target->table->columns[i].name) != 0)
			return false;
	}
	return true;
}

/* No column is null that must not be. */
static bool
has_values(const Target *target, const EaValue *own, int nrows)
{
	TupleDesc	desc = RelationGetDescr(target->leaf);

	for (int k = 0; k < nrows; k++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < desc->natts; i++)
		{
			if (TupleDescAttr(desc, i)->attnotnull &&
				value_of(target, own + k * target->table->nown, i)->isnull)
				return false;
		}
	}
	return true;
}

/*
 * The partition that a key belongs to, as get_partition_for_tuple() finds it:
 * those that are being detached are left out, but for snapshots that see them.
 */
static Oid
route(const Target *target)
{
	PartitionKey key = RelationGetPartitionKey(target->parent);
	bool		omit = !IsolationUsesXactSnapshot();
	PartitionDesc desc = RelationGetPartitionDesc(target->parent, omit);
	PartitionBoundInfo bounds = desc->boundinfo;
	bool		equal = false;
	EaValue		value;
	int			column;
	int			part;

	if (key->strategy != PARTITION_STRATEGY_RANGE || key->partnatts != 1 ||
		desc->nparts == 0)
		return InvalidOid;
	column = key->partattrs[0] - 1;
	if (column < 0 || column >= target->table->ncolumns ||
		target->table->columns[column].value >= target->table->nshared)
		return InvalidOid;
	value = *value_of(target, NULL, column);
	if (value.isnull || value.type != key->parttypid[0])
		return InvalidOid;
	part = bounds->indexes[partition_range_datum_bsearch(key->partsupfunc,
														 key->partcollation,
														 bounds, 1,
														 &value.value,
														 &equal) + 1];

	/* what is the default's may be another's before it is locked */
	return part < 0 || !desc->is_leaf[part] ? InvalidOid : desc->oids[part];
}

/* -------- indexes -------- */

static Node *
bare(Node *node)
{
	return IsA(node, RelabelType) ? (Node *) ((RelabelType *) node)->arg :
		node;
}

/*
 * `<column> <operator> <constant>`, with one of PostgreSQL's own operators.
 * What the relation cache has of it stays while the index is open.
 */
static bool
read_predicate(TargetIndex *index)
{
	List	   *list = index->relation->rd_indpred;
	OpExpr	   *op;
	Var		   *var;
	Const	   *constant;

	if (list == NIL)
		list = RelationGetIndexPredicate(index->relation);
	if (list == NIL)
		return true;
	op = linitial(list);
	if (list_length(list) != 1 || !IsA(op, OpExpr) ||
		list_length(op->args) != 2 ||
		op->opfuncid >= FirstUnpinnedObjectId)
		return false;
	var = (Var *) bare(linitial(op->args));
	constant = lsecond(op->args);
	if (!IsA(var, Var) || var->varattno < 1 || !IsA(constant, Const) ||
		constant->constisnull)
		return false;
	index->column = var->varattno;
	index->collation = op->inputcollid;
	index->constant = constant->constvalue;
	fmgr_info(op->opfuncid, &index->function);
	return true;
}

/* A B-tree over columns, which is written to at once. */
static bool
read_index(TargetIndex *index)
{
	Form_pg_index form = index->relation->rd_index;

	if (index->relation->rd_rel->relam != BTREE_AM_OID ||
		form->indisexclusion || !form->indimmediate || !form->indisready)
		return false;
	for (int i = 0; i < form->indnatts; i++)
	{
		if (form->indkey.values[i] < 1)
			return false;
	}
	return read_predicate(index);
}

/* The index has this row; one without a value is in no partial one. */
static bool
is_in(const Target *target, TargetIndex *index, const EaValue *own)
{
	const EaValue *value;

	if (index->column == 0)
		return true;
	value = value_of(target, own, index->column - 1);
	return !value->isnull &&
		DatumGetBool(FunctionCall2Coll(&index->function, index->collation,
									   value->value, index->constant));
}

static bool
has_any(const Target *target, TargetIndex *index, const EaValue *own,
		int nrows)
{
	for (int k = 0; k < nrows; k++)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_in(target, index, own + k * target->table->nown))
			return true;
	}
	return false;
}

/*
 * Those that get a row are locked.  The lock on the table is enough to read
 * what rows an index is for: it can neither go nor become another under it.
 */
static bool
open_index(Target *target, Oid oid, const EaValue *own, int nrows)
{
	TargetIndex *index = &target->indexes[target->nindexes];
	bool		fine;

	memset(index, 0, sizeof(*index));
	index->relation = RelationIdGetRelation(oid);
	if (!RelationIsValid(index->relation))
		return false;
	fine = read_index(index);
	if (fine && has_any(target, index, own, nrows))
	{
		LockRelationOid(oid, RowExclusiveLock);
		target->nindexes++;
	}
	else
		RelationClose(index->relation);
	return fine;
}

static bool
open_indexes(Target *target, const EaValue *own, int nrows)
{
	List	   *oids = RelationGetIndexList(target->leaf);
	bool		fine = list_length(oids) <= MAX_INDEXES;
	ListCell   *cell;

	foreach(cell, oids)
		fine = fine && open_index(target, lfirst_oid(cell), own, nrows);
	list_free(oids);
	return fine;
}

/* The locks are kept, as that of the table: all go at once in the end. */
static void
close_indexes(Target *target)
{
	for (int i = 0; i < target->nindexes; i++)
		index_close(target->indexes[i].relation, NoLock);
}

static void
insert_entries(Target *target, const EaValue *own, const Datum *values,
			   const bool *isnull, ItemPointer tid)
{
	for (int i = 0; i < target->nindexes; i++)
	{
		Relation	index = target->indexes[i].relation;
		Form_pg_index form = index->rd_index;
		Datum		key[INDEX_MAX_KEYS];
		bool		key_null[INDEX_MAX_KEYS];

		if (!is_in(target, &target->indexes[i], own))
			continue;
		for (int k = 0; k < form->indnatts; k++)
		{
			key[k] = values[form->indkey.values[k] - 1];
			key_null[k] = isnull[form->indkey.values[k] - 1];
		}

		/* a B-tree asks for no IndexInfo */
		index_insert(index, key, key_null, tid, target->leaf,
					 form->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 false, NULL);
	}
}

/* -------- rows -------- */

static void
insert_rows(Target *target, const EaValue *own, int nrows)
{
	TupleDesc	desc = RelationGetDescr(target->leaf);
	CommandId	command = GetCurrentCommandId(true);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(desc->natts * sizeof(bool));

	for (int k = 0; k < nrows; k++, own += target->table->nown)
	{
		HeapTuple	tuple;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < desc->natts; i++)
		{
			const EaValue *value = value_of(target, own, i);

			values[i] = value->value;
			isnull[i] = value->isnull;
		}
		tuple = heap_form_tuple(desc, values, isnull);
		heap_insert(target->leaf, tuple, command, 0, NULL);
		insert_entries(target, own, values, isnull, &tuple->t_self);
		heap_freetuple(tuple);
	}
}

static bool
append(Target *target, const EaValue *own, int nrows)
{
	Oid			leaf = route(target);
	bool		done = false;

	if (!OidIsValid(leaf))
		return false;
	target->leaf = table_open(leaf, RowExclusiveLock);
	if (is_plain(target, own) && has_values(target, own, nrows))
	{
		done = open_indexes(target, own, nrows);
		if (done)
			insert_rows(target, own, nrows);
		close_indexes(target);
	}
	table_close(target->leaf, NoLock);
	return done;
}

bool
ea_append_rows(const EaAppendTable *table, const EaValue *shared,
			   const EaValue *own, int nrows)
{
	Target		target;
	bool		done = false;

	if (nrows == 0 || !ea_keyscan_is_open(table->here) || XactReadOnly ||
		IsInParallelMode())
		return false;
	target.table = table;
	target.shared = shared;
	target.nindexes = 0;

	/* under the snapshot that a statement would have */
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	target.parent = table_open(table->relation, RowExclusiveLock);
	if (may_insert(target.parent))
		done = append(&target, own, nrows);
	table_close(target.parent, NoLock);
	PopActiveSnapshot();
	if (done)
		CommandCounterIncrement();
	return done;
}
