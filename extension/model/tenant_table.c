/*
 * Each id is one row's, so there is a unique index over this column alone.  A
 * row that cannot be seen would be taken for one that has gone: so nothing may
 * hide any.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "model/application.h"
#include "model/tenant_table.h"
#include "trust/owner.h"

Oid
ea_tenant_table_relation(const EaTenantTable *table)
{
	Oid			schema = get_namespace_oid(table->schema, true);

	return OidIsValid(schema) ? get_relname_relid(table->table, schema) :
		InvalidOid;
}

char *
ea_tenant_table_qualified(const EaTenantTable *table)
{
	return quote_qualified_identifier(table->schema, table->table);
}

/* -------- faults -------- */

typedef struct Look
{
	const EaTenantTable *table;
	Relation	rel;
	Oid			role;
	List	   *faults;
} Look;

static void
add_fault(Look *look, const char *part, char *message, char *hint)
{
	EaTenantFault *fault = palloc(sizeof(EaTenantFault));

	fault->part = part;
	fault->message = message;
	fault->hint = hint;
	look->faults = lappend(look->faults, fault);
}

/* NULL, and a fault, where it is not there. */
static Form_pg_attribute
find_column(Look *look, const char *part, const char *name)
{
	TupleDesc	desc = RelationGetDescr(look->rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped &&
			strcmp(NameStr(attribute->attname), name) == 0)
			return attribute;
	}
	add_fault(look, part, psprintf("there is no column \"%s\"", name), NULL);
	return NULL;
}

/* The role reads nothing but these two columns. */
static void
check_right(Look *look, const Form_pg_attribute attribute)
{
	const char *name;

	if (!OidIsValid(look->role) ||
		pg_class_aclcheck(RelationGetRelid(look->rel), look->role,
						  ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck(RelationGetRelid(look->rel), attribute->attnum,
							  look->role, ACL_SELECT) == ACLCHECK_OK)
		return;
	name = quote_identifier(GetUserNameFromId(look->role, false));
	add_fault(look, "table",
			  psprintf("%s may not read its column \"%s\"", name,
					   NameStr(attribute->attname)),
			  psprintf("GRANT SELECT ON %s TO %s",
					   ea_tenant_table_qualified(look->table), name));
}

static bool
is_of_id(Oid index, AttrNumber id)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		is;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	is = form->indisunique && form->indisvalid && form->indimmediate &&
		form->indnkeyatts == 1 && form->indkey.values[0] == id &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
	ReleaseSysCache(tuple);
	return is;
}

static void
check_id(Look *look)
{
	const Form_pg_attribute attribute = find_column(look, "id",
													look->table->id);
	List	   *indexes;
	ListCell   *lc;
	bool		unique = false;

	if (attribute == NULL)
		return;
	check_right(look, attribute);
	if (getBaseType(attribute->atttypid) != UUIDOID)
		add_fault(look, "id",
				  psprintf("the column \"%s\" is no uuid", look->table->id),
				  NULL);
	if (!attribute->attnotnull)
		add_fault(look, "id",
				  psprintf("the column \"%s\" takes null", look->table->id),
				  psprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
						   ea_tenant_table_qualified(look->table),
						   quote_identifier(look->table->id)));
	indexes = RelationGetIndexList(look->rel);
	foreach(lc, indexes)
		unique |= is_of_id(lfirst_oid(lc), attribute->attnum);
	list_free(indexes);
	if (!unique)
		add_fault(look, "id",
				  psprintf("the column \"%s\" has no primary key or immediate "
						   "unique constraint of its own", look->table->id),
				  psprintf("ALTER TABLE %s ADD UNIQUE (%s)",
						   ea_tenant_table_qualified(look->table),
						   quote_identifier(look->table->id)));
}

/* Its values are texts as they are, so that none is made by code of others. */
static bool
is_text(Oid type)
{
	Oid			base = getBaseType(type);

	return base == BPCHAROID ||
		(get_typtype(base) == TYPTYPE_BASE && get_typlen(base) == -1 &&
		 IsBinaryCoercible(base, TEXTOID));
}

static void
check_name(Look *look)
{
	const Form_pg_attribute attribute = find_column(look, "name",
													look->table->name);

	if (attribute == NULL)
		return;
	check_right(look, attribute);
	if (!is_text(attribute->atttypid))
		add_fault(look, "name",
				  psprintf("the column \"%s\" is no text",
						   look->table->name), NULL);
}

static void
check_usage(Look *look)
{
	Oid			schema = RelationGetNamespace(look->rel);
	const char *name;

	if (!OidIsValid(look->role) ||
		ea_compat_schema_aclcheck(schema, look->role,
								  ACL_USAGE) == ACLCHECK_OK)
		return;
	name = quote_identifier(GetUserNameFromId(look->role, false));
	add_fault(look, "table", psprintf("%s may not use the schema", name),
			  psprintf("GRANT USAGE ON SCHEMA %s TO %s",
					   quote_identifier(look->table->schema), name));
}

List *
ea_tenant_table_faults(const EaTenantTable *table, Relation rel, Oid role,
					   Oid owner)
{
	Look		look = {table, rel, role, NIL};
	ListCell   *lc;

	if (rel == NULL)
	{
		add_fault(&look, "table", psprintf("there is no table %s",
										   ea_tenant_table_qualified(table)),
				  NULL);
		return look.faults;
	}
	if (!ea_application_is_kind(rel->rd_rel->relkind, false))
	{
		add_fault(&look, "table", pstrdup("it is no table"), NULL);
		return look.faults;
	}
	if (rel->rd_rel->relowner == get_role_oid(EA_OWNER, false))
		add_fault(&look, "table", pstrdup("it belongs to " EA_OWNER ", and to "
										  "no application"), NULL);
	else if (OidIsValid(role))
	{
		foreach(lc, ea_application_table_faults(rel, role, owner, false,
												false))
			add_fault(&look, "table", lfirst(lc), NULL);
	}
	check_usage(&look);
	check_id(&look);
	check_name(&look);
	return look.faults;
}
