/*
 * Records of /manage and /auth, described by a table of columns: one of them,
 * or a page with filter and sort.
 */
#ifndef EA_RECORDS_H
#define EA_RECORDS_H

#include "audit/audit.h"
#include "query/flat_filter.h"
#include "request/request.h"

/*
 * In all SQL of a listing $1 is the scope, a uuid or null, and $2 the time
 * of the request.  The first column is the id.
 */
typedef struct EaListing
{
	const char *from;			/* "entityapi.x x JOIN ... WHERE ..." */
	const EaListColumn *columns;
	int			ncolumns;
} EaListing;

#define EA_LISTING(from, ...) \
	{(from), (const EaListColumn[]) {__VA_ARGS__}, \
		lengthof(((const EaListColumn[]) {__VA_ARGS__}))}

/*
 * Answer with a page of the records (200), as the query string asks for it:
 * filter, sort, page[number], page[size], page[totals].  Throws 400 with
 * source.parameter for what cannot be asked.
 */
extern void ea_records_page(EaRequest *req, const EaListing *listing,
							const pg_uuid_t *scope);

/*
 * Answer with one record (200) and, unless extra is NULL, a further string
 * member of that name; 404 if there is no such record.
 */
extern void ea_records_one(EaRequest *req, const EaListing *listing,
						   const pg_uuid_t *scope, const pg_uuid_t *id,
						   const char *extra, const char *value);

/* The same of one that the request has made (201); notes it for the log. */
extern void ea_records_made(EaRequest *req, const EaListing *listing,
							const pg_uuid_t *scope, const pg_uuid_t *id,
							const char *extra, const char *value);

/*
 * Note all members of a record but its id and those that are null: as what
 * was made, or as what is about to go.
 */
extern void ea_records_note(EaRequest *req, const EaListing *listing,
							const pg_uuid_t *scope, const pg_uuid_t *id,
							bool made, EaAuditRecord *record);

#endif							/* EA_RECORDS_H */
