#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "nodes/bitmapset.h"
#include "nodes/nodes.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "model/constraint_field.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"

/* The field of the columns so far. */
typedef struct About
{
	EaEntity   *entity;
	Oid			relid;
	EaField    *field;
	bool		none;			/* several fields, or the whole row */
} About;

static EaField *
field_of(const About *about, const char *column)
{
	const char *quoted = quote_identifier(column);

	for (int i = 0; i < about->entity->nfields; i++)
	{
		EaField    *field = &about->entity->fields[i];

		for (int c = 0; c < field->ncolumns; c++)
		{
			if (ea_columns_find(field->columns[c].name, quoted) >= 0)
				return field;
		}
	}
	return NULL;
}

/* 0 is the whole row; system columns are below. */
static void
add_column(About *about, int number)
{
	char	   *name;
	EaField    *field;

	if (number == 0)
		about->none = true;
	if (number <= 0)
		return;
	name = get_attname(about->relid, number, true);
	field = name == NULL ? NULL : field_of(about, name);
	if (field == NULL || field == about->field)
		return;
	about->none |= about->field != NULL;
	about->field = field;
}

static EaField *
only_field(const About *about)
{
	return about->none ? NULL : about->field;
}

/* -------- of an index -------- */

/* The expressions of an index, in whose keys 0 stands for each of them. */
static void
add_expressions(About *about, HeapTuple index)
{
	bool		isnull;
	Datum		trees = SysCacheGetAttr(INDEXRELID, index,
										Anum_pg_index_indexprs, &isnull);
	Bitmapset  *columns = NULL;
	int			column = -1;

	if (isnull)
		return;
	pull_varattnos(stringToNode(TextDatumGetCString(trees)), 1, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
		add_column(about, column + FirstLowInvalidHeapAttributeNumber);
}

static void
add_index(About *about, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_index) GETSTRUCT(tuple);
	if (form->indrelid == about->relid)
	{
		for (int i = 0; i < form->indnkeyatts; i++)
		{
			if (form->indkey.values[i] != 0)
				add_column(about, form->indkey.values[i]);
		}
		add_expressions(about, tuple);
	}
	ReleaseSysCache(tuple);
}

EaField *
ea_constraint_field_of_index(EaEntity *entity, Oid relid, Oid index)
{
	About		about = {entity, relid};

	add_index(&about, index);
	return only_field(&about);
}

/* -------- of a constraint -------- */

static void
add_columns(About *about, HeapTuple constraint, AttrNumber which)
{
	bool		isnull;
	Datum		columns = SysCacheGetAttr(CONSTROID, constraint, which,
										  &isnull);
	ArrayType  *array;
	int			n;

	if (isnull)
		return;
	array = DatumGetArrayTypeP(columns);
	n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	for (int i = 0; i < n; i++)
		add_column(about, ((int16 *) ARR_DATA_PTR(array))[i]);
}

static bool
is_over(const About *about, const char *columns, const int16 *numbers, int n)
{
	if (n < 2 || ea_columns_count(columns) != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		char	   *name = get_attname(about->relid, numbers[i], false);

		if (ea_columns_find(columns, quote_identifier(name)) < 0)
			return false;
	}
	return true;
}

/*
 * The reference of several columns that a foreign key is of, or NULL: other
 * fields may have some of them, too.
 */
static EaField *
field_of_key(const About *about, HeapTuple constraint)
{
	bool		isnull;
	Datum		numbers = SysCacheGetAttr(CONSTROID, constraint,
										  Anum_pg_constraint_conkey, &isnull);
	ArrayType  *array = DatumGetArrayTypeP(numbers);

	for (int i = 0; i < about->entity->nfields; i++)
	{
		EaField    *field = &about->entity->fields[i];

		if (field->ncolumns > 0 &&
			is_over(about, field->columns[0].name,
					(int16 *) ARR_DATA_PTR(array),
					ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array))))
			return field;
	}
	return NULL;
}

EaField *
ea_constraint_field(EaEntity *entity, Oid relid, Oid constraint,
					bool referred)
{
	About		about = {entity, relid};
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	Form_pg_constraint form;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	if (!referred && form->contype == CONSTRAINT_FOREIGN)
		about.field = field_of_key(&about, tuple);
	if (about.field != NULL)
		;						/* it is over these columns alone */
	else if (referred)
		add_columns(&about, tuple, Anum_pg_constraint_confkey);
	else if (form->contype == CONSTRAINT_FOREIGN ||
			 form->contype == CONSTRAINT_CHECK)
		add_columns(&about, tuple, Anum_pg_constraint_conkey);
	else
		add_index(&about, form->conindid);
	ReleaseSysCache(tuple);
	return only_field(&about);
}

/* The id alone, or, as an application may have it, with the tenant */
static bool
is_of_id(EaEntity *entity, Form_pg_index form)
{
	int			found = 0;

	for (int i = 0; i < form->indnkeyatts; i++)
	{
		int			number = form->indkey.values[i];
		const char *column = number <= 0 ? "" :
			quote_identifier(get_attname(form->indrelid, number, false));

		/* one that names a column twice is unique without the others, too */
		if (ea_columns_find(entity->id_column, column) >= 0)
			found++;
		else if (!entity->of_application ||
				 ea_row_tenant_column(entity) == NULL ||
				 strcmp(column, ea_row_tenant_column(entity)) != 0)
			return false;
	}
	return found == ea_columns_count(entity->id_column);
}

bool
ea_constraint_is_of_id(EaEntity *entity, Oid relid, Oid constraint, Oid index)
{
	HeapTuple	tuple;
	Form_pg_index form;
	bool		is_id;

	if (OidIsValid(constraint))
		index = get_constraint_index(constraint);
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	is_id = form->indrelid == relid && form->indisunique &&
		is_of_id(entity, form);
	ReleaseSysCache(tuple);
	return is_id;
}

/* -------- of a column -------- */

EaField *
ea_constraint_field_of_column(EaEntity *entity, Oid relid, int16 number)
{
	About		about = {entity, relid};

	if (number != 0)
		add_column(&about, number);
	return only_field(&about);
}

/* A domain can be made of another one, which then refuses the value, too. */
static bool
is_made_of(Oid type, Oid domain)
{
	while (OidIsValid(type) && type != domain)
	{
		HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

		if (!HeapTupleIsValid(tuple))
			return false;
		type = ((Form_pg_type) GETSTRUCT(tuple))->typbasetype;
		ReleaseSysCache(tuple);
	}
	return OidIsValid(type);
}

static int
count_columns(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	int			n = 0;

	if (HeapTupleIsValid(tuple))
	{
		n = ((Form_pg_class) GETSTRUCT(tuple))->relnatts;
		ReleaseSysCache(tuple);
	}
	return n;
}

bool
ea_constraint_of_domain(EaEntity *entity, Oid relid, Oid domain,
						EaField **field)
{
	About		about = {entity, relid};
	int			n = count_columns(relid);
	bool		found = false;

	for (int number = 1; number <= n; number++)
	{
		if (!is_made_of(get_atttype(relid, number), domain))
			continue;
		found = true;
		add_column(&about, number);
	}
	*field = only_field(&about);
	return found;
}
