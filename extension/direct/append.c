/*
 * Stands for an INSERT: ModifyTable over a partitioned table, that is
 * ExecFindPartition() and ExecInsert().  Read against PostgreSQL 15 to 18.
 *
 * It leaves out whatever is more than a leaf partition that is a table and
 * nothing else: triggers (and so constraints that wait, which have one), row
 * security, rules, check constraints and generated columns.  All that is
 * looked at in each call, under the locks that an INSERT takes, before the
 * first row is written; where there is any of it, the executor gets the rows.
 * Index entries are made by the executor's own function.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/acl.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "direct/append.h"
#include "direct/keyscan.h"

typedef struct Target
{
	const EaAppendTable *table;
	const EaValue *shared;
	Relation	parent;
	Relation	leaf;
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

/* A table with the columns as they must be, and no constraints. */
static bool
is_plain(const Target *target, const EaValue *own)
{
	Relation	leaf = target->leaf;
	TupleDesc	desc = RelationGetDescr(leaf);

	if (leaf->rd_rel->relkind != RELKIND_RELATION ||
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
find_partition(const Target *target)
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

	/* a row of the default may be another partition's before that is locked */
	return part < 0 || !desc->is_leaf[part] ? InvalidOid : desc->oids[part];
}

/* -------- rows -------- */

static void
set_values(const Target *target, const EaValue *own, TupleTableSlot *row)
{
	ExecClearTuple(row);
	for (int i = 0; i < target->table->ncolumns; i++)
	{
		const EaValue *value = value_of(target, own, i);

		row->tts_values[i] = value->value;
		row->tts_isnull[i] = value->isnull;
	}
	ExecStoreVirtualTuple(row);
}

static void
insert_rows(const Target *target, const EaValue *own, int nrows)
{
	EState	   *estate = CreateExecutorState();
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	ResultRelInfo *table = makeNode(ResultRelInfo);
	TupleTableSlot *row = table_slot_create(target->leaf,
											&estate->es_tupleTable);
	CommandId	command = GetCurrentCommandId(true);

	InitResultRelInfo(table, target->leaf, 0, NULL, 0);
	ExecOpenIndices(table, false);
	for (int k = 0; k < nrows; k++, own += target->table->nown)
	{
		CHECK_FOR_INTERRUPTS();
		set_values(target, own, row);
		table_tuple_insert(target->leaf, row, command, 0, NULL);
		ea_compat_insert_entries(table, row, estate);
		ResetPerTupleExprContext(estate);
	}
	ExecCloseIndices(table);
	ExecResetTupleTable(estate->es_tupleTable, false);
	MemoryContextSwitchTo(old);
	FreeExecutorState(estate);
}

static bool
append_rows(Target *target, const EaValue *own, int nrows)
{
	Oid			leaf = find_partition(target);
	bool		fine;

	if (!OidIsValid(leaf))
		return false;
	target->leaf = table_open(leaf, RowExclusiveLock);
	fine = is_plain(target, own) && has_values(target, own, nrows);
	if (fine)
		insert_rows(target, own, nrows);
	table_close(target->leaf, NoLock);
	return fine;
}

bool
ea_append_rows(const EaAppendTable *table, const EaValue *shared,
			   const EaValue *own, int nrows)
{
	Target		target;
	bool		done = false;

	if (nrows == 0 || !ea_keyscan_may_write(table->here) || XactReadOnly ||
		IsInParallelMode())
		return false;
	target.table = table;
	target.shared = shared;

	/* under the snapshot that a statement would have */
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	target.parent = table_open(table->relation, RowExclusiveLock);
	if (may_insert(target.parent))
		done = append_rows(&target, own, nrows);
	table_close(target.parent, NoLock);
	PopActiveSnapshot();
	if (done)
		CommandCounterIncrement();
	return done;
}
