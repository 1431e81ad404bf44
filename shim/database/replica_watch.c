/*
 * Positions in the log can be compared only within one history of one
 * cluster, so both sides have to name the same system and timeline.  After a
 * promotion a standby that follows shows the new timeline with its next
 * restart point and is left out until then.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "database/replica_watch.h"
#include "database/unread.h"

/* How long one statement may take. */
#define ANSWER_MS 1000

/* How often, and after what pauses, a standby is asked whether it is there. */
#define STEPS 7
#define FIRST_STEP_MS 1

/*
 * The primary: the end of its log, its system and timeline, and the standbys
 * it waits for.
 */
#define PRIMARY_SQL \
	"select pg_current_wal_insert_lsn(), " \
	"(select system_identifier from pg_control_system()), " \
	"('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))" \
	"::bit(32)::int, " \
	"current_setting('synchronous_commit'), " \
	"current_setting('synchronous_standby_names')"

#define STANDBY_SQL \
	"select pg_is_in_recovery(), " \
	"(select system_identifier from pg_control_system()), " \
	"(select timeline_id from pg_control_checkpoint()), " \
	"current_setting('cluster_name')"

#define REPLAYED_SQL \
	"select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::pg_lsn"

struct replica_watch
{
	const struct config *config;
	const char *conninfo;
	int			number;
	PGconn	   *primary;
	PGconn	   *standby;
	const char *told;			/* what the log was told last */
	char		lsn[32];
	char		system[32];
	char		timeline[16];
	bool		waits;			/* the primary waits for what it names */
	char	   *names;			/* of the standbys it waits for */
};

struct replica_watch *
replica_watch_create(const struct config *config, const char *conninfo,
					 int number)
{
	struct replica_watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->config = config;
	watch->conninfo = conninfo;
	watch->number = number;
	watch->told = "";
	return watch;
}

void
replica_watch_free(struct replica_watch *watch)
{
	if (watch == NULL)
		return;
	PQfinish(watch->primary);
	PQfinish(watch->standby);
	free(watch->names);
	free(watch);
}

/* Tells a change of state, once; the texts are constants. */
static void
tell(struct replica_watch *watch, const char *what)
{
	if (strcmp(watch->told, what) == 0)
		return;
	log_event(LOG_INFO, "replica", NULL, NULL, "replica %d %s",
			  watch->number, what);
	watch->told = what;
}

static bool
connect_to(PGconn **connection, const char *conninfo, const char *kind,
		   const struct config *config)
{
	const char *names[] =
	{"connect_timeout", "target_session_attrs", "dbname",
	"application_name", "tcp_user_timeout", NULL};
	const char *values[6] = {0};
	char		timeout[16];

	if (*connection != NULL && PQstatus(*connection) == CONNECTION_OK)
		return true;
	PQfinish(*connection);
	snprintf(timeout, sizeof(timeout), "%ld", config->connect_timeout_s);
	values[0] = timeout;
	values[1] = kind;
	values[2] = conninfo;
	values[3] = "entityapi-shim-watch";
	values[4] = "2000";
	*connection = PQconnectdbParams(names, values, 1);
	return PQstatus(*connection) == CONNECTION_OK;
}

/* One row, or NULL and the connection is closed. */
static PGresult *
ask(PGconn **connection, const char *sql, const char *value, int columns)
{
	uint64_t	deadline = now_micros() + ANSWER_MS * 1000;
	PGresult   *result = NULL;
	PGresult   *next;
	bool		sent = PQsendQueryParams(*connection, sql, value ? 1 : 0, NULL,
										 value ? &value : NULL, NULL, NULL,
										 0) == 1;

	while (sent && PQisBusy(*connection))
	{
		struct pollfd socket = {
			.fd = PQsocket(*connection),.events = POLLIN
		};
		uint64_t	now = now_micros();

		if (now >= deadline ||
			poll(&socket, 1,
				 unread_wait(*connection,
							 (int) ((deadline - now) / 1000) + 1)) < 0 ||
			!PQconsumeInput(*connection))
			sent = false;
	}
	if (sent)
	{
		result = PQgetResult(*connection);
		while (result != NULL && (next = PQgetResult(*connection)) != NULL)
			PQclear(next);
	}
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		PQnfields(result) == columns)
		return result;
	PQclear(result);
	PQfinish(*connection);
	*connection = NULL;
	return NULL;
}

/*
 * Whether all standbys that are named have to have applied a commit: the
 * names stand alone, or behind a FIRST or ANY of as many as there are.
 */
static bool
waits_for_all(const char *names)
{
	const char *open = strchr(names, '(');
	const char *p;
	long		wanted = 1;
	long		named = *names != '\0';

	for (p = open ? open : names; *p != '\0'; p++)
		named += *p == ',';
	if (open != NULL)
	{
		p = names + strcspn(names, "0123456789(");
		wanted = strtol(p, NULL, 10);
	}
	return named > 0 && wanted >= named && strchr(names, '*') == NULL;
}

/* Whether a name is one of a list, which may quote it. */
static bool
names_include(const char *names, const char *name)
{
	const char *open = strchr(names, '(');
	const char *p = open ? open + 1 : names;
	size_t		length = strlen(name);

	while (*p != '\0')
	{
		size_t		item;

		p += strspn(p, " ,\"");
		item = strcspn(p, ",\") ");
		if (item == length && length > 0 && strncasecmp(p, name, item) == 0)
			return true;
		p += item;
		p += strspn(p, ")");
	}
	return false;
}

static bool
ask_primary(struct replica_watch *watch)
{
	PGresult   *row;

	if (!connect_to(&watch->primary, watch->config->database, "read-write",
					watch->config) ||
		(row = ask(&watch->primary, PRIMARY_SQL, NULL, 5)) == NULL)
		return false;
	snprintf(watch->lsn, sizeof(watch->lsn), "%s", PQgetvalue(row, 0, 0));
	snprintf(watch->system, sizeof(watch->system), "%s",
			 PQgetvalue(row, 0, 1));
	snprintf(watch->timeline, sizeof(watch->timeline), "%s",
			 PQgetvalue(row, 0, 2));
	free(watch->names);
	watch->names = strdup(PQgetvalue(row, 0, 4));
	watch->waits = strcmp(PQgetvalue(row, 0, 3), "remote_apply") == 0 &&
		watch->names != NULL && waits_for_all(watch->names);
	PQclear(row);
	return true;
}

/* Why a standby must not be read from; NULL if it may. */
static const char *
objection(struct replica_watch *watch, const PGresult *row)
{
	if (PQgetvalue(row, 0, 0)[0] != 't')
		return "is left out: it is no standby";
	if (strcmp(PQgetvalue(row, 0, 1), watch->system) != 0)
		return "is left out: it belongs to another cluster";
	if (strcmp(PQgetvalue(row, 0, 2), watch->timeline) != 0)
		return "is left out: it is on another timeline, or has not had a "
			"restart point on this one";
	if (strcmp(watch->config->replica_staleness, "allowed") == 0)
		return NULL;
	if (!watch->waits)
		return "is left out: the primary does not wait for all its standbys "
			"(synchronous_commit = remote_apply, "
			"synchronous_standby_names), and replica_staleness is refused";
	if (!names_include(watch->names, PQgetvalue(row, 0, 3)))
		return "is left out: its cluster_name is not in the primary's "
			"synchronous_standby_names, and replica_staleness is refused";
	return NULL;
}

/* Asks until the standby is there, with growing pauses. */
static enum watch_outcome
ask_replayed(struct replica_watch *watch)
{
	long		pause_ms = FIRST_STEP_MS;
	int			step;

	for (step = 0; step < STEPS; step++)
	{
		struct timespec pause = {0, pause_ms * 1000000};
		PGresult   *row = ask(&watch->standby, REPLAYED_SQL, watch->lsn, 1);
		bool		reached;

		if (row == NULL)
			return WATCH_FAILED;
		reached = PQgetvalue(row, 0, 0)[0] == 't';
		PQclear(row);
		if (reached)
			return WATCH_REACHED;
		nanosleep(&pause, NULL);
		pause_ms *= 2;
	}
	return WATCH_BEHIND;
}

enum watch_outcome
replica_watch_compare(struct replica_watch *watch)
{
	enum watch_outcome outcome;
	const char *why;
	PGresult   *row;

	if (!ask_primary(watch))
	{
		tell(watch, "is left out: the primary does not answer");
		return WATCH_FAILED;
	}
	if (!connect_to(&watch->standby, watch->conninfo, "any",
					watch->config) ||
		(row = ask(&watch->standby, STANDBY_SQL, NULL, 4)) == NULL)
	{
		tell(watch, "is left out: it does not answer");
		return WATCH_FAILED;
	}
	why = objection(watch, row);
	PQclear(row);
	if (why != NULL)
	{
		tell(watch, why);
		return WATCH_REFUSED;
	}
	outcome = ask_replayed(watch);
	if (outcome == WATCH_REACHED)
		tell(watch, "is read from");
	else if (outcome == WATCH_BEHIND)
		tell(watch, "lags");
	return outcome;
}
