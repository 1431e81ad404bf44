/*
 * entityapi.compare_rights(): rights seen before they count.
 *
 * The documents are planned as for a dry run.  Then what each role may do by
 * the stored definitions is compared with what it may do by the new ones, and
 * where its rows may be others they are counted.  The new policies are asked
 * about the rows that are there, as they will be, so nothing is altered and
 * no table is locked but for reading.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "apply/apply.h"
#include "apply/role_rows.h"
#include "authz/authz.h"
#include "base/names.h"
#include "engine/exec.h"
#include "model/row_tenant.h"
#include "trust/owner.h"

/* How long rows are counted, in milliseconds. */
#define COUNT_TIME 30000

/* An entity before and after; NULL: there is none. */
typedef struct Pair
{
	EaEntity   *before;
	EaEntity   *after;
	EaNameMap  *fields;			/* names after by names before, or NULL */
	bool		reads_anew;		/* other rows may be shown by it */
} Pair;

typedef struct Comparison
{
	ReturnSetInfo *rsinfo;
	EaRoleSide	before;
	EaRoleSide	after;
	List	   *pairs;			/* of Pair *, by name */
	int			max_rows;
	TimestampTz deadline;
	bool		reads_anew;		/* some entity does */
} Comparison;

typedef struct Role
{
	const char *name;
	bool		asked;			/* holders are known; a long search */
	bool		all;
	List	   *holders;
} Role;

/* Rights that a role gains or loses: lists of char *. */
typedef struct Changes
{
	List	   *gained;
	List	   *lost;
} Changes;

static const struct
{
	EaOperation operation;
	const char *name;
}			operations[] =
{
	{EA_OP_CREATE, "create"}, {EA_OP_READ, "read"}, {EA_OP_UPDATE, "update"},
	{EA_OP_DELETE, "delete"}, {EA_OP_RESTORE, "restore"},
	{EA_OP_HISTORY, "history"}
};

/* -------- rows as they will be -------- */

/* All columns that are to be are there, with the values they will have. */
static bool
keeps_columns(const EaDdlTable *to)
{
	const EaDdlTable *from = to->other;
	ListCell   *lc;

	if (strcmp(from->was->qualified, to->qualified) != 0 ||
		(from->deleted_column != NULL && to->deleted_column == NULL))
		return false;
	foreach(lc, to->columns)
	{
		const EaDdlColumn *column = lfirst(lc);
		const EaDdlColumn *stored;

		stored = ea_names_map_get(from->by_column, column->name);
		if (stored == NULL || strcmp(stored->was->name, column->name) != 0 ||
			strcmp(stored->sql, column->sql) != 0 ||
			(column->not_null && !stored->not_null))
			return false;
	}
	return true;
}

static char *
no_rows(const EaDdlTable *to)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, to->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		appendStringInfo(&buf, "%sNULL::%s AS %s",
						 buf.len > 0 ? ", " : "(SELECT ", column->sql,
						 quote_identifier(column->name));
	}
	appendStringInfoString(&buf, " WHERE false)");
	return buf.data;
}

/* Have the entities that are to be read what is there now. */
static void
read_what_is_there(EaDdlState *to, EaCatalog *catalog)
{
	ListCell   *lc;

	foreach(lc, to->tables)
	{
		EaDdlTable *table = lfirst(lc);
		EaEntity   *entity;

		CHECK_FOR_INTERRUPTS();
		if (table->field != NULL || table->existing)
			continue;
		entity = ea_catalog_entity(catalog, table->entity);
		if (table->other == NULL)
			entity->table = no_rows(table);
		else if (!keeps_columns(table))
			entity->table = pstrdup(table->after);
	}
}

/* -------- entities -------- */

/* The next rule that reads are held to, from this one on. */
static int
next_rule(const EaEntity *entity, int i)
{
	while (i < entity->nrules && !(entity->rules[i].operations & EA_OP_READ))
		i++;
	return i;
}

static bool
same_rules(const EaEntity *a, const EaEntity *b)
{
	int			i = next_rule(a, 0);
	int			j = next_rule(b, 0);

	while (i < a->nrules && j < b->nrules)
	{
		if (strcmp(a->rules[i].expression, b->rules[j].expression) != 0)
			return false;
		i = next_rule(a, i + 1);
		j = next_rule(b, j + 1);
	}
	return i == a->nrules && j == b->nrules;
}

static bool
reads_by(const EaEntity *entity, const char *role)
{
	for (int i = 0; i < entity->npermissions; i++)
	{
		if ((entity->permissions[i].operations & EA_OP_READ) != 0 &&
			strcmp(entity->permissions[i].role, role) == 0)
			return true;
	}
	return false;
}

/* All roles that read one entity read the other, too. */
static bool
is_read_by_all_of(const EaEntity *one, const EaEntity *other)
{
	for (int i = 0; i < one->npermissions; i++)
	{
		if ((one->permissions[i].operations & EA_OP_READ) != 0 &&
			!reads_by(other, one->permissions[i].role))
			return false;
	}
	return true;
}

static bool
reads_anew(const EaEntity *before, const EaEntity *after)
{
	return before == NULL || after == NULL ||
		strcmp(before->table, after->table) != 0 ||
		!ea_row_tenant_is_same(before, after) ||
		before->soft_delete != after->soft_delete ||
		before->catalog->tenant_admin_bypass !=
		after->catalog->tenant_admin_bypass ||
		!same_rules(before, after) || !is_read_by_all_of(before, after) ||
		!is_read_by_all_of(after, before);
}

static const char *
name_of(const Pair *pair)
{
	return pair->after != NULL ? pair->after->name : pair->before->name;
}

static int
compare_pairs(const ListCell *a, const ListCell *b)
{
	return strcmp(name_of(lfirst(a)), name_of(lfirst(b)));
}

static void
add_pair(Comparison *at, EaEntity *before, EaEntity *after, EaNameMap *fields)
{
	Pair	   *pair = palloc0(sizeof(Pair));

	pair->before = before;
	pair->after = after;
	pair->fields = fields;
	pair->reads_anew = reads_anew(before, after);
	at->reads_anew |= pair->reads_anew;
	at->pairs = lappend(at->pairs, pair);
}

static void
pair_entities(Comparison *at, EaApplyPlan *plan)
{
	EaNameMap  *continued = ea_names_map_create(256);
	ListCell   *lc;

	foreach(lc, plan->stored.names)
	{
		EaDdlAlias *alias = ea_names_map_get(plan->change.aliases,
											 lfirst(lc));
		EaEntity   *before = ea_catalog_entity(plan->from.catalog,
											   lfirst(lc));

		CHECK_FOR_INTERRUPTS();
		if (alias->entity != NULL)
			ea_names_map_put(continued, alias->entity, alias);
		add_pair(at, before, alias->entity == NULL ? NULL :
				 ea_catalog_entity(plan->to.catalog, alias->entity),
				 alias->fields);
	}
	foreach(lc, plan->m->entities)
	{
		const char *name = ((EaDeclEntity *) lfirst(lc))->name;

		if (ea_names_map_get(continued, name) == NULL)
			add_pair(at, NULL, ea_catalog_entity(plan->to.catalog, name),
					 NULL);
	}
	list_sort(at->pairs, compare_pairs);
}

/* -------- operations and fields -------- */

static int
operations_of(EaRoleSide *side)
{
	int			found = 0;

	for (int i = 0; i < lengthof(operations); i++)
	{
		if (side->entity != NULL &&
			ea_authz_allows(&side->req, side->entity,
							operations[i].operation) &&
			(operations[i].operation != EA_OP_RESTORE ||
			 side->entity->soft_delete))
			found |= operations[i].operation;
	}
	return found;
}

/* A caller sees a relationship if it may read some entity it points at. */
static bool
points_at_something(EaRequest *req, EaField *field)
{
	for (int i = 0; i < field->nmembers; i++)
	{
		if (ea_authz_allows(req, ea_catalog_target(field, i), EA_OP_READ))
			return true;
	}
	return field->kind == EA_ATTRIBUTE;
}

/* EA_OP_READ and EA_OP_UPDATE, as far as the entity allows them */
static int
field_rights(EaRoleSide *side, EaField *field)
{
	int			own = field == NULL ? 0 : operations_of(side);
	int			rights = 0;

	if ((own & EA_OP_READ) != 0 && ea_authz_open(&side->req, field) &&
		points_at_something(&side->req, field))
		rights |= EA_OP_READ;
	if ((own & (EA_OP_CREATE | EA_OP_UPDATE)) != 0 && !field->read_only &&
		ea_authz_writable(&side->req, field))
		rights |= EA_OP_UPDATE;
	return rights;
}

static void
note_change(Changes *changes, int before, int after, int right, char *name)
{
	if ((after & ~before & right) != 0)
		changes->gained = lappend(changes->gained, name);
	if ((before & ~after & right) != 0)
		changes->lost = lappend(changes->lost, name);
}

static void
compare_field(Comparison *at, Changes *changes, EaField *before,
			  EaField *after)
{
	const char *name = after != NULL ? after->name : before->name;
	int			old = field_rights(&at->before, before);
	int			new = field_rights(&at->after, after);

	if (old == new)
		return;
	note_change(changes, old, new, EA_OP_READ, psprintf("read %s", name));
	note_change(changes, old, new, EA_OP_UPDATE, psprintf("write %s", name));
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

static void
compare_fields(Comparison *at, Changes *changes, Pair *pair)
{
	Changes		fields = {NIL, NIL};
	int			nafter = pair->after == NULL ? 0 : pair->after->nfields;
	bool	   *continued = palloc0(nafter + 1);

	for (int i = 0; pair->before != NULL && i < pair->before->nfields; i++)
	{
		EaField    *before = &pair->before->fields[i];
		const char *name = pair->after == NULL ? NULL :
			ea_names_map_get(pair->fields, before->name);
		EaField    *after = name == NULL ? NULL :
			ea_catalog_field(pair->after, name, strlen(name));

		if (after != NULL)
			continued[after->index] = true;
		compare_field(at, &fields, before, after);
	}
	for (int i = 0; i < nafter; i++)
	{
		if (!continued[i])
			compare_field(at, &fields, NULL, &pair->after->fields[i]);
	}
	list_sort(fields.gained, compare_names);
	list_sort(fields.lost, compare_names);
	changes->gained = list_concat(changes->gained, fields.gained);
	changes->lost = list_concat(changes->lost, fields.lost);
}

static void
compare_operations(Comparison *at, Changes *changes)
{
	int			before = operations_of(&at->before);
	int			after = operations_of(&at->after);

	for (int i = 0; i < lengthof(operations); i++)
		note_change(changes, before, after, operations[i].operation,
					unconstify(char *, operations[i].name));
}

/* -------- roles -------- */

static void
return_row(Comparison *at, const Role *role, const Pair *pair,
		   const Changes *changes, const EaRoleRows *rows)
{
	Datum		values[10];
	bool		nulls[10] = {false};

	values[0] = CStringGetTextDatum(role->name);
	values[1] = CStringGetTextDatum(name_of(pair));
	values[2] = ea_exec_text_list(changes->gained);
	values[3] = ea_exec_text_list(changes->lost);
	values[4] = Int32GetDatum(rows->callers);
	values[5] = Int64GetDatum(rows->before);
	values[6] = Int64GetDatum(rows->after);
	values[7] = Int64GetDatum(rows->after - rows->both);
	values[8] = Int64GetDatum(rows->before - rows->both);
	values[9] = BoolGetDatum(rows->complete);
	for (int i = 5; i <= 8; i++)
		nulls[i] = role->holders == NIL;
	tuplestore_putvalues(at->rsinfo->setResult, at->rsinfo->setDesc, values,
						 nulls);
}

/* Can it be that the role is shown other rows of the entity? */
static bool
may_show_others(const Comparison *at, const Pair *pair)
{
	return pair->reads_anew ||
		(at->reads_anew && pair->before->nrules > 0);
}

static void
compare_entity(Comparison *at, Role *role, Pair *pair)
{
	EaPrincipal principal = {0};
	Changes		changes = {NIL, NIL};
	EaRoleRows	rows = {0};

	ea_role_rows_assume(&principal, role->name);
	at->before.entity = pair->before;
	at->after.entity = pair->after;
	at->before.req.principal = &principal;
	at->after.req.principal = &principal;
	compare_operations(at, &changes);
	compare_fields(at, &changes, pair);
	if (changes.gained == NIL && changes.lost == NIL &&
		!may_show_others(at, pair))
		return;
	if (!role->asked)
		role->holders = ea_role_rows_holders(role->name, &role->all);
	role->asked = true;
	rows.complete = role->all;
	ea_role_rows_count(&rows, &at->before, &at->after, role->name,
					   role->holders, at->max_rows, at->deadline);
	if (changes.gained != NIL || changes.lost != NIL ||
		rows.before != rows.both || rows.after != rows.both ||
		(rows.differ && !rows.complete))
		return_row(at, role, pair, &changes, &rows);
}

static void
compare_role(Comparison *at, const char *name)
{
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi rights of a role",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	Role		role = {name};
	ListCell   *lc;

	foreach(lc, at->pairs)
	{
		CHECK_FOR_INTERRUPTS();
		compare_entity(at, &role, lfirst(lc));
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(mcxt);
}

static List *
add_roles(List *roles, EaNameMap *seen, EaCatalog *catalog)
{
	for (int i = 0; i < catalog->nroles; i++)
	{
		if (ea_names_map_put(seen, catalog->roles[i], catalog))
			roles = lappend(roles, catalog->roles[i]);
	}
	return roles;
}

static void
compare_plan(FunctionCallInfo fcinfo, EaApplyPlan *plan)
{
	EaNameMap  *seen = ea_names_map_create(64);
	Comparison	at = {(ReturnSetInfo *) fcinfo->resultinfo};
	List	   *roles = list_make2(EA_ROLE_EVERYBODY, EA_ROLE_TENANT_ADMIN);
	ListCell   *lc;

	/* the first rows by id come from an index, also before an ANALYZE */
	ea_pin_set("enable_sort", "off");
	ea_pin_set("jit", "off");

	/*
	 * of a table that was given back its owner's policies would run with our
	 * rights: an error instead
	 */
	ea_pin_set("row_security", "off");
	read_what_is_there(plan->change.to, plan->to.catalog);
	at.before.req.catalog = plan->from.catalog;
	at.after.req.catalog = plan->to.catalog;
	at.before.req.now = at.after.req.now = ea_request_clock();
	at.max_rows = PG_GETARG_INT32(2);
	at.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											  COUNT_TIME);
	pair_entities(&at, plan);
	roles = add_roles(roles, seen, plan->from.catalog);
	roles = add_roles(roles, seen, plan->to.catalog);
	list_sort(roles, compare_names);
	foreach(lc, roles)
		compare_role(&at, lfirst(lc));
}

/*
 * compare_rights(documents json, allow_data_loss text[], max_rows integer)
 *
 * What roles would gain and lose by apply_manifest() with these documents; no
 * rows when that is nothing.  Refuses what a dry run refuses.
 */
EA_CONFINED_FUNCTION(ea_sql_compare_rights)
{
	EaApplyPlan plan = {0};

	ea_apply_begin(fcinfo, "compare_rights");
	SPI_connect();
	ea_apply_plan(&plan, fcinfo, 1);
	if (plan.change.changed)
		compare_plan(fcinfo, &plan);
	SPI_finish();
	return (Datum) 0;
}
