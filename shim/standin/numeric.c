/*
 * Decimal numbers, as the text that a server would print.
 *
 * It is read, printed and compared only; the callers have looked at its form.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "base/compat.h"

/* What the format of a stored number has room for. */
#define MOST_WHOLE 131072
#define MOST_FRACTION 16383

/* Beyond that an exponent need not be told from another one. */
#define MOST_EXPONENT 1000000000

struct NumericData
{
	int32		vl_len_;		/* varlena header */
	char		text[FLEXIBLE_ARRAY_MEMBER];
};

/* Digits as they were written, and where the point is among them. */
typedef struct Digits
{
	bool		negative;
	char	   *digits;
	int64		count;
	int64		point;
} Digits;

static Digits
scan(const char *text)
{
	Digits		number = {0};
	int64		exponent = 0;

	number.digits = palloc(strlen(text) + 1);
	number.negative = *text == '-';
	number.point = -1;
	for (text += number.negative; *text != '\0' && *text != 'e' &&
		 *text != 'E'; text++)
	{
		if (*text == '.')
			number.point = number.count;
		else
			number.digits[number.count++] = *text;
	}
	if (number.point < 0)
		number.point = number.count;
	if (*text != '\0')
	{
		bool		below = *++text == '-';

		for (text += below || *text == '+'; *text != '\0'; text++)
			exponent = Min(exponent * 10 + (*text - '0'), MOST_EXPONENT);
		number.point += below ? -exponent : exponent;
	}
	return number;
}

static char
digit_at(const Digits *number, int64 at)
{
	return at < 0 || at >= number->count ? '0' : number->digits[at];
}

Datum
numeric_in(PG_FUNCTION_ARGS)
{
	Digits		number = scan(PG_GETARG_CSTRING(0));
	int64		decimals = Max(number.count - number.point, 0);
	int64		first = 0;
	int64		from;
	Numeric		result;
	char	   *to;

	/* the first digit that counts, or the last one of the whole part */
	while (first < number.count && number.digits[first] == '0')
		first++;
	from = Min(first, number.point - 1);
	if (first == number.count)
		from = number.point - 1;
	if (decimals > MOST_FRACTION || number.point - from > MOST_WHOLE)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value overflows numeric format")));

	result = palloc(VARHDRSZ + number.point - from + decimals + 3);
	to = result->text;
	if (number.negative && first < number.count)
		*to++ = '-';
	for (int64 i = from; i < number.point + decimals; i++)
	{
		if (i == number.point)
			*to++ = '.';
		*to++ = digit_at(&number, i);
	}
	*to = '\0';
	SET_VARSIZE(result, to + 1 - (char *) result);
	pfree(number.digits);
	PG_RETURN_NUMERIC(result);
}

Datum
numeric_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(pstrdup(PG_GETARG_NUMERIC(0)->text));
}

/* Without zeros at the end of the fraction */
char *
numeric_normalize(Numeric num)
{
	char	   *text = pstrdup(num->text);
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

bool
numeric_is_nan(Numeric num)
{
	return false;
}

bool
numeric_is_inf(Numeric num)
{
	return false;
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

Datum
numeric_cmp(PG_FUNCTION_ARGS)
{
	const char *a = numeric_normalize(PG_GETARG_NUMERIC(0));
	const char *b = numeric_normalize(PG_GETARG_NUMERIC(1));

	if (*a == '-' && *b == '-')
		PG_RETURN_INT32(compare_sizes(b + 1, a + 1));
	if (*a == '-' || *b == '-')
		PG_RETURN_INT32(*a == '-' ? -1 : 1);
	PG_RETURN_INT32(compare_sizes(a, b));
}
