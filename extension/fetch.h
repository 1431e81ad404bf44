/*-------------------------------------------------------------------------
 *
 * fetch.h
 *	  Read resources: a list, one, and what relationships lead to.
 *
 * extension/fetch.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_FETCH_H
#define EA_FETCH_H

#include "context.h"
#include "document.h"
#include "rsql.h"

/* GET /api/v{n}/{entities} */
extern void ea_fetch_list(EaRequest *req);

/* GET /api/v{n}/{entities}/{id} */
extern void ea_fetch_one(EaRequest *req);

/*
 * What a list is of: an entity's resources, or those of them that are the
 * members of a to-many relationship of one resource.
 */
typedef struct EaListSource
{
	EaEntity   *entity;
	EaField    *field;			/* NULL: all */
	const pg_uuid_t *parent;
} EaListSource;

/* Answer with a page of a list; path is its address without the query. */
extern void ea_fetch_page(EaRequest *req, EaQuery *query,
						  const EaListSource *source, const char *path);

/* Append ` FROM ... WHERE ...` of a list, as t<alias>, taken before. */
extern void ea_fetch_source(EaSqlBuf *b, const EaListSource *source,
							const EaRsql *filter, int alias);

/* How many rows a list has. */
extern int64 ea_fetch_count(EaRequest *req, const EaListSource *source,
							const EaRsql *filter);

/* The same by cursor (fetch_cursor.c); the sink's document is the answer. */
extern void ea_fetch_cursor_page(EaRowSink *sink, const EaListSource *source,
								 const EaRsql *filter, const char *path);

/* Read the row of a sink's shape with this id, if it is visible. */
extern void ea_fetch_row(EaRowSink *sink, const pg_uuid_t *id,
						 EaExecMode mode);

/*
 * The id segment of the path; throws the 404 of a hidden resource when it
 * is no UUID.
 */
extern void ea_fetch_path_id(EaRequest *req, pg_uuid_t *id);

#endif							/* EA_FETCH_H */
