/*
 * PostgreSQL's own coder knows the plain alphabet only, and its decoder lets
 * more than one text stand for the same bytes, which must not be for tokens.
 */
#include "postgres.h"

#include "base/base64url.h"

static const char alphabet[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The value of a character, and a bit that says that it has one. */
#define DIGIT 0x40
#define D(value) (DIGIT | (value))

static const uint8 digits[256] = {
	['A'] = D(0), ['B'] = D(1), ['C'] = D(2), ['D'] = D(3),
	['E'] = D(4), ['F'] = D(5), ['G'] = D(6), ['H'] = D(7),
	['I'] = D(8), ['J'] = D(9), ['K'] = D(10), ['L'] = D(11),
	['M'] = D(12), ['N'] = D(13), ['O'] = D(14), ['P'] = D(15),
	['Q'] = D(16), ['R'] = D(17), ['S'] = D(18), ['T'] = D(19),
	['U'] = D(20), ['V'] = D(21), ['W'] = D(22), ['X'] = D(23),
	['Y'] = D(24), ['Z'] = D(25), ['a'] = D(26), ['b'] = D(27),
	['c'] = D(28), ['d'] = D(29), ['e'] = D(30), ['f'] = D(31),
	['g'] = D(32), ['h'] = D(33), ['i'] = D(34), ['j'] = D(35),
	['k'] = D(36), ['l'] = D(37), ['m'] = D(38), ['n'] = D(39),
	['o'] = D(40), ['p'] = D(41), ['q'] = D(42), ['r'] = D(43),
	['s'] = D(44), ['t'] = D(45), ['u'] = D(46), ['v'] = D(47),
	['w'] = D(48), ['x'] = D(49), ['y'] = D(50), ['z'] = D(51),
	['0'] = D(52), ['1'] = D(53), ['2'] = D(54), ['3'] = D(55),
	['4'] = D(56), ['5'] = D(57), ['6'] = D(58), ['7'] = D(59),
	['8'] = D(60), ['9'] = D(61), ['-'] = D(62), ['_'] = D(63),
};

void
ea_base64url_encode(StringInfo buf, const void *data, int len)
{
	const uint8 *in = data;
	char	   *out;
	uint32		bits;

	enlargeStringInfo(buf, len / 3 * 4 + 4);
	out = buf->data + buf->len;
	for (; len >= 3; len -= 3, in += 3)
	{
		bits = in[0] << 16 | in[1] << 8 | in[2];
		*out++ = alphabet[bits >> 18];
		*out++ = alphabet[bits >> 12 & 0x3F];
		*out++ = alphabet[bits >> 6 & 0x3F];
		*out++ = alphabet[bits & 0x3F];
	}
	if (len > 0)
	{
		bits = in[0] << 16 | (len > 1 ? in[1] << 8 : 0);
		*out++ = alphabet[bits >> 18];
		*out++ = alphabet[bits >> 12 & 0x3F];
		if (len > 1)
			*out++ = alphabet[bits >> 6 & 0x3F];
	}
	*out = '\0';
	buf->len = out - buf->data;
}

/* Three bytes of four characters; false if one of these is foreign. */
static inline bool
read_group(const char *encoded, uint8 *out)
{
	uint8		a = digits[(uint8) encoded[0]];
	uint8		b = digits[(uint8) encoded[1]];
	uint8		c = digits[(uint8) encoded[2]];
	uint8		d = digits[(uint8) encoded[3]];

	out[0] = (uint8) (a << 2 | (b & 0x3F) >> 4);
	out[1] = (uint8) (b << 4 | (c & 0x3F) >> 2);
	out[2] = (uint8) (c << 6 | (d & 0x3F));
	return (a & b & c & d & DIGIT) != 0;
}

uint8 *
ea_base64url_decode(const char *encoded, int len, int *decoded)
{
	int			rest = len % 4;
	char		last[4] = {alphabet[0], alphabet[0], alphabet[0], alphabet[0]};
	uint8	   *out;
	int			n = 0;

	if (rest == 1)
		return NULL;
	out = palloc((Size) len / 4 * 3 + 4);
	for (int i = 0; i < len - rest; i += 4, n += 3)
	{
		if (!read_group(encoded + i, out + n))
			return NULL;
	}
	if (rest > 0)
	{
		memcpy(last, encoded + len - rest, rest);
		if (!read_group(last, out + n) || out[n + 2] != 0 ||
			(rest == 2 && out[n + 1] != 0))
			return NULL;
		n += rest - 1;
	}
	out[n] = '\0';
	*decoded = n;
	return out;
}
