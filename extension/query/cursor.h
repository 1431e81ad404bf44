/*
 * A place in the order of a list, as text that means nothing to clients.
 *
 * It is the values of the row it stands at, by the terms of the order, and
 * the row's id.  Values too long to travel are left out; then the row is
 * asked for them, if it is still there.
 */
#ifndef EA_CURSOR_H
#define EA_CURSOR_H

#include "lib/stringinfo.h"

#include "query/filter.h"

/* Values of all terms but the id. */
typedef struct EaCursor
{
	EaId		id;
	bool		complete;		/* else without values */
	Datum	   *values;
	bool	   *isnull;
} EaCursor;

/* The text of a cursor, palloc'd: letters, digits, `-` and `_`. */
extern char *ea_cursor_write(const EaEntity *entity, EaOrder *order,
							 const EaCursor *cursor);

/*
 * Read a client's text.  False when it is no cursor, or one of another order
 * or entity.  Every value is one that its type can have.
 */
extern bool ea_cursor_read(EaRequest *req, const EaEntity *entity,
						   EaOrder *order, const char *text,
						   EaCursor *cursor);

#endif							/* EA_CURSOR_H */
