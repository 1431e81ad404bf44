/*
 * Filters over a table of columns, for lists without an entity.
 */
#ifndef EA_FLAT_FILTER_H
#define EA_FLAT_FILTER_H

#include "model/sqlbuf.h"
#include "model/types.h"
#include "query/rsql.h"
#include "request/query_string.h"

typedef enum EaListKind
{
	EA_LIST_UUID,
	EA_LIST_STRING,
	EA_LIST_BOOLEAN,
	EA_LIST_DATETIME,
	EA_LIST_STRINGS,			/* text[] */
	EA_LIST_OBJECT				/* jsonb, selected as text */
} EaListKind;

typedef struct EaListColumn
{
	const char *name;			/* member of the record */
	const char *sql;			/* expression over the tables */
	EaListKind	kind;
	bool		nullable;
	const char *schema;			/* more of its JSON schema, NULL: nothing
								 * (openapi/openapi.h has the notation) */
} EaListColumn;

/* The one of n columns that has this name, or NULL. */
extern const EaListColumn *ea_flat_filter_column(const EaListColumn *columns,
												 int n, const char *name);

/* ` (did you mean "x"?)` for one of the columns, or "". */
extern const char *ea_flat_filter_guess(const EaListColumn *columns, int n,
										const char *name);

/* The type of a column's values, NULL where there is no single one. */
extern const EaType *ea_flat_filter_type(const EaListColumn *column);

/*
 * The value of a comparison; throws 400 for a text that is no literal of the
 * column's type, or none of its schema's choices.
 */
extern EaValue ea_flat_filter_value(EaRequest *req, const EaRsql *comparison,
									const EaListColumn *column);

/*
 * The filter of the query string, or NULL; throws 400 for a text that is no
 * RSQL.
 */
extern EaRsql *ea_flat_filter_parse(EaRequest *req, const EaQuery *query);

/*
 * Append the condition that it is; throws 400 for a condition that is not
 * possible.
 */
extern void ea_flat_filter_add(EaSqlBuf *b, const EaRsql *tree,
							   const EaListColumn *columns, int n);

#endif							/* EA_FLAT_FILTER_H */
