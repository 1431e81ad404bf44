/*-------------------------------------------------------------------------
 *
 * existing.c
 *	  Existing tables, which others may change at any time.
 *
 * A statement locks its tables anyway; here the lock comes before it, so that
 * what has been looked at stays.  The look is short while nothing changes.
 *
 * extension/existing.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tupdesc.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "existing.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static bool
is_as_seen(TupleDesc seen, TupleDesc now)
{
	if (seen == NULL || seen->natts != now->natts)
		return false;
	for (int i = 0; i < now->natts; i++)
	{
		Form_pg_attribute a = TupleDescAttr(seen, i);
		Form_pg_attribute b = TupleDescAttr(now, i);

		if (a->atttypid != b->atttypid || a->attnotnull != b->attnotnull ||
			a->attisdropped != b->attisdropped ||
			strcmp(NameStr(a->attname), NameStr(b->attname)) != 0)
			return false;
	}
	return true;
}

static void
check_column(EaEntity *entity, TupleDesc desc, const char *quoted, Oid wanted,
			 bool not_null)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Oid			type;

		if (att->attisdropped ||
			strcmp(quote_identifier(NameStr(att->attname)), quoted) != 0)
			continue;
		type = getBaseType(att->atttypid);
		if (type == VARCHAROID)
			type = TEXTOID;
		if (type == wanted && (att->attnotnull || !not_null))
			return;
		break;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("column %s of table %s is not what entity \"%s\" needs",
					quoted, entity->table, entity->name),
			 errhint("Applying the manifests again tells what the table lacks.")));
}

static void
check_columns(EaEntity *entity, TupleDesc desc)
{
	check_column(entity, desc, entity->id_column, UUIDOID, true);
	if (entity->tenant_scoped)
		check_column(entity, desc, entity->tenant_column, UUIDOID, true);
	if (entity->locking)
		check_column(entity, desc, entity->version_column, INT8OID, true);
	if (entity->soft_delete)
		check_column(entity, desc, entity->deleted_column, TIMESTAMPTZOID,
					 false);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (field->kind == EA_ATTRIBUTE)
			check_column(entity, desc, field->column, field->type->oid, false);
		if (field->kind != EA_TO_ONE && field->kind != EA_ONE_OF)
			continue;
		for (int m = 0; m < field->nmembers; m++)
			check_column(entity, desc, field->members[m].column, UUIDOID,
						 false);
	}
}

void
ea_existing_hold(EaEntity *entity)
{
	Oid			namespace = get_namespace_oid(entity->schema_name, true);
	Oid			relid = OidIsValid(namespace) ?
	get_relname_relid(entity->table_name, namespace) : InvalidOid;
	Relation	rel = OidIsValid(relid) ?
	try_relation_open(relid, AccessShareLock) : NULL;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the table %s of entity \"%s\" is gone",
						entity->table, entity->name)));
	if (!is_as_seen(entity->seen, RelationGetDescr(rel)))
	{
		MemoryContext old;

		check_columns(entity, RelationGetDescr(rel));
		old = MemoryContextSwitchTo(entity->catalog->mcxt);
		entity->seen = CreateTupleDescCopy(RelationGetDescr(rel));
		MemoryContextSwitchTo(old);

		/* the copy has no constraints, not null among them */
		for (int i = 0; i < entity->seen->natts; i++)
			TupleDescAttr(entity->seen, i)->attnotnull =
				TupleDescAttr(RelationGetDescr(rel), i)->attnotnull;
	}
	relation_close(rel, NoLock);
}
