/*
 * A violated constraint and the field it speaks of.
 *
 * The definition of an entity has the names of what was made for it.  An
 * existing table has constraints of its own, which may change their names at
 * any time, so they are looked up when one of them is violated.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

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
field_of_index(EaEntity *entity, Oid relid, const char *name)
{
	Oid			index = get_relname_relid(name, get_rel_namespace(relid));
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

bool
ea_violation_is_of(EaEntity *entity, const ErrorData *edata)
{
	return entity != NULL && entity->existing && edata->schema_name != NULL &&
		edata->table_name != NULL &&
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
	return field_of_index(entity, relid, edata->constraint_name);
}

EaField *
ea_violation_field(EaEntity *entity, const ErrorData *edata)
{
	if (entity == NULL)
		return NULL;
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
