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

/*
 * So many bytes are looked at at once, by what a compiler makes of it for any
 * machine.
 */
#define AT_ONCE 16

typedef signed char many __attribute__((vector_size(AT_ONCE)));
typedef uint64_t halves __attribute__((vector_size(AT_ONCE)));

/* The next of a text that has as many. */
static inline many
many_of(const char *bytes)
{
	many		some;

	memcpy(&some, bytes, AT_ONCE);
	return some;
}

/* What is left of a text that has less, and spaces. */
static inline many
rest_of(const char *bytes, size_t length)
{
	many		some = many_of("                ");

	memcpy(&some, bytes, length);
	return some;
}

static inline bool
is_any(many found)
{
	const halves both = (halves) found;

	return (both[0] | both[1]) != 0;
}

/* What is not ASCII is less than nothing. */
static inline many
unprintable(many some)
{
	return (some < ' ') | (some == 0x7f);
}

/* What needs an escape in JSON, or is a DEL. */
static inline many
unplain(many some)
{
	return (unprintable(some) & (some >= 0)) | (some == '"') |
		(some == '\\');
}

bool
text_is_printable(const char *bytes, size_t length)
{
	many		found = {0};

	for (; length >= AT_ONCE; bytes += AT_ONCE, length -= AT_ONCE)
		found |= unprintable(many_of(bytes));
	return !is_any(found | unprintable(rest_of(bytes, length)));
}

static bool
is_plain(const char *bytes, size_t length)
{
	many		found = {0};

	for (; length >= AT_ONCE; bytes += AT_ONCE, length -= AT_ONCE)
		found |= unplain(many_of(bytes));
	return !is_any(found | unplain(rest_of(bytes, length)));
}

static void
escape(struct buffer *buffer, unsigned char c)
{
	if (c == '"' || c == '\\')
	{
		buffer_char(buffer, '\\');
		buffer_char(buffer, (char) c);
	}
	else if (c == '\n')
		buffer_string(buffer, "\\n");
	else if (c < 0x20 || c == 0x7f)
		buffer_printf(buffer, "\\u%04x", c);
	else
		buffer_char(buffer, (char) c);
}

void
buffer_json(struct buffer *buffer, const char *bytes, size_t length)
{
	size_t		i;

	buffer_char(buffer, '"');
	if (is_plain(bytes, length))
		buffer_append(buffer, bytes, length);
	else
	{
		for (i = 0; i < length; i++)
			escape(buffer, (unsigned char) bytes[i]);
	}
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

bool
utf8_is_valid(const char *bytes, size_t length)
{
	const unsigned char *p = (const unsigned char *) bytes;
	const unsigned char *end = p + length;

	if (text_is_printable(bytes, length))
		return true;
	while (p < end)
	{
		size_t		range = 0;
		unsigned char followers;

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
