#include "postgres.h"

#include "query/filter.h"
#include "read/list_source.h"

void
ea_list_source(EaSqlBuf *b, const EaListSource *source,
			   const EaRsql *filter, int alias)
{
	EaField    *field = source->field;

	b->shown = source->shown;
	b->shown_alias = alias;
	ea_sqlbuf_from_as(b, source->entity, EA_OP_READ, alias);
	if (field != NULL && field->kind == EA_MANY_TO_MANY)
	{
		int			join;

		ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
		join = ea_sqlbuf_join_from(b, field);
		ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s", join, field->join_far, alias,
					   source->entity->id_column);
		ea_sqlbuf_is(b, join, field->join_near, &field->entity->key,
					 source->parent);
		ea_sqlbuf_add(b, ")");
	}
	else if (field != NULL)
		ea_sqlbuf_is(b, alias, field->members[0].column, &field->entity->key,
					 source->parent);
	if (filter != NULL)
		ea_filter_where(b, source->entity, alias, filter);
}
