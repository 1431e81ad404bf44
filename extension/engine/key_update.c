/*
 * Plans that are an UPDATE of one row by its key, run without the executor.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/complete_index.h"
#include "engine/key_update.h"
#include "engine/reference.h"
#include "engine/scan_keys.h"
#include "engine/steady.h"

typedef struct KeyUpdate
{
	EaRowWrite	pub;
	Oid			index;
	EaScanKeys	keys;
	ExprState  *condition;		/* on the row that was found, or NULL */
	bool		refers;			/* by foreign keys of its own */
} KeyUpdate;

/* -------- recognition: the plan -------- */

/* What comes behind the values finds the row. */
static bool
are_for_row(const List *targets, int nsets)
{
	for (int i = nsets; i < list_length(targets); i++)
	{
		TargetEntry *target = list_nth_node(TargetEntry, targets, i);

		if (!target->resjunk || !IsA(target->expr, Var) ||
			((Var *) target->expr)->varattno !=
			SelfItemPointerAttributeNumber)
			return false;
	}
	return true;
}

/* The scan asks for one value of a column, by the equality of that order. */
static bool
asks_for(const EaScanKeys *keys, Relation index, Relation unique, int n)
{
	AttrNumber	column = unique->rd_index->indkey.values[n];

	for (int i = 0; i < keys->n; i++)
	{
		const ScanKeyData *key = &keys->keys[i];
		int			k = key->sk_attno - 1;

		if (key->sk_strategy == BTEqualStrategyNumber && column != 0 &&
			index->rd_index->indkey.values[k] == column &&
			index->rd_opfamily[k] == unique->rd_opfamily[n] &&
			key->sk_subtype == unique->rd_opcintype[n] &&
			key->sk_collation == unique->rd_indcollation[n])
			return true;
	}
	return false;
}

/* No more than one row has such a key, whichever index leads to it. */
static bool
is_unique(const EaScanKeys *keys, Relation index, Relation unique)
{
	Form_pg_index form = unique->rd_index;

	if (!form->indisunique || !form->indimmediate ||
		!ea_complete_index_is(unique))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		if (!asks_for(keys, index, unique, i))
			return false;
	}
	return true;
}

static bool
is_one_row(const EaScanKeys *keys, Relation index, Relation relation)
{
	List	   *oids = RelationGetIndexList(relation);
	bool		one = false;
	ListCell   *cell;

	foreach(cell, oids)
	{
		Relation	unique = index_open(lfirst_oid(cell), AccessShareLock);

		one = one || is_unique(keys, index, unique);
		index_close(unique, NoLock);
	}
	list_free(oids);
	return one;
}

static bool
read_scan(KeyUpdate *update, const IndexScan *node, Relation relation)
{
	const Plan *plan = &node->scan.plan;
	Relation	index;
	bool		fine;

	if (node->scan.scanrelid != update->pub.number ||
		node->indexorderby != NIL ||
		!ea_steady_is((Node *) plan->qual, EA_STEADY_PARAMS))
		return false;
	update->index = node->indexid;
	update->condition = ExecInitQual(copyObject(plan->qual), NULL);
	index = index_open(node->indexid, AccessShareLock);
	fine = index->rd_rel->relam == BTREE_AM_OID &&
		ea_scan_keys_read(&update->keys, index, node->indexqual) &&
		is_one_row(&update->keys, index, relation);
	index_close(index, NoLock);
	return fine;
}

/* -------- recognition: the table -------- */

/*
 * The statement changes columns of a foreign key of this table, or, where the
 * trigger is that of the other side, columns that others refer to.  A key that
 * must match in full is refused where it is null in part, changed or not.
 */
static bool
sets_key(const EaRowWrite *write, Oid constraint, int kind)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	AttrNumber	referring[INDEX_MAX_KEYS];
	AttrNumber	referred[INDEX_MAX_KEYS];
	bool		full;
	int			n;

	if (!HeapTupleIsValid(tuple))
		return true;
	DeconstructFkConstraintRow(tuple, &n, referring, referred, NULL, NULL,
							   NULL, NULL, NULL);
	full = ((Form_pg_constraint) GETSTRUCT(tuple))->confmatchtype ==
		FKCONSTR_MATCH_FULL;
	ReleaseSysCache(tuple);
	if (kind == RI_TRIGGER_FK)
		return full || ea_row_sets_any(write, referring, n);
	return ea_row_sets_any(write, referred, n);
}

/* False if the trigger has to be asked. */
static bool
read_trigger(KeyUpdate *update, Relation relation, const Trigger *trigger)
{
	int			kind = RI_FKey_trigger_type(trigger->tgfoid);
	EaReference *reference;

	if (!TRIGGER_FOR_UPDATE(trigger->tgtype))
		return true;
	if (kind == RI_TRIGGER_NONE || !trigger->tgisinternal)
		return false;
	update->refers = update->refers || kind == RI_TRIGGER_FK;
	if (!sets_key(&update->pub, trigger->tgconstraint, kind))
		return true;
	reference = kind != RI_TRIGGER_FK ? NULL :
		ea_reference_make(relation, trigger, &update->pub.busy);
	if (reference == NULL)
		return false;
	update->pub.references = lappend(update->pub.references, reference);
	return true;
}

/*
 * Triggers of foreign keys have nothing to do while the keys stay as they
 * are, but for rows that the transaction itself has made (refers).  News that
 * come in while others are opened may take what the relation cache has of the
 * triggers.
 */
static bool
read_triggers(KeyUpdate *update, Relation relation)
{
	const TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (!read_trigger(update, relation, &triggers->triggers[i]))
			return false;
	}
	return true;
}

static bool
read_update(EaRowWrite *write, const PlannedStmt *stmt, Relation relation)
{
	KeyUpdate  *update = (KeyUpdate *) write;
	const ModifyTable *modify = (const ModifyTable *) stmt->planTree;
	const IndexScan *scan = (const IndexScan *) outerPlan(modify);

	return IsA(scan, IndexScan) &&
		list_length(modify->updateColnosLists) == 1 &&
		ea_row_read_sets(write, linitial(modify->updateColnosLists),
						 scan->scan.plan.targetlist) &&
		are_for_row(scan->scan.plan.targetlist, write->nsets) &&
		read_triggers(update, relation) &&
		read_scan(update, scan, relation);
}

/* -------- the run -------- */

/* The row that the snapshot sees, with what else is asked of it. */
static bool
find_row(EaRowWork *work)
{
	KeyUpdate  *update = (KeyUpdate *) work->write;
	ScanKeyData keys[EA_SCAN_KEYS];
	IndexScanDesc desc;
	Relation	index;
	bool		found;

	if (!ea_scan_keys_bind(&update->keys, work->run->params, keys))
		return false;
	index = index_open(update->index, RowExclusiveLock);
	desc = ea_compat_index_beginscan(work->relation, index,
									 GetActiveSnapshot(), update->keys.n);
	index_rescan(desc, keys, update->keys.n, NULL, 0);
	found = index_getnext_slot(desc, ForwardScanDirection, work->before);
	index_endscan(desc);
	index_close(index, NoLock);
	work->context.ecxt_scantuple = work->before;
	return found && ExecQual(update->condition, &work->context);
}

/*
 * The trigger of a foreign key would be asked all the same: the one that the
 * insertion has left waiting finds its row gone.
 */
static bool
is_own_row(const EaRowWork *work)
{
	bool		isnull;
	Datum		xmin;

	if (!((const KeyUpdate *) work->write)->refers)
		return false;
	xmin = slot_getsysattr(work->before, MinTransactionIdAttributeNumber,
						   &isnull);
	return TransactionIdIsCurrentTransactionId(DatumGetTransactionId(xmin));
}

/* As it was, but for what is set; columns that have gone are null. */
static void
make_row(EaRowWork *work)
{
	TupleTableSlot *before = work->before;
	TupleTableSlot *after = work->after;
	TupleDesc	desc = after->tts_tupleDescriptor;

	slot_getallattrs(before);
	memcpy(after->tts_values, before->tts_values, desc->natts * sizeof(Datum));
	for (int i = 0; i < desc->natts; i++)
		after->tts_isnull[i] = before->tts_isnull[i] ||
			TupleDescAttr(desc, i)->attisdropped;
	ea_row_set_values(work);
}

/* False if somebody else has changed the row since the snapshot was taken. */
static bool
write_row(EaRowWork *work)
{
	ItemPointerData tid = work->before->tts_tid;
	EaUpdateIndexes indexes;
	LockTupleMode lock;
	TM_FailureData failure;

	if (table_tuple_update(work->relation, &tid, work->after,
						   GetCurrentCommandId(true), GetActiveSnapshot(),
						   InvalidSnapshot, true, &failure, &lock,
						   &indexes) != TM_Ok)
		return false;
	if (indexes != EA_UPDATE_NO_INDEX)
		ea_row_insert_entries(work, &indexes);
	return true;
}

static bool
write_update(EaRowWork *work, uint64 *nrows)
{
	CheckCmdReplicaIdentity(work->relation, CMD_UPDATE);
	if (!find_row(work))
		return true;
	if (is_own_row(work))
		return false;
	make_row(work);
	if (!ea_row_is_fine(work) || !write_row(work))
		return false;
	*nrows = 1;
	return true;
}

const EaRowKind ea_key_update = {
	CMD_UPDATE, sizeof(KeyUpdate), read_update, write_update
};
