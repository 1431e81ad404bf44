/*
 * Values of fields as the audit log has them.
 */
#ifndef EA_PAST_VALUES_H
#define EA_PAST_VALUES_H

#include "audit/past_names.h"
#include "base/jsonread.h"
#include "engine/exec.h"

/* A field's value then: not known, null, or a value. */
typedef struct EaPastValue
{
	bool		known;
	bool		isnull;
	Datum		value;			/* of an attribute */
	EaId		id;				/* of a reference, */
	int			member;			/* and the member that it is of */
	const char *text;			/* equal if the values are */
} EaPastValue;

/* The log knows what the field has: a column that no other fills. */
extern bool ea_past_values_logged(const EaField *field);

extern void ea_past_values_null(EaPastValue *value);
extern void ea_past_values_reference(EaPastValue *value, const EaField *field,
									 int member, const EaId *id);
extern void ea_past_values_time(EaField *field, TimestampTz at,
								EaPastValue *value);

/*
 * From JSON of the log; a value that today's type does not read is not known.
 */
extern void ea_past_values_read(EaRequest *req, const EaPastNames *names,
								EaField *field, int revision, const char *json,
								EaPastValue *value);

/* The same from a tree, parsed from the source. */
extern void ea_past_values_take(EaRequest *req, const EaPastNames *names,
								EaField *field, int revision,
								const EaJson *json, const char *source,
								EaPastValue *value);

/*
 * Append a value as documents show it: an attribute, which is shown as it was
 * if today's type does not read it, or a reference, which must be known.
 */
extern void ea_past_values_write(StringInfo out, const EaField *field,
								 const EaPastValue *value, const char *json,
								 int len);

/*
 * The two sides of a relationship's change, as a caller is shown them, say
 * nothing: they are equal, or both are empty.
 */
extern bool ea_past_values_alike(const char *from, const char *to);

/* From a row, from *column on, which is moved behind the field. */
extern void ea_past_values_row(EaRequest *req, EaField *field,
							   TupleTableSlot *slot, int *column,
							   EaPastValue *value);

/* The value that rows got which were there before the field: its default. */
extern void ea_past_values_default(EaField *field, EaPastValue *value);

extern bool ea_past_values_equal(const EaPastValue *a, const EaPastValue *b);

/* The value of a column of the field. */
extern EaValue ea_past_values_column(const EaField *field, int column,
									 const EaPastValue *value);

#endif							/* EA_PAST_VALUES_H */
