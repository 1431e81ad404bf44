/*
 * Base64 with the URL alphabet, without padding (RFC 4648 section 5).
 */
#ifndef EA_BASE64URL_H
#define EA_BASE64URL_H

#include "lib/stringinfo.h"

/* Append the encoding of len bytes. */
extern void ea_base64url_encode(StringInfo buf, const void *data, int len);

/*
 * Decode len characters.  Returns palloc'd bytes, NUL-terminated for
 * convenience, and their number; or NULL for anything but the one canonical
 * form: foreign characters, padding, white space, an impossible length, or
 * bits behind the last byte that are not zero.
 */
extern uint8 *ea_base64url_decode(const char *encoded, int len, int *decoded);

#endif							/* EA_BASE64URL_H */
