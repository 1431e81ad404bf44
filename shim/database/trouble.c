/*
 * What libpq says of a failed connection is for people: for the log.  Here it
 * is asked again in a way that gives SQLSTATEs, and then for what the service
 * needs, in the order in which it would fail.
 */
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "database/brief.h"
#include "database/trouble.h"

/* How long finding the reason may take, beside as long for one statement. */
#define PATIENCE_MICROS 1000000

/* All that the service needs of a database, in one row. */
#define LOOK_SQL \
	"select pg_catalog.pg_is_in_recovery()" \
	" or pg_catalog.current_setting('transaction_read_only')" \
	" operator(pg_catalog.=) 'on'," \
	" (select extversion from pg_catalog.pg_extension" \
	" where extname operator(pg_catalog.=) 'entityapi')," \
	" (select pg_catalog.has_function_privilege(p.oid, 'execute')" \
	" and pg_catalog.has_schema_privilege(n.oid, 'usage')" \
	" from pg_catalog.pg_proc p join pg_catalog.pg_namespace n" \
	" on n.oid operator(pg_catalog.=) p.pronamespace" \
	" where n.nspname operator(pg_catalog.=) 'entityapi'" \
	" and p.proname operator(pg_catalog.=) 'handle'" \
	" and pg_catalog.oidvectortypes(p.proargtypes)" \
	" operator(pg_catalog.=) 'bytea')"

/* Those found by a look, at their places in the table. */
enum
{
	ENCODING, READ_ONLY, EXTENSION_MISSING, EXTENSION_OLDER, RIGHTS_MISSING
};

#define MISSING_TEXT \
	"the database has no extension entityapi: CREATE EXTENSION entityapi"

static const struct trouble troubles[] =
{
	[ENCODING] = {NULL, "ENCODING",
	"the database has another encoding than UTF8: restore a dump of it into "
	"one made with createdb -T template0 -E UTF8", false},
	[READ_ONLY] = {NULL, "READ_ONLY",
	"the database takes no writes: let \"database\" name the primary", false},
	[EXTENSION_MISSING] = {"42883", "EXTENSION_MISSING", MISSING_TEXT, false},
	[EXTENSION_OLDER] = {NULL, "EXTENSION_OLDER",
	"the extension is older than this program, " SHIM_VERSION
	": ALTER EXTENSION entityapi UPDATE", true},
	[RIGHTS_MISSING] = {"42501", "RIGHTS_MISSING",
	"the login may not call entityapi.handle(): see who is granted that",
	false},
	{"3F000", "EXTENSION_MISSING", MISSING_TEXT, false},
	{"58P01", "FILES_MISSING",
	"the server lacks the files of the extension: install them there", false},
	{"28", "LOGIN_REFUSED",
	"the login is refused: look at user, password and pg_hba.conf", false},
	{"3D000", "DATABASE_MISSING",
	"there is no such database: look at dbname in \"database\"", false},
	{"53300", "CONNECTIONS_TAKEN",
	"no connection is left: raise max_connections or lower pool_size", false},
	{"57P03", "STARTING", "PostgreSQL is starting, stopping or recovering",
	false},
	{"57P01", "STARTING", "PostgreSQL is stopping", false}
};

const struct trouble trouble_pooler =
{
	NULL, "SESSION_POOLING_NEEDED",
	"a pooler gives the backend of a session to others: have it pool by"
	" sessions, as PgBouncer with pool_mode = session and server_reset_query ="
	" DISCARD ALL, or name the server itself in \"database\"", false
};

const struct trouble *
trouble_of(const char *sqlstate)
{
	size_t		i;

	for (i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
	{
		const char *wanted = troubles[i].sqlstate;

		if (wanted != NULL && strncmp(sqlstate, wanted, strlen(wanted)) == 0)
			return &troubles[i];
	}
	return NULL;
}

/*
 * The SQLSTATE in a message of that verbosity: "FATAL:  28P01: ...", in which
 * the first word may be of any language.  Several hosts have a line each; the
 * first one that answered is taken.
 */
static const struct trouble *
by_message(const char *message)
{
	const char *at = message;

	while ((at = strstr(at, ":  ")) != NULL)
	{
		at += 3;
		if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5)
			return trouble_of(at);
	}
	return NULL;
}

/* Others wait meanwhile, so a server that is slow is not heard. */
static PGconn *
connect_verbosely(const struct config *config, uint64_t deadline)
{
	const char *names[] =
	{"target_session_attrs", "dbname", "application_name", NULL};
	const char *values[] =
	{"any", config->database, "entityapi-shim-trouble", NULL};

	return brief_connect(names, values, deadline);
}

/* Whether a version, "1.2", is less than this program's. */
static bool
is_older(const char *version)
{
	int			theirs[2] = {0};
	int			ours[2] = {0};

	sscanf(version, "%d.%d", &theirs[0], &theirs[1]);
	sscanf(SHIM_VERSION, "%d.%d", &ours[0], &ours[1]);
	return theirs[0] != ours[0] ? theirs[0] < ours[0] : theirs[1] < ours[1];
}

bool
trouble_of_encoding(PGconn *connection)
{
	const char *encoding = PQparameterStatus(connection, "server_encoding");

	return encoding != NULL && strcmp(encoding, "UTF8") != 0;
}

static const struct trouble *
look(PGconn *connection)
{
	PGresult   *row = brief_ask(connection, LOOK_SQL,
								now_micros() + PATIENCE_MICROS);
	const struct trouble *trouble = NULL;

	if (row == NULL)
		return NULL;
	if (PQresultStatus(row) != PGRES_TUPLES_OK)
	{
		const char *sqlstate = PQresultErrorField(row, PG_DIAG_SQLSTATE);

		trouble = trouble_of(sqlstate ? sqlstate : "");
	}
	else if (trouble_of_encoding(connection))
		trouble = &troubles[ENCODING];
	else if (PQgetisnull(row, 0, 1))
		trouble = &troubles[EXTENSION_MISSING];
	else if (is_older(PQgetvalue(row, 0, 1)))
		trouble = &troubles[EXTENSION_OLDER];
	else if (strcmp(PQgetvalue(row, 0, 2), "t") != 0)
		trouble = &troubles[RIGHTS_MISSING];
	else if (strcmp(PQgetvalue(row, 0, 0), "t") == 0)
		trouble = &troubles[READ_ONLY];
	PQclear(row);
	return trouble;
}

const struct trouble *
trouble_find(const struct config *config)
{
	PGconn	   *connection = connect_verbosely(config, now_micros() +
											   PATIENCE_MICROS);
	const struct trouble *trouble = PQstatus(connection) == CONNECTION_OK ?
		look(connection) : by_message(PQerrorMessage(connection));

	PQfinish(connection);
	return trouble;
}
