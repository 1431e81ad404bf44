/*
 * The attribute types: one table says all about each.
 */
#ifndef EA_TYPES_H
#define EA_TYPES_H

#include "access/detoast.h"
#include "lib/stringinfo.h"

#include "base/jsonread.h"

/*
 * EA_TYPE_STRING and so on; the index into ea_types.  Those from EA_N_TYPES on
 * are of tables of applications alone.
 */
typedef enum EaTypeId
{
#define EA_TYPE(id, ...) EA_TYPE_##id,
#include "model/typelist.h"
	EA_N_TYPES,
	EA_LAST_OF_MADE = EA_N_TYPES - 1,
#include "model/columnlist.h"
#undef EA_TYPE
	EA_N_ALL_TYPES
} EaTypeId;

/*
 * How a value lies in its Datum, which says how it is compared, rounded, put
 * into a cursor.  Asked in a switch without default, so that the compiler
 * names where a new one is not known.
 */
typedef enum EaForm
{
	EA_FORM_TEXT,
	EA_FORM_INT32,
	EA_FORM_INT64,
	EA_FORM_NUMERIC,
	EA_FORM_BOOL,
	EA_FORM_DATE,
	EA_FORM_TIMESTAMP,
	EA_FORM_UUID,
	EA_FORM_JSONB,
	EA_FORM_FLOAT4,
	EA_FORM_FLOAT8,
	EA_FORM_BYTES,
	EA_FORM_JSON				/* its text */
} EaForm;

/* How values go between a column and the service. */
typedef enum EaCrossing
{
	EA_CROSSES_AS_IS,			/* as Datums of the column's type */
	EA_CROSSES_AS_TEXT,			/* as texts, by its output and input */
	EA_CROSSES_AS_JSON			/* as jsonb, to be read only */
} EaCrossing;

/* The modifier of a column's type. */
typedef enum EaModifier
{
	EA_MODIFIER_NONE,
	EA_MODIFIER_LENGTH,			/* characters */
	EA_MODIFIER_DIGITS			/* precision and scale */
} EaModifier;

/*
 * Types of values in policies.  Texts that stand for a uuid or a time take its
 * type; the last three are none of an attribute.
 */
typedef enum EaPolicyType
{
	EA_POLICY_UNKNOWN,			/* a fault has been noted */
	EA_POLICY_BOOLEAN,
	EA_POLICY_NUMBER,
	EA_POLICY_STRING,
	EA_POLICY_UUID,
	EA_POLICY_DATE,
	EA_POLICY_DATETIME,
	EA_POLICY_LOCAL,			/* a date-time nobody knows where */
	EA_POLICY_JSON,				/* only whether it is null can be asked */
	EA_POLICY_STRINGS,			/* a list of strings */
	EA_POLICY_NULL,
	EA_POLICY_ANY				/* of the profile: whatever it meets */
} EaPolicyType;

/* Comparisons that values of a type allow. */
#define EA_CAN_EQUAL	0x01	/* to be equal, or one of a list */
#define EA_CAN_ORDER	0x02	/* to be greater or less */
#define EA_CAN_MATCH	0x04	/* comparisons of texts (not of enums) */
#define EA_CAN_SORT		0x08	/* sort */

/* Keys of a field that go with a type; all other keys go with every type. */
#define EA_KEYS_INDEX	0x01	/* unique, index */
#define EA_KEYS_TEXT	0x02	/* enum, minLength, maxLength, pattern */
#define EA_KEYS_LIMITS	0x04	/* minimum, maximum */
#define EA_KEYS_DIGITS	0x08	/* precision, scale */
#define EA_KEYS_ZONE	0x10	/* zone */

/* Characters of a value as text. */
#define EA_CHARACTERS_ANY	0
#define EA_CHARACTERS_NONE	(-1)	/* it does not become one */

/* The parts of a row of typelist.h, in their order. */
typedef struct EaType
{
	EaTypeId	id;
	const char *name;			/* in manifests, */
	const char *as;				/* and in definitions: no two have one */
	EaCrossing	crosses;

	const char *sql;
	Oid			column_oid;
	EaModifier	modifier;
	int			size;			/* length or precision, if none is declared */
	int			scale;

	EaForm		form;
	Oid			oid;
	Oid			array_oid;

	int			can;			/* EA_CAN_* */
	int			keys;			/* EA_KEYS_* */

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
	void		(*write_text) (StringInfo buf, Datum value);

	const char *schema_type;	/* NULL: anything */
	const char *schema_format;
	const char *schema_pattern;

	int			whole_digits;
	int			characters;
	EaPolicyType policy;
} EaType;

extern const EaType ea_types[EA_N_ALL_TYPES];

/*
 * The bytes that a stored value, which is not null, has when it is fetched and
 * unpacked, asked before that is done; 0 where that cannot be many.
 */
static inline Size
ea_types_bytes(const EaType *type, Datum value)
{
	switch (type->form)
	{
		case EA_FORM_TEXT:
		case EA_FORM_JSONB:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			return toast_raw_datum_size(value);
		case EA_FORM_INT32:
		case EA_FORM_INT64:
		case EA_FORM_NUMERIC:
		case EA_FORM_BOOL:
		case EA_FORM_DATE:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_UUID:
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
			break;
	}
	return 0;
}

/* A value is refused; the result is for `return`. */
static inline bool
ea_types_refuse(const char **why, const char *message)
{
	*why = message;
	return false;
}

/*
 * By manifest name, of made tables; NULL when there is none (ref and oneof are
 * no types).
 */
extern const EaType *ea_types_find(const char *name);

/*
 * The same of those that only tables of applications have; and by the name
 * that definitions have, of either.
 */
extern const EaType *ea_types_of_others(const char *name);
extern const EaType *ea_types_stored(const char *as);

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

/*
 * The same for values that the API shows and takes from nobody, as only plain
 * SQL can store them, in the spelling in which they are shown: infinity,
 * -infinity, NaN, years before 1 (1 BC is 0000, 44 BC -0043) and beyond 9999,
 * numbers in json with more digits than read() takes.  The caller decides
 * whether one is accepted.
 */
extern bool ea_types_read_odd(const EaType *type, const char *str, int len,
							  bool in_document, Datum *value);
extern bool ea_types_odd_from_json(const EaType *type, const EaJson *json,
								   const char *source, Datum *value);

#endif							/* EA_TYPES_H */
