/*
 * The database says what is left by looking at its declarations and tables,
 * so nothing is kept here: each round asks for the next statement and has it
 * run by itself.
 *
 * The login may be a superuser, and those who may write the tables could have
 * prepared something for him.  So whatever can run within a transaction is run
 * by the extension, out of reach of the login's rights, and nothing is called
 * here but its functions in C.  What is sent as a statement makes or drops an
 * index; no code but PostgreSQL's runs with the rights of this session then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "command/steps.h"
#include "command/retry.h"

/* The statements sent run as the owner of the tables, even for a superuser. */
#define PREPARE_SQL \
	"set role entityapi_owner; " \
	"set statement_timeout = 0; set idle_in_transaction_session_timeout = 0"
#define CLAIM_SQL "select entityapi.claim_apply()"
#define LIST_SQL \
	"select step, part, statement, lock, alone from entityapi.list_steps()"
#define RUN_SQL \
	"select entityapi.run_step($1::pg_catalog.int4, $2::pg_catalog.int4)"
#define NOTE_SQL \
	"select entityapi.note_step($1::pg_catalog.int4, $2::pg_catalog.text)"

/* Columns of LIST_SQL */
enum
{
	STEP, PART, STATEMENT, LOCK, ALONE
};

#define DROP_REMAINS "1"		/* the part that does */
#define WRITES_ROWS "ROW EXCLUSIVE"

#define INSUFFICIENT_PRIVILEGE "42501"

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
	char		part[16];
	char	   *statement;
	bool		exclusive;
	bool		writes;
	bool		alone;			/* no transaction may run it */
};

struct run
{
	PGconn	   *connection;
	int			limit;
	struct buffer failed;		/* numbers of steps, a space around each */
	struct buffer filled;		/* the same of those whose rows were written */
	int			failures;
	char	   *last;			/* the statement that was run before */
};

/* Of what no fault of the manifests can be the cause. */
static bool
note_trouble(const struct run *run, const char *about)
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
steps_claim(PGconn *connection, bool *others)
{
	bool		told = false;

	for (;;)
	{
		PGresult   *result = PQexec(connection, CLAIM_SQL);
		const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		bool		fine = PQresultStatus(result) == PGRES_TUPLES_OK;
		bool		got = fine && strcmp(PQgetvalue(result, 0, 0), "t") == 0;

		/* who may not claim it cannot do what it is about */
		if (sqlstate != NULL && strcmp(sqlstate, INSUFFICIENT_PRIVILEGE) == 0)
			fine = got = true;
		PQclear(result);
		if (!fine)
			fprintf(stderr, "entityapi-shim apply: %s",
					PQerrorMessage(connection));
		if (others != NULL)
			*others = told;
		if (!fine || got)
			return fine;
		if (!told)
			fputs("entityapi-shim apply: waiting for another one\n", stderr);
		told = true;
		sleep_ms(CLAIM_PAUSE);
	}
}

static void
add_number(struct buffer *numbers, const char *number)
{
	buffer_char(numbers, ' ');
	buffer_string(numbers, number);
	buffer_char(numbers, ' ');
}

static bool
has_number(const struct buffer *numbers, const char *number)
{
	char		word[20];

	snprintf(word, sizeof(word), " %s ", number);
	return numbers->length > 0 && strstr(numbers->data, word) != NULL;
}

/*
 * Not of those that failed.  That rows were written leaves nothing to be read
 * off the tables, so it is known here only.
 */
static bool
can_run(const struct run *run, const PGresult *result, int row)
{
	const char *number = PQgetvalue(result, row, STEP);

	return !has_number(&run->failed, number) &&
		(strcmp(PQgetvalue(result, row, LOCK), WRITES_ROWS) != 0 ||
		 !has_number(&run->filled, number));
}

static bool
take_step(const PGresult *result, int row, struct step *step)
{
	snprintf(step->number, sizeof(step->number), "%s",
			 PQgetvalue(result, row, STEP));
	snprintf(step->part, sizeof(step->part), "%s",
			 PQgetvalue(result, row, PART));
	step->statement = strdup(PQgetvalue(result, row, STATEMENT));
	step->exclusive = strcmp(PQgetvalue(result, row, LOCK),
							 "ACCESS EXCLUSIVE") == 0;
	step->writes = strcmp(PQgetvalue(result, row, LOCK), WRITES_ROWS) == 0;
	step->alone = strcmp(PQgetvalue(result, row, ALONE), "t") == 0;
	return step->statement != NULL;
}

/* The statement to run next; false: none, or an error that was told. */
static bool
next_step(struct run *run, struct step *step, bool *fine)
{
	PGresult   *result;
	bool		found = false;
	int			row;

	*fine = steps_claim(run->connection, NULL);
	if (!*fine)
		return false;
	result = PQexec(run->connection, LIST_SQL);
	*fine = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (!*fine)
		note_trouble(run, "the pending steps cannot be read");
	for (row = 0; *fine && !found && row < PQntuples(result); row++)
	{
		if (can_run(run, result, row))
			found = *fine = take_step(result, row, step);
	}
	PQclear(result);
	return found;
}

static bool
is_done(const struct step *step, const PGresult *result)
{
	return PQresultStatus(result) == (step->alone ? PGRES_COMMAND_OK :
									  PGRES_TUPLES_OK);
}

/* In a form that takes one statement and no more. */
static PGresult *
send_step(const struct run *run, const struct step *step)
{
	const char *values[] = {step->number, step->part};

	if (step->alone)
		return PQexecParams(run->connection, step->statement, 0, NULL, NULL,
							NULL, NULL, 0);
	return PQexecParams(run->connection, RUN_SQL, 2, NULL, values, NULL, NULL,
						0);
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
	struct step remains = {.statement = NULL};
	PGresult   *result;
	int			row;

	run_quietly(run, SHARED_SQL);
	result = PQexec(run->connection, LIST_SQL);
	for (row = 0; PQresultStatus(result) == PGRES_TUPLES_OK &&
		 row < PQntuples(result); row++)
	{
		if (strcmp(PQgetvalue(result, row, STEP), step->number) != 0 ||
			strcmp(PQgetvalue(result, row, PART), DROP_REMAINS) != 0 ||
			!take_step(result, row, &remains))
			continue;
		PQclear(send_step(run, &remains));
		free(remains.statement);
	}
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
		return note_trouble(run, "the connection is lost");
	if (!note(run, step, sqlstate))
		return note_trouble(run, "the failure cannot be noted");
	drop_remains(run, step);
	run->failures++;
	add_number(&run->failed, step->number);
	return !run->failed.failed;
}

/*
 * Tried again while the table is in use.  NULL: another apply came between
 * two tries, and may have left other steps.
 */
static PGresult *
try_step(const struct run *run, const struct step *step)
{
	struct retry retry = {.limit = run->limit};
	PGresult   *result = NULL;
	bool		others = false;

	do
	{
		PQclear(result);
		result = send_step(run, step);
		if (!is_done(step, result) &&
			PQstatus(run->connection) == CONNECTION_OK)
			steps_claim(run->connection, &others);
	} while (!others && retry_lock(&retry, result));
	if (others)
	{
		PQclear(result);
		return NULL;
	}
	return result;
}

/* Run one statement; false when it makes no sense to go on with others. */
static bool
run_step(struct run *run, const struct step *step)
{
	double		start = retry_clock();
	PGresult   *result;
	bool		going = true;

	if (run->last != NULL && strcmp(run->last, step->statement) == 0)
		return give_up(run, step, "XX000", "it was run, to no effect");
	if (!note(run, step, NULL))
		return note_trouble(run, "the start of a step cannot be noted");
	printf("%s;\n", step->statement);
	fflush(stdout);
	run_quietly(run, step->exclusive ? EXCLUSIVE_SQL : SHARED_SQL);
	result = try_step(run, step);
	if (result == NULL)
		return true;
	if (is_done(step, result))
	{
		printf("-- done in %.1f s\n", retry_clock() - start);
		fflush(stdout);
		if (step->writes)
			add_number(&run->filled, step->number);
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

	if (!run_quietly(&run, PREPARE_SQL))
	{
		buffer_free(&run.failed);
		return (!expected && PQstatus(connection) == CONNECTION_OK) ||
			note_trouble(&run,
						 "what is pending takes a member of entityapi_owner");
	}
	while (next_step(&run, &step, &fine))
	{
		fine = run_step(&run, &step);
		free(step.statement);
		if (!fine)
			break;
	}
	if (fine && run.failures > 0)
		fprintf(stderr,
				"entityapi-shim apply: %d of the pending steps failed; "
				"/manage/migrations/status says more. Change the rows, then "
				"run \"entityapi-shim apply --resume\".\n", run.failures);
	free(run.last);
	buffer_free(&run.failed);
	buffer_free(&run.filled);
	return fine && run.failures == 0;
}
