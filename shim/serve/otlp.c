/*
 * Names are those of OpenTelemetry's stable conventions for HTTP servers and
 * databases.  What these ask for and would hold values of clients is left out:
 * url.path, server.address.  In JSON, ids are hexadecimal, enumerations
 * numbers, and integers of 64 bits are texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "serve/otlp.h"

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A wait that is shorter is none that anybody would look for. */
#define SHORT_MICROS 1000

/* W3C's sampled; it is known whether the parent is of another process, so. */
#define FLAG_SAMPLED 0x001
#define FLAG_IS_REMOTE_KNOWN 0x100
#define FLAG_IS_REMOTE 0x200

enum kind
{
	KIND_INTERNAL = 1,
	KIND_SERVER = 2,
	KIND_CLIENT = 3
};

#define STATUS_ERROR 2

struct attribute
{
	const char *key;
	const char *value;			/* NULL: it is not there */
	bool		is_number;
};

struct span
{
	const char *name;
	enum kind	kind;
	int			number;			/* within its request; 0: the request's own */
	uint64_t	started;
	uint64_t	ended;
	bool		failed;
};

static void
write_attributes(struct buffer *out, const struct attribute *attributes,
				 size_t count)
{
	bool		first = true;
	size_t		i;

	buffer_char(out, '[');
	for (i = 0; i < count; i++)
	{
		const struct attribute *attribute = &attributes[i];

		if (attribute->value == NULL)
			continue;
		buffer_printf(out, "%s{\"key\":\"%s\",\"value\":{\"%s\":",
					  first ? "" : ",", attribute->key,
					  attribute->is_number ? "intValue" : "stringValue");
		buffer_json_string(out, attribute->value);
		buffer_string(out, "}}");
		first = false;
	}
	buffer_char(out, ']');
}

void
otlp_write_resource(struct buffer *out, const char *service_name,
					const char *instance_id)
{
	const struct attribute attributes[] = {
		{"service.name", service_name, false},
		{"service.version", SHIM_VERSION, false},
		{"service.instance.id", instance_id, false}
	};

	write_attributes(out, attributes, LENGTH_OF(attributes));
}

/* The last digit of a request's id is 0, and its children's their number. */
static void
write_id(struct buffer *out, const char *span_id, int number)
{
	buffer_append(out, span_id, SPAN_ID_SIZE - 2);
	buffer_printf(out, "%d\"", number);
}

static void
write_span(struct buffer *out, const struct span_record *record,
		   const struct span *span, const struct attribute *attributes,
		   size_t count)
{
	bool		child = span->number > 0;
	const char *parent = child ? record->trace.span_id : record->parent_id;
	int			flags = FLAG_SAMPLED | FLAG_IS_REMOTE_KNOWN;

	if (!child && parent[0] != '\0')
		flags |= FLAG_IS_REMOTE;
	buffer_printf(out, "{\"traceId\":\"%s\",\"spanId\":\"",
				  record->trace.trace_id);
	write_id(out, record->trace.span_id, span->number);
	if (parent[0] != '\0')
		buffer_printf(out, ",\"parentSpanId\":\"%s\"", parent);
	buffer_string(out, ",\"name\":");
	buffer_json_string(out, span->name);
	buffer_printf(out, ",\"kind\":%d,\"flags\":%d,"
				  "\"startTimeUnixNano\":\"%lld000\","
				  "\"endTimeUnixNano\":\"%lld000\",\"attributes\":",
				  (int) span->kind, flags,
				  (long long) (record->day_micros + (int64_t) span->started),
				  (long long) (record->day_micros + (int64_t) span->ended));
	write_attributes(out, attributes, count);
	if (span->failed)
		buffer_printf(out, ",\"status\":{\"code\":%d}", STATUS_ERROR);
	buffer_char(out, '}');
}

static void
write_request(struct buffer *out, const struct span_record *record)
{
	bool		failed = record->status >= 500;
	bool		other = strcmp(record->method, "other") == 0;
	const char *route = record->route[0] != '\0' ? record->route : NULL;
	char		name[ROUTE_SIZE + 16];
	char		status[12];
	const struct attribute attributes[] = {
		{"http.request.method", other ? "_OTHER" : record->method, false},
		{"http.route", route, false},
		{"http.response.status_code", status, true},
		{"url.scheme", "http", false},
		{"error.type", failed ? status : NULL, false},
		{"entityapi.request_id", record->request_id, false},
		{"entityapi.refused", record->refused, false}
	};
	const struct span span = {
		name, KIND_SERVER, 0, record->started, record->ended, failed
	};

	snprintf(status, sizeof(status), "%d", record->status);
	snprintf(name, sizeof(name), "%s%s%s", other ? "HTTP" : record->method,
			 route ? " " : "", route ? route : "");
	write_span(out, record, &span, attributes, LENGTH_OF(attributes));
}

static void
write_call(struct buffer *out, const struct span_record *record)
{
	const struct attribute attributes[] = {
		{"db.system.name", "postgresql", false},
		{"db.operation.name", "SELECT", false},
		{"db.stored_procedure.name", "entityapi.handle", false},
		{"db.query.summary", "SELECT entityapi.handle", false},
		{"error.type", record->refused, false}
	};
	const struct span span = {
		"SELECT entityapi.handle", KIND_CLIENT, 3, record->waited_until,
		record->waited_until + record->database_micros,
		record->refused != NULL
	};

	write_span(out, record, &span, attributes, LENGTH_OF(attributes));
}

static void
write_wait(struct buffer *out, const struct span_record *record,
		   const char *name, int number, uint64_t started, uint64_t micros)
{
	const struct span span = {
		name, KIND_INTERNAL, number, started, started + micros, false
	};

	write_span(out, record, &span, NULL, 0);
}

/*
 * The part of the wait that was for a connection: what was for a thread came
 * before the request was read.
 */
static uint64_t
connection_micros(const struct span_record *record)
{
	return record->waited_until > 0 &&
		record->wait_micros > record->turn_micros ?
		record->wait_micros - record->turn_micros : 0;
}

size_t
otlp_count(const struct span_record *record)
{
	return 1 + (record->turn_micros >= SHORT_MICROS) +
		(connection_micros(record) >= SHORT_MICROS) +
		(record->database_micros > 0);
}

static void
write_record(struct buffer *out, const struct span_record *record)
{
	uint64_t	wait = connection_micros(record);

	write_request(out, record);
	if (record->turn_micros >= SHORT_MICROS)
	{
		buffer_char(out, ',');
		write_wait(out, record, "wait for its turn", 1, record->started,
				   record->turn_micros);
	}
	if (wait >= SHORT_MICROS)
	{
		buffer_char(out, ',');
		write_wait(out, record, "wait for a connection", 2,
				   record->waited_until - wait, wait);
	}
	if (record->database_micros > 0)
	{
		buffer_char(out, ',');
		write_call(out, record);
	}
}

size_t
otlp_write(struct buffer *out, const struct buffer *resource,
		   const struct span_record *records, size_t count)
{
	size_t		spans = 0;
	size_t		i;

	buffer_string(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":");
	buffer_append(out, resource->data, resource->length);
	buffer_string(out, "},\"scopeSpans\":[{\"scope\":{\"name\":"
				  "\"entityapi-shim\",\"version\":\"" SHIM_VERSION "\"},"
				  "\"spans\":[");
	for (i = 0; i < count; i++)
	{
		if (i > 0)
			buffer_char(out, ',');
		write_record(out, &records[i]);
		spans += otlp_count(&records[i]);
	}
	buffer_string(out, "]}]}]}");
	return spans;
}

/* {"partialSuccess": {"rejectedSpans": "3"}}; anything else is none. */
uint64_t
otlp_rejected(const char *answer, size_t length)
{
	json_t	   *root = answer ?
		json_read(answer, length, 0, JSON_DEPTH, NULL) : NULL;
	const json_t *rejected = json_object_get(
		json_object_get(root, "partialSuccess"), "rejectedSpans");
	long long	count = json_is_string(rejected) ?
		atoll(json_string_value(rejected)) : json_integer_value(rejected);

	json_decref(root);
	return count > 0 ? (uint64_t) count : 0;
}
