/*
 * Each table has one policy: the tenant's rows, and of them those that the
 * entity's read policies leave.  A reader sees a link if it sees both of its
 * rows.  A column that only some roles may read is not granted, since a right
 * of the database does not depend on the caller.
 *
 * On one node questions about the caller stand in sub-selects, evaluated once
 * a scan and outside of it, so that processes can share it.  With Citus, which
 * takes none, functions remember their answers; and conditions on other rows
 * are asked of the service.
 *
 * A policy stands in the way of changes of the columns it looks at, also
 * those of other tables, and is made anew when there are any.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/policy.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "authz/policy_sql.h"
#include "ddl/plan.h"
#include "ddl/reader_policies.h"
#include "ddl/rows.h"
#include "ddl/tables.h"
#include "model/row_tenant.h"

#define POLICY "entityapi_read"
#define READER "entityapi_reader"
#define OTHERS "entityapi_others"

/* -------- for Citus, which takes no sub-selects -------- */

/* The tenant's rows, by the roles of the caller; an index serves it. */
static void
add_readable(StringInfo buf, EaEntity *entity, const char *tenant_column)
{
	char	   *name = quote_literal_cstr(entity->name);

	if (tenant_column != NULL)
		appendStringInfo(buf, "%s = entityapi.readable_tenant(%s)",
						 tenant_column, name);
	else
		appendStringInfo(buf, "entityapi.caller_reads(%s)", name);
}

static char *
plain_entity_condition(EaEntity *entity)
{
	char	   *name = quote_literal_cstr(entity->name);
	char	   *policies = ea_policy_sql_row_security(entity);
	StringInfoData buf;

	initStringInfo(&buf);
	add_readable(&buf, entity,
				 ea_row_tenant_column(entity));
	if (entity->soft_delete)
		appendStringInfo(&buf, " AND %s IS NULL", entity->deleted_column);
	if (policies == NULL)
		policies = psprintf("entityapi.caller_sees(%s, %s)", name,
							entity->id_column);
	if (strcmp(policies, "true") != 0)
		appendStringInfo(&buf, " AND (entityapi.caller_bypasses(%s) OR (%s))",
						 name, policies);
	return buf.data;
}

/*
 * Foreign keys make sure that a row is there; conditions that hide it are
 * asked.
 */
static void
add_plain_end(StringInfo buf, EaEntity *end, const char *column)
{
	bool		hides = end->soft_delete;

	for (int i = 0; i < end->nrules; i++)
		hides |= (end->rules[i].operations & EA_OP_READ) != 0;
	if (hides)
		appendStringInfo(buf, " AND entityapi.caller_sees(%s, %s)",
						 quote_literal_cstr(end->name), column);
}

static char *
plain_join_condition(EaDdlTable *table, EaEntity *entity, EaField *field)
{
	EaEntity   *far = ea_catalog_target(field, 0);
	StringInfoData buf;

	initStringInfo(&buf);
	add_readable(&buf, entity, table->tenant_scoped ? "tenant_id" : NULL);
	appendStringInfoString(&buf, " AND ");
	add_readable(&buf, far, NULL);
	add_plain_end(&buf, entity, field->join_near);
	add_plain_end(&buf, far, field->join_far);
	return buf.data;
}

/* -------- for one node -------- */

/* The condition of an entity's table. */
static char *
entity_condition(EaEntity *entity)
{
	char	   *name = quote_literal_cstr(entity->name);
	char	   *policies = ea_policy_sql_row_security(entity);
	StringInfoData buf;

	initStringInfo(&buf);
	if (ea_row_tenant_column(entity) != NULL)
		appendStringInfo(&buf,
						 "%s = (SELECT entityapi.current_tenant()) AND ",
						 ea_row_tenant_column(entity));
	if (entity->soft_delete)
		appendStringInfo(&buf, "%s IS NULL AND ", entity->deleted_column);
	if (strcmp(policies, "true") == 0)
		appendStringInfo(&buf, "(SELECT entityapi.caller_reads(%s))", name);
	else
		appendStringInfo(&buf, "((SELECT entityapi.caller_bypasses(%s)) OR "
						 "((SELECT entityapi.caller_reads(%s)) AND %s))",
						 name, name, policies);
	return buf.data;
}

/* The row that a column of a join table points at is visible. */
static void
add_end(StringInfo buf, const EaDdlTable *join, EaEntity *end,
		const char *column)
{
	appendStringInfo(buf, "EXISTS (SELECT 1 FROM %s t0 WHERE ", end->table);
	if (ea_row_tenant_column(end) != NULL)
		appendStringInfo(buf,
						 "t0.%s = (SELECT entityapi.current_tenant()) AND ",
						 ea_row_tenant_column(end));
	appendStringInfo(buf, "t0.%s = %s.%s)", end->id_column, join->qualified,
					 column);
}

static char *
join_condition(EaDdlTable *table, EaEntity *entity, EaField *field)
{
	StringInfoData buf;

	initStringInfo(&buf);
	if (table->tenant_scoped)
		appendStringInfoString(&buf,
							   "tenant_id = "
							   "(SELECT entityapi.current_tenant()) AND ");
	add_end(&buf, table, entity, field->join_near);
	appendStringInfoString(&buf, " AND ");
	add_end(&buf, table, ea_catalog_target(field, 0), field->join_far);
	return buf.data;
}

static char *
condition(EaDdlTable *table, EaEntity *entity)
{
	bool		plain = entity->catalog->distributed;
	EaField    *field;

	if (table->field == NULL)
		return plain ? plain_entity_condition(entity) :
			entity_condition(entity);
	field = ea_catalog_field(entity, table->field, strlen(table->field));
	return plain ? plain_join_condition(table, entity, field) :
		join_condition(table, entity, field);
}

static bool
is_restricted(EaEntity *entity, const EaDdlColumn *column)
{
	EaField    *field = column->field == NULL ? NULL :
		ea_catalog_field(entity, column->field, strlen(column->field));

	return field != NULL && field->read_roles != NULL;
}

/*
 * ` (a, b)` when not all columns may be read, else nothing.  An existing
 * table may have more columns than the entity.
 */
static char *
granted_columns(EaDdlTable *table, EaEntity *entity)
{
	StringInfoData buf;
	bool		restricted = table->existing;
	ListCell   *lc;

	if (table->field != NULL)
		return "";
	initStringInfo(&buf);
	foreach(lc, ea_ddl_sorted_columns(table))
	{
		EaDdlColumn *column = lfirst(lc);

		if (is_restricted(entity, column))
			restricted = true;
		else
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : " (",
							 quote_identifier(column->name));
	}
	appendStringInfoChar(&buf, ')');
	return restricted ? buf.data : "";
}

void
ea_ddl_derive_policies(EaDdlState *state, EaCatalog *catalog)
{
	ListCell   *lc;

	foreach(lc, state->tables)
	{
		EaDdlTable *table = lfirst(lc);
		EaEntity   *entity = ea_catalog_entity(catalog, table->entity);

		CHECK_FOR_INTERRUPTS();
		if (table->policy != NULL)
			continue;
		table->policy = condition(table, entity);
		table->granted = granted_columns(table, entity);
	}
}

/*
 * Do statements change what the policy of a table looks at?  Links look at
 * keys only, which change with their tables.
 */
static bool
is_in_the_way(List *touched, const EaDdlTable *table)
{
	ListCell   *lc;

	/* without policies of its own it looks at the tenant alone */
	if (table->field == NULL &&
		strstr(table->was->policy, "caller_bypasses") == NULL)
		return false;
	foreach(lc, touched)
	{
		EaDdlTable *other = lfirst(lc);

		if (table->field != NULL && other->other != NULL)
			continue;

		/* a part of a longer name only costs a statement */
		if (other == table ||
			strstr(table->was->policy, other->was->qualified) != NULL)
			return true;
	}
	return false;
}

/* The policy is the one of an existing table that holds beside any other. */
static bool
is_restrictive(const EaDdlPlan *plan, const EaDdlTable *table)
{
	return table->existing && !plan->is_distributed;
}

/*
 * Plain SQL on an existing table goes on as it did: a role that is no reader
 * may do what it has been granted, and readers see what their policy says,
 * whatever other policies there are.  Row-level security that was there stays
 * when the entity goes, and what was switched on here is switched off.
 *
 * Citus forgets that a policy is restrictive.  So a table that it has gets a
 * policy for readers like all others, and that for others leaves them out; it
 * may have none of its own (existing_cluster.c).
 */
static void
open_existing(EaDdlPlan *plan, EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		secured;
	bool		by_us;

	if (!HeapTupleIsValid(tuple))
		return;					/* said already */
	secured = ((Form_pg_class) GETSTRUCT(tuple))->relrowsecurity;
	ReleaseSysCache(tuple);

	/* by an entity that had the table, and is closed before this runs */
	by_us = OidIsValid(get_relation_policy_oid(relid, OTHERS, true));
	if (secured && !by_us)
		return;
	if (by_us)
		ea_ddl_add(plan, EA_DDL_ADD_POLICIES, table, NULL,
				   "DROP POLICY IF EXISTS " OTHERS " ON %s", table->qualified);
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, table, NULL,
			   "CREATE POLICY " OTHERS " ON %s TO PUBLIC"
			   " USING (%s) WITH CHECK (true)", table->qualified,
			   is_restrictive(plan, table) ? "true" :
			   "NOT pg_has_role('" READER "', 'USAGE')");
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, table, NULL,
			   "ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table->qualified);
}

static void
close_existing(EaDdlPlan *plan, EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		ours;

	/* its present owner keeps it */
	if (!HeapTupleIsValid(tuple))
		return;
	ours = ((Form_pg_class) GETSTRUCT(tuple))->relowner == GetUserId();
	ReleaseSysCache(tuple);
	if (!ours)
		return;
	ea_ddl_add(plan, EA_DDL_DROP_POLICIES, table, NULL,
			   "REVOKE ALL ON %s FROM " READER, table->qualified);
	ea_ddl_add(plan, EA_DDL_DROP_POLICIES, table, NULL,
			   "DROP POLICY IF EXISTS " POLICY " ON %s", table->qualified);
	ea_ddl_add(plan, EA_DDL_DROP_POLICIES, table, NULL,
			   "DROP POLICY IF EXISTS " READER " ON %s", table->qualified);
	if (!OidIsValid(get_relation_policy_oid(relid, OTHERS, true)))
		return;
	ea_ddl_add(plan, EA_DDL_DROP_POLICIES, table, NULL,
			   "DROP POLICY " OTHERS " ON %s", table->qualified);
	ea_ddl_add(plan, EA_DDL_DROP_POLICIES, table, NULL,
			   "ALTER TABLE %s DISABLE ROW LEVEL SECURITY", table->qualified);
}

static void
secure_policy(EaDdlPlan *plan, List *touched, EaDdlTable *from,
			  EaDdlTable *to)
{
	if (from != NULL)
	{
		if (strcmp(from->was->policy, to->policy) == 0 &&
			!from->was->lost_policy && !is_in_the_way(touched, from))
			return;
		ea_ddl_add(plan, EA_DDL_DROP_POLICIES, from, from->field,
				   "DROP POLICY IF EXISTS " POLICY " ON %s",
				   from->was->qualified);
	}
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
			   "CREATE POLICY " POLICY " ON %s %sFOR SELECT TO " READER
			   " USING (%s)",
			   to->qualified,
			   is_restrictive(plan, to) ? "AS RESTRICTIVE " : "", to->policy);
	if (to->existing && (from == NULL || from->was->lost_policy))
	{
		if (from != NULL)
			ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
					   "DROP POLICY IF EXISTS " READER " ON %s",
					   to->qualified);
		if (is_restrictive(plan, to))
			ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
					   "CREATE POLICY " READER " ON %s FOR SELECT TO " READER
					   " USING (true)", to->qualified);
		open_existing(plan, to);
	}
}

/* A column that is renamed keeps its right, and a new one has none. */
static void
secure_rights(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	if (from != NULL)
	{
		if (strcmp(from->was->granted, to->granted) == 0 &&
			!from->was->lost_rights &&
			(*to->granted == '\0' || !from->reshaped))
			return;
	}
	if (from != NULL || to->existing)
		ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
				   "REVOKE ALL ON %s FROM " READER "%s", to->qualified,
				   from != NULL && from->was->lost_rights ? " CASCADE" : "");
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
			   "GRANT SELECT%s ON %s TO " READER, to->granted, to->qualified);
}

void
ea_ddl_secure(EaDdlPlan *plan, EaCatalog *stored, EaCatalog *wanted)
{
	EaNameMap  *schemas = ea_names_map_create(4);
	List	   *touched = NIL;
	ListCell   *lc;

	ea_ddl_derive_policies(plan->stored, stored);
	ea_ddl_derive_policies(plan->to, wanted);
	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		if (from->of_application)
			continue;
		if (from->existing && from->other == NULL)
			close_existing(plan, from->was);
		if (!from->existing)
			ea_names_map_put(schemas, from->was->schema, plan);
		if (from->touched)
			touched = lappend(touched, from);
	}

	/* tables that go take their policies along */
	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		CHECK_FOR_INTERRUPTS();

		/* rights by plain SQL are the application's affair */
		if (to->of_application)
			continue;
		secure_policy(plan, touched, to->other, to);
		secure_rights(plan, to->other, to);
		if (!to->existing && ea_names_map_put(schemas, to->schema, plan))
			ea_ddl_add(plan, EA_DDL_ADD_POLICIES, NULL, NULL,
					   "GRANT USAGE ON SCHEMA %s TO " READER,
					   quote_identifier(to->schema));
	}
}
