#include "postgres.h"

#include "miscadmin.h"

#include "request/errors.h"
#include "write/written.h"

void
ea_written_refuse(const char *table)
{
	ereport(ERROR,
			(errcode(ERRCODE_EA_NOT_WRITTEN),
			 errmsg("not all is written that had to be, in the table %s",
					table),
			 errhint("A trigger skips rows, or writes others in their "
					 "place.")));
}

void
ea_written_run(EaSqlBuf *b, const EaEntity *entity, bool one_row, uint64 rows,
			   EaRowFunction row, void *arg)
{
	if (ea_sqlbuf_run(b, EA_EXEC_WRITE, one_row, row, arg) != rows)
		ea_written_refuse(entity->table);
}

void
ea_written_none(EaSqlBuf *left, const EaEntity *entity)
{
	ea_sqlbuf_add(left, " LIMIT 1");
	if (ea_sqlbuf_run(left, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		ea_written_refuse(entity->table);
}

void
ea_written_all(EaSqlBuf *found, const EaEntity *entity, const EaIds *ids)
{
	EaIds		there = {ids->key};

	ea_sqlbuf_run_ids(found, EA_EXEC_WRITE, &there);
	ea_id_sort(&there);
	for (int i = 0; i < ids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!ea_id_is_among(&ids->items[i], &there))
			ea_written_refuse(entity->table);
	}
}

/* `SELECT id FROM <the entity's rows, deleted ones too> AND id = ANY (ids)` */
static int
select_ids(EaSqlBuf *b, EaRequest *req, EaEntity *entity, const EaIds *ids)
{
	int			alias;

	ea_sqlbuf_init(b, req);
	b->deleted_too = true;
	ea_sqlbuf_add(b, "SELECT ");
	ea_sqlbuf_select_id(b, 0, entity);
	alias = ea_sqlbuf_from(b, entity, EA_OP_DELETE);
	ea_sqlbuf_among(b, alias, entity->id_column, "= ANY", ids);
	return alias;
}

void
ea_written_rows(const EaSqlBuf *b, EaEntity *entity, const EaIds *ids,
				EaWrittenAs as)
{
	EaSqlBuf	found;
	int			alias;

	if (!ea_written_asks(b))
		return;
	alias = select_ids(&found, b->req, entity, ids);
	if (as == EA_WRITTEN_GONE)
	{
		ea_written_none(&found, entity);
		return;
	}
	if (entity->soft_delete && as != EA_WRITTEN_THERE)
		ea_sqlbuf_addf(&found, " AND t%d.%s IS %sNULL", alias,
					   entity->deleted_column,
					   as == EA_WRITTEN_DELETED ? "NOT " : "");
	ea_written_all(&found, entity, ids);
}
