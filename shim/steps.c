/*-------------------------------------------------------------------------
 *
 * steps.c
 *	  What a change of the manifests leaves for after its transaction.
 *
 * The database says what is left by looking at its tables, so nothing is
 * kept here: each round asks for the next statement and runs it by itself.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "retry.h"
#include "steps.h"

/* The statements run as the owner of the tables, even for a superuser. */
#define PREPARE_SQL \
	"set role entityapi_owner; set search_path = pg_catalog, pg_temp; " \
	"set statement_timeout = 0; set idle_in_transaction_session_timeout = 0"
#define CLAIM_SQL "select entityapi.claim_steps()"
#define NEXT_SQL \
	"select step, part, statement, lock from entityapi.pending_steps " \
	"where step <> all ($1::int[]) order by step, part limit 1"
#define NOTE_SQL "select entityapi.note_step($1::int, $2)"

/*
 * A lock that others notice is waited for shortly, so that nobody queues up
 * behind; the others as long as it takes.
 */
#define EXCLUSIVE_SQL \
	"select pg_catalog.set_config('lock_timeout', coalesce(" \
	"pg_catalog.current_setting('entityapi.apply_lock_timeout', true), " \
	"'500ms'), false)"
#define SHARED_SQL "select pg_catalog.set_config('lock_timeout', '0', false)"

#define CLAIM_PAUSE 500			/* ms */

struct step
{
	char		number[16];
	char	   *statement;
	bool		exclusive;
};

struct run
{
	PGconn	   *connection;
	int			limit;
	struct buffer failed;		/* a int[] literal, without the last brace */
	int			failures;
	char	   *last;			/* the statement that was run before */
};

/* Of what no fault of the manifests can be the cause. */
static bool
complain(const struct run *run, const char *about)
{
	fprintf(stderr, "entityapi-shim apply: %s: %s", about,
			PQerrorMessage(run->connection));
	if (PQstatus(run->connection) != CONNECTION_OK)
		fputs("entityapi-shim apply: run \"entityapi-shim apply --resume\" "
			  "to go on\n", stderr);
	return false;
}

static bool
run_quietly(const struct run *run, const char *sql)
{
	PGresult   *result = PQexec(run->connection, sql);
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

bool
steps_claim(PGconn *connection)
{
	bool		told = false;

	for (;;)
	{
		PGresult   *result = PQexec(connection, CLAIM_SQL);
		bool		fine = PQresultStatus(result) == PGRES_TUPLES_OK;
		bool		got = fine && strcmp(PQgetvalue(result, 0, 0), "t") == 0;

		PQclear(result);
		if (!fine)
			fprintf(stderr, "entityapi-shim apply: %s",
					PQerrorMessage(connection));
		if (!fine || got)
			return fine;
		if (!told)
			fputs("entityapi-shim apply: waiting for another one\n", stderr);
		told = true;
		retry_sleep(CLAIM_PAUSE);
	}
}

/* The statement to run next; false: none, or an error that was told. */
static bool
next_step(struct run *run, struct step *step, bool *fine)
{
	const char *values[1];
	PGresult   *result;
	bool		found;

	buffer_char(&run->failed, '}');
	values[0] = run->failed.data;
	result = PQexecParams(run->connection, NEXT_SQL, 1, NULL, values, NULL,
						  NULL, 0);
	run->failed.data[--run->failed.length] = '\0';
	*fine = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (!*fine)
		complain(run, "the pending steps cannot be read");
	found = *fine && PQntuples(result) > 0;
	if (found)
	{
		snprintf(step->number, sizeof(step->number), "%s",
				 PQgetvalue(result, 0, 0));
		step->statement = strdup(PQgetvalue(result, 0, 2));
		step->exclusive = strcmp(PQgetvalue(result, 0, 3),
								 "ACCESS EXCLUSIVE") == 0;
	}
	PQclear(result);
	return found && step->statement != NULL;
}

static bool
note(const struct run *run, const struct step *step, const char *sqlstate)
{
	const char *values[] = {step->number, sqlstate};
	PGresult   *result = PQexecParams(run->connection, NOTE_SQL, 2, NULL,
									  values, NULL, NULL, 0);
	bool		fine = PQresultStatus(result) == PGRES_TUPLES_OK;

	PQclear(result);
	return fine;
}

/*
 * What is left of an index that could not be built costs every write
 * something, and is of no use.
 */
static void
drop_remains(const struct run *run, const struct step *step)
{
	const char *values[] = {step->number};
	PGresult   *result;

	run_quietly(run, SHARED_SQL);
	result = PQexecParams(run->connection,
						  "select statement from entityapi.pending_steps "
						  "where step = $1::int and part = 1", 1, NULL,
						  values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
		run_quietly(run, PQgetvalue(result, 0, 0));
	PQclear(result);
}

/* A statement has failed for good; the others can still be run. */
static bool
give_up(struct run *run, const struct step *step, const char *sqlstate,
		const char *message)
{
	fprintf(stderr, "entityapi-shim apply: FAILED: %s: %s\n",
			step->statement, message);
	if (PQstatus(run->connection) != CONNECTION_OK)
		return complain(run, "the connection is lost");
	if (!note(run, step, sqlstate))
		return complain(run, "the failure cannot be noted");
	drop_remains(run, step);
	if (run->failures++ > 0)
		buffer_char(&run->failed, ',');
	buffer_string(&run->failed, step->number);
	return !run->failed.failed;
}

/* Run one statement; false when it makes no sense to go on with others. */
static bool
run_step(struct run *run, const struct step *step)
{
	struct retry retry = {.limit = run->limit};
	double		start = retry_clock();
	PGresult   *result;
	bool		going = true;

	if (run->last != NULL && strcmp(run->last, step->statement) == 0)
		return give_up(run, step, "XX000", "it was run, to no effect");
	if (!note(run, step, NULL))
		return complain(run, "the start of a step cannot be noted");
	printf("%s;\n", step->statement);
	fflush(stdout);
	run_quietly(run, step->exclusive ? EXCLUSIVE_SQL : SHARED_SQL);
	result = PQexec(run->connection, step->statement);
	while (retry_lock(&retry, result))
	{
		PQclear(result);
		result = PQexec(run->connection, step->statement);
	}
	if (PQresultStatus(result) == PGRES_COMMAND_OK)
	{
		printf("-- done in %.1f s\n", retry_clock() - start);
		fflush(stdout);
		free(run->last);
		run->last = strdup(step->statement);
	}
	else
	{
		const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		const char *message = PQresultErrorField(result,
												 PG_DIAG_MESSAGE_PRIMARY);

		going = give_up(run, step, sqlstate ? sqlstate : "XX000",
						message ? message : "no answer");
	}
	PQclear(result);
	return going;
}

bool
steps_run(PGconn *connection, int limit, bool expected)
{
	struct run	run = {.connection = connection,.limit = limit};
	struct step step = {.statement = NULL};
	bool		fine;

	buffer_char(&run.failed, '{');
	if (!run_quietly(&run, PREPARE_SQL))
	{
		buffer_free(&run.failed);
		return (!expected && PQstatus(connection) == CONNECTION_OK) ||
			complain(&run, "what is pending takes a member of entityapi_owner");
	}
	while (next_step(&run, &step, &fine))
	{
		fine = run_step(&run, &step);
		free(step.statement);
		if (!fine)
			break;
	}
	if (fine && run.failures > 0)
		fprintf(stderr, "entityapi-shim apply: %d of the pending steps failed; "
				"/manage/migrations/status says more. Change the rows, then "
				"run \"entityapi-shim apply --resume\".\n", run.failures);
	free(run.last);
	buffer_free(&run.failed);
	return fine && run.failures == 0;
}
