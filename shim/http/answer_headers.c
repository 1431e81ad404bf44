#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "http/answer_headers.h"
#include "http/cors.h"

void
extra_start(struct extra *extra, const struct config *config,
			uint64_t started)
{
	static const struct encoding unsaid = ENCODING_UNSAID;

	extra->config = config;
	extra->started = started;
	extra->wait_micros = 0;
	extra->database_micros = 0;
	extra->origin = NULL;
	extra->origin_length = 0;
	extra->preflight = false;
	extra->compressed = false;
	extra->encoding = unsaid;
	extra->trace.trace_id[0] = '\0';
	extra->trace.span_id[0] = '\0';
}

/* Names are told apart by their lengths first, because few have these. */
void
extra_read(struct extra *extra, const struct head *head, const char *method)
{
	bool		asks_method = false;
	int			origins = 0;
	int			traces = 0;
	int			i;

	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];

		switch (header->name_length)
		{
			case sizeof("origin") - 1:
				if (header_is_named(header, "origin") && origins++ == 0)
				{
					extra->origin_length = header->value_length;
					extra->origin = cors_find(extra->config, header->value,
											  header->value_length);
				}
				break;
			case sizeof("traceparent") - 1:
				if (header_is_named(header, "traceparent") && traces++ == 0)
					trace_read(&extra->trace, header->value,
							   header->value_length);
				break;
			case sizeof("accept-encoding") - 1:
				if (header_is_named(header, "accept-encoding"))
					encoding_read(&extra->encoding, header->value,
								  header->value_length);
				break;
			case sizeof("access-control-request-method") - 1:
				asks_method = asks_method ||
					header_is_named(header, "access-control-request-method");
				break;
		}
	}

	/* Which of two is meant?  Neither. */
	if (origins > 1)
		extra->origin = NULL;
	if (traces > 1)
		extra->trace.trace_id[0] = extra->trace.span_id[0] = '\0';
	extra->preflight = extra->origin != NULL && asks_method &&
		strcmp(method, "OPTIONS") == 0;
}

bool
extra_prefers_gzip(const struct extra *extra, size_t length)
{
	const struct config *config = extra->config;
	bool		small = length < (size_t) config->compression_min;

	return config->compression && length > 0 &&
		encoding_prefers_gzip(&extra->encoding, small);
}

bool
extra_compress(struct extra *extra, struct buffer *out, const char *headers,
			   size_t headers_length, const char *body, size_t length)
{
	if (!extra_prefers_gzip(extra, length) ||
		memmem(headers, headers_length, "no-store", 8) != NULL)
		return false;
	extra->compressed = encoding_gzip(out, body, length);
	if (extra->compressed)
		metrics_add(METRIC_ANSWERS_COMPRESSED, 1);
	return extra->compressed;
}

static void
write_timing(const struct extra *extra, struct buffer *head)
{
	uint64_t	total = now_micros() - extra->started;

	buffer_printf(head, "Server-Timing: total;dur=%llu.%03u, "
				  "wait;dur=%llu.%03u, db;dur=%llu.%03u\r\n",
				  (unsigned long long) (total / 1000),
				  (unsigned) (total % 1000),
				  (unsigned long long) (extra->wait_micros / 1000),
				  (unsigned) (extra->wait_micros % 1000),
				  (unsigned long long) (extra->database_micros / 1000),
				  (unsigned) (extra->database_micros % 1000));
}

void
extra_write(const struct extra *extra, struct buffer *head)
{
	/* what is not compressed is fit for everybody, so it does not vary */
	if (extra->compressed)
		buffer_string(head, "Vary: Accept-Encoding\r\n"
					  "Content-Encoding: gzip\r\n");
	cors_write(head, extra->config, extra->origin, extra->origin_length);
	if (extra->config->server_timing)
		write_timing(extra, head);
}
