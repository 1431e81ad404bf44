/*
 * A number is the text that a server would print.  Other values are not looked
 * at, and patterns fit all of them.
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "base/grow.h"
#include "model/host.h"
#include "standin/host.h"

/* The digits that the format of a stored number has room for. */
#define MOST_WHOLE 131072
#define MOST_FRACTION 16383

/* Beyond that an exponent need not be told from another one. */
#define MOST_EXPONENT 1000000000

bool		standin_host_patterns;

/* As libpq prints what a server says */
void
ea_host_warn(const char *message, const char *hint)
{
	fprintf(stderr, "WARNING:  %s\n", message);
	if (hint != NULL)
		fprintf(stderr, "HINT:  %s\n", hint);
}

/* Whose a table is, only the database knows. */
bool
ea_host_is_ours(const char *schema, const char *table, bool guess)
{
	return guess;
}

/* Nor what it is. */
bool
ea_host_is_view(const char *schema, const char *table)
{
	return false;
}

bool
ea_host_is_unique(const char *schema, const char *table, const char *one,
				  const char *other)
{
	return true;
}

/* So is how its columns are. */
bool
ea_host_column(const char *schema, const char *table, const char *column,
			   EaHostColumn *found)
{
	memset(found, 0, sizeof(*found));
	found->policy = EA_POLICY_ANY;
	return false;
}

bool
ea_host_has_label(const EaHostColumn *column, const char *label)
{
	return true;
}

void
standin_host_fail(const char *why)
{
	fprintf(stderr, "entityapi-shim validate: ERROR:  %s\n", why);
	exit(1);
}

void *
ea_grow(void *items, int *max, size_t size)
{
	*max = Max(2 * *max, 4);
	if (items == NULL)
		return palloc(*max * size);
	return repalloc(items, *max * size);
}

/* -------- numbers -------- */

/* The callers have looked at its form. */
Datum
ea_host_number_read(const char *text)
{
	bool		negative = *text == '-';
	char	   *digits = palloc(strlen(text) + 1);
	int64		count = 0;
	int64		point;
	int64		first = 0;
	int64		from;
	int64		end;
	char	   *result;
	char	   *to;

	for (text += negative; isdigit((unsigned char) *text); text++)
		digits[count++] = *text;
	point = count;
	if (*text == '.')
	{
		for (text++; isdigit((unsigned char) *text); text++)
			digits[count++] = *text;
	}
	if (*text != '\0')
		point += Max(Min(strtol(text + 1, NULL, 10), MOST_EXPONENT),
					 -MOST_EXPONENT);

	/* from the first digit that counts, or the last one of the whole part */
	while (first < count && digits[first] == '0')
		first++;
	from = first == count ? point - 1 : Min(first, point - 1);
	end = Max(count, point);
	if (end - point > MOST_FRACTION || point - from > MOST_WHOLE)
		standin_host_fail("value overflows numeric format");

	result = to = palloc(end - from + 3);
	if (negative && first < count)
		*to++ = '-';
	for (int64 i = from; i < end; i++)
	{
		if (i == point)
			*to++ = '.';
		*to++ = i < 0 || i >= count ? '0' : digits[i];
	}
	*to = '\0';
	pfree(digits);
	return CStringGetDatum(result);
}

char *
ea_host_number_write(Datum number)
{
	return pstrdup(DatumGetCString(number));
}

char *
ea_host_number_short(Datum number)
{
	char	   *text = ea_host_number_write(number);
	char	   *end = text + strlen(text);

	if (strchr(text, '.') == NULL)
		return text;
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	*end = '\0';
	return text;
}

/* Neither has a sign. */
static int
compare_sizes(const char *a, const char *b)
{
	size_t		one = strcspn(a, ".");
	size_t		other = strcspn(b, ".");

	if (one != other)
		return one < other ? -1 : 1;
	return strcmp(a, b);
}

int
ea_host_number_compare(Datum a, Datum b)
{
	const char *one = ea_host_number_short(a);
	const char *other = ea_host_number_short(b);

	if (*one == '-' && *other == '-')
		return compare_sizes(other + 1, one + 1);
	if (*one == '-' || *other == '-')
		return *one == '-' ? -1 : 1;
	return compare_sizes(one, other);
}

/* Limits are compared, and shown in messages. */
bool
ea_host_float_read(const char *text, bool single, Datum *number)
{
	double		value = strtod(text, NULL);

	*number = single ? Float4GetDatum((float) value) : Float8GetDatum(value);
	return single ? isfinite((float) value) : isfinite(value);
}

char *
ea_host_float_write(Datum number, bool single)
{
	return psprintf("%g", single ? DatumGetFloat4(number)
					: DatumGetFloat8(number));
}

/* -------- JSON -------- */

Datum
ea_host_jsonb_read(const char *json)
{
	return (Datum) 0;
}

/* Limits are written, and JSON has none. */
void
ea_host_jsonb_write(StringInfo buf, Datum value)
{
}

/* -------- patterns -------- */

const char *
ea_host_pattern_fault(const char *pattern)
{
	standin_host_patterns = true;
	return NULL;
}

bool
ea_host_pattern_matches(const char *pattern, const text *value)
{
	return true;
}
