/*
 * Statements are written, and their rows read, by the types of the fields.
 * This file checks that a table still has them, be it made for its entity or
 * there before.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "engine/exec.h"
#include "model/application.h"
#include "model/constraint_field.h"
#include "model/held_column.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"
#include "model/table_check.h"
#include "model/table_indexes.h"
#include "model/table_owners.h"

/* A column as a statement takes it to be. */
typedef struct Wanted
{
	const char *table;			/* quoted, as the column is */
	const char *column;
	const char *whose;			/* entity */
	Oid			type;
	bool		not_null;		/* which a view cannot tell */
	bool		view;
	const EaField *field;		/* that limits its values, or NULL */
	bool		is_id;			/* equal values have equal bytes */
} Wanted;

/* A value is stored as it is, neither cut nor rounded. */
static bool
holds_values(const EaField *field, Oid type, int32 typmod)
{
	int32		most = typmod - VARHDRSZ;

	if (field == NULL)
		return true;
	switch (type)
	{
		case NUMERICOID:
			if (!ea_catalog_has_digits(field))
				return typmod < 0 || field->adapted;
			return typmod >= 0 &&
				((most >> 16) & 0xffff) >= field->precision &&
				((most & 0x7ff) ^ 1024) - 1024 == field->scale;
		case BPCHAROID:
			return typmod < 0 || most >= field->max_length;
		case VARCHAROID:
			return typmod < 0 ||
				(field->type->modifier == EA_MODIFIER_LENGTH &&
				 most >= field->max_length);
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return field->adapted || typmod < 0 ||
				typmod >= MAX_TIMESTAMP_PRECISION;
		default:
			return true;
	}
}

static bool
is_as_wanted(Form_pg_attribute att, const Wanted *wanted)
{
	int32		typmod = att->atttypmod;
	Oid			type = getBaseTypeAndTypmod(att->atttypid, &typmod);

	return (type == wanted->type ||
			(type == VARCHAROID && wanted->type == TEXTOID)) &&
		(att->attnotnull || !wanted->not_null || wanted->view) &&
		(!wanted->is_id || !OidIsValid(att->attcollation) ||
		 get_collation_isdeterministic(att->attcollation)) &&
		holds_values(wanted->field, type, typmod);
}

/* By its name, where there is no such type any more. */
static const char *
type_of(const Wanted *wanted)
{
	const EaColumn *column = wanted->field ? &wanted->field->columns[0] : NULL;

	if (column != NULL && column->held_type != NULL &&
		!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(wanted->type)))
		return quote_qualified_identifier(column->held_schema,
										  column->held_type);
	return format_type_be(wanted->type);
}

/* The fault of a column in words, or NULL. */
static const char *
column_fault(TupleDesc desc, const Wanted *wanted)
{
	bool		is_text;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped ||
			strcmp(quote_identifier(NameStr(att->attname)),
				   wanted->column) != 0)
			continue;
		if (is_as_wanted(att, wanted))
			return NULL;
		break;
	}
	is_text = wanted->is_id && OidIsValid(get_typcollation(wanted->type));
	return psprintf("column %s of table %s is not what entity \"%s\" needs: "
					"%s%s%s", wanted->column, wanted->table, wanted->whose,
					type_of(wanted),
					wanted->not_null ? " not null" : "", is_text ?
					", without a nondeterministic collation" : "");
}

/* Of each part; wanted has what is the same of all. */
static const char *
ids_fault(TupleDesc desc, Wanted wanted, const char *columns,
		  const EaIdKey *key)
{
	const char *why = NULL;

	for (int i = 0; why == NULL && i < key->nparts; i++)
	{
		wanted.column = ea_columns_get(columns, i);
		wanted.type = key->parts[i].type->oid;
		why = column_fault(desc, &wanted);
	}
	return why;
}

static const char *
system_columns_fault(const EaEntity *entity, TupleDesc desc)
{
	const struct
	{
		const char *column;
		Oid			type;
		bool		not_null;
	}			columns[] = {
		{entity->id_column, entity->key.type->oid, true},
		{ea_row_tenant_column(entity), UUIDOID, !entity->of_application},
		{entity->locking && !entity->by_xmin ? entity->version_column : NULL,
		INT8OID, true},
		{entity->soft_delete ? entity->deleted_column : NULL, TIMESTAMPTZOID,
		false},
		{entity->soft_delete ? entity->deletion_column : NULL, UUIDOID, false},
		{entity->created_column, TIMESTAMPTZOID, false},
		{entity->updated_column, TIMESTAMPTZOID, false}
	};
	const char *why = NULL;

	for (int i = 0; why == NULL && i < lengthof(columns); i++)
	{
		const Wanted wanted = {
			entity->table, columns[i].column, entity->name, columns[i].type,
			columns[i].not_null, entity->view, NULL, i == 0
		};

		if (i == 0 && entity->key.nparts > 0)
			why = ids_fault(desc, wanted, entity->id_column, &entity->key);
		else if (wanted.column != NULL)
			why = column_fault(desc, &wanted);
	}
	return why;
}

const char *
ea_table_check_fault(const EaEntity *entity, TupleDesc desc)
{
	Wanted		wanted = {entity->table, NULL, entity->name};
	const char *why = system_columns_fault(entity, desc);

	for (int i = 0; why == NULL && i < entity->nfields; i++)
	{
		const EaField *field = &entity->fields[i];

		wanted.field = field->kind == EA_ATTRIBUTE ? field : NULL;
		for (int c = 0; why == NULL && c < field->ncolumns; c++)
		{
			wanted.column = field->columns[c].name;
			wanted.type = field->columns[c].held;
			why = wanted.type == RECORDOID ?
				ids_fault(desc, wanted, wanted.column,
						  &field->members[c].key) :
				column_fault(desc, &wanted);
		}
	}
	return why;
}

/* While the index is there, an id is one row's. */
static bool
keeps_apart(EaEntity *entity, Oid relid, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		keeps;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	keeps = form->indisvalid && form->indimmediate &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
	ReleaseSysCache(tuple);
	return keeps && ea_constraint_is_of_id(entity, relid, InvalidOid, index);
}

const char *
ea_table_check_key_fault(const EaEntity *entity, Relation rel)
{
	List	   *indexes;
	ListCell   *lc;
	bool		apart = false;

	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return NULL;
	indexes = RelationGetIndexList(rel);
	foreach(lc, indexes)
	{
		if (keeps_apart(unconstify(EaEntity *, entity), RelationGetRelid(rel),
						lfirst_oid(lc)))
			apart = true;
	}
	list_free(indexes);
	return apart ? NULL :
		psprintf("table %s has no primary key or immediate unique constraint "
				 "on %s any more, so an id of entity \"%s\" may be that of "
				 "several rows", entity->table,
				 ea_columns_list(entity->id_column), entity->name);
}

const char *
ea_table_check_join_fault(const EaField *field, Relation rel)
{
	const struct
	{
		const char *column;
		Oid			type;
	}			columns[] = {
		{field->join_near, field->join_near_key.type->oid},
		{field->join_far, field->members[0].key.type->oid},
		{ea_catalog_join_is_scoped(field) ? "tenant_id" : NULL, UUIDOID}
	};
	const char *why = NULL;

	for (int i = 0; why == NULL && i < lengthof(columns); i++)
	{
		const Wanted wanted = {
			field->join_table, columns[i].column, field->entity->name,
			columns[i].type, !field->through, false, NULL, field->through
		};

		if (wanted.column != NULL)
			why = column_fault(RelationGetDescr(rel), &wanted);
	}
	if (why != NULL || !field->through)
		return why;
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return psprintf("%s is no ordinary table", field->join_table);
	return field->join_repeats ||
		ea_table_is_unique(rel, field->join_near, field->join_far) ? NULL :
		psprintf("table %s has no immediate unique index over %s and %s any "
				 "more, so that a link could be there twice",
				 field->join_table, field->join_near, field->join_far);
}

static void
require_none(const char *fault)
{
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_internal("%s", fault),
				 errhint("It was altered by hand.  Applying the manifests "
						 "again tells what an existing table lacks; one that "
						 "was made for its entity needs the column back as "
						 "it was.")));
}

/*
 * Types of the application stay those that the declarations were loaded with,
 * or these are loaded anew.
 */
static void
follow_types(EaCatalog *catalog, const EaEntity *entity)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		const EaField *field = &entity->fields[i];
		const EaColumn *column = &field->columns[0];

		if (field->kind != EA_ATTRIBUTE || column->held_type == NULL)
			continue;
		if (ea_held_column_is_moved(column))
		{
			ea_catalog_forget(catalog);
			ea_held_throw();
		}
		ea_held_watch(TYPEOID, column->held);
	}
}

/* How a table of an application is used; by several, as the strictest says */
typedef struct Theirs
{
	bool		is;
	bool		view;
	bool		may_hide;
} Theirs;

static void
note_theirs(Theirs *theirs, bool view, bool may_hide)
{
	theirs->may_hide = may_hide && (!theirs->is || theirs->may_hide);
	theirs->is = true;
	theirs->view = view;
}

/* Compare the table with an entity, if it is one of its tables. */
static bool
check_against(EaCatalog *catalog, const EaEntity *entity, const char *table,
			  Relation rel, Theirs *theirs)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		known = strcmp(entity->table, table) == 0;

	if (known)
	{
		follow_types(catalog, entity);
		require_none(ea_table_check_fault(entity, desc));
		if (entity->of_application)
		{
			require_none(ea_table_check_key_fault(entity, rel));
			note_theirs(theirs, entity->view, entity->row_security);
		}
	}
	for (int i = 0; i < entity->nfields; i++)
	{
		const EaField *field = &entity->fields[i];

		if (field->kind != EA_MANY_TO_MANY ||
			strcmp(field->join_table, table) != 0)
			continue;
		require_none(ea_table_check_join_fault(field, rel));
		if (field->through)
			note_theirs(theirs, false, field->join_hides);
		known = true;
	}
	return known;
}

/* As in statements; a shard is looked at as the table that it is of. */
static char *
name_of(Relation rel)
{
	Oid			shell = ea_distributed() ?
		ea_shards_shell(RelationGetRelid(rel)) : InvalidOid;
	Oid			relid = OidIsValid(shell) ? shell : RelationGetRelid(rel);
	char	   *name = ea_shards_qualified(relid);

	/*
	 * Citus makes its tables anew where it sends their metadata to a node
	 * again
	 */
	if (name == NULL)
		ea_held_throw();
	return name;
}

void
ea_table_check(EaCatalog *catalog, Relation rel)
{
	char	   *table = name_of(rel);
	bool		known = false;
	Theirs		theirs = {false};
	ListCell   *lc;

	foreach(lc, ea_catalog_loaded(catalog))
		known |= check_against(catalog, lfirst(lc), table, rel, &theirs);
	if (!known)
		elog(ERROR, "a statement over the table %s, which is no entity's",
			 table);
	if (theirs.is)
		ea_application_check_table(catalog, rel, theirs.view,
								   theirs.may_hide);
	else
		ea_table_owners_check(rel);
}
