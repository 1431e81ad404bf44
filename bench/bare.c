/*-------------------------------------------------------------------------
 *
 * bare.c
 *	  The least that answers over HTTP from PostgreSQL: civetweb, a pool of
 *	  libpq connections, one prepared query.
 *
 *	  bare PORT CONNECTIONS QUERY
 *
 * The query has one parameter, the end of the request's path, or none; its
 * answer's first column is the body.  Connections follow libpq's environment.
 * There is no check of anything else: this is the floor that the service is
 * measured against.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <civetweb.h>
#include <libpq-fe.h>

struct pool
{
	pthread_mutex_t lock;
	pthread_cond_t released;
	int			nparams;		/* of the query */
	int			nidle;
	PGconn	  **idle;			/* the last one released is used next */
};

static PGconn *
take(struct pool *pool)
{
	PGconn	   *connection;

	pthread_mutex_lock(&pool->lock);
	while (pool->nidle == 0)
		pthread_cond_wait(&pool->released, &pool->lock);
	connection = pool->idle[--pool->nidle];
	pthread_mutex_unlock(&pool->lock);
	return connection;
}

static void
give_back(struct pool *pool, PGconn *connection)
{
	pthread_mutex_lock(&pool->lock);
	pool->idle[pool->nidle++] = connection;
	pthread_cond_signal(&pool->released);
	pthread_mutex_unlock(&pool->lock);
}

/* Head and body leave in one piece, as one packet. */
static void
answer(struct mg_connection *client, int status, const char *body, int length)
{
	char		head[256];
	int			head_length;
	char	   *whole;

	head_length = snprintf(head, sizeof(head),
						   "HTTP/1.1 %d %s\r\n"
						   "Content-Type: application/vnd.api+json\r\n"
						   "Content-Length: %d\r\n"
						   "Connection: keep-alive\r\n\r\n",
						   status, mg_get_response_code_text(client, status),
						   length);
	whole = malloc(head_length + length);
	if (whole == NULL)
		abort();
	memcpy(whole, head, head_length);
	memcpy(whole + head_length, body, length);
	mg_write(client, whole, head_length + length);
	free(whole);
}

static int
begin_request(struct mg_connection *client)
{
	const struct mg_request_info *info = mg_get_request_info(client);
	struct pool *pool = mg_get_user_data(mg_get_context(client));
	const char *value = strrchr(info->local_uri, '/') + 1;
	PGconn	   *connection = take(pool);
	PGresult   *result = PQexecPrepared(connection, "query", pool->nparams,
										&value, NULL, NULL, 0);
	int			status = PQresultStatus(result) != PGRES_TUPLES_OK ? 500 :
		PQntuples(result) == 0 ? 404 : 200;

	give_back(pool, connection);
	if (status == 200)
		answer(client, status, PQgetvalue(result, 0, 0),
			   PQgetlength(result, 0, 0));
	else
		answer(client, status, "", 0);
	PQclear(result);
	return status;
}

static void
die(const char *message)
{
	fprintf(stderr, "bare: %s\n", message);
	exit(1);
}

static void
connect_all(struct pool *pool, int n, const char *query)
{
	pool->idle = calloc(n, sizeof(PGconn *));
	if (pool->idle == NULL)
		die("out of memory");
	for (; pool->nidle < n; pool->nidle++)
	{
		PGconn	   *connection = PQconnectdb("");
		PGresult   *result;

		if (PQstatus(connection) != CONNECTION_OK)
			die(PQerrorMessage(connection));
		result = PQprepare(connection, "query", query, 0, NULL);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			die(PQresultErrorMessage(result));
		PQclear(result);
		result = PQdescribePrepared(connection, "query");
		pool->nparams = PQnparams(result);
		PQclear(result);
		pool->idle[pool->nidle] = connection;
	}
}

int
main(int argc, char **argv)
{
	struct mg_callbacks callbacks = {.begin_request = begin_request};
	struct pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.released = PTHREAD_COND_INITIALIZER};
	struct mg_context *context;
	sigset_t	signals;
	int			signal_number;

	if (argc != 4 || atoi(argv[2]) < 1)
		die("bare PORT CONNECTIONS QUERY");

	/* before any thread is made, so that only sigwait() gets them */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);

	connect_all(&pool, atoi(argv[2]), argv[3]);
	mg_init_library(0);
	{
		const char *options[] = {
			"listening_ports", argv[1],
			"num_threads", "64",
			"enable_keep_alive", "yes",
			"keep_alive_timeout_ms", "10000",
			"tcp_nodelay", "1",
			NULL
		};

		context = mg_start(&callbacks, &pool, options);
	}
	if (context == NULL)
		die("civetweb does not start");
	puts("ready");
	fflush(stdout);
	sigwait(&signals, &signal_number);
	mg_stop(context);
	return 0;
}
