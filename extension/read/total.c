#include "postgres.h"

#include "catalog/pg_type.h"

#include "query/filter.h"
#include "read/total.h"

/*
 * Count by an index: all rows, those of a relationship's column, those with
 * the values that the filter names.
 */
static bool
count_by_index(EaRequest *req, const EaListSource *source,
			   const EaRsql *filter, int64 *count)
{
	EaCountKey	keys[EA_COUNT_MAX_KEYS + 1];
	int			n = filter == NULL ? 0 : ea_filter_values(filter, keys);

	if (n < 0)
		return false;
	if (source->field != NULL)
	{
		if (source->field->kind != EA_TO_MANY ||
			source->field->entity->key.nparts > 0)
			return false;
		keys[n].column = source->field->members[0].column;
		keys[n].type = source->field->entity->key.type->oid;
		keys[n++].value = ea_id_datum(&source->field->entity->key,
									  source->parent);
	}
	return ea_sqlbuf_count(req, source->entity, n, keys, count);
}

int64
ea_total_of_list(EaRequest *req, const EaListSource *source,
				 const EaRsql *filter)
{
	int64		count = 0;
	EaSqlBuf	b;

	if (count_by_index(req, source, filter, &count))
		return count;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT pg_catalog.count(*)");
	ea_sqlbuf_reads(&b, INT8OID);
	ea_list_source(&b, source, filter, ea_sqlbuf_reserve(&b));
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, ea_exec_read_int64, &count);
	return count;
}
