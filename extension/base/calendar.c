/*
 * A year begins in March here, so that a leap day is its last one, and days
 * are counted in rounds of 400 years, which are all alike.
 */
#include "postgres.h"

#include "base/calendar.h"

#define ROUND_YEARS 400
#define ROUND_DAYS 146097
#define BEFORE_2000 730425		/* days since 1 March of the year 0 */

/* Days of a year before a month, March being 0. */
#define DAYS_BEFORE(month) ((153 * (month) + 2) / 5)

int
ea_calendar_number(int year, int month, int day)
{
	int			years = month > 2 ? year : year - 1;
	int			round = (years >= 0 ? years : years - ROUND_YEARS + 1) /
		ROUND_YEARS;

	years -= round * ROUND_YEARS;
	return round * ROUND_DAYS + years * 365 + years / 4 - years / 100 +
		DAYS_BEFORE((month + 9) % 12) + day - 1 - BEFORE_2000;
}

void
ea_calendar_date(int number, int *year, int *month, int *day)
{
	int			days = number + BEFORE_2000;
	int			round = (days >= 0 ? days : days - ROUND_DAYS + 1) /
		ROUND_DAYS;
	int			years;

	days -= round * ROUND_DAYS;
	years = (days - days / 1460 + days / 36524 - days / 146096) / 365;
	days -= years * 365 + years / 4 - years / 100;
	*month = (5 * days + 2) / 153;
	*day = days - DAYS_BEFORE(*month) + 1;
	*month = *month < 10 ? *month + 3 : *month - 9;
	*year = round * ROUND_YEARS + years + (*month <= 2);
}
