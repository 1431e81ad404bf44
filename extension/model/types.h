/*
 * The attribute types: one table says all about each.
 */
#ifndef EA_TYPES_H
#define EA_TYPES_H

#include "lib/stringinfo.h"

#include "base/jsonread.h"

typedef enum EaTypeId
{
	EA_TYPE_STRING,
	EA_TYPE_TEXT,
	EA_TYPE_INTEGER,
	EA_TYPE_LONG,
	EA_TYPE_DECIMAL,
	EA_TYPE_BOOLEAN,
	EA_TYPE_DATE,
	EA_TYPE_DATETIME,
	EA_TYPE_UUID,
	EA_TYPE_JSON
} EaTypeId;

/* What may be asked of a value of a type. */
#define EA_CAN_EQUAL	0x01	/* == != =in= =out= */
#define EA_CAN_ORDER	0x02	/* =gt= =ge= =lt= =le=, and LIMITs */
#define EA_CAN_MATCH	0x04	/* =like= =ilike= (not on enums) */
#define EA_CAN_SORT		0x08	/* sort */

typedef struct EaType
{
	EaTypeId	id;
	const char *name;			/* as manifests spell it */
	const char *sql;			/* PostgreSQL type of the column, without
								 * modifier, schema-qualified */
	Oid			oid;			/* of the parameter that holds a value */
	Oid			array_oid;		/* of a list of them */
	int			can;			/* EA_CAN_* */
	int			json_kinds;		/* 1 << EaJsonKind accepted in documents */

	/*
	 * Strict reading of a literal: true and *value, or false and *why ("must
	 * be an integer").  Never throws for bad input.  in_document: stricter
	 * there (a date alone is no datetime).
	 */
	bool		(*read) (const char *str, int len, bool in_document,
						 Datum *value, const char **why);

	/* Append the value as JSON. */
	void		(*write) (StringInfo buf, Datum value);
} EaType;

extern const EaType ea_types[];
extern const int ea_ntypes;

/* A value is refused; the result is for `return`. */
static inline bool
ea_types_refuse(const char **why, const char *message)
{
	*why = message;
	return false;
}

/* By manifest name; NULL when there is none (ref and oneof are no types). */
extern const EaType *ea_types_find(const char *name);

/*
 * The type whose values are strings in documents, for those whose values a
 * double does not hold; else the type itself.
 */
extern const EaType *ea_types_as_text(const EaType *type);

/* Whether jsonb holds all numbers of a JSON value; else why not. */
extern bool ea_types_fits_jsonb(const EaJson *json, const char **why);

/*
 * A JSON value of a document to a Datum of the type, by json_kinds and
 * read().  source is the text the tree was parsed from (json attributes keep
 * their own text).  JSON null is the caller's to handle.
 */
extern bool ea_types_from_json(const EaType *type, const EaJson *json,
							   const char *source,
							   Datum *value, const char **why);

#endif							/* EA_TYPES_H */
