/*
 * Lists of columns as SQL, and in words.
 */
#ifndef EA_NAME_LISTS_H
#define EA_NAME_LISTS_H

#include "nodes/pg_list.h"

/* `"a" and "b"`, for people; `a, b`, quoted as SQL has it. */
extern char *ea_ddl_names_said(List *names);
extern char *ea_ddl_names_quoted(List *names);

extern bool ea_ddl_names_have(List *names, const char *name);

/*
 * Conditions on arrays of names, given as SQL: both have the same names; and
 * the names of two arrays go together as those of two others do.  In which
 * order they come is no matter.
 */
extern char *ea_ddl_same_names(const char *array, const char *other);
extern char *ea_ddl_same_pairs(const char *near, const char *far,
							   const char *other_near,
							   const char *other_far);

#endif							/* EA_NAME_LISTS_H */
