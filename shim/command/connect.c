#include <stdio.h>

#include "command/connect.h"

/*
 * Whoever calls may be a superuser, so nothing is looked for but where it must
 * be, and by its exact arguments.
 */
#define PIN_SQL "set search_path = pg_catalog, pg_temp"

static void
print_notice(void *argument, const char *message)
{
	(void) argument;
	fputs(message, stderr);
}

PGconn *
command_connect(const char *command, const struct config *config)
{
	const char *names[] =
	{"dbname", "application_name", "client_encoding", NULL};
	const char *values[] = {config->database, "entityapi-shim", "UTF8", NULL};
	PGconn	   *connection = PQconnectdbParams(names, values, 1);

	if (PQstatus(connection) == CONNECTION_OK)
	{
		PGresult   *result = PQexec(connection, PIN_SQL);
		bool		pinned = PQresultStatus(result) == PGRES_COMMAND_OK;

		PQclear(result);
		PQsetNoticeProcessor(connection, print_notice, NULL);
		if (pinned)
			return connection;
	}
	fprintf(stderr, "entityapi-shim %s: %s", command,
			connection ? PQerrorMessage(connection) : "out of memory\n");
	PQfinish(connection);
	return NULL;
}
