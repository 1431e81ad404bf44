/*
 * A compressor holds 270 kB and takes a while to set up, so a few are kept: as
 * many as are in use at once, up to a limit, whatever the number of threads.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "http/encoding.h"

/* The cheapest: JSON repeats itself so much that more effort gains little. */
#define LEVEL 1
#define GZIP_WINDOW (15 + 16)
#define MEMORY_LEVEL 8

#define KEPT_MAX 16

struct compressor
{
	z_stream	stream;
	struct compressor *next;
};

static struct compressor *kept = NULL;
static int	kept_count = 0;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* -------- Accept-Encoding (RFC 9110, section 12.5.3) -------- */

/* A weight in thousandths: "0", "0.5", "1.000"; -1 if it is none. */
static int
read_weight(const char *p, const char *end)
{
	int			weight;
	int			digit = 100;

	if (p == end || (*p != '0' && *p != '1'))
		return -1;
	weight = (*p++ - '0') * 1000;
	if (p < end && *p++ != '.')
		return -1;
	for (; p < end; p++, digit /= 10)
	{
		if (*p < '0' || *p > '9' || digit == 0)
			return -1;
		weight += (*p - '0') * digit;
	}
	return weight <= 1000 ? weight : -1;
}

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* One member of the list: a coding, perhaps with ";q=" and a weight. */
static void
read_member(struct encoding *encoding, const char *p, const char *end)
{
	static const struct
	{
		const char *name;
		size_t		offset;
	}			codings[] =
	{
		{"gzip", offsetof(struct encoding, gzip)},
		{"x-gzip", offsetof(struct encoding, gzip)},
		{"identity", offsetof(struct encoding, identity)},
		{"*", offsetof(struct encoding, any)}
	};
	const char *name = skip_blanks(p, end);
	const char *name_end = name;
	bool		weighted;
	int			weight = 1000;
	size_t		i;

	while (end > name && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	while (name_end < end && *name_end != ';')
		name_end++;
	weighted = name_end < end;
	p = weighted ? skip_blanks(name_end + 1, end) : end;
	while (name_end > name && (name_end[-1] == ' ' || name_end[-1] == '\t'))
		name_end--;
	if (weighted && end - p > 2 && (p[0] == 'q' || p[0] == 'Q') &&
		p[1] == '=')
		weight = read_weight(p + 2, end);
	else if (weighted)
		weight = -1;
	for (i = 0; i < sizeof(codings) / sizeof(codings[0]); i++)
	{
		if (strlen(codings[i].name) == (size_t) (name_end - name) &&
			strncasecmp(codings[i].name, name,
						(size_t) (name_end - name)) == 0)
			*(int *) ((char *) encoding + codings[i].offset) =
				weight < 0 ? 0 : weight;
	}
}

void
encoding_read(struct encoding *encoding, const char *value, size_t length)
{
	const char *end = value + length;

	while (value < end)
	{
		const char *comma = memchr(value, ',', (size_t) (end - value));
		const char *last = comma ? comma : end;

		read_member(encoding, value, last);
		value = last + 1;
	}
}

/*
 * A coding that is not named gets what "*" says; identity, if not even that is
 * there, is what nobody minds but nobody asked for.
 */
bool
encoding_prefers_gzip(const struct encoding *encoding, bool small)
{
	int			gzip = encoding->gzip >= 0 ? encoding->gzip : encoding->any;
	int			identity = encoding->identity >= 0 ? encoding->identity :
		encoding->any == 0 ? 0 : -1;

	if (gzip <= 0)
		return false;
	return small ? identity == 0 : gzip >= identity;
}

/* -------- gzip -------- */

static struct compressor *
take_compressor(void)
{
	struct compressor *compressor;

	pthread_mutex_lock(&mutex);
	compressor = kept;
	if (compressor != NULL)
	{
		kept = compressor->next;
		kept_count--;
	}
	pthread_mutex_unlock(&mutex);
	if (compressor != NULL)
		return compressor;

	compressor = calloc(1, sizeof(*compressor));
	if (compressor != NULL &&
		deflateInit2(&compressor->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW,
					 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
	{
		free(compressor);
		compressor = NULL;
	}
	return compressor;
}

static void
give_compressor(struct compressor *compressor)
{
	bool		keep = deflateReset(&compressor->stream) == Z_OK;

	pthread_mutex_lock(&mutex);
	keep = keep && kept_count < KEPT_MAX;
	if (keep)
	{
		compressor->next = kept;
		kept = compressor;
		kept_count++;
	}
	pthread_mutex_unlock(&mutex);
	if (!keep)
	{
		deflateEnd(&compressor->stream);
		free(compressor);
	}
}

bool
encoding_gzip(struct buffer *out, const char *body, size_t length)
{
	struct compressor *compressor;
	z_stream   *stream;
	int			state;

	buffer_clear(out);
	if (length > UINT_MAX || !buffer_reserve(out, length))
		return false;
	compressor = take_compressor();
	if (compressor == NULL)
		return false;
	stream = &compressor->stream;
	stream->next_in = (Bytef *) body;
	stream->avail_in = (uInt) length;
	stream->next_out = (Bytef *) out->data;
	stream->avail_out = (uInt) length;
	state = deflate(stream, Z_FINISH);
	out->length = length - stream->avail_out;
	out->data[out->length] = '\0';
	give_compressor(compressor);

	/* no more room than the body had: otherwise it is not worth it */
	return state == Z_STREAM_END;
}

void
encoding_stop(void)
{
	while (kept != NULL)
	{
		struct compressor *next = kept->next;

		deflateEnd(&kept->stream);
		free(kept);
		kept = next;
	}
	kept_count = 0;
}
