#include <string.h>

#include "command/introspect_served.h"
#include "command/introspect_types.h"

/* Of which values the service keeps an index, in characters */
#define MOST_INDEXED 600

/* PostgreSQL's, and what it adds to them (VARHDRSZ) */
#define HEADER 4
#define MOST_SCALE_BITS 0x7ff

/* What a type's modifier says, and what becomes of it. */
enum modifier
{
	MODIFIER_NONE,				/* nothing */
	MODIFIER_LENGTH,			/* characters; the field is as long */
	MODIFIER_DIGITS,			/* precision and scale */
	MODIFIER_FRACTION			/* of seconds */
};

struct introspect_type
{
	const char *base;			/* in pg_catalog; NULL: as the note says */
	const char *field;			/* with the modifier */
	const char *open;			/* without one */
	enum modifier modifier;
	enum introspect_part part;
	int			construct;		/* SERVED_*, or -1: always served */
	int			open_construct; /* the same without a modifier */
	bool		can_be_unique;
};

/* What columns have that are of no type of its own here */
enum other
{
	OTHER_ENUM, OTHER_ARRAY, OTHER_CITEXT, OTHER_NATIVE, OTHER_COUNT
};

static const struct introspect_type others[OTHER_COUNT] =
{
	[OTHER_ENUM] = {NULL, "string, enum: database", "string, enum: database",
		MODIFIER_NONE, PART_NONE, SERVED_ENUM, SERVED_ENUM, true},
	[OTHER_ARRAY] = {NULL, "json, readOnly: true", "json, readOnly: true",
		MODIFIER_NONE, PART_NONE, SERVED_ARRAY, SERVED_ARRAY, false},
	[OTHER_CITEXT] = {NULL, "text", "text", MODIFIER_NONE, PART_NONE,
		SERVED_CITEXT, SERVED_CITEXT, false},
	[OTHER_NATIVE] = {NULL, "native", "native", MODIFIER_NONE, PART_NONE,
	SERVED_NATIVE, SERVED_NATIVE, false}
};

static const struct introspect_type types[] =
{
	{"bool", "boolean", "boolean", MODIFIER_NONE, PART_NONE, -1, -1, true},
	{"int2", "integer", "integer", MODIFIER_NONE, PART_NUMBER,
	SERVED_SMALLINT, SERVED_SMALLINT, true},
	{"int4", "integer", "integer", MODIFIER_NONE, PART_NUMBER, -1, -1, true},
	{"int8", "long", "long", MODIFIER_NONE, PART_NUMBER, -1, -1, true},
	{"float4", "float", "float", MODIFIER_NONE, PART_NONE, SERVED_FLOAT,
	SERVED_FLOAT, true},
	{"float8", "float", "float", MODIFIER_NONE, PART_NONE, SERVED_FLOAT,
	SERVED_FLOAT, true},
	{"numeric", "decimal", "decimal", MODIFIER_DIGITS, PART_NONE, -1,
	SERVED_OPEN_NUMERIC, true},
	{"text", "text", "text", MODIFIER_NONE, PART_TEXT, -1, -1, false},
	{"varchar", "string", "text", MODIFIER_LENGTH, PART_TEXT, -1, -1, true},
	{"bpchar", "string", "string", MODIFIER_LENGTH, PART_TEXT, SERVED_CHAR,
	SERVED_CHAR, true},
	{"uuid", "uuid", "uuid", MODIFIER_NONE, PART_UUID, -1, -1, true},
	{"date", "date", "date", MODIFIER_NONE, PART_DATE, -1, -1, true},
	{"timestamptz", "datetime", "datetime", MODIFIER_FRACTION, PART_NONE, -1,
	-1, true},
	{"timestamp", "localDatetime", "localDatetime", MODIFIER_FRACTION,
	PART_NONE, SERVED_TIMESTAMP, SERVED_TIMESTAMP, true},
	{"jsonb", "json", "json", MODIFIER_NONE, PART_NONE, -1, -1, false},
	{"json", "json", "json", MODIFIER_NONE, PART_NONE, SERVED_JSON_TEXT,
	SERVED_JSON_TEXT, false},
	{"bytea", "binary", "binary", MODIFIER_NONE, PART_NONE, SERVED_BYTEA,
	SERVED_BYTEA, false}
};

static int
precision_of(const struct introspect_column *column)
{
	return ((column->modifier - HEADER) >> 16) & 0xffff;
}

static int
scale_of(const struct introspect_column *column)
{
	return (((column->modifier - HEADER) & MOST_SCALE_BITS) ^ 1024) - 1024;
}

/* Does the modifier say what a field can say? */
static bool
is_open(const struct introspect_type *type,
		const struct introspect_column *column)
{
	if (column->modifier < 0)
		return true;

	/* since PostgreSQL 15, a scale may be anything */
	return type->modifier == MODIFIER_DIGITS &&
		(scale_of(column) < 0 || scale_of(column) > precision_of(column));
}

static const struct introspect_type *
find_type(const struct introspect_column *column)
{
	if (column->kind == 'e' || column->kind == 'E')
		return &others[OTHER_ENUM];
	if (column->is_array)
		return &others[OTHER_ARRAY];
	if (strcmp(column->base, "citext") == 0)
		return &others[OTHER_CITEXT];
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
	{
		if (strcmp(column->base_schema, "pg_catalog") == 0 &&
			strcmp(column->base, types[i].base) == 0)
			return &types[i];
	}
	return &others[OTHER_NATIVE];
}

const struct introspect_type *
introspect_type_of(const struct introspect_column *column,
				   bool of_application, const char **why_not)
{
	const struct introspect_type *type = find_type(column);
	int			construct = is_open(type, column) ? type->open_construct :
		type->construct;

	*why_not = construct < 0 ? NULL : !of_application ?
		"the type goes with tables of an application" :
		introspect_lacks(construct);
	if (type == &others[OTHER_ARRAY] && column->dimensions > 1)
		*why_not = "arrays of several dimensions are not served";
	else if (type->modifier == MODIFIER_FRACTION && column->modifier >= 0 &&
			 column->modifier < 6 && *why_not == NULL)
		*why_not = of_application ? introspect_lacks(SERVED_ROUNDED_TIMES) :
			"times that are rounded are not served";
	if (column->kind == 'E')
		*why_not = "domains over enumerations are not served";
	if (column->is_collated)
		*why_not = "nondeterministic collations are not served";
	return type;
}

enum introspect_part
introspect_type_part(const struct introspect_type *type)
{
	return type->part;
}

bool
introspect_type_can_be_unique(const struct introspect_column *column,
							  bool of_application)
{
	const struct introspect_type *type = column->field_type;

	if (type->modifier == MODIFIER_LENGTH && !is_open(type, column))
		return column->modifier - HEADER <= MOST_INDEXED ||
			(of_application && introspect_serves(SERVED_UNIQUE_TEXT));
	if (type->part == PART_TEXT || type == &others[OTHER_CITEXT])
		return of_application && introspect_serves(SERVED_UNIQUE_TEXT);
	return type->can_be_unique;
}

void
introspect_type_write(struct buffer *out,
					  const struct introspect_column *column, bool utc)
{
	const struct introspect_type *type = column->field_type;
	bool		open = is_open(type, column);

	if (utc && strcmp(type->field, "localDatetime") == 0)
	{
		buffer_string(out, "type: datetime, zone: UTC");
		return;
	}
	buffer_printf(out, "type: %s", open ? type->open : type->field);
	if (open)
		return;
	if (type->modifier == MODIFIER_LENGTH)
		buffer_printf(out, ", maxLength: %d", column->modifier - HEADER);
	else if (type->modifier == MODIFIER_DIGITS)
		buffer_printf(out, ", precision: %d, scale: %d",
					  precision_of(column), scale_of(column));
}
