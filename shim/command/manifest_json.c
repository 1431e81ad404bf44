/*
 * jansson checks the syntax and tells where a fault is; the text itself goes
 * on untouched, so that numbers keep their digits.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "command/manifest_json.h"
#include "command/manifest_yaml.h"

/* The length of the JSON value at the start of valid JSON text. */
static size_t
value_length(const char *text)
{
	const char *p = text;
	int			depth = 0;

	do
	{
		if (*p == '"')
		{
			for (p++; *p != '"'; p++)
			{
				if (*p == '\\')
					p++;
			}
		}
		else if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		p++;
	} while (depth > 0);
	return (size_t) (p - text);
}

static bool
write_document(const struct manifest_file *file, const char *text,
			   const json_t *document, int number, struct buffer *documents)
{
	struct buffer source = {0};
	const char *rest = text + 1;

	if (!json_is_object(document) || json_object_get(document, "source"))
	{
		fprintf(stderr, "%s#%d: a document must be an object without "
				"\"source\"\n", file->path, number);
		return false;
	}
	buffer_printf(&source, "%s#%d", file->label, number);
	if (documents->length > 0)
		buffer_char(documents, ',');
	buffer_string(documents, "{\"source\":");
	buffer_json_string(documents, source.data);
	if (json_object_size(document) > 0)
		buffer_char(documents, ',');
	buffer_append(documents, rest, value_length(text) - 1);
	buffer_free(&source);
	return true;
}

/* An array of documents: one after the other, by their text. */
static bool
write_array(const struct manifest_file *file, const char *text,
			const json_t *array, int *number, struct buffer *documents)
{
	const char *p = text + 1;
	size_t		i;

	for (i = 0; i < json_array_size(array); i++)
	{
		const json_t *document = json_array_get(array, i);

		while (isspace((unsigned char) *p) || *p == ',')
			p++;
		if (!write_document(file, p, document, ++*number, documents))
			return false;
		p += value_length(p);
	}
	return true;
}

/* jansson passes over one that follows a number (RFC 8259 has none). */
static bool
has_no_null_byte(const struct manifest_file *file)
{
	const char *found = memchr(file->text, '\0', file->length);
	int			line = 1;

	if (found == NULL)
		return true;
	for (const char *p = file->text; p < found; p++)
		line += *p == '\n';
	fprintf(stderr, "%s:%d: a null byte\n", file->path, line);
	return false;
}

bool
manifest_json_read(const struct manifest_file *file, struct buffer *documents)
{
	const char *p = file->text;
	const char *end = file->text + file->length;
	int			line = 1;
	int			number = 0;
	bool		fine = has_no_null_byte(file);

	for (; fine; p++)
	{
		json_error_t error;
		json_t	   *root;
		size_t		length;

		for (; p < end && isspace((unsigned char) *p); p++)
			line += *p == '\n';
		if (p == end)
			break;
		root = json_read(p, (size_t) (end - p), JSON_REJECT_DUPLICATES |
						 JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL,
						 JSON_DEPTH, &error);
		if (root == NULL)
		{
			fprintf(stderr, "%s:%d: %s\n", file->path, line + error.line - 1,
					error.text);
			return false;
		}
		fine = json_is_array(root) ?
			write_array(file, p, root, &number, documents) :
			write_document(file, p, root, ++number, documents);
		json_decref(root);
		if (!fine)
			break;
		for (length = value_length(p); length > 1; length--)
			line += *p++ == '\n';
	}
	if (fine && documents->failed)
	{
		fprintf(stderr, "%s: out of memory\n", file->path);
		fine = false;
	}
	return fine;
}
