/*
 * A pooler that serves a session has it wait for a backend as late as it can,
 * so it has no number of a backend to tell and makes one up: that is how it is
 * known.  Two sessions that leave marks then find each other's, if they are
 * one.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "database/brief.h"
#include "database/pooler.h"

/* So long it takes at most; a pooler lets wait for a backend that is free. */
#define PATIENCE_MICROS 1000000

/* So often both look for marks. */
#define ROUNDS 4

/* A setting that nobody else has, and that needs no library. */
#define MARK "entityapi_shim.session"
#define READ_MARK_SQL \
	"select pg_catalog.current_setting('" MARK "', true)"

#define MARK_SIZE 64

int
pooler_backend(PGconn *connection)
{
	PGresult   *result = PQexec(connection,
								"select pg_catalog.pg_backend_pid()");
	int			backend = 0;

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		backend = atoi(PQgetvalue(result, 0, 0));
	PQclear(result);
	return backend == PQbackendPID(connection) ? 0 : backend;
}

static void
make_mark(char *mark)
{
	static atomic_uint count;

	snprintf(mark, MARK_SIZE, "%ld.%u.%llu", (long) getpid(),
			 atomic_fetch_add(&count, 1), (unsigned long long) now_micros());
}

/* False: it could not be left in time. */
static bool
leave_mark(PGconn *connection, const char *mark, uint64_t deadline)
{
	char		sql[MARK_SIZE + 64];
	PGresult   *result;
	bool		left;

	snprintf(sql, sizeof(sql), "set " MARK " = '%s'", mark);
	result = brief_ask(connection, sql, deadline);
	left = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	return left;
}

/* Whether that mark is there; *known: somebody has said so, or not. */
static bool
has_mark(PGconn *connection, const char *mark, uint64_t deadline, bool *known)
{
	PGresult   *result = brief_ask(connection, READ_MARK_SQL, deadline);
	bool		has;

	*known = PQresultStatus(result) == PGRES_TUPLES_OK &&
		PQntuples(result) == 1;
	has = *known && strcmp(PQgetvalue(result, 0, 0), mark) == 0;
	PQclear(result);
	return has;
}

/*
 * A session of its own has its own mark, each time, and the other one has not;
 * the second look finds those that take turns.
 */
static bool
find_out(PGconn *one, PGconn *other, const char *mark, uint64_t deadline)
{
	bool		known = true;
	int			round;

	for (round = 0; round < ROUNDS; round++)
	{
		if (has_mark(other, mark, deadline, &known))
			return true;
		if (!known)
			return false;
		if (!has_mark(one, mark, deadline, &known) ||
			!has_mark(one, mark, deadline, &known))
			return known;
	}
	return false;
}

bool
pooler_shares(PGconn *connection, const char *conninfo)
{
	const char *names[] =
	{"target_session_attrs", "dbname", "application_name", "client_encoding",
	NULL};
	const char *values[] = {"any", conninfo, "entityapi-shim", "UTF8", NULL};
	uint64_t	deadline = now_micros() + PATIENCE_MICROS;
	char		mark[MARK_SIZE];
	PGconn	   *other;
	bool		shares = false;

	make_mark(mark);
	if (!leave_mark(connection, mark, deadline))
		return false;
	other = brief_connect(names, values, deadline);
	if (PQstatus(other) == CONNECTION_OK)
		shares = find_out(connection, other, mark, deadline);
	PQfinish(other);
	return shares;
}
