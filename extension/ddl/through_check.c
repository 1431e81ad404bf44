/*
 * Nothing of them is changed.  Their foreign keys may have the actions that
 * their people gave them: links of a row that goes are deleted before it.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ddl/application_check.h"
#include "ddl/drift.h"
#include "ddl/key_columns.h"
#include "ddl/through_check.h"
#include "engine/exec.h"
#include "model/acting_keys.h"
#include "model/application.h"
#include "model/table_check.h"
#include "trust/application_role.h"

/* Something that a join table lacks. */
typedef struct Fault
{
	const EaField *field;		/* the owning side */
	const char *message;
	const char *hint;			/* or NULL */
} Fault;

/* A join table that is looked at. */
typedef struct Look
{
	EaField    *field;
	EaEntity   *target;
	Oid			role;
	Oid			owner;
	Relation	rel;
	List	   *faults;
} Look;

static void
lacks(Look *look, const char *message, const char *hint)
{
	Fault	   *fault = palloc(sizeof(Fault));

	fault->field = look->field;
	fault->message = message;
	fault->hint = hint;
	look->faults = lappend(look->faults, fault);
}

/* The first column of the first row of a query, or NULL. */
static char *
find_text(const char *sql)
{
	if (SPI_execute(sql, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "a look at the catalogs failed");
	return SPI_processed == 0 ? NULL :
		SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* -------- the table -------- */

static bool
is_plain(Look *look)
{
	Form_pg_class form = look->rel->rd_rel;

	if (form->relkind == RELKIND_RELATION && !form->relispartition &&
		form->relpersistence == RELPERSISTENCE_PERMANENT)
		return true;
	lacks(look, psprintf("%s is no ordinary permanent table",
						 look->field->join_table), NULL);
	return false;
}

/* A link is nothing but its two ends. */
static void
check_columns(Look *look)
{
	TupleDesc	desc = RelationGetDescr(look->rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *quoted = quote_identifier(NameStr(att->attname));
		bool		end = strcmp(quoted, look->field->join_near) == 0 ||
			strcmp(quoted, look->field->join_far) == 0;

		if (att->attisdropped)
			continue;
		if (end && !look->field->read_only &&
			(att->attgenerated != '\0' ||
			 att->attidentity == ATTRIBUTE_IDENTITY_ALWAYS))
			lacks(look, psprintf("the column %s is generated and cannot be "
								 "written", quoted),
				  "make the field readOnly");
		if (!end && !look->field->join_served && att->attnotnull &&
			!att->atthasdef && att->attidentity == '\0')
			lacks(look, psprintf("the column %s is not null and without a "
								 "default: no link could be written", quoted),
				  psprintf("give it a default, or make an entity of %s",
						   look->field->join_table));
	}
}

/* -------- its keys -------- */

/*
 * From a column of the join table to the key of an entity.  Where nobody
 * deletes rows there, no action is of interest.
 */
static void
check_key(Look *look, const char *column, const EaIdKey *key, EaEntity *to)
{
	const char *table = look->field->join_table;
	Oid			far = get_relname_relid(to->table_name,
										get_namespace_oid(to->schema_name,
														  true));
	char	   *action;

	if (!OidIsValid(far))
		return;					/* said of the entity */
	if (!ea_id_same_kind(key, &to->key))
		lacks(look, psprintf("refers to a key of %s by a column of another "
							 "type", to->table),
			  psprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s", table,
					   column, format_type_be(to->key.type->oid)));
	action = find_text(psprintf("SELECT f.confdeltype FROM pg_constraint f"
								" WHERE f.contype = 'f'"
								" AND f.conrelid = %u AND f.confrelid = %u"
								" AND f.convalidated"
								" AND cardinality(f.conkey) = 1"
								" AND EXISTS (SELECT FROM pg_attribute a"
								" WHERE a.attrelid = f.conrelid"
								" AND a.attnum = f.conkey[1]"
								" AND quote_ident(a.attname) = %s)"
								" AND EXISTS (SELECT FROM pg_attribute a"
								" WHERE a.attrelid = f.confrelid"
								" AND a.attnum = f.confkey[1]"
								" AND quote_ident(a.attname) = %s)"
								" ORDER BY f.confdeltype IN ('n', 'd')",
								RelationGetRelid(look->rel), far,
								quote_literal_cstr(column),
								quote_literal_cstr(to->id_column)));
	if (action == NULL)
		lacks(look, psprintf("the column %s needs a valid foreign key to the "
							 "key of %s", column, to->table),
			  psprintf("ALTER TABLE %s ADD FOREIGN KEY (%s)"
					   " REFERENCES %s (%s)", table, column, to->table,
					   to->id_column));
	else if (strchr("nd", action[0]) != NULL && ea_acting_keys_deletes(to))
		lacks(look, psprintf("the foreign key of %s is ON DELETE SET %s, "
							 "which leaves the row of a link that has gone",
							 column, action[0] == 'n' ? "NULL" : "DEFAULT"),
			  "let it be NO ACTION, RESTRICT or CASCADE");
}

/* The columns whose rows are of tenants, as names in SQL; or NULL */
static const char *
telling_columns(const Look *look)
{
	const char *near = quote_literal_cstr(look->field->join_near);
	const char *far = quote_literal_cstr(look->field->join_far);

	if (look->field->entity->tenant_scoped && look->target->tenant_scoped)
		return psprintf("%s, %s", near, far);
	return look->field->entity->tenant_scoped ? near :
		look->target->tenant_scoped ? far : NULL;
}

/* Without such a column it would tell tenants of each other's links. */
static void
check_shared(Look *look)
{
	const char *columns = telling_columns(look);
	char	   *name;

	if (columns == NULL || look->field->read_only)
		return;
	name = find_text(psprintf("SELECT c.relname::text FROM pg_index i"
							  " JOIN pg_class c ON c.oid = i.indexrelid"
							  " WHERE i.indrelid = %u"
							  " AND (i.indisunique OR i.indisexclusion)"
							  " AND NOT EXISTS (SELECT FROM unnest("
							  EA_SHARED_NAMES ") n (name)"
							  " WHERE quote_ident(n.name) IN (%s))"
							  " ORDER BY 1", RelationGetRelid(look->rel),
							  columns));
	if (name != NULL)
		lacks(look, psprintf("the unique index or exclusion constraint \"%s\" "
							 "would tell tenants of each other's links", name),
			  "let it have both columns, or make the field readOnly");
}

/* -------- rights -------- */

/* Operations that callers have by any role */
static bool
permits(const EaEntity *entity, int operations)
{
	for (int i = 0; i < entity->npermissions; i++)
	{
		if ((entity->permissions[i].operations & operations) != 0)
			return true;
	}
	return false;
}

/* On the table or, as it is enough for links, on its two columns. */
static bool
has_right(Look *look, AclMode mode)
{
	Oid			relid = RelationGetRelid(look->rel);
	const char *columns[] = {look->field->join_near, look->field->join_far};
	TupleDesc	desc = RelationGetDescr(look->rel);

	if (pg_class_aclcheck(relid, look->role, mode) == ACLCHECK_OK)
		return true;
	for (int i = 0; i < desc->natts && mode != ACL_DELETE; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		for (int c = 0; c < lengthof(columns) && !att->attisdropped; c++)
		{
			if (strcmp(quote_identifier(NameStr(att->attname)),
					   columns[c]) == 0 &&
				pg_attribute_aclcheck(relid, att->attnum, look->role,
									  mode) != ACLCHECK_OK)
				return false;
		}
	}
	return mode != ACL_DELETE;
}

static void
check_rights(Look *look)
{
	EaEntity   *entity = look->field->entity;
	bool		set = !look->field->read_only;
	bool		goes = !look->field->join_served &&
		(ea_acting_keys_deletes(entity) ||
		 ea_acting_keys_deletes(look->target));
	const char *name = GetUserNameFromId(look->role, false);
	const struct
	{
		bool		needed;
		AclMode		mode;
		const char *words;
		const char *why;
	}			rights[] = {
		{true, ACL_SELECT, "SELECT", "read links"},
		{set && permits(entity, EA_OP_CREATE | EA_OP_UPDATE), ACL_INSERT,
		"INSERT", "make links"},
		{goes || (set && permits(entity, EA_OP_UPDATE)), ACL_DELETE, "DELETE",
		"delete links"}
	};
	Oid			relid = RelationGetRelid(look->rel);
	List	   *missing = ea_ddl_missing_usage(relid, look->role);
	ListCell   *lc;

	for (int i = 0; i < lengthof(rights); i++)
	{
		if (rights[i].needed && !has_right(look, rights[i].mode))
			lacks(look, psprintf("%s may not %s", quote_identifier(name),
								 rights[i].why),
				  psprintf("GRANT %s ON %s TO %s", rights[i].words,
						   look->field->join_table, quote_identifier(name)));
	}
	if (rights[1].needed)
		missing = list_concat(missing,
							  ea_ddl_missing_sequences(relid, look->role));
	foreach(lc, missing)
	{
		const EaDdlMissing *one = lfirst(lc);

		lacks(look, one->message, one->hint);
	}
}

/* -------- all of it -------- */

static void
look_at(Look *look)
{
	EaField    *field = look->field;
	const char *why;
	ListCell   *lc;

	if (!is_plain(look))
		return;
	foreach(lc, ea_application_table_faults(look->rel, look->role,
											look->owner, false,
											field->join_hides))
		lacks(look, lfirst(lc), NULL);
	check_rights(look);
	why = ea_table_check_join_fault(field, look->rel);
	if (why != NULL)
	{
		lacks(look, why, NULL);
		return;
	}
	check_columns(look);
	check_key(look, field->join_near, &field->join_near_key, field->entity);
	check_key(look, field->join_far, &field->members[0].key, look->target);
	check_shared(look);
}

/* False: it is locked, and not to be waited for. */
static bool
open_table(Look *look, bool wait)
{
	Oid			relid = ea_table_find(look->field->join_table);

	if (OidIsValid(relid) && !wait &&
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	look->rel = OidIsValid(relid) ?
		try_relation_open(relid, wait ? AccessShareLock : NoLock) : NULL;
	if (look->rel == NULL)
		lacks(look, psprintf("there is no table %s", look->field->join_table),
			  NULL);
	return look->rel != NULL;
}

static void
look_from(Look *look, EaEntity *entity, bool wait)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		look->field = &entity->fields[i];
		if (!look->field->through || look->field->mapped_by != NULL)
			continue;
		look->target = ea_catalog_target(look->field, 0);
		if (!open_table(look, wait))
			continue;
		look_at(look);
		relation_close(look->rel, NoLock);
	}
}

static List *
find_faults(const EaDdlState *state, EaCatalog *catalog, Oid role, Oid owner,
			bool wait)
{
	Look		look = {NULL, NULL, role, owner};
	ListCell   *lc;

	foreach(lc, state->tables)
	{
		const EaDdlTable *table = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (table->of_application)
			look_from(&look, ea_catalog_entity(catalog, table->entity), wait);
	}
	return look.faults;
}

void
ea_ddl_check_through(EaDdlPlan *plan)
{
	ListCell   *lc;

	if (!OidIsValid(plan->application_role))
		return;					/* said at the role */
	foreach(lc, find_faults(plan->to, plan->wanted, plan->application_role,
							plan->application_owner, true))
	{
		const Fault *fault = lfirst(lc);
		const EaField *field = fault->field;

		ea_ddl_fault(plan, ea_names_map_get(plan->to->by_key,
											field->entity->name),
					 field->name, fault->message, fault->hint);
	}
}

List *
ea_ddl_through_differences(EaDdlState *stored, EaCatalog *catalog)
{
	const EaApplicationModel *application = catalog->application;
	List	   *differences = NIL;
	ListCell   *lc;

	/* a role that is not to be used is told of first, and alone */
	if (application == NULL ||
		ea_application_named_fault(application->role_oid,
								   application->role) != NULL)
		return NIL;
	foreach(lc, find_faults(stored, catalog, application->role_oid,
							application->owner, false))
	{
		const Fault *fault = lfirst(lc);
		const EaField *field = fault->field;
		EaDdlDifference *difference = palloc0(sizeof(EaDdlDifference));

		difference->table = ea_names_map_get(stored->by_key,
											 field->entity->name);
		difference->message = psprintf("the join table %s of %s.%s: %s",
									   field->join_table, field->entity->name,
									   field->name, fault->message);
		difference->hint = fault->hint != NULL ? fault->hint : EA_DDL_MEND;
		differences = lappend(differences, difference);
	}
	return differences;
}
