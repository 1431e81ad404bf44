/*
 * The resources that a list is of.
 */
#ifndef EA_LIST_SOURCE_H
#define EA_LIST_SOURCE_H

#include "model/sqlbuf.h"
#include "query/rsql.h"

/*
 * The resources of a list: an entity's, or those of them that are the members
 * of a to-many relationship of one resource.
 */
typedef struct EaListSource
{
	EaEntity   *entity;
	EaField    *field;			/* NULL: all */
	const EaId *parent;
	EaShown		shown;
} EaListSource;

/*
 * Append ` FROM ... WHERE ...` of a list, as t<alias>, taken before; rows that
 * the filter leads to are live.
 */
extern void ea_list_source(EaSqlBuf *b, const EaListSource *source,
						   const EaRsql *filter, int alias);

#endif							/* EA_LIST_SOURCE_H */
