/*
 * Foreign keys of a row that is about to be written.
 *
 * As RI_FKey_check() and the statement in it: the row is looked up in the
 * table alone, not its heirs, as its owner, whom row security does not bind.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/complete_index.h"
#include "engine/reference.h"
#include "engine/scan_keys.h"
#include "engine/steady.h"

struct EaReference
{
	Oid			constraint;
	Oid			table;			/* that it refers to */
	bool		full;			/* all columns are null, or none */
	int			n;

	/* by the columns of the index of the key, in their order */
	AttrNumber	referring[EA_SCAN_KEYS];
	AttrNumber	referred[EA_SCAN_KEYS];
	Oid			families[EA_SCAN_KEYS];
	Oid			types[EA_SCAN_KEYS];
	ScanKeyData keys[EA_SCAN_KEYS]; /* all but the argument */
};

/* A foreign key as the catalog has it. */
typedef struct Declared
{
	int			n;
	AttrNumber	referring[INDEX_MAX_KEYS];
	AttrNumber	referred[INDEX_MAX_KEYS];
	Oid			operators[INDEX_MAX_KEYS];
} Declared;

/* -------- recognition -------- */

static bool
is_plain_index(const EaReference *reference, Relation index)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relam == BTREE_AM_OID && form->indisunique &&
		form->indimmediate && form->indrelid == reference->table &&
		form->indnkeyatts == reference->n;
}

/*
 * The trigger's statement compares by the collation of the column, unless the
 * type of the value has one of its own.
 */
static bool
is_collation(Oid collation, Relation referred, AttrNumber column, Oid type)
{
	Oid			of_type = get_typcollation(type);

	return TupleDescAttr(RelationGetDescr(referred),
						 column - 1)->attcollation == collation &&
		(!OidIsValid(of_type) || of_type == DEFAULT_COLLATION_OID ||
		 of_type == collation);
}

/*
 * The type by which an index compares a column with values of "type" by the
 * operator, or InvalidOid: no conversion is made.
 */
static Oid
type_of_key(Oid family, Oid of_index, Oid type, Oid operator)
{
	if (get_opfamily_member(family, of_index, type,
							BTEqualStrategyNumber) == operator)
		return type;
	if (!IsPolymorphicType(of_index) && IsBinaryCoercible(type, of_index) &&
		get_opfamily_member(family, of_index, of_index,
							BTEqualStrategyNumber) == operator)
		return of_index;
	return InvalidOid;
}

/* Asked with the table locked: another one may have taken its place before. */
static Oid
index_of(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	Oid			index;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	index = ((Form_pg_constraint) GETSTRUCT(tuple))->conindid;
	ReleaseSysCache(tuple);
	return index;
}

/* The key's column that has this place in the index. */
static bool
read_column(EaReference *reference, const Declared *declared, int place,
			Relation index, Relation referred, Relation referring)
{
	AttrNumber	column = index->rd_index->indkey.values[place];
	Oid			family = index->rd_opfamily[place];
	Oid			collation = index->rd_indcollation[place];
	Oid			function;
	Oid			of_value;
	Oid			type;
	int			i = 0;

	while (i < declared->n && declared->referred[i] != column)
		i++;
	if (i == declared->n || column < 1)
		return false;
	of_value = TupleDescAttr(RelationGetDescr(referring),
							 declared->referring[i] - 1)->atttypid;
	type = type_of_key(family, index->rd_opcintype[place], of_value,
					   declared->operators[i]);
	function = get_opcode(declared->operators[i]);
	if (!OidIsValid(type) || function >= FirstUnpinnedObjectId ||
		family >= FirstUnpinnedObjectId || !ea_steady_type(of_value) ||
		!is_collation(collation, referred, column, of_value))
		return false;
	reference->referring[place] = declared->referring[i];
	reference->referred[place] = column;
	reference->families[place] = family;
	reference->types[place] = index->rd_opcintype[place];
	ScanKeyEntryInitialize(&reference->keys[place], 0, place + 1,
						   BTEqualStrategyNumber, type, collation, function,
						   (Datum) 0);
	return true;
}

static bool
read_columns(EaReference *reference, const Declared *declared,
			 Relation referred, Relation referring)
{
	Oid			oid = index_of(reference->constraint);
	Relation	index;
	bool		fine;

	if (!OidIsValid(oid))
		return false;
	index = index_open(oid, AccessShareLock);
	fine = is_plain_index(reference, index);
	for (int i = 0; fine && i < reference->n; i++)
		fine = read_column(reference, declared, i, index, referred,
						   referring);
	index_close(index, NoLock);
	return fine;
}

static bool
read_constraint(EaReference *reference, Declared *declared)
{
	Datum		oid = ObjectIdGetDatum(reference->constraint);
	HeapTuple	tuple = SearchSysCache1(CONSTROID, oid);
	Form_pg_constraint form;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	reference->table = form->confrelid;
	reference->full = form->confmatchtype == FKCONSTR_MATCH_FULL;
	DeconstructFkConstraintRow(tuple, &declared->n, declared->referring,
							   declared->referred, declared->operators,
							   NULL, NULL, NULL, NULL);
	ReleaseSysCache(tuple);
	reference->n = declared->n;
	return declared->n <= EA_SCAN_KEYS;
}

/*
 * PostgreSQL's own trigger.  One that may wait can be asked now: the row that
 * is there stays for others, and when this transaction itself takes it away,
 * the trigger of that side is asked.
 */
static bool
is_own(const Trigger *trigger)
{
	return trigger->tgisinternal &&
		trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN &&
		OidIsValid(trigger->tgconstraint) &&
		RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_FK;
}

static bool
is_plain_table(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_RELATION &&
		relation->rd_tableam == GetHeapamTableAmRoutine();
}

EaReference *
ea_reference_make(Relation relation, const Trigger *trigger, bool *busy)
{
	EaReference *reference = palloc0(sizeof(EaReference));
	Declared	declared;
	Relation	referred;
	bool		fine;

	reference->constraint = trigger->tgconstraint;
	if (!is_own(trigger) || !read_constraint(reference, &declared))
		return NULL;
	*busy = !ConditionalLockRelationOid(reference->table, RowShareLock);
	if (*busy)
		return NULL;
	referred = table_open(reference->table, NoLock);
	fine = is_plain_table(referred) &&
		read_columns(reference, &declared, referred, relation);
	table_close(referred, NoLock);
	return fine ? reference : NULL;
}

/* -------- the question -------- */

/* What the statement within the trigger would be allowed. */
static bool
may_ask(Relation referred)
{
	Oid			owner = referred->rd_rel->relowner;

	return pg_class_aclcheck(RelationGetRelid(referred), owner,
							 ACL_SELECT) == ACLCHECK_OK &&
		pg_class_aclcheck(RelationGetRelid(referred), owner,
						  ACL_UPDATE) == ACLCHECK_OK &&
		ea_compat_schema_aclcheck(RelationGetNamespace(referred), owner,
								  ACL_USAGE) == ACLCHECK_OK;
}

/* Another index may have taken its place since. */
static bool
is_same_index(const EaReference *reference, Relation index)
{
	if (!is_plain_index(reference, index) || !ea_complete_index_is(index))
		return false;
	for (int i = 0; i < reference->n; i++)
	{
		if (index->rd_index->indkey.values[i] != reference->referred[i] ||
			index->rd_opfamily[i] != reference->families[i] ||
			index->rd_opcintype[i] != reference->types[i] ||
			index->rd_indcollation[i] != reference->keys[i].sk_collation)
			return false;
	}
	return true;
}

static bool
find_row(EaReference *reference, Relation referred, Relation index,
		 ScanKey keys, TupleTableSlot *slot)
{
	IndexScanDesc desc;
	bool		found;

	desc = ea_compat_index_beginscan(referred, index, GetActiveSnapshot(),
									 reference->n);
	index_rescan(desc, keys, reference->n, NULL, 0);
	found = index_getnext_slot(desc, ForwardScanDirection, slot);
	index_endscan(desc);
	return found;
}

static bool
lock_row(Relation referred, TupleTableSlot *slot)
{
	ItemPointerData tid = slot->tts_tid;
	TM_FailureData failure;

	return table_tuple_lock(referred, &tid, GetActiveSnapshot(), slot,
							GetCurrentCommandId(true), LockTupleKeyShare,
							LockWaitBlock,
							TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
							&failure) == TM_Ok;
}

/* While the table is locked nobody takes the index away. */
static bool
find_and_lock(EaReference *reference, Relation referred, ScanKey keys)
{
	Oid			oid = index_of(reference->constraint);
	Relation	index;
	TupleTableSlot *slot;
	bool		fine;

	if (!OidIsValid(oid) || !is_plain_table(referred) || !may_ask(referred))
		return false;
	index = index_open(oid, RowShareLock);
	slot = table_slot_create(referred, NULL);
	fine = is_same_index(reference, index) &&
		find_row(reference, referred, index, keys, slot) &&
		lock_row(referred, slot);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	return fine;
}

/* By their bytes: where these differ, equal values are asked for again. */
static bool
is_as_before(const EaReference *reference, TupleTableSlot *before,
			 TupleTableSlot *row)
{
	for (int i = 0; i < reference->n; i++)
	{
		int			column = reference->referring[i] - 1;
		Form_pg_attribute att = TupleDescAttr(row->tts_tupleDescriptor,
											  column);

		if (before->tts_isnull[column] ||
			!datum_image_eq(before->tts_values[column],
							row->tts_values[column], att->attbyval,
							att->attlen))
			return false;
	}
	return true;
}

bool
ea_reference_holds(EaReference *reference, TupleTableSlot *before,
				   TupleTableSlot *row)
{
	ScanKeyData keys[EA_SCAN_KEYS];
	Relation	referred;
	int			nulls = 0;
	bool		fine;

	for (int i = 0; i < reference->n; i++)
	{
		int			column = reference->referring[i] - 1;

		keys[i] = reference->keys[i];
		keys[i].sk_argument = row->tts_values[column];
		nulls += row->tts_isnull[column];
	}
	if (nulls > 0)
		return !reference->full || nulls == reference->n;
	if (before != NULL && is_as_before(reference, before, row))
		return true;
	referred = table_open(reference->table, RowShareLock);
	fine = find_and_lock(reference, referred, keys);
	table_close(referred, NoLock);
	return fine;
}
