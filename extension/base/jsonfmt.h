/*
 * Append JSON by a form that shows it.
 */
#ifndef EA_JSONFMT_H
#define EA_JSONFMT_H

#include "lib/stringinfo.h"

/*
 * ea_jsonfmt_put(out, "{'name':%q,'since':%t}", name, since);
 *
 * In the form ' becomes ", and
 *		%s	is a text as it is
 *		%q	a string, quoted and escaped; NULL is null
 *		%d	an int
 *		%l	an int64
 *		%b	a bool
 *		%u	a const pg_uuid_t *; NULL is null
 *		%t	a TimestampTz
 *		%o	the text of a stored object, made compact
 *		%n	an array of strings: char **, and an int that says how many
 *		%,	a comma, unless nothing comes before it
 *		%%	a percent sign
 */
extern void ea_jsonfmt_put(StringInfo out, const char *form,...);

#endif							/* EA_JSONFMT_H */
