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

void
exchange_start(struct exchange *exchange, const struct config *config,
			   uint64_t waited)
{
	exchange->config = config;
	exchange->started = exchange->queued = now_micros() - waited;
	exchange->tries = exchange->servers = 0;
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
		reply_answer(&desk->reply, request, exchange->client, answer);
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
