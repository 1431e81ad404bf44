#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/text_file.h"

#define MAX_FILE 65536

char *
text_file_read(const char *origin, const char *path)
{
	FILE	   *file = fopen(path, "r");
	char	   *text;
	size_t		length;

	if (file == NULL)
	{
		complain("%s: cannot open \"%s\": %s", origin, path,
				 strerror(errno));
		return NULL;
	}
	text = calloc(1, MAX_FILE + 1);
	length = text ? fread(text, 1, MAX_FILE, file) : 0;
	if (text == NULL || ferror(file) || fgetc(file) != EOF ||
		strlen(text) != length)
	{
		complain("%s: cannot use \"%s\": unreadable, too long or not text",
				 origin, path);
		free(text);
		text = NULL;
	}
	else if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	fclose(file);
	return text;
}
