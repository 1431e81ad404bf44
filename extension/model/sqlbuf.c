/*
 * add_predicates() is the only place where an entity's rows are narrowed to
 * those of the request, and every function that writes an entity's table
 * into a statement calls it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "base/grow.h"
#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "model/application.h"
#include "model/id_columns.h"
#include "model/id_parts.h"
#include "model/row_tenant.h"
#include "model/sqlbuf.h"
#include "model/table_check.h"
#include "request/limits.h"
#include "request/raised.h"

/* Of an id in a list, which grows by doubling and is handed on as an array. */
#define KEPT_ID (3 * sizeof(EaId))

static EaRowPolicy row_policy = NULL;
static EaHidesRows policy_hides = NULL;

void
ea_sqlbuf_install(EaRowPolicy policy, EaHidesRows hides)
{
	row_policy = policy;
	policy_hides = hides;
}

void
ea_sqlbuf_init(EaSqlBuf *b, EaRequest *req)
{
	memset(b, 0, sizeof(*b));
	b->req = req;
	initStringInfo(&b->text);
}

void
ea_sqlbuf_columns(EaSqlBuf *b, int alias, const char *columns)
{
	ea_columns_append(&b->text, columns, alias);
}

void
ea_sqlbuf_column(EaSqlBuf *b, int alias, const char *column)
{
	if (unlikely(ea_columns_are_several(column)))
	{
		ea_sqlbuf_add(b, "(");
		ea_sqlbuf_columns(b, alias, column);
		ea_sqlbuf_add(b, ")");
		return;
	}
	ea_sqlbuf_add(b, "t");
	ea_text_number(&b->text, alias);
	ea_sqlbuf_add(b, ".");
	ea_sqlbuf_add(b, column);
}

void
ea_sqlbuf_reads(EaSqlBuf *b, Oid type)
{
	*EA_GROW_ARRAY(b->reads, b->nreads, b->maxreads) = type;
}

/* A record, or null where one of its values is null. */
void
ea_sqlbuf_id_read(EaSqlBuf *b, int alias, const char *column)
{
	if (likely(!ea_columns_are_several(column)))
	{
		ea_sqlbuf_column(b, alias, column);
		return;
	}
	ea_sqlbuf_add(b, "CASE WHEN ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_add(b, " IS NOT NULL THEN ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_add(b, " END");
}

void
ea_sqlbuf_select(EaSqlBuf *b, int alias, const char *column, Oid type)
{
	ea_sqlbuf_id_read(b, alias, column);
	ea_sqlbuf_reads(b, type);
}

/* PostgreSQL has no cast from its own numbers of transactions. */
void
ea_sqlbuf_version(EaSqlBuf *b, int alias, const EaEntity *entity)
{
	ea_sqlbuf_column(b, alias, entity->version_column);
	if (entity->by_xmin)
		ea_sqlbuf_add(b, "::pg_catalog.text::pg_catalog.int8");
}

void
ea_sqlbuf_select_version(EaSqlBuf *b, int alias, const EaEntity *entity)
{
	ea_sqlbuf_version(b, alias, entity);
	ea_sqlbuf_reads(b, INT8OID);
}

void
ea_sqlbuf_column_read(EaSqlBuf *b, int alias, const EaColumn *column)
{
	if (column->before != NULL)
		ea_sqlbuf_add(b, column->before);
	ea_sqlbuf_id_read(b, alias, column->name);
	if (column->before != NULL)
		ea_sqlbuf_add(b, column->after);
}

void
ea_sqlbuf_select_field(EaSqlBuf *b, int alias, const EaField *field)
{
	for (int c = 0; c < field->ncolumns; c++)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_column_read(b, alias, &field->columns[c]);
		ea_sqlbuf_reads(b, field->columns[c].type);
	}
}

void
ea_sqlbuf_cast(EaSqlBuf *b, const EaColumn *column, bool array)
{
	if (column->input != NULL)
		ea_sqlbuf_addf(b, "::%s%s", column->input, array ? "[]" : "");
}

int
ea_sqlbuf_param(EaSqlBuf *b, Oid type, Datum value, bool isnull)
{
	*EA_GROW_ARRAY(b->params, b->nparams, b->maxparams) =
		ea_value(type, value, isnull);
	return b->nparams;
}

/* `$1, $2` */
static void
add_parts(EaSqlBuf *b, const EaIdParts *parts)
{
	for (int i = 0; i < parts->n; i++)
	{
		if (i > 0)
			ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_value(b, ea_id_parts_type(parts, i),
						ea_id_parts_datum(parts, i), false);
	}
}

void
ea_sqlbuf_id_bare(EaSqlBuf *b, const EaIdKey *key, const EaId *id)
{
	if (key->nparts > 0)
		add_parts(b, ea_id_parts(id));
	else
		ea_sqlbuf_id(b, key, id);
}

void
ea_sqlbuf_arrays(EaSqlBuf *b, const EaIdRows *rows)
{
	for (int i = 0; i < rows->nparts; i++)
	{
		if (i > 0)
			ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_value(b, rows->types[i], rows->arrays[i], false);
	}
}

void
ea_sqlbuf_set_id(EaSqlBuf *b, StringInfo set, const char *column,
				 const EaIdKey *key, const EaId *id)
{
	const EaIdParts *parts;

	if (set->len > 0)
		ea_text_string(set, ", ");
	if (key->nparts == 0)
	{
		ea_text_format(set, "%s = $%d", column,
					   ea_sqlbuf_param(b, key->type->oid,
									   ea_id_datum(key, id), false));
		return;
	}
	parts = ea_id_parts(id);
	for (int i = 0; i < parts->n; i++)
		ea_text_format(set, "%s%s = $%d", i > 0 ? ", " : "",
					   ea_columns_get(column, i),
					   ea_sqlbuf_param(b, ea_id_parts_type(parts, i),
									   ea_id_parts_datum(parts, i), false));
}

void
ea_sqlbuf_set_null(StringInfo set, const char *column, const char *but)
{
	int			n = ea_columns_count(column);

	for (int i = 0; i < n; i++)
	{
		const char *part = ea_columns_get(column, i);

		if (n == 1 || ea_columns_find(but, part) < 0)
			ea_text_format(set, "%s%s = NULL", set->len > 0 ? ", " : "", part);
	}
}

void
ea_sqlbuf_value(EaSqlBuf *b, Oid type, Datum value, bool isnull)
{
	if (unlikely(type == RECORDOID || type == RECORDARRAYOID))
	{
		if (isnull)
			elog(ERROR, "an id of several parts is null");
		if (type == RECORDOID)
		{
			ea_sqlbuf_add(b, "(");
			add_parts(b, (const EaIdParts *) DatumGetPointer(value));
			ea_sqlbuf_add(b, ")");
		}
		else
		{
			/* unnest() of several arrays is only known by its bare name */
			ea_sqlbuf_add(b, "SELECT * FROM unnest(");
			ea_sqlbuf_arrays(b, (const EaIdRows *) DatumGetPointer(value));
			ea_sqlbuf_add(b, ")");
		}
		return;
	}
	ea_sqlbuf_add(b, "$");
	ea_text_number(&b->text, ea_sqlbuf_param(b, type, value, isnull));
}

void
ea_sqlbuf_order_by(EaSqlBuf *b, int alias, const char *column)
{
	ea_sqlbuf_add(b, " ORDER BY ");
	ea_sqlbuf_columns(b, alias, column);
}

void
ea_sqlbuf_limit(EaSqlBuf *b, int rows)
{
	ea_sqlbuf_add(b, " LIMIT ");
	ea_text_number(&b->text, rows);
}

void
ea_sqlbuf_is(EaSqlBuf *b, int alias, const char *column, const EaIdKey *key,
			 const EaId *id)
{
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_add(b, " = ");
	ea_sqlbuf_id(b, key, id);
}

void
ea_sqlbuf_equal(EaSqlBuf *b, int alias, const char *column, int other,
				const char *of_other)
{
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_add(b, " = ");
	ea_sqlbuf_column(b, other, of_other);
}

void
ea_sqlbuf_among(EaSqlBuf *b, int alias, const char *column, const char *which,
				const EaIds *ids)
{
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_addf(b, " %s (", which);
	ea_sqlbuf_value(b, ids->key->type->array_oid, ea_id_list(ids), false);
	ea_sqlbuf_add(b, ")");
}

int
ea_sqlbuf_tenant(EaSqlBuf *b)
{
	if (!b->req->has_tenant)
		elog(ERROR, "statement over a tenant's rows without a tenant");
	if (b->tenant_param == 0)
		b->tenant_param = ea_sqlbuf_param(b, UUIDOID,
										  UUIDPGetDatum(&b->req->tenant),
										  false);
	return b->tenant_param;
}

/* -------- tables that the statement relies on -------- */

static bool
is_current(void *arg)
{
	return ea_catalog_is_current(arg);
}

static void
check_table(void *arg, Relation rel)
{
	/* with a table, other nodes may have changed what it was declared to be */
	if (ea_distributed())
		ea_catalog_require_current(arg);
	ea_table_check(arg, rel);
}

static EaHeld
make_held(EaRequest *req, bool here)
{
	return (EaHeld) {is_current, check_table, req->catalog, here};
}

/* Tables of an application come with its role. */
static EaHeld
held_of(const EaSqlBuf *b)
{
	EaHeld		held = make_held(b->req, b->place == EA_PLACE_HERE);

	if (b->of_application)
	{
		held.application = ea_application_of(b->req);
		held.by_settings = b->by_settings;
		held.spells = b->spells && (!b->writes || b->keeps_rows);
		held.of_both = b->of_service;
		held.looks = b->looks;
	}
	return held;
}

/* -------- where tables are -------- */

/*
 * The log is with its tenant, as all tables of tenants are, and other tables
 * are on every node.
 */
bool
ea_sqlbuf_is_here(EaRequest *req)
{
	const EaShard *shard = req->has_tenant ?
		ea_shards_find("entityapi.audit", &req->tenant) :
		ea_shards_find("entityapi.service", NULL);

	return shard->name != NULL;
}

void
ea_sqlbuf_tell_node(EaRequest *req)
{
	const EaShard *shard;
	MemoryContext caller;
	char	   *nodes;
	int			len;

	if (!ea_distributed() || !req->has_tenant)
		return;
	shard = ea_shards_read("entityapi.audit", &req->tenant);

	/* that of SPI, where handlers work, is gone when the answer is written */
	caller = MemoryContextSwitchTo(req->mcxt);
	nodes = palloc(2 * (MAXINT8LEN + 1));
	len = pg_ltoa(shard->here, nodes);
	nodes[len++] = ' ';
	pg_ltoa(shard->node, nodes + len);
	ea_request_answer(req, "x-entityapi-node", nodes);
	MemoryContextSwitchTo(caller);
}

/*
 * A shard for the table that it is of.  That is locked as a statement over it
 * would lock it: others who have it for themselves count on that, and have
 * locked none of its shards.  It comes before the shard, as with Citus.
 */
static const char *
place_here(EaSqlBuf *b, const char *table, bool tenant_scoped, LOCKMODE mode)
{
	const pg_uuid_t *tenant = tenant_scoped ? &b->req->tenant : NULL;
	uint64		messages = ea_held_messages();
	const EaShard *shard = ea_shards_read(table, tenant);
	Oid			shell = shard->shell;

	if (shard->name == NULL)
		ea_held_throw();
	ea_table_lock(shell, mode);
	if (messages == ea_held_messages())
		return shard->name;

	/* while it was waited for, it may have become another one */
	shard = ea_shards_read(table, tenant);
	if (shard->name == NULL || shard->shell != shell)
		ea_held_throw();
	return shard->name;
}

/* A table as the statement names it, which takes such a lock of it. */
static const char *
place_table(EaSqlBuf *b, const char *table, bool tenant_scoped, LOCKMODE mode)
{
	if (!ea_distributed() || b->place == EA_PLACE_ANYWHERE)
		return table;

	/* a row that was, of history/past.c, is where it is read */
	if (table[0] == '(')
		return table;
	if (b->place == EA_PLACE_UNKNOWN)
	{
		/* Citus locks rows on all nodes that have them */
		b->place = (tenant_scoped || b->req->method == EA_GET) &&
			ea_sqlbuf_is_here(b->req) ? EA_PLACE_HERE : EA_PLACE_ANYWHERE;
		return place_table(b, table, tenant_scoped, mode);
	}
	return place_here(b, table, tenant_scoped, mode);
}

/*
 * Whose tables the statement is over.  A row that was is in none; but values
 * of an application's types have its code around them.
 */
static void
note_side(EaSqlBuf *b, const EaEntity *entity)
{
	b->of_application |= entity->of_application;
	b->spells |= entity->spells;
	if (entity->table[0] == '(')
		return;
	b->of_service |= !entity->of_application;
	b->by_settings |= entity->row_security;
}

static const char *
place_of_entity(EaSqlBuf *b, const EaEntity *entity, LOCKMODE mode)
{
	note_side(b, entity);
	return place_table(b, entity->table, entity->tenant_scoped, mode);
}

static const char *
place_of_join(EaSqlBuf *b, const EaField *field, LOCKMODE mode)
{
	b->of_application |= field->through;
	b->of_service |= !field->through;
	b->by_settings |= field->join_hides;
	return place_table(b, field->join_table, ea_catalog_join_is_scoped(field),
					   mode);
}

/* Of all tenants, or on all nodes: that is for Citus. */
static void
place_anywhere(EaSqlBuf *b)
{
	if (b->place == EA_PLACE_HERE)
		elog(ERROR, "statement over tables here and on other nodes");
	b->place = EA_PLACE_ANYWHERE;
}

/* -------- statements -------- */

/* The rows that a statement reads, of those that deletion hides. */
static void
add_shown(EaSqlBuf *b, EaEntity *entity, int alias)
{
	EaShown		shown = alias == b->shown_alias ? b->shown : EA_SHOWN_LIVE;

	if (shown != EA_SHOWN_ALL)
		ea_sqlbuf_addf(b, " AND t%d.%s IS %sNULL", alias,
					   entity->deleted_column,
					   shown == EA_SHOWN_DELETED ? "NOT " : "");
}

/* The predicates for alias t<n>: never empty, so ` AND` may follow. */
static void
add_predicates(EaSqlBuf *b, EaEntity *entity, int alias, EaOperation op)
{
	const char *tenant = ea_row_tenant_column(entity);

	if (tenant != NULL)
	{
		ea_sqlbuf_column(b, alias, tenant);
		ea_sqlbuf_add(b, " = $");
		ea_text_number(&b->text, ea_sqlbuf_tenant(b));
	}
	else if (entity->tenant_scoped)
		ea_row_tenant_add(b, entity, alias, ea_sqlbuf_tenant(b));
	else
		ea_sqlbuf_add(b, "true");

	/* what has no key is no resource */
	if (entity->view)
	{
		ea_sqlbuf_add(b, " AND ");
		ea_sqlbuf_column(b, alias, entity->id_column);
		ea_sqlbuf_add(b, " IS NOT NULL");
	}
	if (entity->soft_delete && !b->deleted_too)
		add_shown(b, entity, alias);
	if (op == EA_OP_DELETE)
		return;
	if (row_policy == NULL)
		elog(ERROR, "statement without the policies of \"%s\"",
			 entity->name);
	row_policy(b, entity, alias);
}

bool
ea_sqlbuf_hides_rows(EaRequest *req, EaEntity *entity)
{
	return entity->soft_delete || policy_hides(req, entity);
}

bool
ea_sqlbuf_spans(EaRequest *req, EaEntity *entity)
{
	EaSqlBuf	b;

	if (req->catalog->application == NULL)
		return false;
	ea_sqlbuf_init(&b, req);
	(void) ea_sqlbuf_from(&b, entity, EA_OP_READ);
	return b.of_application && b.of_service;
}

void
ea_sqlbuf_look(EaSqlBuf *b, const char *strength, int alias)
{
	ea_sqlbuf_addf(b, " FOR %s OF t%d", strength, alias);
	b->looks = true;
}

/* The same predicates as add_predicates() writes, or no answer. */
bool
ea_sqlbuf_count(EaRequest *req, EaEntity *entity, int nkeys,
				const EaCountKey *keys, int64 *count)
{
	EaHeld		held = make_held(req, ea_distributed() &&
								 ea_sqlbuf_is_here(req));
	const char *table = entity->table;
	EaCountKey	all[EA_COUNT_MAX_KEYS];
	int			n = 0;

	if (nkeys >= EA_COUNT_MAX_KEYS || entity->view ||
		(entity->tenant_scoped && ea_row_tenant_column(entity) == NULL) ||
		ea_sqlbuf_hides_rows(req, entity))
		return false;
	if (entity->of_application)
		held.application = ea_application_of(req);
	if (entity->tenant_scoped)
	{
		if (!req->has_tenant)
			elog(ERROR, "count of a tenant's rows without a tenant");
		all[n].column = ea_row_tenant_column(entity);
		all[n].type = UUIDOID;
		all[n++].value = UUIDPGetDatum(&req->tenant);
	}
	for (int i = 0; i < nkeys; i++)
		all[n++] = keys[i];
	if (held.here)
		table = ea_shards_read(table, entity->tenant_scoped ? &req->tenant :
							   NULL)->name;
	return table != NULL &&
		ea_exec_count_rows(&held, table, n, all, count);
}

int
ea_sqlbuf_reserve(EaSqlBuf *b)
{
	return b->nrelations++;
}

int
ea_sqlbuf_left_join(EaSqlBuf *b, EaEntity *target, int from,
					const char *column)
{
	EaSqlJoin  *join;
	ListCell   *cell;

	foreach(cell, b->joins)
	{
		join = lfirst(cell);
		if (join->entity == target && join->from == from &&
			strcmp(join->column, column) == 0)
			return join->alias;
	}
	join = palloc(sizeof(EaSqlJoin));
	join->entity = target;
	join->alias = ea_sqlbuf_reserve(b);
	join->from = from;
	join->column = column;
	b->joins = lappend(b->joins, join);
	return join->alias;
}

/* The joins of the relation just written. */
static void
add_joins(EaSqlBuf *b)
{
	ListCell   *cell;

	foreach(cell, b->joins)
	{
		const EaSqlJoin *join = lfirst(cell);

		ea_sqlbuf_addf(b, " LEFT JOIN %s t%d ON ",
					   place_of_entity(b, join->entity, AccessShareLock),
					   join->alias);
		add_predicates(b, join->entity, join->alias, EA_OP_READ);
		ea_sqlbuf_equal(b, join->alias, join->entity->id_column, join->from,
						join->column);
	}
	b->joins = NIL;
}

void
ea_sqlbuf_from_as(EaSqlBuf *b, EaEntity *entity, EaOperation op, int alias)
{
	ea_sqlbuf_add(b, " FROM ");
	ea_sqlbuf_add(b, place_of_entity(b, entity, AccessShareLock));
	ea_sqlbuf_add(b, " t");
	ea_text_number(&b->text, alias);
	if (b->joins != NIL)
		add_joins(b);
	if (b->holds)
	{
		b->holds = false;
		if (ea_row_tenant_is_led(entity))
			ea_row_tenant_from(b, entity, alias);
	}
	ea_sqlbuf_add(b, " WHERE ");
	add_predicates(b, entity, alias, op);
}

int
ea_sqlbuf_from(EaSqlBuf *b, EaEntity *entity, EaOperation op)
{
	int			alias = ea_sqlbuf_reserve(b);

	ea_sqlbuf_from_as(b, entity, op, alias);
	return alias;
}

int
ea_sqlbuf_from_all(EaSqlBuf *b, EaEntity *entity)
{
	int			alias = ea_sqlbuf_reserve(b);

	place_anywhere(b);
	note_side(b, entity);
	ea_sqlbuf_addf(b, " FROM %s t%d WHERE true", entity->table, alias);
	return alias;
}

int
ea_sqlbuf_from_others(EaSqlBuf *b, EaEntity *entity)
{
	int			alias = ea_sqlbuf_from_all(b, entity);

	ea_sqlbuf_add(b, " AND (");
	ea_row_tenant_add(b, entity, alias, ea_sqlbuf_tenant(b));
	ea_sqlbuf_add(b, ") IS NOT TRUE");
	return alias;
}

void
ea_sqlbuf_convert(EaSqlBuf *b, const EaField *field, Datum value)
{
	ea_sqlbuf_add(b, "SELECT 1 FROM (SELECT ");
	ea_sqlbuf_value(b, TEXTOID, value, false);
	ea_sqlbuf_cast(b, &field->columns[0], false);
	ea_sqlbuf_addf(b, " AS value) u LEFT JOIN %s t%d ON false"
				   " WHERE u.value IS NOT NULL",
				   place_of_entity(b, field->entity, AccessShareLock),
				   ea_sqlbuf_reserve(b));
}

/* A write of a table with user-defined code, which may change settings. */
static int
written_alias(EaSqlBuf *b, EaEntity *entity)
{
	b->req->strangers |= entity->existing;
	b->writes = true;
	if (!entity->tenant_scoped)
		place_anywhere(b);
	return ea_sqlbuf_reserve(b);
}

int
ea_sqlbuf_update(EaSqlBuf *b, EaEntity *entity, const char *set,
				 EaOperation op)
{
	int			alias = written_alias(b, entity);

	ea_sqlbuf_addf(b, "UPDATE %s t%d SET %s WHERE ",
				   place_of_entity(b, entity, RowExclusiveLock), alias, set);
	add_predicates(b, entity, alias, op);
	return alias;
}

int
ea_sqlbuf_delete(EaSqlBuf *b, EaEntity *entity)
{
	int			alias = written_alias(b, entity);

	b->keeps_rows = true;
	ea_sqlbuf_addf(b, "DELETE FROM %s t%d WHERE ",
				   place_of_entity(b, entity, RowExclusiveLock), alias);
	add_predicates(b, entity, alias, EA_OP_DELETE);
	return alias;
}

int
ea_sqlbuf_insert(EaSqlBuf *b, EaEntity *entity)
{
	int			alias = written_alias(b, entity);

	ea_sqlbuf_addf(b, "INSERT INTO %s AS t%d (",
				   place_of_entity(b, entity, RowExclusiveLock), alias);
	if (ea_row_tenant_column(entity) != NULL)
		ea_sqlbuf_addf(b, "%s, ", ea_row_tenant_column(entity));
	return alias;
}

void
ea_sqlbuf_insert_row(EaSqlBuf *b, EaEntity *entity)
{
	ea_sqlbuf_add(b, "(");
	if (ea_row_tenant_column(entity) != NULL)
		ea_sqlbuf_addf(b, "$%d, ", ea_sqlbuf_tenant(b));
}

/*
 * A join table has the tenant of the side that it is seen from; and rows of
 * others that lead nowhere are no links.
 */
static void
add_join_predicates(EaSqlBuf *b, EaField *field, int alias)
{
	if (ea_catalog_join_is_scoped(field) && !b->all_tenants)
		ea_sqlbuf_addf(b, "t%d.tenant_id = $%d", alias, ea_sqlbuf_tenant(b));
	else if (field->through && !b->writes)
		ea_sqlbuf_addf(b, "t%d.%s IS NOT NULL", alias, field->join_far);
	else
		ea_sqlbuf_add(b, "true");
}

static int
add_join(EaSqlBuf *b, const char *verb, EaField *field, LOCKMODE mode)
{
	int			alias = b->nrelations++;

	if (b->all_tenants)
		place_anywhere(b);
	ea_sqlbuf_addf(b, "%s %s t%d WHERE ", verb, place_of_join(b, field, mode),
				   alias);
	add_join_predicates(b, field, alias);
	return alias;
}

int
ea_sqlbuf_join_from(EaSqlBuf *b, EaField *field)
{
	return add_join(b, " FROM", field, AccessShareLock);
}

int
ea_sqlbuf_join_delete(EaSqlBuf *b, EaField *field)
{
	if (!ea_catalog_join_is_scoped(field))
		place_anywhere(b);
	b->req->strangers |= field->through;
	b->writes = true;
	return add_join(b, "DELETE FROM", field, RowExclusiveLock);
}

void
ea_sqlbuf_join_insert(EaSqlBuf *b, EaField *field)
{
	bool		scoped = ea_catalog_join_is_scoped(field);

	if (!scoped)
		place_anywhere(b);
	b->req->strangers |= field->through;
	b->writes = true;
	ea_sqlbuf_addf(b, "INSERT INTO %s (%s%s, %s) SELECT ",
				   place_of_join(b, field, RowExclusiveLock),
				   scoped ? "tenant_id, " : "", field->join_near,
				   field->join_far);
	if (scoped)
		ea_sqlbuf_addf(b, "$%d, ", ea_sqlbuf_tenant(b));
}

void
ea_sqlbuf_join_conflict(EaSqlBuf *b, EaField *field)
{
	ea_sqlbuf_addf(b, " ON CONFLICT (%s%s, %s) DO NOTHING",
				   ea_catalog_join_is_scoped(field) ? "tenant_id, " : "",
				   field->join_near, field->join_far);
}

/*
 * Rows of the far side and their links to row t<from>.  Both stand side by
 * side, since a condition on the row around that lies deeper than the WHERE of
 * EXISTS keeps the planner from reading all links once: it looks for them
 * again with each row.
 */
static int
add_linked(EaSqlBuf *b, EaField *field, EaEntity *target, int from)
{
	int			alias = ea_sqlbuf_reserve(b);
	int			join = ea_sqlbuf_reserve(b);

	ea_sqlbuf_addf(b, " FROM %s t%d, %s t%d WHERE ",
				   place_of_entity(b, target, AccessShareLock), alias,
				   place_of_join(b, field, AccessShareLock), join);
	add_predicates(b, target, alias, EA_OP_READ);
	ea_sqlbuf_add(b, " AND ");
	add_join_predicates(b, field, join);
	ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s AND t%d.%s = t%d.%s", join,
				   field->join_near, from, field->entity->id_column, join,
				   field->join_far, alias, target->id_column);
	return alias;
}

int
ea_sqlbuf_hop(EaSqlBuf *b, EaField *field, int member, int from)
{
	EaEntity   *target = ea_catalog_target(field, member);
	const char *column = field->members[member].column;
	int			alias;

	ea_sqlbuf_add(b, " EXISTS (SELECT 1");
	if (field->kind == EA_MANY_TO_MANY)
		return add_linked(b, field, target, from);
	alias = ea_sqlbuf_from(b, target, EA_OP_READ);
	if (ea_catalog_has_column(field))
		ea_sqlbuf_equal(b, alias, target->id_column, from, column);
	else
		ea_sqlbuf_equal(b, alias, column, from, field->entity->id_column);
	return alias;
}

/* -------- kept texts -------- */

void
ea_sqlbuf_keep(const EaSqlBuf *b, int len, int nreads, EaEntity *entity,
			   EaSqlPart *part)
{
	MemoryContext mcxt = entity->catalog->mcxt;

	part->len = b->text.len - len;
	part->nreads = b->nreads - nreads;
	part->reads = MemoryContextAlloc(mcxt, Max(part->nreads, 1) * sizeof(Oid));
	if (part->nreads > 0)
		memcpy(part->reads, b->reads + nreads, part->nreads * sizeof(Oid));

	/* only with this it is there */
	part->text = MemoryContextStrdup(mcxt, b->text.data + len);
}

void
ea_sqlbuf_add_part(EaSqlBuf *b, const EaSqlPart *part)
{
	ea_text_bytes(&b->text, part->text, part->len);
	for (int i = 0; i < part->nreads; i++)
		ea_sqlbuf_reads(b, part->reads[i]);
}

/* The predicates over the entity are its tenant's, as this caller has them. */
static bool
has_tenant_alone(const EaSqlBuf *b, EaEntity *entity)
{
	return !ea_distributed() && !ea_sqlbuf_hides_rows(b->req, entity);
}

void
ea_sqlbuf_keep_by_id(const EaSqlBuf *b, EaEntity *entity, EaSqlPart *part)
{
	if (part != NULL && part->text == NULL && has_tenant_alone(b, entity) &&
		b->nparams == (entity->tenant_scoped ? 2 : 1) &&
		b->tenant_param == (entity->tenant_scoped ? 1 : 0))
		ea_sqlbuf_keep(b, 0, 0, entity, part);
}

bool
ea_sqlbuf_add_by_id(EaSqlBuf *b, EaEntity *entity, const EaSqlPart *part,
					const EaIdKey *key, const EaId *id)
{
	if (part == NULL || part->text == NULL || !has_tenant_alone(b, entity))
		return false;
	ea_sqlbuf_add_part(b, part);
	note_side(b, entity);
	if (entity->tenant_scoped)
		(void) ea_sqlbuf_tenant(b);
	if (entity->of_application)
		ea_row_tenant_note(b, entity);
	(void) ea_sqlbuf_param(b, key->type->oid, ea_id_datum(key, id), false);
	return true;
}

/* -------- running it -------- */

uint64
ea_sqlbuf_run(EaSqlBuf *b, EaExecMode mode, bool one_row,
			  EaRowFunction row, void *arg)
{
	const EaHeld held = held_of(b);
	const EaReader reader = {
		row, b->nreads, b->reads, b->planning, b->tenant_param, b->replaced
	};
	EaRaisedWatch watch;
	uint64		n;

	if (b->writes)
		ea_raised_begin(&watch, b->req);
	n = ea_exec_held(&held, mode, one_row, b->text.data,
					 (EaParams) {b->nparams, b->params},
					 row == NULL && b->replaced == NULL ? NULL : &reader,
					 arg);
	if (b->writes)
		ea_raised_end(&watch);
	b->triggered = mode == EA_EXEC_WRITE && ea_exec_triggered();
	b->req->triggered |= b->triggered;
	return n;
}

typedef struct IdSink
{
	EaRequest  *req;
	EaIds	   *ids;
} IdSink;

static void
keep_id(void *arg, TupleTableSlot *slot)
{
	IdSink	   *sink = arg;

	ea_limits_keep(sink->req, KEPT_ID, NULL);
	ea_id_take(sink->req, sink->ids->key, slot->tts_values[0],
			   EA_GROW(sink->ids));
}

uint64
ea_sqlbuf_run_ids(EaSqlBuf *b, EaExecMode mode, EaIds *ids)
{
	IdSink		sink = {b->req, ids};

	return ea_sqlbuf_run(b, mode, true, keep_id, &sink);
}
