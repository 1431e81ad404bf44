/*
 * The values of a statement's parameters, each with its type.
 *
 * 		ea_params(EA_UUID(&id), EA_TEXT(name), EA_NULLABLE_TEXT(email))
 *
 * stands for $1, $2 and $3.  It lives on the stack as long as the block that
 * it is written in.
 */
#ifndef EA_EXEC_PARAMS_H
#define EA_EXEC_PARAMS_H

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

typedef struct EaValue
{
	Datum		value;
	Oid			type;
	bool		isnull;
} EaValue;

typedef struct EaParams
{
	int			n;
	const EaValue *items;
} EaParams;

#define ea_params(...) \
	((EaParams) {lengthof(((const EaValue[]) {__VA_ARGS__})), \
		(const EaValue[]) {__VA_ARGS__}})
#define EA_NO_PARAMS ((EaParams) {0, NULL})

/* A value of any type; the other macros name those that are used often. */
#define EA_VALUE(type, value) ea_value((type), (value), false)

#define EA_UUID(id) ea_value_uuid(id)
#define EA_TEXT(text) EA_VALUE(TEXTOID, CStringGetTextDatum(text))
#define EA_OID(oid) EA_VALUE(OIDOID, ObjectIdGetDatum(oid))
#define EA_BOOL(value) EA_VALUE(BOOLOID, BoolGetDatum(value))
#define EA_INT4(value) EA_VALUE(INT4OID, Int32GetDatum(value))
#define EA_INT8(value) EA_VALUE(INT8OID, Int64GetDatum(value))
#define EA_TIMESTAMP(value) \
	EA_VALUE(TIMESTAMPTZOID, TimestampTzGetDatum(value))

/* EA_NULL_IF(!key->expires, EA_TIMESTAMP(key->expires_at)) */
#define EA_NULL_IF(isnull, param) ea_value_null_if((isnull), (param))

/* No pointer is no value. */
#define EA_NULLABLE_UUID(id) ea_value_nullable_uuid(id)
#define EA_NULLABLE_TEXT(text) ea_value_nullable_text(text)

/* A value that is a Datum of its type already. */
#define EA_JSONB(datum) EA_VALUE(JSONBOID, (datum))
#define EA_BYTEA(datum) EA_VALUE(BYTEAOID, (datum))
#define EA_TEXT_DATUM(datum) EA_VALUE(TEXTOID, (datum))
#define EA_TEXTS(datum) EA_VALUE(TEXTARRAYOID, (datum))

static inline EaValue
ea_value(Oid type, Datum value, bool isnull)
{
	return (EaValue) {value, type, isnull};
}

static inline EaValue
ea_value_null_if(bool isnull, EaValue param)
{
	return ea_value(param.type, param.value, isnull);
}

static inline EaValue
ea_value_uuid(const pg_uuid_t *id)
{
	return ea_value(UUIDOID, UUIDPGetDatum(id), false);
}

static inline EaValue
ea_value_nullable_uuid(const pg_uuid_t *id)
{
	return ea_value(UUIDOID, UUIDPGetDatum(id), id == NULL);
}

static inline EaValue
ea_value_nullable_text(const char *text)
{
	return ea_value(TEXTOID, text == NULL ? (Datum) 0 :
					CStringGetTextDatum(text), text == NULL);
}

#endif							/* EA_EXEC_PARAMS_H */
