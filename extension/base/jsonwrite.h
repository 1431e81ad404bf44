/*
 * Append JSON text to a StringInfo.
 */
#ifndef EA_JSONWRITE_H
#define EA_JSONWRITE_H

#include "lib/stringinfo.h"
#include "utils/date.h"
#include "utils/uuid.h"

#include "base/jsonread.h"
#include "base/text.h"

/* Append raw bytes known at compile time. */
#define ea_jsonwrite_lit(buf, lit) \
	ea_text_bytes((buf), "" lit, (int) sizeof(lit) - 1)

/* A quoted, escaped string of len bytes of valid UTF-8 (RFC 8259). */
extern void ea_jsonwrite_string(StringInfo buf, const char *str, int len);

/* The same for a NUL-terminated one; NULL writes null. */
extern void ea_jsonwrite_cstring(StringInfo buf, const char *str);

/*
 * A member name with its separator from the member before: writes `,"name":`
 * or `"name":` directly after an opening brace.
 */
extern void ea_jsonwrite_key(StringInfo buf, const char *name);

/* A comma unless buf ends in an opening bracket or brace. */
extern void ea_jsonwrite_comma(StringInfo buf);

extern void ea_jsonwrite_bool(StringInfo buf, bool value);

/* Quoted 8-4-4-4-12 lower-case form. */
extern void ea_jsonwrite_uuid(StringInfo buf, const pg_uuid_t *uuid);

/* `{"type":"...","id":"..."}`, of a type that needs no escapes. */
extern void ea_jsonwrite_identifier(StringInfo buf, const char *type,
									const pg_uuid_t *id);

/*
 * Quoted date, and UTC date-time, with a fraction only if that is not zero,
 * and no zeros at its end; "infinity" and "-infinity".
 */
extern void ea_jsonwrite_date(StringInfo buf, DateADT date);
extern void ea_jsonwrite_timestamp(StringInfo buf, TimestampTz at);

/* The same of a time without a time zone, and so without the Z. */
extern void ea_jsonwrite_local(StringInfo buf, Timestamp at);

/* A tree as compact JSON, numbers as they were written. */
extern void ea_jsonwrite_tree(StringInfo buf, const EaJson *value);

/* Append the text of a stored object as compact JSON. */
extern void ea_jsonwrite_object(StringInfo out, const char *stored);

#endif							/* EA_JSONWRITE_H */
