/*
 * Base64 with the URL alphabet, without padding (RFC 4648 section 5).
 *
 * PostgreSQL's own coder knows the plain alphabet only, and its decoder lets
 * more than one text stand for the same bytes, which must not be for tokens.
 */
#include "postgres.h"

#include "base/base64url.h"

static const char alphabet[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int
digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-')
		return 62;
	if (c == '_')
		return 63;
	return -1;
}

void
ea_base64url_encode(StringInfo buf, const void *data, int len)
{
	const uint8 *in = data;
	uint32		bits = 0;
	int			nbits = 0;

	for (int i = 0; i < len; i++)
	{
		bits = bits << 8 | in[i];
		nbits += 8;
		while (nbits >= 6)
		{
			nbits -= 6;
			appendStringInfoCharMacro(buf, alphabet[bits >> nbits & 0x3F]);
		}
	}
	if (nbits > 0)
		appendStringInfoCharMacro(buf, alphabet[bits << (6 - nbits) & 0x3F]);
}

uint8 *
ea_base64url_decode(const char *encoded, int len, int *decoded)
{
	uint8	   *out;
	uint32		bits = 0;
	int			nbits = 0;
	int			n = 0;

	if (len % 4 == 1)
		return NULL;
	out = palloc((Size) len / 4 * 3 + 3);
	for (int i = 0; i < len; i++)
	{
		int			digit = digit_value(encoded[i]);

		if (digit < 0)
			return NULL;
		bits = bits << 6 | digit;
		nbits += 6;
		if (nbits >= 8)
		{
			nbits -= 8;
			out[n++] = bits >> nbits & 0xFF;
		}
	}
	if ((bits & ((1U << nbits) - 1)) != 0)
		return NULL;
	out[n] = '\0';
	*decoded = n;
	return out;
}
