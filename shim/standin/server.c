/*
 * Functions of a server's that the extension's checks call by their own names.
 */
#include "postgres.h"

#include <sys/resource.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"

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

/* -------- numbers -------- */

/* No check makes anything up, and libpgport's would need a library more. */
bool
pg_strong_random(void *buf, size_t len)
{
	return false;
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
