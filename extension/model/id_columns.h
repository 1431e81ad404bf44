/*
 * The columns of ids, as entities and members keep them: one by its quoted
 * name, several in a form that no quoted name has.
 */
#ifndef EA_ID_COLUMNS_H
#define EA_ID_COLUMNS_H

#include "lib/stringinfo.h"

#define ea_columns_are_several(columns) ((columns)[0] == '(')

/* The form of several, of their quoted names; palloc'd. */
extern char *ea_columns_join(const char *const *quoted, int n);

extern int	ea_columns_count(const char *columns);

/* Number i, from 0; palloc'd. */
extern char *ea_columns_get(const char *columns, int i);

/* Which of the columns it is, by its quoted name; -1: none. */
extern int	ea_columns_find(const char *columns, const char *quoted);

/* Both have a column. */
extern bool ea_columns_share(const char *columns, const char *others);

/*
 * Append `t<alias>.a, t<alias>.b`; without an alias (-1) the bare names, as
 * INSERT and SET take them.
 */
extern void ea_columns_append(StringInfo out, const char *columns, int alias);

/* The bare names, to be read; palloc'd. */
extern char *ea_columns_list(const char *columns);

#endif							/* EA_ID_COLUMNS_H */
