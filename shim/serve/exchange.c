/*
 * A request and its answer, from the client to the log.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/cors.h"
#include "serve/actuator.h"
#include "serve/console.h"
#include "serve/exchange.h"
#include "serve/spans.h"

/* Memory of a compressed body that a thread keeps for its next one. */
#define KEEP_COMPRESSED (64 * 1024)

void
exchange_start(struct exchange *exchange, const struct config *config)
{
	uint64_t	waited;
	bool		overdue = front_waited(&waited);

	exchange->config = config;
	exchange->started = now_micros() - waited;
	exchange->tries = 0;
	exchange->behind = exchange->alone = false;
	memset(&exchange->answer, 0, sizeof(exchange->answer));
	request_start(&exchange->request);
	exchange->request.waited = waited;
	exchange->request.overdue = overdue;
	extra_start(&exchange->request.extra, config, exchange->started);
}

static void
read_gauges(struct server *server, struct metrics_gauges *gauges)
{
	struct pool_report report;

	pool_report(server->pool, &report);
	gauges->pool_size = report.size;
	gauges->pool_in_use = report.lent - report.given_up;
	gauges->pool_idle = report.idle;
	gauges->pool_given_up = report.given_up;
	gauges->pool_waiting = report.waiting +
		front_waiting(server->main.front);
	gauges->requests_in_flight = atomic_load(&server->under_way);
	gauges->draining = atomic_load(&server->draining);
	gauges->ready = atomic_load(&server->started) && !gauges->draining;
}

/* Answers a request for the console, as exchange_serve() does. */
static int
serve_console(struct exchange *exchange, struct desk *desk,
			  struct mg_connection *connection,
			  const struct refusal **refusal)
{
	struct request *request = &exchange->request;
	struct console_answer answer = {0};
	const struct buffer *body = &answer.body;
	int			status = 0;

	console_serve(request, mg_get_header(connection, "If-None-Match"),
				  &answer);
	*refusal = answer.refusal;
	buffer_trim(&desk->compressed, KEEP_COMPRESSED);
	if (extra_compress(&request->extra, &desk->compressed, "", 0,
					   body->data, body->length))
		body = &desk->compressed;
	if (answer.refusal == NULL && !answer.headers.failed)
		status = reply_page(&desk->reply, request, connection, answer.route,
							answer.status, answer.headers.data, body);
	buffer_free(&answer.headers);
	buffer_free(&answer.body);
	return status;
}

int
exchange_serve(struct exchange *exchange, struct desk *desk,
			   struct mg_connection *connection,
			   const struct refusal **refusal)
{
	const struct door *door = desk->door;
	struct request *request = &exchange->request;
	struct metrics_gauges gauges;
	struct page page = {0};
	int			status = 0;

	if (request->extra.preflight)
	{
		struct buffer head = {0};

		cors_write_preflight(&head, request->extra.config);
		if (!head.failed)
			status = reply_page(&desk->reply, request, connection, "",
								204, head.data, &page.body);
		buffer_free(&head);
	}
	else if (actuator_concerns(request, door->is_admin))
	{
		read_gauges(door->server, &gauges);
		if (actuator_serve(request, door->is_admin, &gauges, &page,
						   refusal) == ACTUATOR_PAGE)
			status = reply_page(&desk->reply, request, connection,
								page.route, 200, page.headers, &page.body);
		buffer_free(&page.body);
	}
	else if (console_concerns(request))
		status = serve_console(exchange, desk, connection, refusal);
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

int
exchange_answer(struct exchange *exchange, struct desk *desk,
				struct mg_connection *connection,
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
		reply_answer(&desk->reply, request, connection, answer);
		return answer->status;
	}
	metrics_refused(refusal);
	answer->refused = refusal->kind;
	return reply_refusal(&desk->reply, request, connection, refusal);
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
		.method = request->method,
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

	metrics_request(reply->route, request->method, status,
					record.total_micros);
	if (reply->counters[0] != '\0')
		metrics_reported(reply->counters);
	if (desk->spans != NULL)
		spans_note(desk->spans, config, request, &record, answer,
				   exchange->started);
	if (config->access_log)
		log_access(&desk->line, &record);
}
