/*
 * The types of columns as types of fields.
 */
#ifndef INTROSPECT_TYPES_H
#define INTROSPECT_TYPES_H

#include "command/introspect_catalog.h"

/* As which part of an id a column can be */
enum introspect_part
{
	PART_NONE, PART_UUID, PART_NUMBER, PART_TEXT, PART_DATE
};

/*
 * The row of a column's type, which is left to column->field_type; also of
 * one that is not served: *why_not, else NULL.  Tables of an application have
 * more of them.
 */
extern const struct introspect_type *
			introspect_type_of(const struct introspect_column *column,
							   bool of_application, const char **why_not);

extern enum introspect_part
			introspect_type_part(const struct introspect_type *type);

/* May the service's "unique" stand at an attribute of this column? */
extern bool introspect_type_can_be_unique(const struct introspect_column *
										  column, bool of_application);

/*
 * What a field of the column says, "type: string, maxLength: 80".  utc: times
 * without zone are stored in UTC.
 */
extern void introspect_type_write(struct buffer *out,
								  const struct introspect_column *column,
								  bool utc);

#endif							/* INTROSPECT_TYPES_H */
