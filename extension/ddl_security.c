/*-------------------------------------------------------------------------
 *
 * ddl_security.c
 *	  Row-level security and rights of entityapi_reader on the tables.
 *
 * Each table has one policy: the tenant's rows, and of them those that the
 * entity's read policies leave.  A link between two rows is seen by whoever
 * sees both.  A column that only some roles may read is not granted, since a
 * right of the database does not depend on who asks.
 *
 * A policy stands in the way of changes of the columns it looks at, also
 * those of other tables, and is made anew when there are any.
 *
 * extension/ddl_security.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ddl.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "policy_sql.h"
#include "utils/builtins.h"

#define POLICY "entityapi_read"
#define READER "entityapi_reader"

/* The condition of an entity's table. */
static char *
entity_condition(EaEntity *entity)
{
	char	   *name = quote_literal_cstr(entity->name);
	char	   *policies = ea_policy_sql_row_security(entity);
	StringInfoData buf;

	initStringInfo(&buf);
	if (entity->tenant_scoped)
		appendStringInfoString(&buf,
							   "tenant_id = (SELECT entityapi.current_tenant()) AND ");
	if (entity->soft_delete)
		appendStringInfoString(&buf, "deleted_at IS NULL AND ");
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
	appendStringInfo(buf, "EXISTS (SELECT 1 FROM %s t0 WHERE %st0.id = %s.%s)",
					 end->table, end->tenant_scoped ?
					 "t0.tenant_id = (SELECT entityapi.current_tenant()) AND " :
					 "", join->qualified, column);
}

static char *
join_condition(EaDdlTable *table, EaEntity *entity)
{
	EaField    *field = ea_catalog_field(entity, table->field,
										 strlen(table->field));
	StringInfoData buf;

	initStringInfo(&buf);
	if (table->tenant_scoped)
		appendStringInfoString(&buf,
							   "tenant_id = (SELECT entityapi.current_tenant()) AND ");
	add_end(&buf, table, entity, field->join_near);
	appendStringInfoString(&buf, " AND ");
	add_end(&buf, table, ea_catalog_target(field, 0), field->join_far);
	return buf.data;
}

static bool
is_restricted(EaEntity *entity, const EaDdlColumn *column)
{
	EaField    *field = column->field == NULL ? NULL :
		ea_catalog_field(entity, column->field, strlen(column->field));

	return field != NULL && field->read_roles != NULL;
}

/* ` (a, b)` when not all columns may be read, else nothing. */
static char *
granted_columns(EaDdlTable *table, EaEntity *entity)
{
	StringInfoData buf;
	bool		restricted = false;
	ListCell   *lc;

	if (table->field != NULL)
		return "";
	initStringInfo(&buf);
	foreach(lc, table->columns)
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

/* Policies and rights of all tables of a state. */
static void
derive(EaDdlState *state, EaCatalog *catalog)
{
	ListCell   *lc;

	foreach(lc, state->tables)
	{
		EaDdlTable *table = lfirst(lc);
		EaEntity   *entity = ea_catalog_entity(catalog, table->entity);

		CHECK_FOR_INTERRUPTS();
		table->policy = table->field == NULL ? entity_condition(entity) :
			join_condition(table, entity);
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

static void
secure_policy(EaDdlPlan *plan, List *touched, EaDdlTable *from,
			  EaDdlTable *to)
{
	if (from != NULL)
	{
		if (strcmp(from->was->policy, to->policy) == 0 &&
			!is_in_the_way(touched, from))
			return;
		ea_ddl_add(plan, EA_DDL_DROP_POLICIES, from, from->field,
				   "DROP POLICY IF EXISTS " POLICY " ON %s",
				   from->was->qualified);
	}
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
			   "CREATE POLICY " POLICY " ON %s FOR SELECT TO " READER " USING (%s)",
			   to->qualified, to->policy);
}

/* A column that is renamed keeps its right, and a new one has none. */
static void
secure_rights(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	if (from != NULL)
	{
		if (strcmp(from->was->granted, to->granted) == 0 &&
			(*to->granted == '\0' || !from->reshaped))
			return;
		ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
				   "REVOKE ALL ON %s FROM " READER, to->qualified);
	}
	ea_ddl_add(plan, EA_DDL_ADD_POLICIES, to, to->field,
			   "GRANT SELECT%s ON %s TO " READER, to->granted, to->qualified);
}

void
ea_ddl_secure(EaDdlPlan *plan, EaCatalog *stored, EaCatalog *wanted)
{
	EaNameMap  *schemas = ea_names_map_create(4);
	List	   *touched = NIL;
	ListCell   *lc;

	derive(plan->stored, stored);
	derive(plan->to, wanted);
	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		ea_names_map_put(schemas, from->was->schema, plan);
		if (from->touched)
			touched = lappend(touched, from);
	}

	/* tables that go take their policies along */
	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		secure_policy(plan, touched, to->other, to);
		secure_rights(plan, to->other, to);
		if (ea_names_map_put(schemas, to->schema, plan))
			ea_ddl_add(plan, EA_DDL_ADD_POLICIES, NULL, NULL,
					   "GRANT USAGE ON SCHEMA %s TO " READER,
					   quote_identifier(to->schema));
	}
}
