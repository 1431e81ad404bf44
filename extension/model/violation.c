/*
 * A violated constraint and the field it speaks of.
 *
 * The definition of an entity has the names of what was made for it.  An
 * existing table has constraints of its own, which may change their names at
 * any time, so they are looked up when one of them is violated.
 *
 * On a shard all names end in its number.  What another node refused comes
 * with these in its message alone; what this one did, as it ran for Citus, has
 * them where they always are.  Tables here are as the shards are, so the names
 * are looked for that the message, or the field, has in this form.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/distributed.h"
#include "engine/shard_name.h"
#include "model/violation.h"

/* The first field of these columns; the key's own columns are none. */
static EaField *
field_of_columns(EaEntity *entity, Oid relid, const int16 *numbers, int n)
{
	for (int k = 0; k < n; k++)
	{
		char	   *name = numbers[k] <= 0 ? NULL :
		get_attname(relid, numbers[k], true);

		for (int i = 0; name != NULL && i < entity->nfields; i++)
		{
			EaField    *field = &entity->fields[i];
			const char *quoted = quote_identifier(name);

			for (int c = 0; c < field->ncolumns; c++)
			{
				if (strcmp(field->columns[c].name, quoted) == 0)
					return field;
			}
		}
	}
	return NULL;
}

static EaField *
field_of_constraint(EaEntity *entity, Oid relid, Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	EaField    *field = NULL;
	Datum		key;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	key = SysCacheGetAttr(CONSTROID, tuple, Anum_pg_constraint_conkey,
						  &isnull);
	if (!isnull)
	{
		ArrayType  *numbers = DatumGetArrayTypeP(key);

		field = field_of_columns(entity, relid,
								 (int16 *) ARR_DATA_PTR(numbers),
								 ArrayGetNItems(ARR_NDIM(numbers),
												ARR_DIMS(numbers)));
	}
	ReleaseSysCache(tuple);
	return field;
}

/* A unique index that no constraint stands for. */
static EaField *
field_of_index(EaEntity *entity, Oid relid, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	EaField    *field = NULL;
	Form_pg_index form;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_index) GETSTRUCT(tuple);
	if (form->indrelid == relid)
		field = field_of_columns(entity, relid, form->indkey.values,
								 form->indnkeyatts);
	ReleaseSysCache(tuple);
	return field;
}

/* -------- on a shard -------- */

/* What the error says of names: a field that has one, or the message. */
static const char *
words(const char *name, const ErrorData *edata)
{
	return name != NULL ? name : edata->message;
}

static EaField *
field_on_shard(EaEntity *entity, const ErrorData *edata)
{
	const char *text = words(edata->constraint_name, edata);

	for (int i = 0; i < entity->nconstraints; i++)
	{
		if (ea_shard_name_is_in(text, entity->constraints[i].name))
			return entity->constraints[i].field;
	}
	return NULL;
}

static Oid
table_oid(const EaEntity *entity)
{
	List	   *names = ea_compat_qualified_name(entity->table);

	return RangeVarGetRelid(makeRangeVarFromNameList(names), NoLock, true);
}

/* The constraint of the table that the error names. */
static Oid
named_constraint(Oid relid, const char *text)
{
	Relation	rel = table_open(ConstraintRelationId, AccessShareLock);
	Oid			found = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, ConstraintRelidTypidNameIndexId, true, NULL,
							  1, &key);
	while (!OidIsValid(found) &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (ea_shard_name_is_in(text, NameStr(form->conname)))
			found = form->oid;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

static Oid
named_index(Oid relid, const char *text)
{
	Relation	rel = table_open(relid, AccessShareLock);
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		const char *name = get_rel_name(lfirst_oid(lc));

		if (name != NULL && ea_shard_name_is_in(text, name))
			found = lfirst_oid(lc);
	}
	table_close(rel, AccessShareLock);
	return found;
}

/* The column that must not be null; no number of a shard is behind it. */
static EaField *
named_column(EaEntity *entity, Oid relid, const char *text)
{
	Relation	rel = table_open(relid, AccessShareLock);
	int16		number = InvalidAttrNumber;

	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped &&
			ea_shard_name_is_in(text, NameStr(att->attname)))
			number = att->attnum;
	}
	table_close(rel, AccessShareLock);
	return field_of_columns(entity, relid, &number, 1);
}

static EaField *
field_of_existing_on_shard(EaEntity *entity, const ErrorData *edata)
{
	const char *text = words(edata->constraint_name, edata);
	Oid			relid = table_oid(entity);
	Oid			found;

	if (!OidIsValid(relid))
		return NULL;
	if (edata->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION)
		return named_column(entity, relid, words(edata->column_name, edata));
	found = named_constraint(relid, text);
	if (OidIsValid(found))
		return field_of_constraint(entity, relid, found);
	return field_of_index(entity, relid, named_index(relid, text));
}

/* A unique key's message names the key alone. */
static bool
is_of_on_shard(const EaEntity *entity, const ErrorData *edata)
{
	Oid			relid = table_oid(entity);
	char	   *name = OidIsValid(relid) ? get_rel_name(relid) : NULL;
	const char *text = words(edata->constraint_name, edata);

	return name != NULL &&
		(ea_shard_name_is_in(words(edata->table_name, edata), name) ||
		 OidIsValid(named_constraint(relid, text)) ||
		 OidIsValid(named_index(relid, text)));
}

/* -------- of an existing table -------- */

bool
ea_violation_is_of(EaEntity *entity, const ErrorData *edata)
{
	if (entity == NULL || !entity->existing)
		return false;
	if (ea_distributed())
		return is_of_on_shard(entity, edata);
	return edata->schema_name != NULL && edata->table_name != NULL &&
		strcmp(quote_qualified_identifier(edata->schema_name,
										  edata->table_name),
			   entity->table) == 0;
}

static EaField *
field_of_existing(EaEntity *entity, const ErrorData *edata)
{
	Oid			relid;
	Oid			constraint;
	int16		number;

	if (!ea_violation_is_of(entity, edata))
		return NULL;
	relid = get_relname_relid(edata->table_name,
							  get_namespace_oid(edata->schema_name, true));
	if (!OidIsValid(relid))
		return NULL;
	if (edata->constraint_name == NULL)
	{
		number = edata->column_name == NULL ? InvalidAttrNumber :
			get_attnum(relid, edata->column_name);
		return field_of_columns(entity, relid, &number, 1);
	}
	constraint = get_relation_constraint_oid(relid, edata->constraint_name,
											 true);
	if (OidIsValid(constraint))
		return field_of_constraint(entity, relid, constraint);
	return field_of_index(entity, relid,
						  get_relname_relid(edata->constraint_name,
											get_rel_namespace(relid)));
}

EaField *
ea_violation_field(EaEntity *entity, const ErrorData *edata)
{
	if (entity == NULL)
		return NULL;
	if (ea_distributed())
		return entity->existing ? field_of_existing_on_shard(entity, edata) :
			field_on_shard(entity, edata);
	if (entity->existing)
		return field_of_existing(entity, edata);
	if (edata->constraint_name == NULL)
		return NULL;
	for (int i = 0; i < entity->nconstraints; i++)
	{
		if (strcmp(entity->constraints[i].name, edata->constraint_name) == 0)
			return entity->constraints[i].field;
	}
	return NULL;
}
