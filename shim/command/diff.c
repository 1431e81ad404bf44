/*
 * Documents are told apart by kind and name, and their members by JSON
 * pointers; files, comments and spelling do not count, and order counts for
 * fields alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json_read.h"
#include "command/diff.h"
#include "command/help.h"
#include "command/manifest_files.h"

/* What every document has, and what says nothing of it. */
static bool
is_told_otherwise(const char *key)
{
	return strcmp(key, "source") == 0 || strcmp(key, "kind") == 0 ||
		strcmp(key, "metadata") == 0;
}

static const char *
source_of(const json_t *document)
{
	const char *source = json_string_value(json_object_get(document,
														   "source"));

	return source ? source : "?";
}

/*
 * All documents of a folder or file as an object, by Kind/name.  NULL after a
 * line on stderr.
 */
static json_t *
read_set(const char *path)
{
	struct manifest_files files = {0};
	struct buffer array = {0};
	json_t	   *documents = NULL;
	json_t	   *set = json_object();
	json_t	   *document;
	bool		fine = manifest_files_add(&files, path) &&
		manifest_files_read(&files, &array);
	size_t		i;

	if (fine)
		documents = json_read(array.data, array.length, 0, JSON_LIST_DEPTH,
							  NULL);
	if (fine && json_array_size(documents) == 0)
		fprintf(stderr, "%s: no manifest found\n", path);
	fine = fine && json_array_size(documents) > 0 && set != NULL;
	json_array_foreach(documents, i, document)
	{
		struct buffer name = {0};
		const char *kind = json_string_value(json_object_get(document,
															 "kind"));
		const char *called = json_string_value(
			json_object_get(json_object_get(document, "metadata"), "name"));

		if (kind != NULL && called != NULL)
			buffer_printf(&name, "%s/%s", kind, called);
		if (name.data == NULL || name.failed ||
			json_object_get(set, name.data) != NULL)
		{
			fprintf(stderr, "%s: %s\n", source_of(document),
					name.data ? "is declared twice" :
					"has no kind and metadata.name");
			fine = false;
		}
		else
			fine = json_object_set(set, name.data, document) == 0 && fine;
		buffer_free(&name);
	}
	json_decref(documents);
	buffer_free(&array);
	manifest_files_free(&files);
	if (fine)
		return set;
	json_decref(set);
	return NULL;
}

static void
add_value(struct buffer *line, const json_t *value)
{
	char	   *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	buffer_string(line, text ? text : "?");
	free(text);
}

/* A line about one place; NULL: there is nothing on this side. */
static void
print_change(const char *document, const char *pointer, const json_t *before,
			 const json_t *after)
{
	struct buffer line = {0};

	buffer_printf(&line, "%s %s: ", document, pointer);
	if (before == NULL)
		buffer_string(&line, "+ ");
	else if (after == NULL)
		buffer_string(&line, "- ");
	add_value(&line, before ? before : after);
	if (before != NULL && after != NULL)
	{
		buffer_string(&line, " -> ");
		add_value(&line, after);
	}
	puts(line.failed ? "out of memory" : line.data);
	buffer_free(&line);
}

/* The names of fields that both have, in the order of the first. */
static json_t *
common_names(const json_t *fields, const json_t *others)
{
	json_t	   *names = json_array();
	const char *name;
	json_t	   *field;

	json_object_foreach((json_t *) fields, name, field)
	{
		if (json_object_get(others, name) != NULL)
			json_array_append_new(names, json_string(name));
	}
	return names;
}

/* A line if the fields of a document stand in another order; the number. */
static int
compare_order(const char *document, const json_t *before, const json_t *after)
{
	const json_t *fields = json_object_get(json_object_get(before, "spec"),
										   "fields");
	const json_t *others = json_object_get(json_object_get(after, "spec"),
										   "fields");
	json_t	   *names = common_names(fields, others);
	json_t	   *other_names = common_names(others, fields);
	int			count = !json_equal(names, other_names);

	if (count > 0)
		print_change(document, "/spec/fields, order", names, other_names);
	json_decref(names);
	json_decref(other_names);
	return count;
}

/*
 * The lines about what differs; their number.  No document is deeper than
 * JSON_DEPTH.
 */
static int
compare(const char *document, const char *pointer, const json_t *before,
		const json_t *after, int depth)
{
	const char *key;
	json_t	   *value;
	int			count = 0;

	if (json_equal(before, after))
		return 0;
	if (!json_is_object(before) || !json_is_object(after))
	{
		print_change(document, pointer, before, after);
		return 1;
	}
	for (int side = 0; side < 2; side++)
	{
		json_object_foreach((json_t *) (side ? after : before), key, value)
		{
			const json_t *other = json_object_get(side ? before : after, key);
			struct buffer place = {0};

			if ((depth == 0 && is_told_otherwise(key)) ||
				(side == 1 && other != NULL))
				continue;
			buffer_printf(&place, "%s/", pointer);
			for (const char *p = key; *p != '\0'; p++)
			{
				if (*p == '~' || *p == '/')
					buffer_string(&place, *p == '~' ? "~0" : "~1");
				else
					buffer_char(&place, *p);
			}
			count += compare(document, place.failed ? "?" : place.data,
							 side ? NULL : value, side ? value : other,
							 depth + 1);
			buffer_free(&place);
		}
	}
	return count;
}

static int
compare_sets(json_t *before, json_t *after)
{
	const char *name;
	json_t	   *document;
	int			count = 0;

	json_object_foreach(before, name, document)
	{
		json_t	   *other = json_object_get(after, name);

		if (other != NULL)
			count += compare(name, "", document, other, 0) +
				compare_order(name, document, other);
		else
			count += printf("- %s\n", name) > 0;
	}
	json_object_foreach(after, name, document)
	{
		if (json_object_get(before, name) == NULL)
			count += printf("+ %s\n", name) > 0;
	}
	return count;
}

int
diff_command(const struct config *config, int argc, char **argv)
{
	json_t	   *before;
	json_t	   *after;
	int			status = 2;

	(void) config;
	for (int i = 0; i < argc; i++)
	{
		if (argv[i][0] == '-')
			return help_unknown_option("diff", argv[i]);
	}
	if (argc != 2)
	{
		fprintf(stderr, "entityapi-shim diff: two folders or files are to be "
				"named\n");
		return 2;
	}
	before = read_set(argv[0]);
	after = read_set(argv[1]);
	if (before != NULL && after != NULL)
		status = compare_sets(before, after) > 0;
	json_decref(before);
	json_decref(after);
	return status;
}
