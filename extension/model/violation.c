/*
 * The definition of an entity has the names of the objects made for it.  A
 * table can have more: others add constraints, existing tables have their own,
 * and PostgreSQL itself has indexes of other names for a while, or for good,
 * when one is built anew (REINDEX CONCURRENTLY).  So a name that is not among
 * them is looked up in the system catalogs, by the error's table.
 *
 * On a shard all names end in its number.  An error of another node has these
 * in its message alone; one of this node, as it ran for Citus, has them where
 * they always are.  Tables here are as the shards are, so the names are looked
 * for that the message, or the field, has in this form.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "cluster/distributed.h"
#include "cluster/shard_name.h"
#include "engine/exec.h"
#include "model/constraint_field.h"
#include "model/violation.h"
#include "request/raised.h"

/* The relationship whose join table it is, that being written first. */
static EaField *
field_of_join(const EaWriting *w, EaEntity *entity, const char *qualified)
{
	if (w->links != NULL && strcmp(w->links->join_table, qualified) == 0)
		return w->links;
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (field->join_table != NULL &&
			strcmp(field->join_table, qualified) == 0)
			return field;
	}
	return NULL;
}

/* -------- on a shard -------- */

/* The error's text about names: a field that has one, or the message. */
static const char *
words(const char *name, const ErrorData *edata)
{
	return name != NULL ? name : edata->message;
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
	return ea_constraint_field_of_column(entity, relid, number);
}

static bool
declared_on_shard(EaEntity *entity, const ErrorData *edata, EaViolation *found)
{
	const char *text = words(edata->constraint_name, edata);

	for (int i = 0; i < entity->nconstraints; i++)
	{
		if (!ea_shard_name_is_in(text, entity->constraints[i].name))
			continue;
		found->known = found->declared = true;
		found->field = entity->constraints[i].field;
		return true;
	}
	return false;
}

/* A unique key's message names the key alone. */
static bool
find_of_table_on_shard(EaEntity *entity, Oid relid, const ErrorData *edata,
					   EaViolation *found)
{
	char	   *name = OidIsValid(relid) ? get_rel_name(relid) : NULL;
	const char *text = words(edata->constraint_name, edata);
	Oid			constraint;
	Oid			index;

	if (name == NULL)
		return false;
	found->known = ea_shard_name_is_in(words(edata->table_name, edata), name);
	if (edata->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION)
	{
		if (found->known)
			found->field = named_column(entity, relid,
										words(edata->column_name, edata));
		return found->known;
	}
	constraint = named_constraint(relid, text);
	index = OidIsValid(constraint) ? InvalidOid : named_index(relid, text);
	found->known |= OidIsValid(constraint) || OidIsValid(index);
	if (OidIsValid(constraint))
		found->field = ea_constraint_field(entity, relid, constraint, false);
	else if (OidIsValid(index))
		found->field = ea_constraint_field_of_index(entity, relid, index);
	return found->known;
}

static void
find_on_shard(const EaWriting *w, const ErrorData *edata, EaViolation *found)
{
	EaEntity   *entity = w->entity;

	if (entity == NULL || declared_on_shard(entity, edata, found) ||
		find_of_table_on_shard(entity, ea_table_find(entity->table), edata,
							   found))
		return;
	if (w->links != NULL &&
		find_of_table_on_shard(entity, ea_table_find(w->links->join_table),
							   edata, found))
		found->field = w->links;
}

/* -------- by the error's fields -------- */

static Oid
relation_of(const ErrorData *edata)
{
	if (edata->schema_name == NULL || edata->table_name == NULL)
		return InvalidOid;
	return get_relname_relid(edata->table_name,
							 get_namespace_oid(edata->schema_name, true));
}

static Oid
table_of(const EaEntity *entity)
{
	return get_relname_relid(entity->table_name,
							 get_namespace_oid(entity->schema_name, true));
}

static bool
is_table_of(const EaEntity *entity, const ErrorData *edata)
{
	return edata->schema_name != NULL && edata->table_name != NULL &&
		strcmp(edata->schema_name, entity->schema_name) == 0 &&
		strcmp(edata->table_name, entity->table_name) == 0;
}

/* -------- of a partition -------- */

/*
 * The name of the parent's constraint or index that one of the partition comes
 * of; NULL if it is the partition's alone.
 */
static char *
name_above(Oid relid, Oid parent, char *name)
{
	Oid			constraint = get_relation_constraint_oid(relid, name, true);
	Oid			index = get_relname_relid(name, get_rel_namespace(relid));
	HeapTuple	tuple = OidIsValid(constraint) ?
	SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint)) : NULL;
	Oid			above = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		above = ((Form_pg_constraint) GETSTRUCT(tuple))->conparentid;
		ReleaseSysCache(tuple);
	}
	if (OidIsValid(above))
		return get_constraint_name(above);
	if (OidIsValid(index) && get_rel_relispartition(index))
		return get_rel_name(get_partition_parent(index, true));

	/* checks have the same name */
	return OidIsValid(get_relation_constraint_oid(parent, name, true)) ?
		name : NULL;
}

/*
 * The error as one of the table that the statement named: PostgreSQL tells of
 * the partition, by the names that this has.
 */
static const ErrorData *
tell_of_root(const ErrorData *edata, ErrorData *copy)
{
	Oid			relid = relation_of(edata);

	if (!OidIsValid(relid) || !get_rel_relispartition(relid) ||
		get_rel_relkind(relid) == RELKIND_INDEX)
		return edata;
	*copy = *edata;
	while (get_rel_relispartition(relid))
	{
		Oid			parent = get_partition_parent(relid, true);

		CHECK_FOR_INTERRUPTS();
		if (!OidIsValid(parent))
			return edata;
		if (copy->constraint_name != NULL)
			copy->constraint_name = name_above(relid, parent,
											   copy->constraint_name);
		relid = parent;
	}
	copy->table_name = get_rel_name(relid);
	copy->schema_name = get_namespace_name(get_rel_namespace(relid));
	return copy->table_name == NULL || copy->schema_name == NULL ? edata :
		copy;
}

bool
ea_violation_no_partition(EaRequest *req, const ErrorData *edata)
{
	const EaEntity *entity = req->writing.entity;
	Oid			relid = relation_of(edata);
	ErrorData	copy;

	return entity != NULL && entity->of_application &&
		edata->sqlerrcode == ERRCODE_CHECK_VIOLATION &&
		edata->constraint_name == NULL && OidIsValid(relid) &&
		get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE &&
		!ea_raised_by_trigger(req, edata) &&
		is_table_of(entity, tell_of_root(edata, &copy));
}

static bool
is_declared(EaEntity *entity, const ErrorData *edata, EaViolation *found)
{
	for (int i = 0; i < entity->nconstraints; i++)
	{
		if (strcmp(entity->constraints[i].name, edata->constraint_name) != 0)
			continue;
		found->declared = true;
		found->field = entity->constraints[i].field;
		return true;
	}
	return false;
}

/*
 * The table is the entity's.  An index can be gone by now, when one that was
 * built anew has taken its place; it was the table's all the same, unless a
 * trigger only says so.
 */
static bool
find_in_table(EaEntity *entity, Oid relid, const ErrorData *edata,
			  bool by_trigger, EaViolation *found)
{
	Oid			constraint;
	Oid			index;

	if (edata->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION)
	{
		if (edata->column_name == NULL)
			return !by_trigger;
		found->field =
			ea_constraint_field_of_column(entity, relid,
										  get_attnum(relid,
													 edata->column_name));
		return true;
	}
	if (edata->constraint_name == NULL)
		return !by_trigger;
	if (is_declared(entity, edata, found))
		return true;
	constraint = get_relation_constraint_oid(relid, edata->constraint_name,
											 true);
	if (OidIsValid(constraint))
	{
		found->field = ea_constraint_field(entity, relid, constraint, false);
		found->id = ea_constraint_is_of_id(entity, relid, constraint,
										   InvalidOid);
		return true;
	}
	index = get_relname_relid(edata->constraint_name,
							  get_rel_namespace(relid));
	if (OidIsValid(index))
	{
		found->field = ea_constraint_field_of_index(entity, relid, index);
		found->id = ea_constraint_is_of_id(entity, relid, InvalidOid, index);
	}
	return OidIsValid(index) || !by_trigger;
}

/*
 * A foreign key of another table, that leads to the entity's, or to a join
 * table of an application whose links are written.
 */
static bool
find_referring(const EaWriting *w, Oid relid, const ErrorData *edata,
			   EaViolation *found)
{
	Oid			table = table_of(w->entity);
	Oid			join = w->links != NULL && w->links->through ?
	ea_table_find(w->links->join_table) : InvalidOid;
	Oid			constraint = edata->constraint_name == NULL ? InvalidOid :
	get_relation_constraint_oid(relid, edata->constraint_name, true);
	HeapTuple	tuple;
	Oid			far;

	if (!OidIsValid(constraint))
		return false;
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	if (!HeapTupleIsValid(tuple))
		return false;
	far = ((Form_pg_constraint) GETSTRUCT(tuple))->confrelid;
	ReleaseSysCache(tuple);
	found->referred = OidIsValid(far) && (far == table || far == join);
	if (found->referred)
		found->field = far == table ?
			ea_constraint_field(w->entity, table, constraint, true) :
			w->links;
	return found->referred;
}

/* The type of a column refuses: no table is named. */
static bool
find_domain(EaEntity *entity, const ErrorData *edata, EaViolation *found)
{
	Oid			schema = edata->schema_name == NULL ? InvalidOid :
	get_namespace_oid(edata->schema_name, true);
	Oid			domain;
	Oid			table;

	if (edata->datatype_name == NULL || !OidIsValid(schema))
		return false;
	domain = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
							 CStringGetDatum(edata->datatype_name),
							 ObjectIdGetDatum(schema));
	table = table_of(entity);
	return OidIsValid(domain) && OidIsValid(table) &&
		ea_constraint_of_domain(entity, table, domain, &found->field);
}

static bool
find_of_entity(const EaWriting *w, const ErrorData *edata, bool by_trigger,
			   EaViolation *found)
{
	EaEntity   *entity = w->entity;
	Oid			relid = relation_of(edata);
	char	   *name;
	EaField    *join;

	if (!OidIsValid(relid))
		return !by_trigger && find_domain(entity, edata, found);
	if (is_table_of(entity, edata))
		return find_in_table(entity, relid, edata, by_trigger, found);
	name = quote_qualified_identifier(edata->schema_name, edata->table_name);
	join = field_of_join(w, entity, name);
	if (join == NULL)
		return find_referring(w, relid, edata, found);
	if (edata->constraint_name == NULL ||
		!is_declared(entity, edata, found))
		found->field = join;
	return true;
}

/* Keys of an application's join table may wait for the end. */
static bool
is_through_of(const EaWriting *w, EaEntity *entity, const ErrorData *edata)
{
	const EaField *join = edata->schema_name == NULL ||
		edata->table_name == NULL ? NULL :
		field_of_join(w, entity,
					  quote_qualified_identifier(edata->schema_name,
												 edata->table_name));

	return join != NULL && join->through;
}

static bool
is_of_entity(EaEntity *entity, const ErrorData *edata)
{
	EaWriting	w = {.entity = entity};
	EaViolation found = {0};

	if (ea_distributed())
		return (edata->table_name == NULL ||
				ea_shard_name_is_in(edata->table_name, entity->table_name)) &&
			declared_on_shard(entity, edata, &found);
	if (edata->constraint_name == NULL)
		return false;
	return is_table_of(entity, edata) ?
		find_of_entity(&w, edata, true, &found) :
		is_through_of(&w, entity, edata);
}

/*
 * A constraint that waited for the end may be of any table that was written:
 * its fields are no part of the request.
 */
static bool
is_of_any(EaRequest *req, const ErrorData *edata)
{
	ListCell   *lc;

	if (req->catalog == NULL)
		return false;
	foreach(lc, ea_catalog_loaded(req->catalog))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_of_entity(lfirst(lc), edata))
			return true;
	}
	return false;
}

void
ea_violation_find(EaRequest *req, const ErrorData *edata, EaViolation *found)
{
	EaWriting  *w = &req->writing;
	ErrorData	copy;

	edata = tell_of_root(edata, &copy);
	memset(found, 0, sizeof(*found));
	if (ea_distributed())
		find_on_shard(w, edata, found);
	else if (w->entity != NULL)
		found->known = find_of_entity(w, edata,
									  ea_raised_by_trigger(req, edata), found);
	if (!found->known && (w->entity == NULL || !ea_raised_here(req, edata)))
		found->known = is_of_any(req, edata);
}

/* -------- by the message -------- */

void
ea_violation_find_index(EaRequest *req, const ErrorData *edata,
						EaViolation *found)
{
	EaEntity   *entity = req->writing.entity;
	const char *text = words(edata->constraint_name, edata);
	Oid			relid;
	Oid			index;

	memset(found, 0, sizeof(*found));
	if (entity == NULL || (edata->table_name != NULL && !ea_distributed() &&
						   !is_table_of(entity, edata)))
		return;
	relid = table_of(entity);
	index = OidIsValid(relid) ? named_index(relid, text) : InvalidOid;
	found->known = OidIsValid(index);
	if (found->known)
		found->field = ea_constraint_field_of_index(entity, relid, index);
}

EaField *
ea_violation_unwritable(EaRequest *req, const ErrorData *edata)
{
	EaEntity   *entity = req->writing.entity;
	Oid			relid = entity == NULL ? InvalidOid : table_of(entity);
	EaField    *field = NULL;
	Relation	rel;

	if (!OidIsValid(relid))
		return NULL;
	rel = table_open(relid, AccessShareLock);
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped &&
			(att->attgenerated != '\0' ||
			 att->attidentity == ATTRIBUTE_IDENTITY_ALWAYS) &&
			ea_shard_name_is_in(edata->message, NameStr(att->attname)))
			field = ea_constraint_field_of_column(entity, relid, att->attnum);
	}
	table_close(rel, AccessShareLock);
	return field;
}
