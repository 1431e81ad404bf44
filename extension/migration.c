/*-------------------------------------------------------------------------
 *
 * migration.c
 *	  What was applied to this database.
 *
 * A manifest is applied as a whole or not at all and leaves no trace when it
 * fails, so what can be pending is an update of the extension: its library
 * is newer than its objects in this database.
 *
 * extension/migration.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "exec.h"
#include "jsonwrite.h"
#include "migration.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

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
	StringInfo	out = arg;
	Datum	   *values = slot->tts_values;
	char	  **statements;
	int			n;

	ea_jsonwrite_comma(out);
	appendStringInfoChar(out, '{');
	ea_jsonwrite_key(out, "revision");
	ea_jsonwrite_int64(out, DatumGetInt32(values[0]));
	ea_jsonwrite_key(out, "appliedAt");
	ea_jsonwrite_timestamp(out, DatumGetTimestampTz(values[1]));
	ea_jsonwrite_key(out, "checksum");
	ea_jsonwrite_cstring(out, TextDatumGetCString(values[2]));
	ea_jsonwrite_key(out, "extensionVersion");
	ea_jsonwrite_cstring(out, TextDatumGetCString(values[3]));
	ea_jsonwrite_key(out, "statements");
	appendStringInfoChar(out, '[');
	statements = ea_exec_array_text(values[4], &n);
	for (int i = 0; i < n; i++)
	{
		ea_jsonwrite_comma(out);
		ea_jsonwrite_cstring(out, statements[i]);
	}
	ea_jsonwrite_lit(out, "]}");
}

/* GET /manage/migrations/status */
void
ea_migration_status(EaRequest *req)
{
	StringInfo	out = req->out;
	Installed	installed;
	bool		pending;

	ea_exec_run("SELECT e.extversion, r.last, r.applied"
				" FROM pg_catalog.pg_extension e,"
				" (SELECT max(revision) AS last, count(*) AS applied"
				" FROM entityapi.revision) r WHERE e.extname = 'entityapi'",
				0, NULL, NULL, NULL, EA_EXEC_READ, true, read_installed,
				&installed);
	pending = strcmp(installed.version, EA_VERSION) != 0;

	appendStringInfoChar(out, '{');
	ea_jsonwrite_key(out, "status");
	ea_jsonwrite_cstring(out, pending ? "PENDING" : "UP_TO_DATE");
	ea_jsonwrite_key(out, "extensionVersion");
	ea_jsonwrite_cstring(out, installed.version);
	ea_jsonwrite_key(out, "manifestRevision");
	if (installed.has_revision)
		ea_jsonwrite_int64(out, installed.revision);
	else
		ea_jsonwrite_lit(out, "null");
	ea_jsonwrite_key(out, "applied");
	ea_jsonwrite_int64(out, installed.applied);
	ea_jsonwrite_key(out, "pending");
	ea_jsonwrite_int64(out, pending ? 1 : 0);
	ea_jsonwrite_key(out, "revisions");
	appendStringInfoChar(out, '[');
	ea_exec_run("SELECT revision, applied_at, checksum, extension_version,"
				" statements FROM entityapi.revision ORDER BY revision DESC",
				0, NULL, NULL, NULL, EA_EXEC_READ, false, write_revision,
				out);
	ea_jsonwrite_lit(out, "]}");
	req->status = 200;
}
