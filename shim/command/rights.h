/*
 * What a change of the manifests would give to roles and take from them.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <libpq-fe.h>

/* Of the documents and the losses that are allowed. */
#define RIGHTS_SQL \
	"select role, entity," \
	" coalesce(rows_before::text, '-') || m.mark," \
	" coalesce(rows_after::text, '-') || m.mark," \
	" coalesce(rows_gained::text, '-') || m.mark," \
	" coalesce(rows_lost::text, '-') || m.mark," \
	" concat_ws('; '," \
	" '+ ' || nullif(array_to_string(gained, ', '), '')," \
	" '- ' || nullif(array_to_string(lost, ', '), ''))," \
	" rows_before is null, not complete" \
	" from entityapi.compare_rights($1::json, $2::text[])," \
	" lateral (select case when complete then '' else '*' end) m (mark)" \
	" order by role collate \"C\", entity collate \"C\""

/* The rows of that, as a table. */
extern void rights_print(const PGresult *result);

#endif							/* RIGHTS_H */
