/*
 * Values of a server's types, how its functions are called, and texts.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/jsonb.h"

#include "base/compat.h"

/* -------- calls -------- */

Datum
DirectFunctionCall1Coll(PGFunction func, Oid collation, Datum arg1)
{
	return DirectFunctionCall3Coll(func, collation, arg1, 0, 0);
}

Datum
DirectFunctionCall2Coll(PGFunction func, Oid collation, Datum arg1,
						Datum arg2)
{
	return DirectFunctionCall3Coll(func, collation, arg1, arg2, 0);
}

Datum
DirectFunctionCall3Coll(PGFunction func, Oid collation, Datum arg1,
						Datum arg2, Datum arg3)
{
	LOCAL_FCINFO(fcinfo, 3);

	InitFunctionCallInfoData(*fcinfo, NULL, 3, collation, NULL, NULL);
	fcinfo->args[0].value = arg1;
	fcinfo->args[1].value = arg2;
	fcinfo->args[2].value = arg3;
	for (int i = 0; i < 3; i++)
		fcinfo->args[i].isnull = false;
	return func(fcinfo);
}

/* -------- texts -------- */

/* Nothing is stored, and so nothing compressed or elsewhere. */
struct varlena *
pg_detoast_datum(struct varlena *datum)
{
	return datum;
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

text *
cstring_to_text_with_len(const char *s, int len)
{
	text	   *result = palloc(VARHDRSZ + len);

	SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA(result), s, len);
	return result;
}

text *
cstring_to_text(const char *s)
{
	return cstring_to_text_with_len(s, strlen(s));
}

int
pg_mbstrlen_with_len(const char *mbstr, int limit)
{
	int			count = 0;

	for (int i = 0; i < limit; i++)
		count += ((unsigned char) mbstr[i] & 0xC0) != 0x80;
	return count;
}

/* -------- numbers -------- */

/* No check makes anything up, and libpgport's would need a library more. */
bool
pg_strong_random(void *buf, size_t len)
{
	return false;
}

int
pg_lltoa(int64 value, char *a)
{
	return sprintf(a, INT64_FORMAT, value);
}

char *
pg_ultostr_zeropad(char *str, uint32 value, int32 minwidth)
{
	return str + sprintf(str, "%0*u", minwidth, value);
}

/* -------- times -------- */

const int	day_tab[2][13] =
{
	{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0},
	{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0}
};

/* Days of the years before one, since 1 January of the year 1 */
static int
days_before(int year)
{
	int			years = year - 1;

	return years * 365 + years / 4 - years / 100 + years / 400;
}

/* The Julian day of 1 January of the year 1; years before do not come here. */
#define FIRST_DAY 1721426

int
date2j(int year, int month, int day)
{
	int			count = FIRST_DAY + days_before(year) + day - 1;

	for (int i = 0; i < month - 1; i++)
		count += day_tab[isleap(year)][i];
	return count;
}

void
j2date(int jd, int *year, int *month, int *day)
{
	int			count = jd - FIRST_DAY;

	*year = count / 366 + 1;
	while (days_before(*year + 1) <= count)
		(*year)++;
	count -= days_before(*year);
	for (*month = 1; count >= day_tab[isleap(*year)][*month - 1]; (*month)++)
		count -= day_tab[isleap(*year)][*month - 1];
	*day = count + 1;
}

/* In UTC */
int
timestamp2tm(Timestamp dt, int *tzp, struct pg_tm *tm, fsec_t *fsec,
			 const char **tzn, pg_tz *attimezone)
{
	int64		day = dt / USECS_PER_DAY;
	int64		time = dt % USECS_PER_DAY;

	if (time < 0)
	{
		time += USECS_PER_DAY;
		day--;
	}
	j2date((int) day + POSTGRES_EPOCH_JDATE, &tm->tm_year, &tm->tm_mon,
		   &tm->tm_mday);
	tm->tm_hour = time / USECS_PER_HOUR;
	tm->tm_min = time / USECS_PER_MINUTE % MINS_PER_HOUR;
	tm->tm_sec = time / USECS_PER_SEC % SECS_PER_MINUTE;
	*fsec = time % USECS_PER_SEC;
	return 0;
}

/* -------- JSON -------- */

/* Its callers have looked whether it fits; no value is looked into. */
Datum
jsonb_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PointerGetDatum(cstring_to_text(PG_GETARG_CSTRING(0))));
}

/* Limits are printed, and jsonb has none. */
char *
JsonbToCString(StringInfo out, JsonbContainer *in, int estimated_len)
{
	elog(ERROR, "a value of json has no text here");
	return NULL;
}
