/*
 * A manifest is applied as a whole or not at all and leaves no trace when it
 * fails.  Two things can be pending: steps that it leaves for after its
 * transaction, such as indexes of tables that hold rows, and an update of the
 * extension, whose library is newer than its objects in this database.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/jsonfmt.h"
#include "engine/exec.h"
#include "management/migrations.h"
#include "model/invalid_indexes.h"

typedef struct Installed
{
	char	   *version;
	bool		has_revision;
	int32		revision;		/* the last one */
	int64		applied;
} Installed;

static void
read_installed(void *arg, TupleTableSlot *slot)
{
	Installed  *installed = arg;

	installed->version = TextDatumGetCString(slot->tts_values[0]);
	installed->has_revision = !slot->tts_isnull[1];
	installed->revision = DatumGetInt32(slot->tts_values[1]);
	installed->applied = DatumGetInt64(slot->tts_values[2]);
}

static void
write_revision(void *arg, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	int			n;
	char	  **statements = ea_exec_array_text(values[4], &n);

	ea_jsonfmt_put(arg, "%,{'revision':%d,'appliedAt':%t,'checksum':%q,"
				   "'extensionVersion':%q,'statements':%n}",
				   DatumGetInt32(values[0]), DatumGetTimestampTz(values[1]),
				   TextDatumGetCString(values[2]),
				   TextDatumGetCString(values[3]), statements, n);
}

/* -------- what is pending -------- */

/* The kind of a step's object; the name of the index or constraint follows. */
static const struct
{
	const char *kind;
	const char *what;
	const char *why;
}			kinds[] =
{
	{"index", "index",
	"The table holds rows; it is built without locking them."},
	{"unique", "unique key",
		"The table holds rows; "
	"until it has been built equal values are not refused."},
	{"validate", "constraint",
		"It holds for what is written; "
	"the rows from before are yet to be checked."},
	{"required", "required field",
		"It holds for what is written; "
	"the rows from before are yet to be checked."}
};

/* Why a step failed.  PostgreSQL's own words may quote values of a tenant. */
static const struct
{
	const char *sqlstate;
	const char *reason;
}			failures[] =
{
	{"23502", "Rows have no value for it."},
	{"23503", "Rows refer to something that does not exist."},
	{"23505", "Rows have equal values."},
	{"23514", "Rows break it."},
	{"40P01", "It was in the way of another transaction."},
	{"53100", "The disk is full."},
	{"55P03", "The table was in use for too long."},
	{"57014", "It was cancelled."}
};

typedef struct Pending
{
	StringInfo	out;
	int			n;
	bool		failed;
} Pending;

static const char *
failure_reason(const char *sqlstate)
{
	for (int i = 0; i < lengthof(failures); i++)
	{
		if (strcmp(failures[i].sqlstate, sqlstate) == 0)
			return failures[i].reason;
	}
	return psprintf("SQLSTATE %s; the server's log says more.", sqlstate);
}

static char *
text_or_null(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL :
		TextDatumGetCString(slot->tts_values[column]);
}

static void
write_step(void *arg, TupleTableSlot *slot)
{
	Pending    *pending = arg;
	Datum	   *values = slot->tts_values;
	char	   *kind = TextDatumGetCString(values[0]);
	bool		failed = !slot->tts_isnull[6];
	int			i = 0;
	int			n;
	char	  **statements = ea_exec_array_text(values[5], &n);

	while (i < lengthof(kinds) - 1 && strcmp(kinds[i].kind, kind) != 0)
		i++;
	ea_jsonfmt_put(pending->out, "%,{'status':%q,'what':%q,'why':%q,"
				   "'entity':%q,'field':%q,'revision':%d,'statements':%n",
				   failed ? "FAILED" : "PENDING",
				   psprintf("%s %s", kinds[i].what,
							TextDatumGetCString(values[1])),
				   kinds[i].why, text_or_null(slot, 2), text_or_null(slot, 3),
				   DatumGetInt32(values[4]), statements, n);
	if (failed)
		ea_jsonfmt_put(pending->out, ",'failedAt':%t,'reason':%q,'hint':%q",
					   DatumGetTimestampTz(values[6]),
					   failure_reason(TextDatumGetCString(values[7])),
					   "Change the rows or what stands in the way, "
					   "then run entityapi-shim apply --resume; "
					   "or apply manifests that do without it.");
	appendStringInfoChar(pending->out, '}');
	pending->n++;
	pending->failed = pending->failed || failed;
}

/* The objects in this database are older than the library. */
static void
write_update(Pending *pending, const char *version)
{
	ea_jsonfmt_put(pending->out, "{'status':'PENDING','what':%q,"
				   "'why':'The library is of another version "
				   "than its objects in the database.',"
				   "'statements':['ALTER EXTENSION entityapi UPDATE']}",
				   psprintf("extension %s to " EA_VERSION, version));
	pending->n++;
}

/* Members of the list; SECURITY DEFINER's role owns what is looked at. */
static void
list_pending(Pending *pending, const char *version)
{
	if (strcmp(version, EA_VERSION) != 0)
	{
		/* older objects may have no steps */
		write_update(pending, version);
		return;
	}
	ea_exec_each(EA_EXEC_READ, "SELECT kind, name, entity, field, revision,"
				 " array_agg(statement ORDER BY part), failed_at, failure"
				 " FROM entityapi.list_steps()"
				 " GROUP BY step, kind, name, entity, field, revision,"
				 " failed_at, failure ORDER BY step", EA_NO_PARAMS,
				 EA_READER(write_step, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
						   INT4OID, TEXTARRAYOID, TIMESTAMPTZOID, TEXTOID),
				 pending);
}

/* Differences, and what is only a notice. */
typedef struct Adrift
{
	Pending		differences;
	Pending		notices;
} Adrift;

static void
write_difference(void *arg, TupleTableSlot *slot)
{
	Adrift	   *adrift = arg;
	Pending    *kind = DatumGetBool(slot->tts_values[4]) ? &adrift->notices :
		&adrift->differences;

	ea_jsonfmt_put(kind->out,
				   "%,{'entity':%q,'field':%q,'message':%q,'hint':%q}",
				   text_or_null(slot, 0), text_or_null(slot, 1),
				   text_or_null(slot, 2), text_or_null(slot, 3));
	kind->n++;
}

/* Older objects have no such function. */
static void
list_differences(Adrift *adrift, const char *version)
{
	if (strcmp(version, EA_VERSION) == 0)
		ea_exec_each(EA_EXEC_READ, "SELECT entity, field, message, hint,"
					 " kind = 'notice' FROM entityapi.list_differences()",
					 EA_NO_PARAMS,
					 EA_READER(write_difference, TEXTOID, TEXTOID, TEXTOID,
							   TEXTOID, BOOLOID), adrift);
}

static void
list_invalid_indexes(StringInfo out)
{
	List	   *found = ea_invalid_indexes_find();
	ListCell   *lc;

	foreach(lc, found)
	{
		const EaInvalidIndex *index = lfirst(lc);

		ea_jsonfmt_put(out, "%,{'entity':%q,'table':%q,'index':%q,'hint':%q}",
					   index->entity, index->table, index->index,
					   psprintf(index->left ? "DROP INDEX CONCURRENTLY %s" :
								"REINDEX INDEX CONCURRENTLY %s",
								index->index));
	}
}

/* GET /manage/migrations/status */
void
ea_migrations_status(EaRequest *req)
{
	StringInfo	out = req->out;
	Installed	installed;
	Pending		pending = {makeStringInfo()};
	Adrift		adrift = {{makeStringInfo()}, {makeStringInfo()}};
	StringInfo	invalid = makeStringInfo();

	ea_exec_one(EA_EXEC_READ, "SELECT e.extversion, r.last, r.applied"
				" FROM pg_catalog.pg_extension e,"
				" (SELECT max(revision) AS last, count(*) AS applied"
				" FROM entityapi.revision) r WHERE e.extname = 'entityapi'",
				EA_NO_PARAMS,
				EA_READER(read_installed, TEXTOID, INT4OID, INT8OID),
				&installed);
	list_pending(&pending, installed.version);
	list_differences(&adrift, installed.version);
	list_invalid_indexes(invalid);

	ea_jsonfmt_put(out, "{'status':%q,'extensionVersion':%q,"
				   "'manifestRevision':%s,'applied':%l,'pending':[%s],"
				   "'differences':[%s],'notices':[%s],'invalidIndexes':[%s],"
				   "'revisions':[",
				   pending.failed || adrift.differences.n > 0 ? "FAILED" :
				   pending.n > 0 ? "PENDING" : "UP_TO_DATE", installed.version,
				   installed.has_revision ?
				   psprintf("%d", installed.revision) : "null",
				   installed.applied, pending.out->data,
				   adrift.differences.out->data, adrift.notices.out->data,
				   invalid->data);
	ea_exec_each(EA_EXEC_READ,
				 "SELECT revision, applied_at, checksum, extension_version,"
				 " statements FROM entityapi.revision ORDER BY revision DESC",
				 EA_NO_PARAMS,
				 EA_READER(write_revision, INT4OID, TIMESTAMPTZOID, TEXTOID,
						   TEXTOID, TEXTARRAYOID), out);
	ea_jsonfmt_put(out, "]}");
	req->status = 200;
}
