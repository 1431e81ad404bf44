/*
 * Days of the Gregorian calendar, also of years before it, by their numbers:
 * 1 January 2000 is 0, as in PostgreSQL's dates.  The year 0 is 1 BC.
 */
#ifndef EA_CALENDAR_H
#define EA_CALENDAR_H

extern int	ea_calendar_number(int year, int month, int day);
extern void ea_calendar_date(int number, int *year, int *month, int *day);

#endif							/* EA_CALENDAR_H */
