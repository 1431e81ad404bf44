#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "write/deletion_mark.h"

void
ea_deletion_mark_select(EaSqlBuf *b, EaEntity *entity, int alias)
{
	ea_sqlbuf_select(b, alias, entity->deleted_column, TIMESTAMPTZOID);
	if (entity->deletion_column == NULL)
		return;
	ea_sqlbuf_add(b, ", ");
	ea_sqlbuf_select(b, alias, entity->deletion_column, UUIDOID);
}

void
ea_deletion_mark_read(EaDeletionMark *deletion, EaEntity *entity,
					  TupleTableSlot *slot, int *column)
{
	deletion->at = DatumGetTimestampTz(slot->tts_values[(*column)++]);
	deletion->has_column = entity->deletion_column != NULL;
	if (!deletion->has_column)
		return;
	deletion->has_id = !slot->tts_isnull[*column];
	if (deletion->has_id)
		deletion->id = *DatumGetUUIDP(slot->tts_values[*column]);
	(*column)++;
}

void
ea_deletion_mark_same(EaSqlBuf *b, EaEntity *entity, int alias,
					  const EaDeletionMark *deletion)
{
	ea_sqlbuf_addf(b, " AND t%d.%s = ", alias, entity->deleted_column);
	ea_sqlbuf_value(b, TIMESTAMPTZOID, TimestampTzGetDatum(deletion->at),
					false);
	if (!deletion->has_column || entity->deletion_column == NULL)
		return;
	ea_sqlbuf_addf(b, " AND t%d.%s IS NOT DISTINCT FROM ", alias,
				   entity->deletion_column);
	ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(&deletion->id),
					!deletion->has_id);
}
