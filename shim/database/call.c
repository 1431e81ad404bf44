/*
 * The call is one prepared statement outside of any transaction block: its
 * own transaction is the request's.  It is repeated only where PostgreSQL has
 * said that it rolled it back.  A statement whose fate is unknown, because
 * the connection broke under it, is never repeated; and where it may have
 * written something its client is told so, and not to try again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "database/call.h"
#include "database/session.h"
#include "database/trouble.h"

/*
 * The meaning of a SQLSTATE, or of all that start so, for the request: from
 * the primary, and from a standby.  A conflict with recovery is 40001, and
 * the replay may well come in the way again.
 */
static const struct
{
	const char *prefix;
	enum verdict verdict;
	enum verdict on_standby;
}			sqlstates[] =
{
	{"40001", VERDICT_RETRY, VERDICT_ELSEWHERE},
	{"40P01", VERDICT_RETRY, VERDICT_ELSEWHERE},

	/* lock_timeout, if somebody has set it */
	{"55P03", VERDICT_RETRY, VERDICT_ELSEWHERE},
	{"57014", VERDICT_TIMEOUT, VERDICT_TIMEOUT},
	{"57P0", VERDICT_UNAVAILABLE, VERDICT_UNAVAILABLE},

	/* the primary is one no longer */
	{"25006", VERDICT_UNAVAILABLE, VERDICT_ELSEWHERE},
	{"08", VERDICT_UNAVAILABLE, VERDICT_UNAVAILABLE},
	{"53", VERDICT_UNAVAILABLE, VERDICT_UNAVAILABLE},

	/* entityapi.asks_primary, set by session.c */
	{"JA000", VERDICT_FAILED, VERDICT_ELSEWHERE}
};

/* What is called: how it is sent, and its result read into the answer. */
struct statement
{
	const char *name;			/* for the log */
	const char *missing;		/* what it means that there is none, or NULL */
	bool		on_standby;
	int			(*send) (PGconn *connection, const struct request *request);
	bool		(*read) (struct answer *answer);
};

#define INTERNAL_ERROR "XX000"

/* Four counts of a backend, and its own number. */
#define BACKEND_NOTE "\nx-entityapi-counters: "

/* The statement that session.c prepares is not there. */
#define UNDEFINED_STATEMENT "26000"

/* PostgreSQL's word for a function that is not there. */
#define UNDEFINED_FUNCTION "42883"

PGresult *
call_join(PGresult *result, PGresult *next, bool *late)
{
	bool		failed = next != NULL && result != NULL &&
		PQresultStatus(result) == PGRES_TUPLES_OK &&
		PQresultStatus(next) != PGRES_TUPLES_OK;

	if (result == NULL)
		return next;
	*late |= failed;
	PQclear(failed ? result : next);
	return failed ? next : result;
}

/* -------- entityapi.handle() -------- */

static int
send_request(PGconn *connection, const struct request *request)
{
	const char *values[1] = {request->message.data};
	const int	lengths[1] = {(int) request->message.length};
	static const int binary[1] = {1};

	return PQsendQueryPrepared(connection, HANDLE_STATEMENT, 1, values,
							   lengths, binary, 1);
}

/* As memmem(), which takes longer for what is as short and as near as this. */
static const char *
find(const char *at, const char *end, const char *what)
{
	const size_t length = strlen(what);

	while ((size_t) (end - at) >= length &&
		   (at = memchr(at, *what, (size_t) (end - at) - length + 1)) != NULL)
	{
		if (memcmp(at, what, length) == 0)
			return at;
		at++;
	}
	return NULL;
}

/* Reads the result, a message, into the answer; false if it is unfit. */
static bool
read_answer(struct answer *answer)
{
	const PGresult *result = answer->result;
	const char *end;
	const char *p;

	if (PQntuples(result) != 1 || PQnfields(result) != 1 ||
		PQgetisnull(result, 0, 0))
		return false;
	answer->notes = PQgetvalue(result, 0, 0);
	end = answer->notes + PQgetlength(result, 0, 0);
	answer->status = atoi(answer->notes);

	p = find(answer->notes, end, "\n\n");
	if (p == NULL || answer->status < 200 || answer->status > 599)
		return false;
	answer->headers = p + 2;
	p = find(p, end, "\r\n\r\n");
	if (p == NULL)
		return false;
	answer->headers_length = (size_t) (p + 2 - answer->headers);
	answer->body = p + 4;
	answer->length = (size_t) (end - answer->body);
	return true;
}

const struct statement call_handle = {
	"handle", NULL, false, send_request, read_answer
};

const struct statement call_handle_on_standby = {
	"handle", NULL, true, send_request, read_answer
};

/* -------- entityapi.housekeep() -------- */

static int
send_housekeeping(PGconn *connection, const struct request *request)
{
	(void) request;
	return PQsendQueryParams(connection,
							 "select more from entityapi.housekeep()", 0,
							 NULL, NULL, NULL, NULL, 0);
}

/* Null if it failed: the server's log tells of that. */
static bool
read_housekeeping(struct answer *answer)
{
	const PGresult *result = answer->result;

	if (PQntuples(result) != 1 || PQnfields(result) != 1)
		return false;
	answer->status = PQgetisnull(result, 0, 0) ? 500 : 200;
	answer->body = PQgetvalue(result, 0, 0);
	return true;
}

const struct statement call_housekeep = {
	"housekeeping",
	"the extension in the database is older than this shim: what is over is"
	" not deleted until ALTER EXTENSION entityapi UPDATE",
	false, send_housekeeping, read_housekeeping
};

/* -------- both -------- */

/*
 * Where the nodes of a cluster could not commit together, Citus tells of an
 * internal error, which may be of another node; and so it does where this one
 * ends while it waits for others.
 */
static bool
is_end_of_node(const PGresult *result, const char *sqlstate)
{
	static const struct
	{
		int			part;
		const char *text;
	}			signs[] =
	{
		{PG_DIAG_CONTEXT, "while executing command on "},
		{PG_DIAG_MESSAGE_PRIMARY, "failure on connection marked as essential"},
		{PG_DIAG_MESSAGE_PRIMARY, "multiple connection failures"},
		{PG_DIAG_MESSAGE_PRIMARY, "failed to prepare transaction "},
		{PG_DIAG_MESSAGE_PRIMARY, "could not commit transaction for shard "},
		{PG_DIAG_MESSAGE_PRIMARY, "postmaster was shut down"}
	};

	if (sqlstate == NULL || strcmp(sqlstate, INTERNAL_ERROR) != 0)
		return false;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
	{
		const char *part = PQresultErrorField(result, signs[i].part);

		if (part != NULL && strstr(part, signs[i].text) != NULL)
			return true;
	}
	return false;
}

/*
 * Nothing has been called then: what fails within the call has an answer, and
 * what fails after it is late.
 */
static bool
has_lost_statement(const struct answer *answer)
{
	const char *sqlstate = answer->result == NULL || answer->late ? NULL :
		PQresultErrorField(answer->result, PG_DIAG_SQLSTATE);

	return sqlstate != NULL && strcmp(sqlstate, UNDEFINED_STATEMENT) == 0;
}

bool
call_keeps_backend(const struct answer *answer, enum verdict verdict,
				   int backend)
{
	const char *note;
	int			named;

	if (verdict != VERDICT_ANSWERED)
		return !has_lost_statement(answer);
	if (answer->notes == NULL)
		return true;
	note = memmem(answer->notes, (size_t) (answer->headers - answer->notes),
				  BACKEND_NOTE, strlen(BACKEND_NOTE));

	/* older extensions do not name it, and others do now and then */
	return note == NULL ||
		sscanf(note + strlen(BACKEND_NOTE), "%*s %*s %*s %*s %d",
			   &named) != 1 || named == backend;
}

/*
 * Whether the transaction of a call that has failed may have been committed.
 * An error rolls it back, but at its very end others may have committed their
 * part of it before, and a session that ends there may have been over it.
 */
static bool
may_be_committed(PGconn *connection, const struct answer *answer,
				 const char *sqlstate)
{
	const char *severity;

	/* nothing has come; what was not sent whole will not be run */
	if (sqlstate == NULL)
		return answer->sent && PQflush(connection) <= 0;
	severity = PQresultErrorField(answer->result,
								  PG_DIAG_SEVERITY_NONLOCALIZED);
	return answer->late &&
		((severity != NULL && strcmp(severity, "ERROR") != 0) ||
		 strncmp(sqlstate, "08", 2) == 0 ||
		 is_end_of_node(answer->result, sqlstate));
}

static enum verdict
verdict_of(PGconn *connection, const struct statement *statement,
		   const struct request *request, const struct answer *answer,
		   const char *sqlstate)
{
	enum verdict verdict = VERDICT_FAILED;
	size_t		i;

	if (sqlstate == NULL || is_end_of_node(answer->result, sqlstate) ||
		has_lost_statement(answer))
		verdict = VERDICT_UNAVAILABLE;
	for (i = 0; i < sizeof(sqlstates) / sizeof(sqlstates[0]) && sqlstate; i++)
	{
		if (strncmp(sqlstate, sqlstates[i].prefix,
					strlen(sqlstates[i].prefix)) == 0)
			verdict = statement->on_standby ? sqlstates[i].on_standby :
				sqlstates[i].verdict;
	}
	if (may_be_committed(connection, answer, sqlstate))
		return request_may_write(request) ? VERDICT_UNKNOWN :
			VERDICT_UNAVAILABLE;
	return verdict;
}

/*
 * handle() has an answer for all that fails within it: what says so much of
 * rights and functions before its result is about the call itself, which
 * nobody can make any more.
 */
static const struct trouble *
find_trouble(const struct statement *statement, const struct answer *answer,
			 const char *sqlstate)
{
	return statement->missing != NULL || answer->late || sqlstate == NULL ?
		NULL : trouble_of(sqlstate);
}

bool
call_send(PGconn *connection, const struct statement *statement,
		  const struct request *request)
{
	return statement->send(connection, request) == 1;
}

enum verdict
call_judge(PGconn *connection, const struct statement *statement,
		   const struct request *request, struct answer *answer)
{
	const char *sqlstate = NULL;
	const char *message;
	const struct trouble *trouble;
	enum verdict verdict;

	answer->notes = NULL;
	if (PQresultStatus(answer->result) == PGRES_TUPLES_OK)
	{
		if (statement->read(answer))
			return VERDICT_ANSWERED;
		log_event(LOG_ERROR, statement->name, request->id, NULL,
				  "entityapi.%s returned no usable answer", statement->name);
		return VERDICT_FAILED;
	}

	if (answer->result != NULL)
		sqlstate = PQresultErrorField(answer->result, PG_DIAG_SQLSTATE);
	verdict = verdict_of(connection, statement, request, answer, sqlstate);
	trouble = verdict == VERDICT_FAILED ?
		find_trouble(statement, answer, sqlstate) : NULL;
	if (trouble != NULL)
	{
		verdict = VERDICT_UNAVAILABLE;
		answer->trouble = trouble->name;
	}
	message = sqlstate ?
		PQresultErrorField(answer->result, PG_DIAG_MESSAGE_PRIMARY) :
		PQerrorMessage(connection);
	if (statement->missing != NULL && sqlstate != NULL &&
		strcmp(sqlstate, UNDEFINED_FUNCTION) == 0)
		message = statement->missing;
	if (verdict != VERDICT_RETRY && verdict != VERDICT_ELSEWHERE)
		log_event(LOG_ERROR, statement->name, request->id, sqlstate, "%s",
				  message && *message ? message : "no answer in time");
	return verdict;
}

const struct refusal *
call_refusal(const struct statement *statement,
			 const struct request *request, enum verdict verdict, int tries)
{
	switch (verdict)
	{
		case VERDICT_ANSWERED:
			return NULL;
		case VERDICT_RETRY:
			log_event(LOG_WARNING, statement->name, request->id, NULL,
					  "given up after %d conflicts with other transactions",
					  tries);
			return &refusal_busy;
		case VERDICT_ELSEWHERE:

			/* no client is told: the primary is asked */
			return &refusal_busy;
		case VERDICT_TIMEOUT:
			return &refusal_timeout;
		case VERDICT_UNAVAILABLE:
			return &refusal_unavailable;
		case VERDICT_UNKNOWN:
			return &refusal_outcome_unknown;
		case VERDICT_FAILED:
			break;
	}
	return &refusal_internal;
}

bool
call_would_write(const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return sqlstate != NULL && strcmp(sqlstate, "25006") == 0;
}

/*
 * handle() has an answer for all that fails within it, so whatever else does
 * may be due to what a hook left in the session, as DEALLOCATE does.
 */
bool
call_spoils(enum verdict verdict)
{
	return verdict == VERDICT_UNAVAILABLE || verdict == VERDICT_UNKNOWN ||
		verdict == VERDICT_FAILED;
}
