#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "command/manifest_files.h"
#include "command/manifest_json.h"
#include "command/manifest_yaml.h"

#define MAX_FILE (16 * 1024 * 1024)
#define MAX_FOLDER_DEPTH 32

static bool
has_manifest_suffix(const char *path)
{
	static const char *const suffixes[] = {".yaml", ".yml", ".json"};
	size_t		length = strlen(path);
	size_t		i;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
	{
		size_t		suffix = strlen(suffixes[i]);

		if (length > suffix &&
			strcmp(path + length - suffix, suffixes[i]) == 0)
			return true;
	}
	return false;
}

static bool
add_file(struct manifest_files *files, const char *path, size_t label_offset)
{
	size_t		count = files->count + 1;
	char	  **paths = realloc(files->paths, count * sizeof(char *));
	size_t	   *offsets;

	if (paths == NULL)
		return false;
	files->paths = paths;
	offsets = realloc(files->label_offsets, count * sizeof(size_t));
	if (offsets == NULL)
		return false;
	files->label_offsets = offsets;
	paths[files->count] = strdup(path);
	offsets[files->count] = label_offset;
	if (paths[files->count] == NULL)
		return false;
	files->count = count;
	return true;
}

void
manifest_files_free(struct manifest_files *files)
{
	while (files->count > 0)
		free(files->paths[--files->count]);
	free(files->paths);
	free(files->label_offsets);
}

static int
skip_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Only a regular file is read: others may never end, or never begin. */
static bool
is_readable(const char *path, const struct stat *status)
{
	if (S_ISREG(status->st_mode))
		return true;
	fprintf(stderr, "%s: neither a regular file nor a folder\n", path);
	return false;
}

/*
 * Adds a file, or the manifests below a folder in the order of their names.
 * What lies in a folder is called by its path from there on.
 */
static bool
add_path(struct manifest_files *files, const char *path, size_t label_offset,
		 int depth)
{
	struct dirent **entries;
	struct stat status;
	bool		fine = true;
	int			count;
	int			i;

	if (stat(path, &status) != 0)
	{
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	if (!S_ISDIR(status.st_mode))
	{
		if (depth > 0 && !has_manifest_suffix(path))
			return true;
		return is_readable(path, &status) &&
			add_file(files, path, label_offset);
	}
	if (depth == MAX_FOLDER_DEPTH)
	{
		fprintf(stderr, "%s: nested too deep\n", path);
		return false;
	}
	count = scandir(path, &entries, skip_hidden, alphasort);
	if (count < 0)
	{
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	for (i = 0; i < count; i++)
	{
		struct buffer child = {0};
		size_t		offset;

		buffer_string(&child, path);
		if (child.length > 0 && child.data[child.length - 1] != '/')
			buffer_char(&child, '/');
		offset = depth == 0 ? child.length : label_offset;
		buffer_string(&child, entries[i]->d_name);
		fine = fine && !child.failed &&
			add_path(files, child.data, offset, depth + 1);
		buffer_free(&child);
		free(entries[i]);
	}
	free(entries);
	return fine;
}

bool
manifest_files_add(struct manifest_files *files, const char *path)
{
	return add_path(files, path, 0, 0);
}

static bool
read_file(const char *path, struct buffer *text)
{
	int			descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE	   *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
	struct stat status;
	size_t		got = 1;

	if (file == NULL || fstat(descriptor, &status) != 0)
	{
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		if (file != NULL)
			fclose(file);
		else if (descriptor >= 0)
			close(descriptor);
		return false;
	}
	/* it may have become something else since it was found */
	if (!is_readable(path, &status))
	{
		fclose(file);
		return false;
	}
	while (got > 0 && text->length <= MAX_FILE && buffer_reserve(text, 65536))
	{
		got = fread(text->data + text->length, 1, 65536, file);
		text->length += got;
	}
	if (ferror(file) || text->failed || text->length > MAX_FILE)
	{
		fprintf(stderr, "%s: unreadable or too large\n", path);
		fclose(file);
		return false;
	}
	fclose(file);
	text->data[text->length] = '\0';
	return true;
}

bool
manifest_files_read(const struct manifest_files *files, struct buffer *array)
{
	struct buffer documents = {0};
	bool		fine = true;
	size_t		i;

	for (i = 0; i < files->count; i++)
	{
		const char *path = files->paths[i];
		const char *suffix = strrchr(path, '.');
		struct buffer text = {0};

		if (read_file(path, &text))
		{
			struct manifest_file file =
			{path, path + files->label_offsets[i], text.data, text.length};

			if (suffix != NULL && strcmp(suffix, ".json") == 0)
				fine = manifest_json_read(&file, &documents) && fine;
			else
				fine = manifest_yaml_read(&file, &documents) && fine;
		}
		else
			fine = false;
		buffer_free(&text);
	}
	buffer_char(array, '[');
	if (documents.length > 0)
		buffer_append(array, documents.data, documents.length);
	buffer_char(array, ']');
	fine = fine && !documents.failed && !array->failed;
	buffer_free(&documents);
	return fine;
}

static const char *
text_or(const json_t *object, const char *member, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : otherwise;
}

bool
manifest_files_print_faults(const char *array)
{
	json_t	   *faults = array ?
		json_read(array, strlen(array), 0, JSON_DEPTH, NULL) : NULL;
	bool		any = json_array_size(faults) > 0;
	size_t		i;

	for (i = 0; i < json_array_size(faults); i++)
	{
		const json_t *fault = json_array_get(faults, i);
		const char *pointer = text_or(fault, "pointer", "");
		const char *hint = text_or(fault, "hint", "");

		fprintf(stderr, "%s: %s%s%s%s%s%s\n",
				text_or(fault, "document", "?"), pointer,
				*pointer ? ": " : "", text_or(fault, "message", ""),
				*hint ? " (" : "", hint, *hint ? ")" : "");
	}
	json_decref(faults);
	return any;
}
