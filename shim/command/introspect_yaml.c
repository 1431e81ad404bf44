/*
 * libyaml's emitter writes no comments, so this does it.
 */
#include <ctype.h>
#include <string.h>

#include "command/introspect_yaml.h"

/* Bytes of a description */
#define LONGEST_DESCRIPTION 4096

/* Plain words that some reader of YAML, if not ours, takes for something. */
static const char *const words[] =
{"true", "false", "null", "yes", "no", "on", "off", "y", "n"};

/*
 * Letters and digits, a letter first, and what has no meaning between them.
 */
static bool
is_plain(const char *text)
{
	size_t		length = strlen(text);

	if (!(isalpha((unsigned char) text[0]) || text[0] == '_') ||
		length > 120 || text[length - 1] == ' ')
		return false;
	for (size_t i = 0; i < length; i++)
	{
		if (!isalnum((unsigned char) text[i]) &&
			strchr("_-. ", text[i]) == NULL)
			return false;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		if (strcasecmp(text, words[i]) == 0)
			return false;
	}
	return true;
}

/* Takes one character of UTF-8. */
static unsigned
take_character(const char **at)
{
	const unsigned char *p = (const unsigned char *) *at;
	int			more = *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : *p >= 0xC0 ? 1 : 0;
	unsigned	code = more == 0 ? *p : *p & (0x3F >> more);

	for (int i = 1; i <= more; i++)
		code = code << 6 | (p[i] & 0x3F);
	*at += more + 1;
	return code;
}

/* Stands for itself between quotation marks, by YAML 1.1 and 1.2. */
static bool
is_printable(unsigned code)
{
	if (code < 0xA0)
		return code >= 0x20 && code < 0x7F;
	return code != 0x2028 && code != 0x2029 && code != 0xFEFF &&
		(code < 0xD800 || code > 0xF8FF) && (code & 0xFFFE) != 0xFFFE;
}

static void
add_escape(struct buffer *out, unsigned code)
{
	if (code == '\n')
		buffer_string(out, "\\n");
	else if (code == '\t')
		buffer_string(out, "\\t");
	else if (code == '"' || code == '\\')
		buffer_printf(out, "\\%c", (char) code);
	else if (code < 0x100)
		buffer_printf(out, "\\x%02X", code);
	else if (code < 0x10000)
		buffer_printf(out, "\\u%04X", code);
	else
		buffer_printf(out, "\\U%08X", code);
}

void
yaml_scalar(struct buffer *out, const char *text)
{
	if (is_plain(text))
	{
		buffer_string(out, text);
		return;
	}
	buffer_char(out, '"');
	while (*text != '\0')
	{
		const char *first = text;
		unsigned	code = take_character(&text);

		if (is_printable(code) && code != '"' && code != '\\')
			buffer_append(out, first, text - first);
		else
			add_escape(out, code);
	}
	buffer_char(out, '"');
}

void
yaml_description(struct buffer *out, const char *text)
{
	struct buffer copy = {0};
	size_t		length = strnlen(text, LONGEST_DESCRIPTION);
	bool		is_long = text[length] != '\0';

	/* a character is whole, or left */
	while (is_long && length > 0 && ((unsigned char) text[length] & 0xC0) ==
		   0x80)
		length--;
	buffer_append(&copy, text, length);
	if (is_long)
		buffer_string(&copy, "...");
	if (copy.data != NULL && !utf8_is_valid(copy.data, copy.length))
	{
		for (size_t i = 0; i < copy.length; i++)
		{
			if ((unsigned char) copy.data[i] >= 0x80)
				copy.data[i] = '?';
		}
	}
	yaml_scalar(out, copy.data ? copy.data : "");
	out->failed = out->failed || copy.failed;
	buffer_free(&copy);
}
