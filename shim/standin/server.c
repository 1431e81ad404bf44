/*
 * Functions of a server's that the extension's checks call by their own names.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "base/compat.h"
#include "standin/host.h"

/* No more than half of what programs are usually given, or of what this is. */
#define MOST_STACK (4 * 1024 * 1024)

/* -------- lists -------- */

List *
lappend(List *list, void *datum)
{
	if (list == NULL)
	{
		list = palloc0(sizeof(List));
		list->type = T_List;
	}
	if (list->length == list->max_length)
	{
		list->max_length = Max(2 * list->max_length, 8);
		list->elements = list->elements == NULL ?
			palloc(list->max_length * sizeof(ListCell)) :
			repalloc(list->elements, list->max_length * sizeof(ListCell));
	}
	list->elements[list->length++].ptr_value = datum;
	return list;
}

bool
list_member_ptr(const List *list, const void *datum)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (lfirst(lc) == datum)
			return true;
	}
	return false;
}

List *
list_concat_unique_ptr(List *list1, const List *list2)
{
	ListCell   *lc;

	foreach(lc, list2)
	{
		if (!list_member_ptr(list1, lfirst(lc)))
			list1 = lappend(list1, lfirst(lc));
	}
	return list1;
}

void
list_sort(List *list, list_sort_comparator cmp)
{
	if (list_length(list) > 1)
		qsort(list->elements, list_length(list), sizeof(ListCell),
			  (int (*) (const void *, const void *)) cmp);
}

/* -------- texts -------- */

/* Nothing is stored, and so nothing compressed or elsewhere. */
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

/* -------- numbers -------- */

/* No check makes anything up, and libpgport's would need a library more. */
bool
pg_strong_random(void *buf, size_t len)
{
	return false;
}

char *
pg_ultostr_zeropad(char *str, uint32 value, int32 minwidth)
{
	return str + sprintf(str, "%0*u", minwidth, value);
}

/* -------- interrupts -------- */

volatile sig_atomic_t InterruptPending = false;

void
ProcessInterrupts(void)
{
}

/* Depth is counted from where it is asked for first. */
void
check_stack_depth(void)
{
	static const char *base = NULL;
	static long most = MOST_STACK;
	const char *here = __builtin_frame_address(0);
	struct rlimit limit;

	if (base == NULL)
	{
		base = here;
		if (getrlimit(RLIMIT_STACK, &limit) == 0)
			most = Min(limit.rlim_cur / 2, MOST_STACK);
	}
	if (labs(base - here) > most)
		standin_host_fail("stack depth limit exceeded");
}

/* A server that was built with assertions has what it compiles check, too. */
#ifdef USE_ASSERT_CHECKING
void
ExceptionalCondition(EA_COMPAT_ASSERTION)
{
	fprintf(stderr, "entityapi-shim: %s:%d: does not hold: %s\n", fileName,
			lineNumber, conditionName);
	abort();
}
#endif
