/*
 * Series of requests are found by a hash table that only grows, so that those
 * who look something up need no lock; a mutex is taken for what has never
 * occurred before.  When the table is full, requests that would need a new
 * series are counted together in one.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

#define SHARDS 4				/* a power of two */
#define TABLE_SIZE 2048			/* a power of two, at least twice MAX_SERIES */
#define MAX_SERIES 1000
#define MAX_REFUSALS 96
#define MAX_REPORTED 1000000000

typedef atomic_uint_least64_t cell;

/* A shard's part of a histogram; threads of other shards write elsewhere. */
struct cells
{
	_Alignas(64) cell buckets[BUCKET_COUNT + 1];
	cell		micros;
};

struct series
{
	const char *route;
	const char *method;
	int			status;
	struct cells shards[SHARDS];
};

struct counters
{
	_Alignas(64) cell counts[METRIC_COUNTER_COUNT];
	struct cells histograms[METRIC_HISTOGRAM_COUNT];
};

const uint64_t metrics_bounds[BUCKET_COUNT] =
{
	100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000,
	500000, 1000000, 2500000, 5000000, 10000000
};

static const char *const methods[] =
{
	"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"
};

#define METHOD_COUNT (sizeof(methods) / sizeof(methods[0]))

static struct counters counters[SHARDS];
static struct series overflow = {.route = "other",.method = "other"};
static _Atomic(struct series *) table[TABLE_SIZE];
static _Atomic(struct series *) listed[MAX_SERIES];
static int	series_count;		/* guarded by the mutex */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static struct
{
	_Atomic(const struct refusal *) refusal;
	cell		count;
}			refusals[MAX_REFUSALS];

/* Threads are dealt out over the shards as they come. */
static unsigned
my_shard(void)
{
	static atomic_uint threads;
	static _Thread_local unsigned shard = SHARDS;

	if (shard == SHARDS)
		shard = atomic_fetch_add(&threads, 1) % SHARDS;
	return shard;
}

static void
add(cell *where, uint64_t count)
{
	atomic_fetch_add_explicit(where, count, memory_order_relaxed);
}

static void
observe(struct cells *cells, uint64_t micros)
{
	int			bucket = 0;

	while (bucket < BUCKET_COUNT && micros > metrics_bounds[bucket])
		bucket++;
	add(&cells->buckets[bucket], 1);
	add(&cells->micros, micros);
}

void
metrics_add(enum metric_counter counter, uint64_t count)
{
	add(&counters[my_shard()].counts[counter], count);
}

void
metrics_observe(enum metric_histogram histogram, uint64_t micros)
{
	observe(&counters[my_shard()].histograms[histogram], micros);
}

const char *
metrics_method(const char *method)
{
	size_t		i;

	for (i = 0; method != NULL && i < METHOD_COUNT; i++)
	{
		if (strcmp(method, methods[i]) == 0)
			return methods[i];
	}
	return "other";
}

/* FNV-1a */
static uint32_t
hash_of(const char *route, const char *method, int status)
{
	uint32_t	hash = 2166136261u;

	for (; *route != '\0'; route++)
		hash = (hash ^ (unsigned char) *route) * 16777619u;
	for (; *method != '\0'; method++)
		hash = (hash ^ (unsigned char) *method) * 16777619u;
	return (hash ^ (uint32_t) status) * 16777619u;
}

/*
 * Looks from the hash's place on.  Returns the series, or NULL with the place
 * where it would go.
 */
static struct series *
find(uint32_t hash, const char *route, const char *method, int status,
	 uint32_t *place)
{
	uint32_t	at = (hash ^ (hash >> 16)) & (TABLE_SIZE - 1);
	struct series *series;

	for (;; at = (at + 1) & (TABLE_SIZE - 1))
	{
		series = atomic_load_explicit(&table[at], memory_order_acquire);
		if (series == NULL)
			break;
		if (series->status == status && series->method == method &&
			strcmp(series->route, route) == 0)
			break;
	}
	*place = at;
	return series;
}

static struct series *
create(uint32_t hash, const char *route, const char *method, int status)
{
	struct series *series;
	uint32_t	place;

	pthread_mutex_lock(&growing);
	series = find(hash, route, method, status, &place);
	if (series == NULL && series_count < MAX_SERIES)
	{
		series = aligned_alloc(_Alignof(struct series), sizeof(*series));
		if (series != NULL)
		{
			memset(series, 0, sizeof(*series));
			series->route = strdup(route);
			series->method = method;
			series->status = status;
		}
		if (series != NULL && series->route != NULL)
		{
			atomic_store_explicit(&table[place], series,
								  memory_order_release);
			atomic_store_explicit(&listed[series_count++], series,
								  memory_order_release);
		}
		else
		{
			free(series);
			series = NULL;
		}
	}
	pthread_mutex_unlock(&growing);
	return series;
}

void
metrics_request(const char *route, const char *method, int status,
				uint64_t micros)
{
	struct series *series;
	uint32_t	hash;
	uint32_t	place;

	if (route == NULL || *route == '\0')
		route = "none";
	method = metrics_method(method);
	hash = hash_of(route, method, status);
	series = find(hash, route, method, status, &place);
	if (series == NULL)
		series = create(hash, route, method, status);
	if (series == NULL)
		series = &overflow;
	observe(&series->shards[my_shard()], micros);
}

void
metrics_refused(const struct refusal *refusal)
{
	int			i;

	for (i = 0; i < MAX_REFUSALS; i++)
	{
		const struct refusal *expected = NULL;

		if (atomic_load(&refusals[i].refusal) == refusal ||
			atomic_compare_exchange_strong(&refusals[i].refusal, &expected,
										   refusal) ||
			expected == refusal)
		{
			add(&refusals[i].count, 1);
			return;
		}
	}
}

void
metrics_reported(const char *note)
{
	int			counter;

	for (counter = METRIC_FIRST_REPORTED; counter < METRIC_COUNTER_COUNT;
		 counter++)
	{
		char	   *end;
		long		count;

		if (!isdigit((unsigned char) *note))
			return;
		errno = 0;
		count = strtol(note, &end, 10);
		if (errno != 0 || count > MAX_REPORTED)
			return;
		if (count > 0)
			metrics_add((enum metric_counter) counter, (uint64_t) count);
		note = *end == ' ' ? end + 1 : end;
	}
}

/* -------- reading -------- */

static uint64_t
read_cell(cell *where)
{
	return atomic_load_explicit(where, memory_order_relaxed);
}

static void
sum(struct metrics_histogram *histogram, struct cells *cells)
{
	int			i;

	for (i = 0; i <= BUCKET_COUNT; i++)
	{
		uint64_t	count = read_cell(&cells->buckets[i]);

		histogram->buckets[i] += count;
		histogram->count += count;
	}
	histogram->micros += read_cell(&cells->micros);
}

uint64_t
metrics_counter(enum metric_counter counter)
{
	uint64_t	total = 0;
	int			i;

	for (i = 0; i < SHARDS; i++)
		total += read_cell(&counters[i].counts[counter]);
	return total;
}

void
metrics_read(enum metric_histogram which, struct metrics_histogram *histogram)
{
	int			i;

	memset(histogram, 0, sizeof(*histogram));
	for (i = 0; i < SHARDS; i++)
		sum(histogram, &counters[i].histograms[which]);
}

bool
metrics_series_at(int number, struct metrics_series *result)
{
	struct series *series = NULL;
	int			i;

	if (number < MAX_SERIES)
		series = atomic_load_explicit(&listed[number], memory_order_acquire);
	else if (number == MAX_SERIES)
		series = &overflow;
	if (series == NULL)
		return false;
	memset(result, 0, sizeof(*result));
	result->route = series->route;
	result->method = series->method;
	result->status = series->status;
	for (i = 0; i < SHARDS; i++)
		sum(&result->histogram, &series->shards[i]);
	return true;
}

bool
metrics_refusal_at(int number, const struct refusal **refusal,
				   uint64_t *count)
{
	if (number >= MAX_REFUSALS)
		return false;
	*refusal = atomic_load(&refusals[number].refusal);
	*count = read_cell(&refusals[number].count);
	return *refusal != NULL;
}
