/*
 * Append to a StringInfo where it is done for every request.
 *
 * Requests and answers are put together from short pieces, and the server's
 * own functions take longer to be called than to copy most of them.  These
 * call nothing where there is room, and are the same otherwise.
 */
#ifndef EA_TEXT_H
#define EA_TEXT_H

#include "lib/stringinfo.h"

/* As appendBinaryStringInfo(). */
static inline void
ea_text_bytes(StringInfo buf, const char *bytes, int len)
{
	if (unlikely(len < 0 || len >= buf->maxlen - buf->len))
		enlargeStringInfo(buf, len);
	memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

/* As appendStringInfoString(); the length of a literal costs nothing. */
static inline void
ea_text_string(StringInfo buf, const char *string)
{
	ea_text_bytes(buf, string, (int) strlen(string));
}

/* Before any other use of texts of this database: it has to be in UTF8. */
extern void ea_text_require_utf8(void);

/* In decimal digits. */
extern void ea_text_number(StringInfo buf, int64 number);

/* As appendStringInfo(), for formats that have nothing but %s and %d. */
extern void ea_text_format(StringInfo buf, const char *format,...)
			pg_attribute_printf(2, 3);

/*
 * As it may stand in a line of the server's log, in which nobody is to write
 * lines of his own: control characters are escaped, and it is cut.
 */
extern char *ea_text_logged(const char *text);

/* Characters of well-formed UTF-8. */
static inline int
ea_text_characters(const char *bytes, int len)
{
	int			n = 0;

	for (int i = 0; i < len; i++)
		n += (bytes[i] & 0xC0) != 0x80;
	return n;
}

/* Bytes that are looked at at a time. */
#define EA_TEXT_WORD ((int) sizeof(uint64))

/* In every byte of a word. */
#define EA_TEXT_EACH(byte) (PG_UINT64_MAX / PG_UINT8_MAX * (byte))

static inline uint64
ea_text_word(const char *bytes)
{
	uint64		word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Not 0 if a byte of the word is less than a limit of up to 0x80. */
static inline uint64
ea_text_any_below(uint64 word, uint64 limit)
{
	return (word - EA_TEXT_EACH(limit)) & ~word & EA_TEXT_EACH(0x80);
}

static inline uint64
ea_text_any(uint64 word, uint64 byte)
{
	return ea_text_any_below(word ^ EA_TEXT_EACH(byte), 1);
}

/* Not 0 if there is a control character among these bytes. */
static inline uint64
ea_text_any_control(uint64 word)
{
	return ea_text_any_below(word, ' ') | ea_text_any(word, 0x7f);
}

/* Nothing but ASCII, and no NUL: fine in any encoding of a server's. */
extern bool ea_text_is_ascii(const char *bytes, int len);

/* Well-formed UTF-8 without a NUL. */
extern bool ea_text_is_utf8(const char *bytes, int len);

/* How many digits there are from a place on. */
extern int	ea_text_digits(const char *at, const char *end);

#endif							/* EA_TEXT_H */
