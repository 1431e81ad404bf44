#include <poll.h>
#include <stdbool.h>

#include "base/clock.h"
#include "database/brief.h"

/* Waits for the socket; false when the time is over. */
static bool
wait_for(PGconn *connection, short events, uint64_t deadline)
{
	struct pollfd socket = {.fd = PQsocket(connection),.events = events};
	uint64_t	now = now_micros();

	return now < deadline &&
		poll(&socket, 1, (int) ((deadline - now) / 1000) + 1) >= 0;
}

PGconn *
brief_connect(const char *const *names, const char *const *values,
			  uint64_t deadline)
{
	PGconn	   *connection = PQconnectStartParams(names, values, 1);
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (connection == NULL || PQstatus(connection) == CONNECTION_BAD)
		return connection;
	PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
	while ((next == PGRES_POLLING_READING ||
			next == PGRES_POLLING_WRITING) &&
		   wait_for(connection, next == PGRES_POLLING_READING ?
					POLLIN : POLLOUT, deadline))
		next = PQconnectPoll(connection);
	return connection;
}

PGresult *
brief_ask(PGconn *connection, const char *sql, uint64_t deadline)
{
	PGresult   *result = NULL;
	PGresult   *next;

	if (PQsendQuery(connection, sql) != 1)
		return NULL;
	do
	{
		while (PQisBusy(connection))
		{
			if (!wait_for(connection, POLLIN, deadline) ||
				!PQconsumeInput(connection))
			{
				PQclear(result);
				return NULL;
			}
		}
		next = PQgetResult(connection);
		if (next != NULL)
		{
			PQclear(result);
			result = next;
		}
	} while (next != NULL);
	return result;
}
