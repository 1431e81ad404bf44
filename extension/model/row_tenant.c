/*
 * Rows that lead to the tenant are o1, o2, ..., so that the aliases t0, t1,
 * ... of all others stay as they are.  Nothing here calls sqlbuf.c, which
 * calls it.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/uuid.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"

/* The references, and the entity at their end, which says whose a row is */
typedef struct Way
{
	int			n;
	const char *columns[EA_ROW_TENANT_HOPS];
	EaEntity   *entities[EA_ROW_TENANT_HOPS];
	EaEntity   *end;
} Way;

static EaField *
leading_field(EaEntity *entity)
{
	const char *name = entity->row_tenant.by;
	EaField    *field = ea_catalog_field(entity, name, strlen(name));

	if (field == NULL || field->kind != EA_TO_ONE)
		elog(ERROR, "\"%s\" of \"%s\" leads to no tenant", name, entity->name);
	return field;
}

static void
find_way(EaEntity *entity, Way *way)
{
	way->n = 0;
	for (way->end = entity; way->end->row_tenant.by != NULL; way->n++)
	{
		EaField    *field = leading_field(way->end);

		if (way->n == EA_ROW_TENANT_HOPS)
			elog(ERROR, "\"%s\" is too far from a tenant", entity->name);
		way->columns[way->n] = field->members[0].column;
		way->end = way->entities[way->n] = ea_catalog_target(field, 0);
	}
	if (!way->end->tenant_scoped)
		elog(ERROR, "\"%s\" leads to no tenant", entity->name);
}

static bool
are_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool
ea_row_tenant_is_same(const EaEntity *a, const EaEntity *b)
{
	const EaRowTenant *one = &a->row_tenant;
	const EaRowTenant *other = &b->row_tenant;

	return a->tenant_scoped == b->tenant_scoped &&
		are_same(one->column, other->column) &&
		are_same(one->by, other->by) &&
		(one->one == NULL || other->one == NULL ? one->one == other->one :
		 ea_uuid_equal(one->one, other->one));
}

bool
ea_row_tenant_leads(const EaField *field)
{
	const char *by = field->entity->row_tenant.by;

	return by != NULL && strcmp(by, field->name) == 0;
}

bool
ea_row_tenant_is_closed(const EaEntity *entity, const pg_uuid_t *tenant)
{
	return entity->row_tenant.one != NULL &&
		!ea_uuid_equal(entity->row_tenant.one, tenant);
}

/* -------- how long it is -------- */

/* The column that says whose the row is; NULL where none does. */
static const char *
telling_column(EaEntity *entity)
{
	return entity->row_tenant.by == NULL ? entity->row_tenant.column :
		leading_field(entity)->members[0].column;
}

/* The number of a column by its name, which is quoted; or 0, as of several */
static AttrNumber
number_of(Relation rel, const char *column)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped &&
			strcmp(quote_identifier(NameStr(att->attname)), column) == 0)
			return att->attnum;
	}
	return InvalidAttrNumber;
}

/* Others wait for it as for any table that a statement names. */
static Relation
open_table(EaEntity *entity, LOCKMODE mode)
{
	ea_table_lock(ea_table_find(entity->table), mode);
	return table_open(ea_table_find(entity->table), NoLock);
}

/* The key is over the columns of the reference alone, and so of no tenant. */
static bool
is_over(Relation rel, const ForeignKeyCacheInfo *key, const char *columns)
{
	if (key->nkeys != ea_columns_count(columns))
		return false;
	for (int i = 0; i < key->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel),
											  key->conkey[i] - 1);

		if (ea_columns_find(columns,
							quote_identifier(NameStr(att->attname))) < 0)
			return false;
	}
	return true;
}

bool
ea_row_tenant_is_crossed(EaEntity *entity, const char *column)
{
	Relation	rel = open_table(entity, AccessShareLock);
	bool		crossed = false;
	ListCell   *lc;

	foreach(lc, RelationGetFKeyList(rel))
		crossed |= is_over(rel, lfirst(lc), column);
	table_close(rel, NoLock);
	return crossed;
}

/* A unique index that keys may refer to has the column. */
static bool
is_of_key(Relation rel, const char *column)
{
	return bms_is_member(number_of(rel, column) -
						 FirstLowInvalidHeapAttributeNumber,
						 RelationGetIndexAttrBitmap(rel,
													INDEX_ATTR_BITMAP_KEY));
}

/*
 * A change of a column of such an index takes a lock that meets the weaker
 * one, which leaves the application all other columns.
 */
const char *
ea_row_tenant_lock(EaEntity *entity)
{
	const char *column = telling_column(entity);
	Relation	rel;
	bool		is_key;

	if (column == NULL)
		return "KEY SHARE";
	rel = open_table(entity, RowShareLock);
	is_key = is_of_key(rel, column);
	table_close(rel, NoLock);
	return is_key ? "KEY SHARE" : "SHARE";
}

/* -------- the parts -------- */

void
ea_row_tenant_note(EaSqlBuf *b, EaEntity *entity)
{
	Way			way;

	if (!ea_row_tenant_is_led(entity))
		return;
	find_way(entity, &way);
	for (int i = 0; i < way.n; i++)
		b->by_settings |= way.entities[i]->row_security;
}

/* `shop.account o1, shop.team o2` */
static void
add_tables(EaSqlBuf *b, const Way *way)
{
	for (int i = 0; i < way->n; i++)
	{
		ea_sqlbuf_addf(b, "%s%s o%d", i > 0 ? ", " : "",
					   way->entities[i]->table, i + 1);
		b->by_settings |= way->entities[i]->row_security;
	}
}

/* `o1.a = t0.x AND o1.b = t0.y`, of the columns of a key */
static void
add_link(EaSqlBuf *b, int to, const char *key, const char *from, int alias,
		 const char *columns)
{
	int			n = ea_columns_count(key);

	for (int i = 0; i < n; i++)
		ea_sqlbuf_addf(b, "%so%d.%s = %s%d.%s", i > 0 ? " AND " : "", to,
					   ea_columns_get(key, i), from, alias,
					   ea_columns_get(columns, i));
}

/* `o1.id = t0.account_id AND o2.id = o1.team_id` */
static void
add_links(EaSqlBuf *b, const Way *way, int alias)
{
	for (int i = 0; i < way->n; i++)
	{
		if (i > 0)
			ea_sqlbuf_add(b, " AND ");
		add_link(b, i + 1, way->entities[i]->id_column, i == 0 ? "t" : "o",
				 i == 0 ? alias : i, way->columns[i]);
	}
}

/* The tenant of the last of them, or of all rows of its table */
static void
add_end(EaSqlBuf *b, const Way *way, int alias)
{
	const EaRowTenant *of = &way->end->row_tenant;

	if (of->one != NULL)
		ea_sqlbuf_addf(b, "'%s'::pg_catalog.uuid", ea_uuid_text(of->one));
	else if (way->n > 0)
		ea_sqlbuf_addf(b, "o%d.%s", way->n, of->column);
	else
		ea_sqlbuf_addf(b, "t%d.%s", alias, of->column);
}

static void
add_condition(EaSqlBuf *b, const Way *way, int alias, int tenant)
{
	if (way->n > 0)
	{
		add_links(b, way, alias);
		ea_sqlbuf_add(b, " AND ");
	}
	add_end(b, way, alias);
	ea_sqlbuf_addf(b, " = $%d", tenant);
}

/* -------- statements -------- */

void
ea_row_tenant_add(EaSqlBuf *b, EaEntity *entity, int alias, int tenant)
{
	Way			way;

	find_way(entity, &way);
	if (way.n == 0 || (b->nled > 0 && alias == b->led_alias))
	{
		add_condition(b, &way, alias, tenant);
		return;
	}
	ea_sqlbuf_add(b, "EXISTS (SELECT 1 FROM ");
	add_tables(b, &way);
	ea_sqlbuf_add(b, " WHERE ");
	add_condition(b, &way, alias, tenant);
	ea_sqlbuf_add(b, ")");
}

void
ea_row_tenant_select(EaSqlBuf *b, EaEntity *entity, int alias)
{
	Way			way;

	find_way(entity, &way);
	if (way.n > 0)
	{
		ea_sqlbuf_add(b, "(SELECT ");
		add_end(b, &way, alias);
		ea_sqlbuf_add(b, " FROM ");
		add_tables(b, &way);
		ea_sqlbuf_add(b, " WHERE ");
		add_links(b, &way, alias);
		ea_sqlbuf_add(b, ")");
	}
	else
		add_end(b, &way, alias);
}

void
ea_row_tenant_from(EaSqlBuf *b, EaEntity *entity, int alias)
{
	Way			way;

	find_way(entity, &way);
	ea_sqlbuf_add(b, ", ");
	add_tables(b, &way);
	b->nled = way.n;
	b->led_alias = alias;
	b->led = entity;
}

void
ea_row_tenant_hold(EaSqlBuf *b, const char *lock, int alias)
{
	ea_sqlbuf_add(b, lock);
	if (b->nled > 0)
		ea_sqlbuf_addf(b, " OF t%d", alias);
	ea_row_tenant_hold_way(b);
}

void
ea_row_tenant_hold_way(EaSqlBuf *b)
{
	Way			way;

	if (b->nled == 0)
		return;
	find_way(b->led, &way);
	for (int i = 0; i < way.n; i++)
		ea_sqlbuf_addf(b, " FOR %s OF o%d",
					   ea_row_tenant_lock(way.entities[i]), i + 1);
	b->looks = true;
}

/* No column of a table has such a name, which is quoted and has a blank. */
#define ITS_TENANT "\"its tenant\""

void
ea_row_tenant_stand_in(EaEntity *stand_in)
{
	const char *column = stand_in->row_tenant.column;

	if (!stand_in->tenant_scoped ||
		(column != NULL && ea_columns_find(stand_in->id_column, column) < 0))
		return;
	memset(&stand_in->row_tenant, 0, sizeof(EaRowTenant));
	stand_in->row_tenant.column = ITS_TENANT;
}
