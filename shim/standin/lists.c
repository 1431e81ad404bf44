/*
 * Lists, as far as manifests need them.
 */
#include "postgres.h"

#include "nodes/pg_list.h"

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
