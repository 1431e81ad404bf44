/*
 * UUIDs: version 7 made here, text form read strictly.
 */
#ifndef EA_UUID_H
#define EA_UUID_H

#include "utils/uuid.h"

#define EA_UUID_TEXT 36			/* bytes of the str form, without NUL */

/*
 * A new UUIDv7 (RFC 9562 section 5.7), monotonic within this backend; its
 * time is the clock, its rest pg_strong_random.
 */
extern void ea_uuid_make(pg_uuid_t *uuid);

/* Read the 8-4-4-4-12 form, any case; false for everything else. */
extern bool ea_uuid_parse(const char *str, int len, pg_uuid_t *uuid);

/* Write the lower-case form: 36 bytes at out, no NUL. */
extern void ea_uuid_format(const pg_uuid_t *uuid, char *out);

/* The same, palloc'd and NUL-terminated. */
extern char *ea_uuid_text(const pg_uuid_t *uuid);

/* For qsort() and bsearch(), also of structs that begin with one. */
extern int	ea_uuid_compare(const void *a, const void *b);

#define ea_uuid_equal(a, b) (memcmp((a)->data, (b)->data, UUID_LEN) == 0)

/* The value of a hexadecimal digit, -1 if it is none. */
extern int	ea_uuid_hex_digit(char c);

#endif							/* EA_UUID_H */
