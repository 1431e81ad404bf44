/*
 * What was applied to this database.
 *
 * A manifest is applied as a whole or not at all and leaves no trace when it
 * fails.  Pending can be what it leaves for after its transaction, such as
 * indexes of tables that hold rows, and an update of the extension: its
 * library is newer than its objects in this database.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/jsonwrite.h"
#include "engine/exec.h"
#include "management/migrations.h"

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
write_string(StringInfo out, const char *key, const char *value)
{
	ea_jsonwrite_key(out, key);
	ea_jsonwrite_cstring(out, value);
}

static void
write_statements(StringInfo out, Datum array)
{
	char	  **statements;
	int			n;

	ea_jsonwrite_key(out, "statements");
	appendStringInfoChar(out, '[');
	statements = ea_exec_array_text(array, &n);
	for (int i = 0; i < n; i++)
	{
		ea_jsonwrite_comma(out);
		ea_jsonwrite_cstring(out, statements[i]);
	}
	appendStringInfoChar(out, ']');
}

static void
write_revision(void *arg, TupleTableSlot *slot)
{
	StringInfo	out = arg;
	Datum	   *values = slot->tts_values;

	ea_jsonwrite_comma(out);
	appendStringInfoChar(out, '{');
	ea_jsonwrite_key(out, "revision");
	ea_jsonwrite_int64(out, DatumGetInt32(values[0]));
	ea_jsonwrite_key(out, "appliedAt");
	ea_jsonwrite_timestamp(out, DatumGetTimestampTz(values[1]));
	write_string(out, "checksum", TextDatumGetCString(values[2]));
	write_string(out, "extensionVersion", TextDatumGetCString(values[3]));
	write_statements(out, values[4]);
	appendStringInfoChar(out, '}');
}

/* -------- what is pending -------- */

/* What a step is about; the name of the index or constraint comes after. */
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

static void
write_nullable(StringInfo out, const char *key, TupleTableSlot *slot,
			   int column)
{
	write_string(out, key, slot->tts_isnull[column] ? NULL :
				 TextDatumGetCString(slot->tts_values[column]));
}

static void
write_failure(StringInfo out, TupleTableSlot *slot, int column)
{
	const char *failure = TextDatumGetCString(slot->tts_values[column + 1]);

	ea_jsonwrite_key(out, "failedAt");
	ea_jsonwrite_timestamp(out, DatumGetTimestampTz(slot->tts_values[column]));
	write_string(out, "reason", failure_reason(failure));
	write_string(out, "hint",
				 "Change the rows or what stands in the way, "
				 "then run entityapi-shim apply --resume; "
				 "or apply manifests that do without it.");
}

static void
write_step(void *arg, TupleTableSlot *slot)
{
	Pending    *pending = arg;
	StringInfo	out = pending->out;
	char	   *kind = TextDatumGetCString(slot->tts_values[0]);
	bool		failed = !slot->tts_isnull[6];
	int			i = 0;

	while (i < lengthof(kinds) - 1 && strcmp(kinds[i].kind, kind) != 0)
		i++;
	ea_jsonwrite_comma(out);
	appendStringInfoChar(out, '{');
	write_string(out, "status", failed ? "FAILED" : "PENDING");
	write_string(out, "what",
				 psprintf("%s %s", kinds[i].what,
						  TextDatumGetCString(slot->tts_values[1])));
	write_string(out, "why", kinds[i].why);
	write_nullable(out, "entity", slot, 2);
	write_nullable(out, "field", slot, 3);
	ea_jsonwrite_key(out, "revision");
	ea_jsonwrite_int64(out, DatumGetInt32(slot->tts_values[4]));
	write_statements(out, slot->tts_values[5]);
	if (failed)
		write_failure(out, slot, 6);
	appendStringInfoChar(out, '}');
	pending->n++;
	pending->failed = pending->failed || failed;
}

/* The objects in this database are older than the library. */
static void
write_update(Pending *pending, const char *version)
{
	StringInfo	out = pending->out;

	appendStringInfoChar(out, '{');
	write_string(out, "status", "PENDING");
	write_string(out, "what",
				 psprintf("extension %s to " EA_VERSION, version));
	write_string(out, "why",
				 "The library is of another version "
				 "than its objects in the database.");
	ea_jsonwrite_key(out, "statements");
	ea_jsonwrite_lit(out, "[\"ALTER EXTENSION entityapi UPDATE\"]}");
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

/* GET /manage/migrations/status */
void
ea_migrations_status(EaRequest *req)
{
	StringInfo	out = req->out;
	Installed	installed;
	Pending		pending = {makeStringInfo()};

	ea_exec_one(EA_EXEC_READ, "SELECT e.extversion, r.last, r.applied"
				" FROM pg_catalog.pg_extension e,"
				" (SELECT max(revision) AS last, count(*) AS applied"
				" FROM entityapi.revision) r WHERE e.extname = 'entityapi'",
				EA_NO_PARAMS,
				EA_READER(read_installed, TEXTOID, INT4OID, INT8OID),
				&installed);
	list_pending(&pending, installed.version);

	appendStringInfoChar(out, '{');
	write_string(out, "status", pending.failed ? "FAILED" :
				 pending.n > 0 ? "PENDING" : "UP_TO_DATE");
	write_string(out, "extensionVersion", installed.version);
	ea_jsonwrite_key(out, "manifestRevision");
	if (installed.has_revision)
		ea_jsonwrite_int64(out, installed.revision);
	else
		ea_jsonwrite_lit(out, "null");
	ea_jsonwrite_key(out, "applied");
	ea_jsonwrite_int64(out, installed.applied);
	ea_jsonwrite_key(out, "pending");
	appendStringInfo(out, "[%s]", pending.out->data);
	ea_jsonwrite_key(out, "revisions");
	appendStringInfoChar(out, '[');
	ea_exec_each(EA_EXEC_READ,
				 "SELECT revision, applied_at, checksum, extension_version,"
				 " statements FROM entityapi.revision ORDER BY revision DESC",
				 EA_NO_PARAMS,
				 EA_READER(write_revision, INT4OID, TIMESTAMPTZOID, TEXTOID,
						   TEXTOID, TEXTARRAYOID), out);
	ea_jsonwrite_lit(out, "]}");
	req->status = 200;
}
