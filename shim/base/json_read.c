#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json_read.h"

#define STEP 4096

/* What jansson's own errors look like. */
static void
tell(json_error_t *error, const char *source, int line, size_t position,
	 const char *text)
{
	memset(error, 0, sizeof(*error));
	error->line = line;
	error->position = (int) position;
	snprintf(error->source, sizeof(error->source), "%s", source);
	snprintf(error->text, sizeof(error->text), "%s", text);
}

static void
tell_too_deep(json_error_t *error, const char *text, size_t position)
{
	char		message[40];
	int			line = 1;

	for (size_t i = 0; i < position; i++)
		line += text[i] == '\n';
	snprintf(message, sizeof(message), "nested deeper than %d", JSON_DEPTH);
	tell(error, "<buffer>", line, position, message);
}

bool
json_depth_is_fine(const char *text, size_t length, size_t flags, int most,
				   json_error_t *error)
{
	int			depth = 0;
	bool		in_string = false;

	for (size_t i = 0; i < length; i++)
	{
		char		c = text[i];

		if (in_string)
		{
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		}
		else if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{')
		{
			if (++depth > most)
			{
				if (error != NULL)
					tell_too_deep(error, text, i);
				return false;
			}
		}
		else if ((c == ']' || c == '}') && --depth <= 0 &&
				 (flags & JSON_DISABLE_EOF_CHECK))
			break;
	}
	return true;
}

json_t *
json_read(const char *text, size_t length, size_t flags, int most,
		  json_error_t *error)
{
	if (!json_depth_is_fine(text, length, flags, most, error))
		return NULL;
	return json_loadb(text, length, flags, error);
}

/* False, with errno, if there is no such text. */
static bool
read_whole(const char *path, struct buffer *text)
{
	FILE	   *file = fopen(path, "rbe");
	size_t		got = 1;
	int			failure;

	if (file == NULL)
		return false;
	errno = 0;
	while (got > 0 && text->length <= JSON_FILE_MAX &&
		   buffer_reserve(text, STEP))
	{
		got = fread(text->data + text->length, 1, STEP, file);
		text->length += got;
	}
	failure = ferror(file) ? errno : text->failed ? ENOMEM :
		text->length > JSON_FILE_MAX ? EFBIG : 0;
	fclose(file);
	errno = failure;
	return failure == 0;
}

json_t *
json_read_file(const char *path, size_t flags, json_error_t *error)
{
	struct buffer text = {0};
	json_t	   *root = NULL;

	if (read_whole(path, &text))
		root = json_read(text.data, text.length, flags, JSON_DEPTH, error);
	else
	{
		struct buffer message = {0};

		buffer_printf(&message, "unable to open %s: %s", path,
					  strerror(errno));
		tell(error, path, -1, 0,
			 message.data ? message.data : "out of memory");
		buffer_free(&message);
	}
	buffer_free(&text);
	return root;
}
