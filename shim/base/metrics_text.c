/*
 * Everything about a metric is in its row of the table below.  Both forms come
 * from one pass over it: a sample is written as a line of text, or as a member
 * of an array.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/metrics_text.h"

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_LABELS 4

struct label
{
	const char *name;
	const char *value;
};

struct family;

/* Where samples go, and what they are read from. */
struct writer
{
	struct buffer *out;
	const struct metrics_gauges *gauges;
	const struct family *family;
	bool		json;
	bool		first;
};

/* One metric: its samples all have the name, and perhaps a suffix. */
struct family
{
	const char *name;
	const char *type;
	const char *help;
	void		(*write) (struct writer *writer);
	int			argument;		/* for functions of several rows */
};

/* -------- one sample -------- */

/* A label's value: backslash, quote and line feed are escaped. */
static void
write_quoted(struct buffer *out, const char *value)
{
	buffer_char(out, '"');
	for (; *value != '\0'; value++)
	{
		if (*value == '\\' || *value == '"')
			buffer_char(out, '\\');
		if (*value == '\n')
			buffer_string(out, "\\n");
		else
			buffer_char(out, *value);
	}
	buffer_char(out, '"');
}

/* The labels end with one without a name. */
static void
sample_text(struct writer *writer, const char *suffix,
			const struct label *labels, const char *value)
{
	struct buffer *out = writer->out;

	if (writer->json)
	{
		buffer_string(out, writer->first ? "" : ",");
		buffer_string(out, "{\"name\":\"");
		buffer_string(out, writer->family->name);
		buffer_string(out, suffix);
		buffer_string(out, "\",\"labels\":{");
	}
	else
	{
		buffer_string(out, writer->family->name);
		buffer_string(out, suffix);
		if (labels->name != NULL)
			buffer_char(out, '{');
	}
	writer->first = false;

	for (bool first = true; labels->name != NULL; labels++, first = false)
	{
		if (!first)
			buffer_char(out, ',');
		if (writer->json)
			buffer_json_string(out, labels->name);
		else
			buffer_string(out, labels->name);
		buffer_char(out, writer->json ? ':' : '=');
		if (writer->json)
			buffer_json_string(out, labels->value);
		else
			write_quoted(out, labels->value);
		if (!writer->json && labels[1].name == NULL)
			buffer_char(out, '}');
	}
	buffer_string(out, writer->json ? "},\"value\":" : " ");
	buffer_string(out, value);
	buffer_char(out, writer->json ? '}' : '\n');
}

static void
sample(struct writer *writer, const char *suffix, const struct label *labels,
	   uint64_t value)
{
	static const struct label none[] = {{NULL, NULL}};
	char		text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long) value);
	sample_text(writer, suffix, labels ? labels : none, text);
}

static void
sample_seconds(struct writer *writer, const char *suffix,
			   const struct label *labels, uint64_t micros)
{
	static const struct label none[] = {{NULL, NULL}};
	char		text[32];

	snprintf(text, sizeof(text), "%llu.%06u",
			 (unsigned long long) (micros / 1000000),
			 (unsigned) (micros % 1000000));
	sample_text(writer, suffix, labels ? labels : none, text);
}

/* Buckets, sum and count; "labels" has room for one more. */
static void
sample_histogram(struct writer *writer, struct label *labels,
				 const struct metrics_histogram *histogram)
{
	struct label *le = labels;
	uint64_t	below = 0;
	char		bound[24];
	int			i;

	while (le->name != NULL)
		le++;
	le[1].name = NULL;
	for (i = 0; i <= BUCKET_COUNT; i++)
	{
		below += histogram->buckets[i];
		if (i == BUCKET_COUNT)
			snprintf(bound, sizeof(bound), "+Inf");
		else
			snprintf(bound, sizeof(bound), "%g",
					 (double) metrics_bounds[i] / 1e6);
		le->name = "le";
		le->value = bound;
		sample(writer, "_bucket", labels, below);
	}
	le->name = NULL;
	sample_seconds(writer, "_sum", labels, histogram->micros);
	sample(writer, "_count", labels, below);
}

/* -------- the metrics -------- */

static void
series_labels(const struct metrics_series *series, struct label *labels,
			  char *status, size_t size)
{
	snprintf(status, size, "%d", series->status);
	labels[0] = (struct label) {"route", series->route};
	labels[1] = (struct label) {"method", series->method};
	labels[2] = (struct label) {
		"status", series->status == 0 ? "other" : status
	};
	labels[3] = (struct label) {NULL, NULL};
}

static void
write_requests(struct writer *writer)
{
	struct metrics_series series;
	struct label labels[MAX_LABELS + 1];
	char		status[12];
	int			i;

	for (i = 0; metrics_series_at(i, &series); i++)
	{
		series_labels(&series, labels, status, sizeof(status));
		if (series.histogram.count > 0)
			sample(writer, "", labels, series.histogram.count);
	}
}

static void
write_durations(struct writer *writer)
{
	struct metrics_series series;
	struct label labels[MAX_LABELS + 1];
	char		status[12];
	int			i;

	for (i = 0; metrics_series_at(i, &series); i++)
	{
		series_labels(&series, labels, status, sizeof(status));
		if (series.histogram.count > 0)
			sample_histogram(writer, labels, &series.histogram);
	}
}

static void
write_refused(struct writer *writer)
{
	const struct refusal *refusal;
	uint64_t	count;
	int			i;

	for (i = 0; metrics_refusal_at(i, &refusal, &count); i++)
	{
		const struct label labels[] = {{"kind", refusal->kind}, {NULL, NULL}};

		sample(writer, "", labels, count);
	}
}

/* Requests to a route that ended in a status from "first" to "last" */
static uint64_t
count_answers(const char *route, int first, int last)
{
	struct metrics_series series;
	uint64_t	total = 0;
	int			i;

	for (i = 0; metrics_series_at(i, &series); i++)
	{
		if ((route == NULL || strcmp(series.route, route) == 0) &&
			series.status >= first && series.status <= last)
			total += series.histogram.count;
	}
	return total;
}

static void
write_logins(struct writer *writer)
{
	static const char *const routes[] = {"/auth/login", "/auth/token"};
	static const char *const kinds[] = {"password", "client_credentials"};
	static const struct
	{
		const char *outcome;
		int			first;
		int			last;
	}			outcomes[] =
	{
		{"success", 200, 200},
		{"failure", 401, 401},
		{"throttled", 429, 429}
	};

	for (size_t i = 0; i < LENGTH_OF(routes) * LENGTH_OF(outcomes); i++)
	{
		size_t		kind = i / LENGTH_OF(outcomes);
		size_t		outcome = i % LENGTH_OF(outcomes);
		const struct label labels[] = {
			{"kind", kinds[kind]},
			{"outcome", outcomes[outcome].outcome},
			{NULL, NULL}
		};

		sample(writer, "", labels,
			   count_answers(routes[kind], outcomes[outcome].first,
							 outcomes[outcome].last));
	}
}

static void
write_throttled(struct writer *writer)
{
	sample(writer, "", NULL, count_answers(NULL, 429, 429));
}

static void
write_counter(struct writer *writer)
{
	sample(writer, "", NULL,
		   metrics_counter((enum metric_counter) writer->family->argument));
}

/* Two counters that follow each other, as one metric with a label. */
static void
write_pair(struct writer *writer, const char *name, const char *first,
		   const char *second)
{
	int			counter = writer->family->argument;
	const struct label one[] = {{name, first}, {NULL, NULL}};
	const struct label other[] = {{name, second}, {NULL, NULL}};

	sample(writer, "", one, metrics_counter((enum metric_counter) counter));
	sample(writer, "", other,
		   metrics_counter((enum metric_counter) (counter + 1)));
}

static void
write_lanes(struct writer *writer)
{
	write_pair(writer, "lane", "data", "login");
}

static void
write_lookups(struct writer *writer)
{
	write_pair(writer, "result", "hit", "miss");
}

static void
write_histogram(struct writer *writer)
{
	struct metrics_histogram histogram;
	struct label labels[MAX_LABELS + 1] = {{NULL, NULL}};

	metrics_read((enum metric_histogram) writer->family->argument,
				 &histogram);
	sample_histogram(writer, labels, &histogram);
}

static void
write_pool(struct writer *writer)
{
	const struct metrics_gauges *gauges = writer->gauges;
	const struct label in_use[] = {{"state", "in_use"}, {NULL, NULL}};
	const struct label idle[] = {{"state", "idle"}, {NULL, NULL}};
	const struct label given_up[] = {{"state", "given_up"}, {NULL, NULL}};

	sample(writer, "", in_use, (uint64_t) gauges->pool_in_use);
	sample(writer, "", idle, (uint64_t) gauges->pool_idle);
	sample(writer, "", given_up, (uint64_t) gauges->pool_given_up);
}

enum gauge
{
	GAUGE_POOL_SIZE,
	GAUGE_POOL_WAITING,
	GAUGE_IN_FLIGHT,
	GAUGE_DRAINING
};

static void
write_gauge(struct writer *writer)
{
	const struct metrics_gauges *gauges = writer->gauges;
	const long	values[] = {
		[GAUGE_POOL_SIZE] = gauges->pool_size,
		[GAUGE_POOL_WAITING] = gauges->pool_waiting,
		[GAUGE_IN_FLIGHT] = gauges->requests_in_flight,
		[GAUGE_DRAINING] = gauges->draining
	};

	sample(writer, "", NULL, (uint64_t) values[writer->family->argument]);
}

static void
write_build(struct writer *writer)
{
	static const struct label labels[] = {
		{"version", SHIM_VERSION}, {NULL, NULL}
	};

	sample(writer, "", labels, 1);
}

static void
write_cpu(struct writer *writer)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		sample_seconds(writer, "", NULL,
					   (uint64_t) (usage.ru_utime.tv_sec +
								   usage.ru_stime.tv_sec) * 1000000 +
					   (uint64_t) (usage.ru_utime.tv_usec +
								   usage.ru_stime.tv_usec));
}

static void
write_memory(struct writer *writer)
{
	FILE	   *file = fopen("/proc/self/statm", "re");
	unsigned long long pages;

	if (file != NULL && fscanf(file, "%*u %llu", &pages) == 1)
		sample(writer, "", NULL, pages * (uint64_t) sysconf(_SC_PAGESIZE));
	if (file != NULL)
		fclose(file);
}

static void
write_files(struct writer *writer)
{
	DIR		   *directory = opendir("/proc/self/fd");
	uint64_t	count = 0;

	if (directory == NULL)
		return;
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);

	/* "." and ".." and the directory itself */
	sample(writer, "", NULL, count > 3 ? count - 3 : 0);
}

static const struct family families[] =
{
	{"entityapi_http_requests_total", "counter",
	"Answered requests.", write_requests, 0},
	{"entityapi_http_request_duration_seconds", "histogram",
		"Time from the head of a request to the end of its answer.",
	write_durations, 0},
	{"entityapi_http_requests_in_flight", "gauge",
	"Requests being answered.", write_gauge, GAUGE_IN_FLIGHT},
	{"entityapi_http_refused_total", "counter",
		"Requests answered by the shim itself, by cause.",
	write_refused, 0},
	{"entityapi_http_compressed_total", "counter",
		"Answers that were compressed.",
	write_counter, METRIC_ANSWERS_COMPRESSED},
	{"entityapi_logins_total", "counter",
	"Logins by password or client credentials.", write_logins, 0},
	{"entityapi_throttled_total", "counter",
	"Requests answered with 429.", write_throttled, 0},
	{"entityapi_pool_size", "gauge",
		"Most database connections that there may be.",
	write_gauge, GAUGE_POOL_SIZE},
	{"entityapi_pool_connections", "gauge",
	"Open database connections.", write_pool, 0},
	{"entityapi_pool_waiting", "gauge",
		"Requests waiting for a database connection.",
	write_gauge, GAUGE_POOL_WAITING},
	{"entityapi_pool_wait_seconds", "histogram",
		"Time that requests waited for a database connection.",
	write_histogram, METRIC_POOL_WAIT},
	{"entityapi_pool_timeouts_total", "counter",
		"Requests that got no database connection in time.",
	write_lanes, METRIC_POOL_TIMEOUTS_DATA},
	{"entityapi_database_duration_seconds", "histogram",
		"Time of requests in the database, repetitions included.",
	write_histogram, METRIC_DATABASE},
	{"entityapi_database_connections_opened_total", "counter",
	"Database connections opened.", write_counter, METRIC_CONNECTIONS_OPENED},
	{"entityapi_database_connections_failed_total", "counter",
		"Attempts to open a database connection that failed.",
	write_counter, METRIC_CONNECTIONS_FAILED},
	{"entityapi_database_connections_discarded_total", "counter",
		"Database connections given up as broken.",
	write_counter, METRIC_CONNECTIONS_DISCARDED},
	{"entityapi_database_connections_given_up_total", "counter",
		"Database connections given up before the server had answered.",
	write_counter, METRIC_CONNECTIONS_GIVEN_UP},
	{"entityapi_database_retries_total", "counter",
		"Calls repeated after a conflict with another transaction.",
	write_counter, METRIC_RETRIES},
	{"entityapi_plan_cache_lookups_total", "counter",
		"Statements looked up among the kept plans of database sessions.",
	write_lookups, METRIC_PLAN_HITS},
	{"entityapi_catalog_cache_lookups_total", "counter",
		"Requests that found the declarations loaded, or had to load them.",
	write_lookups, METRIC_CATALOG_HITS},
	{"entityapi_log_lines_lost_total", "counter",
		"Lines of both logs that could not be written.",
	write_counter, METRIC_LOG_LINES_LOST},
	{"entityapi_spans_exported_total", "counter",
		"Spans that the collector of traces has taken.",
	write_counter, METRIC_SPANS_EXPORTED},
	{"entityapi_spans_dropped_total", "counter",
		"Spans that found no place in the queue, or were not taken.",
	write_counter, METRIC_SPANS_DROPPED},
	{"entityapi_spans_failures_total", "counter",
		"Attempts to deliver spans that failed.",
	write_counter, METRIC_SPANS_FAILURES},
	{"entityapi_draining", "gauge",
	"1 while the service is ending.", write_gauge, GAUGE_DRAINING},
	{"entityapi_build_info", "gauge",
	"1, with the version of the service.", write_build, 0},
	{"process_cpu_seconds_total", "counter",
	"Processor time of the HTTP process.", write_cpu, 0},
	{"process_resident_memory_bytes", "gauge",
	"Memory of the HTTP process.", write_memory, 0},
	{"process_open_fds", "gauge",
	"Open files of the HTTP process.", write_files, 0}
};

void
metrics_write_text(struct buffer *out, const struct metrics_gauges *gauges)
{
	for (size_t i = 0; i < LENGTH_OF(families); i++)
	{
		const struct family *family = &families[i];
		struct writer writer = {
			.out = out,.gauges = gauges,.family = family,.first = true
		};

		buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name,
					  family->help, family->name, family->type);
		family->write(&writer);
	}
}

void
metrics_write_names(struct buffer *out)
{
	buffer_string(out, "{\"names\":[");
	for (size_t i = 0; i < LENGTH_OF(families); i++)
	{
		if (i > 0)
			buffer_char(out, ',');
		buffer_json_string(out, families[i].name);
	}
	buffer_string(out, "]}");
}

bool
metrics_write_one(struct buffer *out, const char *name,
				  const struct metrics_gauges *gauges)
{
	for (size_t i = 0; i < LENGTH_OF(families); i++)
	{
		const struct family *family = &families[i];
		struct writer writer = {
			.out = out,.gauges = gauges,.family = family,.json = true,
			.first = true
		};

		if (strcmp(name, family->name) != 0)
			continue;
		buffer_string(out, "{\"name\":");
		buffer_json_string(out, family->name);
		buffer_string(out, ",\"type\":");
		buffer_json_string(out, family->type);
		buffer_string(out, ",\"description\":");
		buffer_json_string(out, family->help);
		buffer_string(out, ",\"samples\":[");
		family->write(&writer);
		buffer_string(out, "]}");
		return true;
	}
	return false;
}
