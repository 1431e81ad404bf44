/*
 * Days are counted as PostgreSQL counts them, from 2000-01-01, and times in
 * microseconds.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "base/calendar.h"
#include "base/jsonwrite.h"
#include "base/text.h"
#include "model/times.h"
#include "model/types.h"

/* Digits of a year: that of the last date is 5874897. */
#define MAX_YEAR_DIGITS 7

/* Digits of a fraction of a second: picoseconds are read, and rounded. */
#define MAX_FRACTION 12

/* Take exactly count digits from *at. */
static bool
take_digits(const char **at, const char *end, int count, int *number)
{
	if (ea_text_digits(*at, end) < count)
		return false;
	*number = 0;
	for (int i = 0; i < count; i++, (*at)++)
		*number = *number * 10 + (**at - '0');
	return true;
}

static bool
take_char(const char **at, const char *end, char c)
{
	if (*at >= end || **at != c)
		return false;
	(*at)++;
	return true;
}

/* Four digits; odd: -?(0[0-9]{3}|[1-9][0-9]{3,}), and 1 BC is 0000. */
static bool
take_year(const char **at, const char *end, bool odd, int *year)
{
	bool		before = odd && take_char(at, end, '-');
	int			digits = odd ? ea_text_digits(*at, end) : 4;

	if (digits < 4 || digits > MAX_YEAR_DIGITS ||
		(digits > 4 && **at == '0') || !take_digits(at, end, digits, year) ||
		(*year == 0 && (before || !odd)))
		return false;
	if (before)
		*year = -*year;
	return true;
}

/* YYYY-MM-DD, a day of the calendar (RFC 3339 "full-date"). */
static bool
take_date(const char **at, const char *end, bool odd, int *number)
{
	int			year;
	int			month;
	int			day;
	int			same;			/* of another month, it is another day */

	if (!take_year(at, end, odd, &year) || !take_char(at, end, '-') ||
		!take_digits(at, end, 2, &month) || !take_char(at, end, '-') ||
		!take_digits(at, end, 2, &day))
		return false;
	if (month < 1 || month > 12 || !IS_VALID_JULIAN(year, month, day))
		return false;
	*number = ea_calendar_number(year, month, day);
	ea_calendar_date(*number, &year, &month, &same);
	return day == same;
}

/* hh:mm, without bounds a clock does not have. */
static bool
take_minutes(const char **at, const char *end, int *minutes)
{
	int			hour;
	int			minute;

	if (!take_digits(at, end, 2, &hour) || !take_char(at, end, ':') ||
		!take_digits(at, end, 2, &minute) || hour > 23 || minute > 59)
		return false;
	*minutes = hour * MINS_PER_HOUR + minute;
	return true;
}

/*
 * One to MAX_FRACTION digits of a second, in microseconds.  PostgreSQL's input
 * rounds the double that is nearest to the fraction, times a million, and an
 * exact half to the even number.  A quotient of whole numbers that doubles
 * hold is that double too, whatever the locale says of points.
 */
static bool
take_fraction(const char **at, const char *end, int64 *fraction)
{
	int			digits = ea_text_digits(*at, end);
	int64		number = 0;
	int64		unit = 1;

	if (digits == 0 || digits > MAX_FRACTION)
		return false;
	for (; digits > 0; digits--, (*at)++)
	{
		number = number * 10 + (**at - '0');
		unit *= 10;
	}
	*fraction = (int64) rint((double) number / (double) unit * 1000000);
	return true;
}

/* hh:mm:ss[.fff] in microseconds (RFC 3339 "partial-time"). */
static bool
take_time(const char **at, const char *end, int64 *time)
{
	int			minutes;
	int			second;
	int64		fraction = 0;

	if (!take_minutes(at, end, &minutes) || !take_char(at, end, ':') ||
		!take_digits(at, end, 2, &second) || second > 59)
		return false;
	if (take_char(at, end, '.') && !take_fraction(at, end, &fraction))
		return false;
	*time = minutes * USECS_PER_MINUTE + second * USECS_PER_SEC + fraction;
	return true;
}

/* Z or +hh:mm, in microseconds east of UTC (RFC 3339 "time-offset"). */
static bool
take_offset(const char **at, const char *end, int64 *offset)
{
	int			minutes = 0;
	bool		west;

	*offset = 0;
	if (take_char(at, end, 'Z') || take_char(at, end, 'z'))
		return true;
	west = take_char(at, end, '-');
	if (!west && !take_char(at, end, '+'))
		return false;
	if (!take_minutes(at, end, &minutes))
		return false;
	*offset = (west ? -minutes : minutes) * USECS_PER_MINUTE;
	return true;
}

bool
ea_times_read_date(const char *in, int len, bool in_document, Datum *value,
				   const char **why)
{
	const char *at = in;
	int			number;

	if (!take_date(&at, in + len, false, &number) || at < in + len)
		return ea_types_refuse(why, "must be a date of the form 2026-11-20");
	*value = DateADTGetDatum(number);
	return true;
}

void
ea_times_write_date(StringInfo buf, Datum value)
{
	ea_jsonwrite_date(buf, DatumGetDateADT(value));
}

/*
 * RFC 3339 "date-time", without a leap second: the day, and microseconds from
 * its beginning in UTC, which rounding may lead into the next day.
 */
static bool
take_datetime(const char *at, const char *end, bool odd, bool in_document,
			  int *number, int64 *time)
{
	int64		offset = 0;

	*time = 0;
	if (!take_date(&at, end, odd, number))
		return false;
	if (at == end && !in_document)
		return true;
	if (!take_char(&at, end, 'T') && !take_char(&at, end, 't'))
		return false;
	if (!take_time(&at, end, time) || !take_offset(&at, end, &offset) ||
		at < end)
		return false;
	*time -= offset;
	return true;
}

/* The fault of a text that is no date-time. */
static const char *
datetime_fault(const char *in, int len)
{
	const char *end = in + len;
	const char *point = memchr(in, '.', len);

	return point != NULL && ea_text_digits(point + 1, end) > MAX_FRACTION ?
		"must have at most 12 digits of a fraction of a second" :
		"must be a date-time of the form 2026-11-20T17:29:00.123456Z or with "
		"an offset such as +02:00";
}

/* The year of the instant in UTC has four digits too. */
bool
ea_times_read_datetime(const char *in, int len, bool in_document,
					   Datum *value, const char **why)
{
	int			number;
	int64		time;

	if (!take_datetime(in, in + len, false, in_document, &number, &time))
		return ea_types_refuse(why, datetime_fault(in, len));
	time += number * USECS_PER_DAY;
	if (time < ea_calendar_number(1, 1, 1) * USECS_PER_DAY ||
		time >= ea_calendar_number(10000, 1, 1) * USECS_PER_DAY)
		return ea_types_refuse(why, "is out of range");
	*value = TimestampTzGetDatum(time);
	return true;
}

void
ea_times_write_datetime(StringInfo buf, Datum value)
{
	ea_jsonwrite_timestamp(buf, DatumGetTimestampTz(value));
}

/* Without an offset: nobody says where it is that time. */
static bool
take_local(const char *at, const char *end, bool odd, bool in_document,
		   int *number, int64 *time)
{
	*time = 0;
	if (!take_date(&at, end, odd, number))
		return false;
	if (at == end && !in_document)
		return true;
	if (!take_char(&at, end, 'T') && !take_char(&at, end, 't'))
		return false;
	return take_time(&at, end, time) && at == end;
}

bool
ea_times_read_local(const char *in, int len, bool in_document, Datum *value,
					const char **why)
{
	int			number;
	int64		time;

	if (!take_local(in, in + len, false, in_document, &number, &time))
		return ea_types_refuse(why, "must be a date-time of the form "
							   "2026-11-20T17:29:00.123456, without an "
							   "offset");
	time += number * USECS_PER_DAY;
	if (time >= ea_calendar_number(10000, 1, 1) * USECS_PER_DAY)
		return ea_types_refuse(why, "is out of range");
	*value = TimestampGetDatum(time);
	return true;
}

void
ea_times_write_local(StringInfo buf, Datum value)
{
	ea_jsonwrite_local(buf, DatumGetTimestamp(value));
}

/* -------- what PostgreSQL has besides -------- */

static bool
is_word(const char *in, int len, const char *word)
{
	return len == strlen(word) && memcmp(in, word, len) == 0;
}

bool
ea_times_read_odd_date(const char *in, int len, Datum *value)
{
	const char *at = in;
	DateADT		date;

	if (is_word(in, len, "infinity"))
		DATE_NOEND(date);
	else if (is_word(in, len, "-infinity"))
		DATE_NOBEGIN(date);
	else if (!take_date(&at, in + len, true, &date) || at < in + len ||
			 !IS_VALID_DATE(date))
		return false;
	*value = DateADTGetDatum(date);
	return true;
}

bool
ea_times_read_odd(const char *in, int len, bool local, bool in_document,
				  Datum *value)
{
	int			number;
	int64		time;

	if (is_word(in, len, "infinity"))
		TIMESTAMP_NOEND(time);
	else if (is_word(in, len, "-infinity"))
		TIMESTAMP_NOBEGIN(time);
	else if (!(local ? take_local : take_datetime) (in, in + len, true,
													in_document, &number,
													&time) ||
			 number > TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE)
		return false;
	else
	{
		time += number * USECS_PER_DAY;
		if (!IS_VALID_TIMESTAMP(time))
			return false;
	}
	*value = TimestampTzGetDatum(time);
	return true;
}
