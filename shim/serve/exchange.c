#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/cors.h"
#include "serve/actuator.h"
#include "serve/console.h"
#include "serve/exchange.h"
#include "serve/spans.h"

/* Memory of a compressed body that is kept for the next one. */
#define KEEP_COMPRESSED (64 * 1024)

/* Results up to this size are freed at once. */
#define KEEP_RESULT (1024 * 1024)

void
exchange_start(struct exchange *exchange, const struct config *config,
			   uint64_t waited)
{
	exchange->config = config;
	exchange->started = exchange->queued = now_micros() - waited;
	exchange->called = 0;
	exchange->tries = exchange->servers = exchange->beyond = 0;
	exchange->behind = exchange->alone = exchange->counted = false;
	exchange->login.state = LOGIN_NONE;
	memset(&exchange->answer, 0, sizeof(exchange->answer));
	request_start(&exchange->request);
	extra_start(&exchange->request.extra, config, exchange->started);
}

static void
read_gauges(const struct desk *desk, struct metrics_gauges *gauges)
{
	const struct server *server = desk->server;
	struct pool_report report;

	pool_report(server->pool, &report);
	gauges->pool_size = report.size;
	gauges->pool_in_use = report.in_use;
	gauges->pool_idle = report.idle;
	gauges->pool_given_up = report.given_up;
	gauges->pool_waiting = desk->waiting +
		server->front->calls->waiting(server->front);
	gauges->requests_in_flight = server->under_way;
	gauges->draining = server->draining;
	gauges->ready = server->started && !gauges->draining;
}

/* Answers a request for the console, as exchange_serve() does. */
static int
serve_console(struct exchange *exchange, struct desk *desk,
			  const char *if_none_match, const struct refusal **refusal)
{
	struct request *request = &exchange->request;
	struct console_answer answer = {0};
	const struct buffer *body = &answer.body;
	int			status = 0;

	console_serve(request, if_none_match, &answer);
	*refusal = answer.refusal;
	buffer_trim(&desk->compressed, KEEP_COMPRESSED);
	if (extra_compress(&request->extra, &desk->compressed, "", 0,
					   body->data, body->length))
		body = &desk->compressed;
	if (answer.refusal == NULL && !answer.headers.failed)
		status = reply_page(&desk->reply, request, exchange->client,
							answer.route, answer.status, answer.headers.data,
							body);
	buffer_free(&answer.headers);
	buffer_free(&answer.body);
	return status;
}

int
exchange_serve(struct exchange *exchange, struct desk *desk,
			   const char *if_none_match, const struct refusal **refusal)
{
	struct request *request = &exchange->request;
	struct metrics_gauges gauges;
	struct page page = {0};
	int			status = 0;

	if (request->extra.preflight)
	{
		struct buffer head = {0};

		cors_write_preflight(&head, request->extra.config);
		if (!head.failed)
			status = reply_page(&desk->reply, request, exchange->client, "",
								204, head.data, &page.body);
		buffer_free(&head);
	}
	else if (actuator_concerns(request, exchange->is_admin))
	{
		read_gauges(desk, &gauges);
		if (actuator_serve(request, exchange->is_admin, &gauges, &page,
						   refusal) == ACTUATOR_PAGE)
			status = reply_page(&desk->reply, request, exchange->client,
								page.route, 200, page.headers, &page.body);
		buffer_free(&page.body);
	}
	else if (console_concerns(request))
		status = serve_console(exchange, desk, if_none_match, refusal);
	return status;
}

void
exchange_compress(struct exchange *exchange, struct buffer *compressed)
{
	struct answer *answer = &exchange->answer;

	if (exchange->request.extra.compressed)
		return;
	buffer_trim(compressed, KEEP_COMPRESSED);
	if (extra_compress(&exchange->request.extra, compressed, answer->headers,
					   answer->headers_length, answer->body,
					   answer->length))
	{
		answer->body = compressed->data;
		answer->length = compressed->length;
	}
}

/* What a large answer is made of, until it is freed. */
struct remains
{
	struct body body;
	struct task task;
	struct helpers *helpers;
	PGresult   *result;
	struct buffer compressed;
};

static struct remains *
remains_of(struct task *task)
{
	return (struct remains *) ((char *) task -
							   offsetof(struct remains, task));
}

static void
clear_remains(struct task *task)
{
	struct remains *remains = remains_of(task);

	PQclear(remains->result);
	remains->result = NULL;
	buffer_free(&remains->compressed);
}

static void
free_remains(struct task *task)
{
	clear_remains(task);
	free(remains_of(task));
}

/* The kernel takes a while to take so much back. */
static void
free_body(struct body *body)
{
	struct remains *remains = (struct remains *) body;

	if (!helpers_give(remains->helpers, &remains->task))
		free_remains(&remains->task);
}

static struct remains *
new_remains(const struct desk *desk)
{
	struct remains *remains = calloc(1, sizeof(*remains));

	if (remains == NULL)
		return NULL;
	remains->body.free = free_body;
	remains->task.run = clear_remains;
	remains->task.done = free_remains;
	remains->helpers = desk->press;
	return remains;
}

static void
take_buffer(struct buffer *to, struct buffer *from)
{
	*to = *from;
	memset(from, 0, sizeof(*from));
}

/* Leaves a large body to its client; false if there is no memory for that. */
static bool
give(struct exchange *exchange, struct desk *desk)
{
	struct answer *answer = &exchange->answer;
	struct remains *remains = new_remains(desk);

	if (remains == NULL)
		return false;
	remains->body.bytes = answer->body;
	remains->body.length = answer->length;
	if (answer->body == desk->compressed.data)
		take_buffer(&remains->compressed, &desk->compressed);
	else if (answer->body == exchange->compressed.data)
		take_buffer(&remains->compressed, &exchange->compressed);
	else
	{
		remains->result = answer->result;
		answer->result = NULL;
	}
	exchange->client->calls->give(exchange->client, &remains->body);
	return true;
}

void
exchange_put_away(struct exchange *exchange, const struct desk *desk)
{
	PGresult   *result = exchange->answer.result;
	struct remains *remains = NULL;

	exchange->answer.result = NULL;
	request_end(&exchange->request);
	buffer_free(&exchange->compressed);
	if (result != NULL && PQresultMemorySize(result) > KEEP_RESULT)
		remains = new_remains(desk);
	if (remains == NULL)
		PQclear(result);
	else
	{
		remains->result = result;
		free_body(&remains->body);
	}
}

int
exchange_answer(struct exchange *exchange, struct desk *desk,
				const struct refusal *refusal)
{
	struct request *request = &exchange->request;
	struct answer *answer = &exchange->answer;

	request->extra.wait_micros = answer->wait_micros;
	request->extra.database_micros = answer->database_micros;
	request->trouble = answer->trouble;
	if (refusal == NULL)
	{
		exchange_compress(exchange, &desk->compressed);
		if (reply_answer(&desk->reply, request, exchange->client, answer) &&
			!give(exchange, desk))
			desk->reply.failed = true;
		return answer->status;
	}
	metrics_refused(refusal);
	answer->refused = refusal->kind;
	return reply_refusal(&desk->reply, request, exchange->client, refusal);
}

void
exchange_end(struct exchange *exchange, struct desk *desk, int status)
{
	const struct config *config = exchange->config;
	struct request *request = &exchange->request;
	const struct answer *answer = &exchange->answer;
	const struct reply *reply = &desk->reply;
	struct access_record record = {
		.request_id = request->id,
		.method = request->method[0] ? request->method : NULL,
		.route = reply->route[0] ? reply->route : NULL,
		.principal_id = reply->principal_id[0] ? reply->principal_id : NULL,
		.principal_kind = reply->principal_kind[0] ?
		reply->principal_kind : NULL,
		.status = status,
		.bytes = reply->bytes,
		.total_micros = now_micros() - exchange->started,
		.wait_micros = answer->wait_micros,
		.database_micros = answer->database_micros,
		.trace_id = request->extra.trace.trace_id,
		.span_id = request->extra.trace.span_id,
	};

	metrics_request(reply->route, record.method, status,
					record.total_micros);
	if (reply->counters[0] != '\0')
		metrics_reported(reply->counters);
	if (desk->server->spans != NULL && !exchange->is_admin)
		spans_note(desk->server->spans, config, request, &record, answer,
				   exchange->started);
	if (config->access_log)
		log_access(&desk->line, &record);
}
