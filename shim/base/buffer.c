/*
 * A growable run of bytes, and JSON text written into one.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define FIRST_CAPACITY 256

bool
buffer_reserve(struct buffer *buffer, size_t extra)
{
	size_t		capacity = buffer->capacity;
	size_t		needed;
	char	   *data;

	if (buffer->failed)
		return false;
	if (extra >= SIZE_MAX / 2 - buffer->length)
	{
		buffer->failed = true;
		return false;
	}
	needed = buffer->length + extra + 1;
	if (needed <= capacity)
		return true;

	if (capacity == 0)
		capacity = FIRST_CAPACITY;
	while (capacity < needed)
		capacity *= 2;
	data = realloc(buffer->data, capacity);
	if (data == NULL)
	{
		buffer->failed = true;
		return false;
	}
	data[buffer->length] = '\0';
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

void
buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
	/* there is room most often; a failed buffer has none, one way or other */
	if ((buffer->failed || length >= buffer->capacity - buffer->length) &&
		!buffer_reserve(buffer, length))
		return;

	/* nothing may have no address, which memcpy() does not like */
	if (length == 0)
		return;
	memcpy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

void
buffer_lower(struct buffer *buffer, const char *bytes, size_t length)
{
	size_t		at = buffer->length;

	buffer_append(buffer, bytes, length);
	for (; at < buffer->length; at++)
	{
		char	   *c = &buffer->data[at];

		if (*c >= 'A' && *c <= 'Z')
			*c = (char) (*c - 'A' + 'a');
	}
}

void
buffer_string(struct buffer *buffer, const char *string)
{
	buffer_append(buffer, string, strlen(string));
}

void
buffer_char(struct buffer *buffer, char c)
{
	buffer_append(buffer, &c, 1);
}

void
buffer_number(struct buffer *buffer, uint64_t number)
{
	char		digits[20];
	size_t		at = sizeof(digits);

	do
		digits[--at] = (char) ('0' + number % 10);
	while ((number /= 10) > 0);
	buffer_append(buffer, digits + at, sizeof(digits) - at);
}

void
buffer_printf(struct buffer *buffer, const char *format,...)
{
	va_list		arguments;
	int			length;

	if (!buffer_reserve(buffer, 128))
		return;
	for (;;)
	{
		size_t		room = buffer->capacity - buffer->length;

		va_start(arguments, format);
		length = vsnprintf(buffer->data + buffer->length, room, format,
						   arguments);
		va_end(arguments);
		if (length < 0)
		{
			buffer->data[buffer->length] = '\0';
			buffer->failed = true;
			return;
		}
		if ((size_t) length < room)
			break;
		buffer->data[buffer->length] = '\0';
		if (!buffer_reserve(buffer, (size_t) length))
			return;
	}
	buffer->length += (size_t) length;
}

/* In every byte of a word */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether one of its bytes is 0; its highest bit is set then. */
static uint64_t
has_zero(uint64_t word)
{
	return (word - EACH(1)) & ~word & EACH(0x80);
}

/* Whether none of eight bytes needs an escape in JSON, or is a DEL. */
static bool
is_plain(const char *bytes)
{
	uint64_t	word;

	memcpy(&word, bytes, sizeof(word));
	return (((word - EACH(0x20)) & ~word & EACH(0x80)) |
			has_zero(word ^ EACH('"')) | has_zero(word ^ EACH('\\')) |
			has_zero(word ^ EACH(0x7f))) == 0;
}

void
buffer_json(struct buffer *buffer, const char *bytes, size_t length)
{
	size_t		start = 0;
	size_t		i;

	/* Room for the usual case, in which nothing needs an escape. */
	if (!buffer_reserve(buffer, length + 2))
		return;
	buffer_char(buffer, '"');
	for (i = 0; i < length; i++)
	{
		unsigned char c;

		while (length - i >= 8 && is_plain(bytes + i))
			i += 8;
		if (i == length)
			break;
		c = (unsigned char) bytes[i];
		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		buffer_append(buffer, bytes + start, i - start);
		start = i + 1;
		if (c == '"' || c == '\\')
		{
			buffer_char(buffer, '\\');
			buffer_char(buffer, (char) c);
		}
		else if (c == '\n')
			buffer_string(buffer, "\\n");
		else
			buffer_printf(buffer, "\\u%04x", c);
	}
	buffer_append(buffer, bytes + start, length - start);
	buffer_char(buffer, '"');
}

void
buffer_json_string(struct buffer *buffer, const char *string)
{
	if (string == NULL)
		buffer_string(buffer, "null");
	else
		buffer_json(buffer, string, strlen(string));
}

void
buffer_clear(struct buffer *buffer)
{
	buffer->length = 0;
	buffer->failed = false;
	if (buffer->data != NULL)
		buffer->data[0] = '\0';
}

void
buffer_trim(struct buffer *buffer, size_t keep)
{
	if (buffer->capacity > keep)
		buffer_free(buffer);
	else
		buffer_clear(buffer);
}

void
buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}

/*
 * The lead bytes, each range with the number of bytes that follow and the
 * limits of the first of these: they leave out overlong forms, surrogates and
 * everything beyond U+10FFFF (RFC 3629, section 4).
 */
static const struct
{
	unsigned char first;
	unsigned char last;
	unsigned char followers;
	unsigned char low;
	unsigned char high;
}			utf8_leads[] =
{
	{0x01, 0x7f, 0, 0x00, 0x00},
	{0xc2, 0xdf, 1, 0x80, 0xbf},
	{0xe0, 0xe0, 2, 0xa0, 0xbf},
	{0xe1, 0xec, 2, 0x80, 0xbf},
	{0xed, 0xed, 2, 0x80, 0x9f},
	{0xee, 0xef, 2, 0x80, 0xbf},
	{0xf0, 0xf0, 3, 0x90, 0xbf},
	{0xf1, 0xf3, 3, 0x80, 0xbf},
	{0xf4, 0xf4, 3, 0x80, 0x8f}
};

/* Whether each of eight bytes is 0x01 to 0x7f; a zero sets its highest bit. */
static bool
is_ascii(const unsigned char *bytes)
{
	uint64_t	word;

	memcpy(&word, bytes, sizeof(word));
	return ((word | (word - EACH(1))) & EACH(0x80)) == 0;
}

bool
utf8_is_valid(const char *bytes, size_t length)
{
	const unsigned char *p = (const unsigned char *) bytes;
	const unsigned char *end = p + length;

	while (p < end)
	{
		size_t		range = 0;
		unsigned char followers;

		while (end - p >= 8 && is_ascii(p))
			p += 8;
		if (p == end)
			break;
		while (range < sizeof(utf8_leads) / sizeof(utf8_leads[0]) &&
			   (*p < utf8_leads[range].first || *p > utf8_leads[range].last))
			range++;
		if (range == sizeof(utf8_leads) / sizeof(utf8_leads[0]))
			return false;
		followers = utf8_leads[range].followers;
		if (followers > end - p - 1)
			return false;
		if (followers > 0 &&
			(p[1] < utf8_leads[range].low || p[1] > utf8_leads[range].high))
			return false;
		p += 2;
		if (followers == 0)
			p--;
		for (; followers > 1; followers--, p++)
		{
			if ((*p & 0xc0) != 0x80)
				return false;
		}
	}
	return true;
}
