/*
 * What the thread uses is its own: settings are handed to libcurl at the
 * start, and a thread that does not end in time is left behind with all it
 * has, as the process ends anyway.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "serve/otlp.h"
#include "serve/spans.h"

/* Requests that may wait, and that go out together */
#define QUEUE_SIZE 2048
#define BATCH_SIZE 256

#define CONNECT_TIMEOUT_MS 5000
#define TIMEOUT_MS 10000

/* Tries for one batch, and the pause after the first; each doubles it. */
#define MAX_TRIES 5
#define PAUSE_MS 1000
#define MAX_PAUSE_MS 30000

/* What is still delivered at the end, and how long it is believed to work. */
#define FLUSH_MS 2000
#define END_MS 1500

/* Of an answer, more than this is not looked at. */
#define MAX_ANSWER 65536

struct spans
{
	CURL	   *curl;
	struct curl_slist *headers;
	struct buffer resource;
	struct buffer body;
	struct buffer answer;
	char		cause[CURL_ERROR_SIZE];
	uint64_t	delay_micros;
	bool		failing;		/* the log has it */
	_Atomic(uint64_t) deadline; /* 0: it does not end */
	pthread_t	thread;

	/* The mutex is for what follows. */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	size_t		first;
	size_t		count;
	uint64_t	since;			/* the first of them waits since then */
	struct span_record queue[QUEUE_SIZE];

	struct span_record batch[BATCH_SIZE];
};

/* -------- noting -------- */

static void
to_hex(char *text, const unsigned char *bytes, size_t count)
{
	size_t		i;

	for (i = 0; i < count; i++)
		sprintf(text + i * 2, "%02x", bytes[i]);
}

/* The client's word counts; without one it is left to chance. */
static bool
decide(struct trace *trace, long per_million)
{
	unsigned char id[16];
	uint32_t	chance;

	if (trace->trace_id[0] != '\0')
		return trace->sampled;
	if (per_million == 0 || getrandom(id, sizeof(id), 0) != sizeof(id))
		return false;
	memcpy(&chance, id + sizeof(id) - sizeof(chance), sizeof(chance));
	if ((uint64_t) chance * 1000000 >> 32 >= (uint64_t) per_million)
		return false;
	to_hex(trace->trace_id, id, sizeof(id));
	trace->sampled = true;
	return true;
}

/* A span's id ends with 0, where those of its children have numbers. */
static bool
make_span_id(char *span_id)
{
	unsigned char id[8];

	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return false;
	to_hex(span_id, id, sizeof(id));
	span_id[0] = '1' + id[0] % 9;	/* all zeros would be none */
	span_id[SPAN_ID_SIZE - 2] = '0';
	return true;
}

static int64_t
day_micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000 -
		(int64_t) now_micros();
}

/* Returns where a record goes, with the mutex held, or NULL: no room. */
static struct span_record *
begin_record(struct spans *spans)
{
	pthread_mutex_lock(&spans->mutex);
	if (spans->count < QUEUE_SIZE)
		return &spans->queue[(spans->first + spans->count) % QUEUE_SIZE];
	pthread_mutex_unlock(&spans->mutex);
	return NULL;
}

static void
end_record(struct spans *spans)
{
	if (++spans->count == 1)
		spans->since = now_micros();
	if (spans->count == 1 || spans->count == BATCH_SIZE)
		pthread_cond_signal(&spans->changed);
	pthread_mutex_unlock(&spans->mutex);
}

void
spans_note(struct spans *spans, const struct config *config,
		   struct request *request, const struct access_record *record,
		   const struct answer *answer, uint64_t started)
{
	struct trace *trace = &request->extra.trace;
	struct span_record new;
	struct span_record *place;

	memset(&new, 0, sizeof(new));
	if (!decide(trace, config->trace_per_million))
		return;
	strcpy(new.parent_id, trace->span_id);
	if (!make_span_id(trace->span_id))
		return;
	new.trace = *trace;
	snprintf(new.request_id, sizeof(new.request_id), "%s", request->id);
	snprintf(new.route, sizeof(new.route), "%s",
			 record->route ? record->route : "");
	new.method = metrics_method(record->method);
	new.refused = answer->refused;
	new.status = record->status;
	new.day_micros = day_micros();
	new.started = started;
	new.ended = started + record->total_micros;
	new.turn_micros = request->waited;
	new.waited_until = answer->waited_until;
	new.wait_micros = answer->wait_micros;
	new.database_micros = answer->database_micros;

	place = begin_record(spans);
	if (place != NULL)
	{
		*place = new;
		end_record(spans);
	}
	else
		metrics_add(METRIC_SPANS_DROPPED, otlp_count(&new));
}

/* -------- delivering -------- */

static bool
is_late(const struct spans *spans)
{
	uint64_t	deadline = atomic_load(&spans->deadline);

	return deadline > 0 && now_micros() >= deadline;
}

/* libcurl asks about once a second, whatever it is at. */
static int
go_on(void *argument, curl_off_t down_total, curl_off_t down,
	  curl_off_t up_total, curl_off_t up)
{
	(void) down_total;
	(void) down;
	(void) up_total;
	(void) up;
	return is_late(argument);
}

static size_t
take_answer(char *bytes, size_t size, size_t count, void *argument)
{
	struct buffer *answer = argument;

	if (answer->length + size * count <= MAX_ANSWER)
		buffer_append(answer, bytes, size * count);
	return size * count;
}

enum outcome
{
	OUTCOME_TAKEN,
	OUTCOME_REFUSED,
	OUTCOME_TRY_AGAIN
};

/* Sends the body once; *pause_ms gets what the collector asks for, if so. */
static enum outcome
post(struct spans *spans, long *pause_ms)
{
	uint64_t	deadline = atomic_load(&spans->deadline);
	uint64_t	now = now_micros();
	long		timeout_ms = TIMEOUT_MS;
	long		status = 0;
	curl_off_t	retry_after = 0;
	CURLcode	code;

	if (deadline > 0 && now >= deadline)
		return OUTCOME_REFUSED;
	if (deadline > 0)
		timeout_ms = (long) ((deadline - now) / 1000) + 1;
	buffer_clear(&spans->answer);
	curl_easy_setopt(spans->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(spans->curl, CURLOPT_POSTFIELDS, spans->body.data);
	curl_easy_setopt(spans->curl, CURLOPT_POSTFIELDSIZE_LARGE,
					 (curl_off_t) spans->body.length);
	code = curl_easy_perform(spans->curl);
	if (code != CURLE_OK)
	{
		snprintf(spans->cause, sizeof(spans->cause), "%s",
				 curl_easy_strerror(code));
		return OUTCOME_TRY_AGAIN;
	}
	curl_easy_getinfo(spans->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status <= 299)
		return OUTCOME_TAKEN;
	snprintf(spans->cause, sizeof(spans->cause), "HTTP %ld", status);
	curl_easy_getinfo(spans->curl, CURLINFO_RETRY_AFTER, &retry_after);
	if (retry_after > 0)
		*pause_ms = retry_after < MAX_PAUSE_MS / 1000 ?
			(long) retry_after * 1000 : MAX_PAUSE_MS;
	return status == 429 || (status >= 502 && status <= 504) ?
		OUTCOME_TRY_AGAIN : OUTCOME_REFUSED;
}

static struct timespec
time_in(uint64_t micros)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	micros += (uint64_t) time.tv_nsec / 1000;
	time.tv_sec += (time_t) (micros / 1000000);
	time.tv_nsec = (long) (micros % 1000000) * 1000;
	return time;
}

/* Waits; false if the thread is to end. */
static bool
rest(struct spans *spans, uint64_t micros)
{
	struct timespec until = time_in(micros);
	int			failure = 0;

	pthread_mutex_lock(&spans->mutex);
	while (atomic_load(&spans->deadline) == 0 && failure != ETIMEDOUT)
		failure = pthread_cond_timedwait(&spans->changed, &spans->mutex,
										 &until);
	pthread_mutex_unlock(&spans->mutex);
	return atomic_load(&spans->deadline) == 0;
}

/* Tells the log of the first failure and of the end of it. */
static void
tell(struct spans *spans, bool fails)
{
	if (fails != spans->failing)
		log_event(fails ? LOG_WARNING : LOG_INFO, "traces", NULL, NULL,
				  fails ? "the collector does not take spans: %s" :
				  "the collector takes spans again%s",
				  fails ? spans->cause : "");
	spans->failing = fails;
}

/* Sends so many records of the batch, again if there is hope. */
static void
deliver(struct spans *spans, size_t count)
{
	size_t		total;
	uint64_t	rejected;
	enum outcome outcome = OUTCOME_REFUSED;
	long		pause_ms = PAUSE_MS;
	int			tries = 0;
	bool		again = true;

	buffer_trim(&spans->body, 0);
	total = otlp_write(&spans->body, &spans->resource, spans->batch, count);
	while (again && !spans->body.failed)
	{
		long		wait_ms = pause_ms / 2 + random() % (pause_ms / 2);
		long		asked_ms = 0;

		outcome = post(spans, &asked_ms);
		if (outcome == OUTCOME_TAKEN)
			break;
		metrics_add(METRIC_SPANS_FAILURES, 1);
		tell(spans, true);
		pause_ms *= 2;
		again = outcome == OUTCOME_TRY_AGAIN && ++tries < MAX_TRIES &&
			rest(spans, (uint64_t) (asked_ms ? asked_ms : wait_ms) * 1000);
	}
	if (outcome != OUTCOME_TAKEN)
	{
		metrics_add(METRIC_SPANS_DROPPED, total);
		return;
	}
	tell(spans, false);
	rejected = otlp_rejected(spans->answer.data, spans->answer.length);
	if (rejected > total)
		rejected = total;
	metrics_add(METRIC_SPANS_EXPORTED, total - rejected);
	metrics_add(METRIC_SPANS_DROPPED, rejected);
}

/* Waits for something to send, and takes it; 0: the thread is to end. */
static size_t
take(struct spans *spans)
{
	size_t		count;
	size_t		i;

	pthread_mutex_lock(&spans->mutex);
	while (atomic_load(&spans->deadline) == 0 && spans->count < BATCH_SIZE)
	{
		uint64_t	age = now_micros() - spans->since;
		struct timespec until;

		if (spans->count > 0 && age >= spans->delay_micros)
			break;
		until = time_in(spans->delay_micros - age);
		if (spans->count > 0)
			pthread_cond_timedwait(&spans->changed, &spans->mutex, &until);
		else
			pthread_cond_wait(&spans->changed, &spans->mutex);
	}
	count = spans->count < BATCH_SIZE ? spans->count : BATCH_SIZE;
	for (i = 0; i < count; i++)
		spans->batch[i] = spans->queue[(spans->first + i) % QUEUE_SIZE];
	spans->first = (spans->first + count) % QUEUE_SIZE;
	spans->count -= count;
	spans->since = now_micros();
	pthread_mutex_unlock(&spans->mutex);
	return count;
}

static void *
run(void *argument)
{
	struct spans *spans = argument;
	size_t		count;

	while ((count = take(spans)) > 0)
		deliver(spans, count);
	return NULL;
}

/* -------- start and end -------- */

/* A line of the setting is a header. */
static bool
add_headers(struct spans *spans, const char *lines)
{
	static const char *const own[] = {
		"Content-Type: application/json", "Expect:"
	};
	char	   *copy = strdup(lines);
	char	   *state = NULL;
	const char *line = copy ? strtok_r(copy, "\n", &state) : NULL;
	bool		fine = copy != NULL;
	size_t		i;

	for (i = 0; fine && (line != NULL || i < 2); i++)
	{
		struct curl_slist *longer = curl_slist_append(
			spans->headers, i < 2 ? own[i] : line);

		fine = longer != NULL;
		if (fine)
			spans->headers = longer;
		if (i >= 2)
			line = strtok_r(NULL, "\n", &state);
	}
	free(copy);
	return fine;
}

/* Whatever the environment says of proxies, the collector is asked itself. */
static bool
prepare(struct spans *spans, const struct config *config)
{
	CURL	   *curl = spans->curl = curl_easy_init();

	if (curl == NULL || !add_headers(spans, config->otlp_headers))
		return false;
	return curl_easy_setopt(curl, CURLOPT_URL,
							config->otlp_endpoint) == CURLE_OK &&
		(config->otlp_ca_file[0] == '\0' ||
		 curl_easy_setopt(curl, CURLOPT_CAINFO,
						  config->otlp_ca_file) == CURLE_OK) &&
		!curl_easy_setopt(curl, CURLOPT_HTTPHEADER, spans->headers) &&
		!curl_easy_setopt(curl, CURLOPT_PROXY, "") &&
		!curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
		!curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) &&
		!curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L) &&
		!curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L) &&
		!curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
						  (long) CONNECT_TIMEOUT_MS) &&
		!curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer) &&
		!curl_easy_setopt(curl, CURLOPT_WRITEDATA, &spans->answer) &&
		!curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) &&
		!curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, go_on) &&
		!curl_easy_setopt(curl, CURLOPT_XFERINFODATA, spans);
}

static void
free_spans(struct spans *spans)
{
	curl_easy_cleanup(spans->curl);
	curl_slist_free_all(spans->headers);
	buffer_free(&spans->resource);
	buffer_free(&spans->body);
	buffer_free(&spans->answer);
	pthread_cond_destroy(&spans->changed);
	pthread_mutex_destroy(&spans->mutex);
	free(spans);
	curl_global_cleanup();
}

struct spans *
spans_start(const struct config *config)
{
	struct spans *spans = NULL;
	pthread_condattr_t attributes;
	char		instance_id[SPAN_ID_SIZE];

	if (config->otlp_endpoint[0] == '\0')
		return NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		spans = calloc(1, sizeof(*spans));
	if (spans != NULL)
	{
		pthread_mutex_init(&spans->mutex, NULL);
		pthread_condattr_init(&attributes);
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		pthread_cond_init(&spans->changed, &attributes);
		pthread_condattr_destroy(&attributes);
		spans->delay_micros = (uint64_t) config->otlp_delay_ms * 1000;
		if (make_span_id(instance_id))
			otlp_write_resource(&spans->resource, config->otlp_service_name,
								instance_id);
		if (spans->resource.length > 0 && !spans->resource.failed &&
			prepare(spans, config) &&
			thread_begin(&spans->thread, run, spans))
			return spans;
		free_spans(spans);
	}
	log_event(LOG_ERROR, "start", NULL, NULL, "there will be no traces");
	return NULL;
}

void
spans_stop(struct spans *spans)
{
	struct timespec until;

	if (spans == NULL)
		return;
	pthread_mutex_lock(&spans->mutex);
	atomic_store(&spans->deadline, now_micros() + FLUSH_MS * 1000);
	pthread_cond_signal(&spans->changed);
	pthread_mutex_unlock(&spans->mutex);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (FLUSH_MS + END_MS) / 1000 + 1;
	if (pthread_timedjoin_np(spans->thread, NULL, &until) == 0)
		free_spans(spans);
}
