/*
 * As a rule no index is invalid, so this is checked first, by a scan of
 * pg_index alone.  Only for indexes that this finds it is asked whose table it
 * is, and whether they are being built.
 *
 * Two things show that.  The progress of CREATE INDEX CONCURRENTLY names the
 * index that it builds, between its transactions as well.  REINDEX
 * CONCURRENTLY names one index at a time, and holds a lock for its session on
 * all of them, old and new; so does DROP INDEX CONCURRENTLY.  The view of the
 * progress hides that of other roles, so this reads the shared memory that it
 * shows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/exec.h"
#include "model/invalid_indexes.h"

/* One that the catalogs had. */
typedef struct Candidate
{
	Oid			oid;
	EaInvalidIndex index;
	bool		locked;			/* by the session that works on it */
} Candidate;

/* The answer as long as no invalidation message comes. */
static struct
{
	bool		known;
	uint64		messages;
	int			n;
}			kept;

static List *
find_building(void)
{
	List	   *building = NIL;
	int			n = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *local = ea_compat_local_backend(i);
		PgBackendStatus *of = local == NULL ? NULL : &local->backendStatus;
		const int64 *progress;

		if (of == NULL || of->st_databaseid != MyDatabaseId ||
			of->st_progress_command != PROGRESS_COMMAND_CREATE_INDEX)
			continue;
		progress = of->st_progress_param;
		building = lappend_oid(building, (Oid)
							   progress[PROGRESS_CREATEIDX_INDEX_OID]);
	}
	return building;
}

#define ANY_SQL \
	"SELECT 1 FROM pg_catalog.pg_index WHERE NOT indisvalid LIMIT 1"

/* The tables and join tables of the declarations. */
#define EACH_SQL \
	"SELECT i.indexrelid, o.name," \
	" pg_catalog.quote_ident(n.nspname) || '.'" \
	" || pg_catalog.quote_ident(c.relname)," \
	" pg_catalog.quote_ident(n.nspname) || '.'" \
	" || pg_catalog.quote_ident(x.relname)," \
	" x.relname ~ '_cc(new|old)[0-9]*$'," \
	" EXISTS (SELECT FROM pg_catalog.pg_locks l" \
	" WHERE l.locktype = 'relation' AND l.database = (SELECT d.oid" \
	" FROM pg_catalog.pg_database d" \
	" WHERE d.datname = pg_catalog.current_database())" \
	" AND l.relation = i.indexrelid AND l.granted" \
	" AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock'," \
	" 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))" \
	" FROM pg_catalog.pg_index i" \
	" JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid" \
	" JOIN pg_catalog.pg_class c ON c.oid = i.indrelid" \
	" JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace" \
	" JOIN (SELECT DISTINCT ON (t.schema, t.name) e.name AS entity," \
	" t.schema, t.name AS relation FROM entityapi.entity e," \
	" LATERAL (SELECT e.definition::jsonb AS d) p," \
	" LATERAL (SELECT d ->> 'schema' AS schema, d ->> 'table' AS name" \
	" UNION ALL SELECT f -> 'join' ->> 'schema', f -> 'join' ->> 'table'" \
	" FROM pg_catalog.jsonb_array_elements(d -> 'fields') f" \
	" WHERE f ? 'join') t ORDER BY t.schema, t.name, e.name)" \
	" o (name, schema, relation)" \
	" ON o.schema = n.nspname AND o.relation = c.relname" \
	" WHERE NOT i.indisvalid ORDER BY 2, 3, 4"

static void
read_candidate(void *arg, TupleTableSlot *slot)
{
	List	  **candidates = arg;
	Datum	   *values = slot->tts_values;
	Candidate  *candidate = palloc(sizeof(Candidate));

	candidate->oid = DatumGetObjectId(values[0]);
	candidate->index.entity = TextDatumGetCString(values[1]);
	candidate->index.table = TextDatumGetCString(values[2]);
	candidate->index.index = TextDatumGetCString(values[3]);
	candidate->index.left = DatumGetBool(values[4]);
	candidate->locked = DatumGetBool(values[5]);
	*candidates = lappend(*candidates, candidate);
}

/*
 * An index that was being built when it was read can be whole, or gone, by
 * now.
 */
static bool
is_invalid_still(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	bool		invalid = HeapTupleIsValid(tuple) &&
	!((Form_pg_index) GETSTRUCT(tuple))->indisvalid;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return invalid;
}

/* EaInvalidIndex *; builds: some were left out that are being built */
static List *
find_indexes(bool *builds)
{
	List	   *candidates = NIL;
	List	   *found = NIL;
	List	   *building;
	ListCell   *lc;

	*builds = false;
	if (RecoveryInProgress() ||
		ea_exec_one(EA_EXEC_READ, ANY_SQL, EA_NO_PARAMS, NULL, NULL) == 0)
		return NIL;
	ea_exec_each(EA_EXEC_READ, EACH_SQL, EA_NO_PARAMS,
				 EA_READER(read_candidate, OIDOID, TEXTOID, TEXTOID, TEXTOID,
						   BOOLOID, BOOLOID), &candidates);
	building = find_building();

	/* a session that ended before that has sent its invalidation messages */
	(void) ea_invalidate_messages();
	foreach(lc, candidates)
	{
		Candidate  *candidate = lfirst(lc);

		if (candidate->locked || list_member_oid(building, candidate->oid))
			*builds = true;
		else if (is_invalid_still(candidate->oid))
			found = lappend(found, &candidate->index);
	}
	return found;
}

List *
ea_invalid_indexes_find(void)
{
	bool		builds;

	return find_indexes(&builds);
}

int
ea_invalid_indexes_count(void)
{
	uint64		messages = ea_invalidate_messages();
	bool		builds;

	if (kept.known && kept.messages == messages)
		return kept.n;
	kept.n = list_length(find_indexes(&builds));
	kept.known = !builds;
	kept.messages = messages;
	return kept.n;
}
