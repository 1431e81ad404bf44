#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "database/pooler.h"
#include "database/session.h"

#define HANDLE_SQL "select entityapi.handle($1)"

/* Loads the library and calls nothing, as the function is strict. */
#define LOAD_SQL \
	"select entityapi.handle(m) from (select null::bytea offset 0) v (m)"

/* Type of its parameter, by the fixed oid of pg_type. */
#define OID_BYTEA 17

/* Another session has prepared it in this backend. */
#define DUPLICATE_STATEMENT "42P05"

/* Failures to connect are logged at most once in this time. */
#define LOG_INTERVAL_MICROS 1000000

static void
ignore_notice(void *argument, const PGresult *result)
{
	(void) argument;
	(void) result;
}

/* The reason is looked for, unless it is known. */
static void
log_failure(struct session_source *source, const char *what, const char *why,
			const struct trouble *trouble)
{
	uint64_t	now = now_micros();
	uint64_t	before = atomic_load(&source->logged_at);
	int			length = (int) strlen(why);

	atomic_store(&source->pooler_is_fine, false);
	if (before != 0 && now - before < LOG_INTERVAL_MICROS)
		return;
	if (!atomic_compare_exchange_strong(&source->logged_at, &before, now))
		return;
	if (trouble == NULL && source->kind == SESSION_PRIMARY)
		trouble = trouble_find(source->config);
	atomic_store(&source->trouble, trouble);
	while (length > 0 && why[length - 1] == '\n')
		length--;
	log_event(LOG_ERROR, "database", NULL, NULL, "%s: %.*s%s%s%s", what,
			  length, why, trouble ? " (" : "", trouble ? trouble->text : "",
			  trouble ? ")" : "");
}

/* Runs a statement of the set-up; one that may fail is worth no message. */
static bool
set_up(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	bool		fine = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return fine;
}

/*
 * A setting of the extension that is misspelled, or whose value does not fit,
 * is taken by ALTER DATABASE and the like where the library is not loaded, and
 * dropped with a warning where it is.
 */
static void
log_setting(void *argument, const PGresult *result)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

	(void) argument;
	if (message != NULL && strstr(message, "\"entityapi.") != NULL)
		log_event(LOG_WARNING, "settings", NULL, NULL,
				  "a setting does not hold: %s%s%s%s", message,
				  hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
}

/* The first session of the service says it for all. */
static void
tell_settings(struct session_source *source, PGconn *connection)
{
	PGresult   *result;

	if (source->kind != SESSION_PRIMARY ||
		atomic_exchange(&source->settings_told, true))
		return;
	PQsetNoticeReceiver(connection, log_setting, NULL);
	result = set_up(connection, "set client_min_messages = warning") ?
		PQexec(connection, LOAD_SQL) : NULL;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		atomic_store(&source->settings_told, false);
	PQclear(result);
	PQsetNoticeReceiver(connection, ignore_notice, NULL);
}

/* The one row, of one boolean. */
static bool
is_true(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	bool		yes = PQntuples(result) == 1 &&
		strcmp(PQgetvalue(result, 0, 0), "t") == 0;

	PQclear(result);
	return yes;
}

/*
 * A shim that knows one node of several asks the others by way of it, for many
 * times the price, and waits for one that hangs.
 */
static void
tell_nodes(struct session_source *source, PGconn *connection)
{
	if (source->kind != SESSION_PRIMARY ||
		atomic_exchange(&source->nodes_told, true))
		return;

	/* without Citus there are no such tables, and no error is logged */
	if (!is_true(connection, "select to_regclass('pg_catalog.pg_dist_node')"
				 " is not null") ||
		!is_true(connection, "select count(*) > 1 and exists (select from"
				 " pg_catalog.pg_dist_partition p join pg_class c"
				 " on c.oid = p.logicalrelid join pg_namespace n"
				 " on n.oid = c.relnamespace where n.nspname = 'entityapi')"
				 " from pg_catalog.pg_dist_node where noderole = 'primary'"))
		return;
	atomic_store(&source->has_nodes, true);
	if (source->config->nodes[0] == '\0')
		log_event(LOG_WARNING, "nodes", NULL, NULL,
				  "the service is on several nodes, and \"nodes\" names none: "
				  "requests of tenants of the others go by way of this one, "
				  "for many times the price");
}

/* Settings of the session, and the one prepared statement. */
static bool
prepare_session(struct session_source *source, PGconn *connection,
				bool has_pooler)
{
	static const Oid types[] = {OID_BYTEA};
	char		timeout[64];
	char		pool_size[64];
	PGresult   *result;
	bool		fine;

	if (trouble_of_encoding(connection))
	{
		log_failure(source, "cannot set up a session",
					"the database is not in UTF8", NULL);
		return false;
	}
	snprintf(timeout, sizeof(timeout), "set statement_timeout = %ld",
			 source->config->statement_timeout_ms);
	snprintf(pool_size, sizeof(pool_size), "set entityapi.pool_size = %ld",
			 source->config->pool_size);
	if (!set_up(connection, timeout) ||
		!set_up(connection, pool_size) ||
		!set_up(connection, "set timezone = 'UTC'") ||
		!set_up(connection,
				"set default_transaction_isolation = 'read committed'") ||
		!set_up(connection, "set search_path = pg_catalog, pg_temp") ||
		!set_up(connection, "set entityapi.report_counters = on") ||
		(source->kind == SESSION_STANDBY &&
		 (!set_up(connection, "set default_transaction_read_only = on") ||
		  !set_up(connection, "set entityapi.asks_primary = on"))))
	{
		log_failure(source, "cannot set up a session",
					PQerrorMessage(connection), NULL);
		return false;
	}

	result = PQprepare(connection, HANDLE_STATEMENT, HANDLE_SQL, 1, types);
	fine = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (!fine)
	{
		const char *why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
		const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		bool		is_used = has_pooler && sqlstate != NULL &&
			strcmp(sqlstate, DUPLICATE_STATEMENT) == 0;

		log_failure(source, "cannot prepare entityapi.handle",
					why ? why : PQerrorMessage(connection),
					is_used ? &trouble_pooler : NULL);
	}
	PQclear(result);
	if (fine)
	{
		tell_settings(source, connection);
		tell_nodes(source, connection);
	}
	return fine && set_up(connection, "set client_min_messages = error");
}

/*
 * Whether a session there has its backend for itself.  With a server it has;
 * a pooler is tried, until it has been found to leave it.
 */
static bool
is_own(struct session_source *source, PGconn *connection, int backend)
{
	if (backend == 0 || atomic_load(&source->pooler_is_fine))
		return true;
	if (pooler_shares(connection, source->conninfo))
	{
		log_failure(source, "cannot use a session",
					"its backend is not its own", &trouble_pooler);
		return false;
	}
	atomic_store(&source->pooler_is_fine, true);
	return true;
}

PGconn *
session_open(struct session_source *source, int *backend)
{
	/* of several hosts the one that can write; the string may say otherwise */
	const char *names[] =
	{"target_session_attrs", "dbname", "connect_timeout",
	"application_name", "client_encoding", "tcp_user_timeout", NULL};
	const char *values[7] = {0};
	char		timeout[16];
	PGconn	   *connection;

	snprintf(timeout, sizeof(timeout), "%ld",
			 source->config->connect_timeout_s);
	values[0] = source->kind == SESSION_STANDBY ? "any" : "read-write";
	values[1] = source->conninfo;
	values[2] = timeout;
	values[3] = "entityapi-shim";
	values[4] = "UTF8";
	values[5] = "10000";
	connection = PQconnectdbParams(names, values, 1);
	if (PQstatus(connection) != CONNECTION_OK)
	{
		log_failure(source, "cannot connect",
					connection ? PQerrorMessage(connection) :
					"out of memory", NULL);
		PQfinish(connection);
		return NULL;
	}
	PQsetNoticeReceiver(connection, ignore_notice, NULL);
	*backend = pooler_backend(connection);
	if (!is_own(source, connection, *backend) ||
		!prepare_session(source, connection, *backend != 0) ||
		PQsetnonblocking(connection, 1) != 0)
	{
		PQfinish(connection);
		return NULL;
	}
	return connection;
}
