#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "command/introspect_folder.h"
#include "command/introspect_keep.h"
#include "command/introspect_names.h"
#include "command/introspect_patch.h"
#include "command/manifest_files.h"

/* A file that is compared */
#define MOST_BYTES (16 * 1024 * 1024)

static bool
fail(const char *path)
{
	fprintf(stderr, "entityapi-shim introspect: %s: %s\n", path,
			strerror(errno));
	return false;
}

/* -------- what is there -------- */

static const char *
member(struct memory *memory, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? memory_text(memory, text, strlen(text)) : NULL;
}

/* The file of a document, which its source calls file#number. */
static const char *
file_of(struct memory *memory, const json_t *document)
{
	const char *source = json_string_value(json_object_get(document,
														   "source"));
	const char *end = source ? strrchr(source, '#') : NULL;

	return end ? memory_text(memory, source, end - source) : "?";
}

/* Is a document the only one of a file of YAML?  All are in order. */
static bool
is_alone(struct memory *memory, const json_t *documents, size_t at)
{
	const char *file = file_of(memory, json_array_get(documents, at));
	size_t		length = strlen(file);

	return length > 5 && strcmp(file + length - 5, ".json") != 0 &&
		(at == 0 || strcmp(file, file_of(memory, json_array_get(documents,
																at - 1))) != 0)
		&& (at + 1 >= json_array_size(documents) ||
			strcmp(file, file_of(memory, json_array_get(documents,
														at + 1))) != 0);
}

static int
compare_tables(const void *a, const void *b)
{
	const struct introspect_table *one = a;
	const struct introspect_table *other = b;
	int			schemas = strcmp(one->schema, other->schema);

	return schemas != 0 ? schemas : strcmp(one->name, other->name);
}

/* The column of a field, whose name there it is from now on. */
static void
note_field(struct memory *memory, struct introspect_table *table,
		   const json_t *columns, const char *name, const json_t *field)
{
	const char *type = json_string_value(json_object_get(field, "type"));
	const json_t *named = json_object_get(columns, name);
	const char *column;

	if (type == NULL || json_object_get(field, "mappedBy") != NULL ||
		json_object_get(field, "through") != NULL)
		return;
	if (json_is_array(named))
		named = json_array_get(named, 0);
	column = json_string_value(named);
	if (column == NULL)
		column = introspect_names_column(memory, name,
										 strcmp(type, "ref") == 0);
	for (int i = 0; i < table->column_count; i++)
	{
		if (strcmp(table->columns[i].name, column) == 0)
			table->columns[i].declared = memory_text(memory, name,
													 strlen(name));
	}
}

static void
note_fields(struct memory *memory, struct introspect_table *table,
			const json_t *spec)
{
	json_t	   *fields = json_object_get(spec, "fields");
	const char *name;
	json_t	   *field;

	json_object_foreach(fields, name, field)
		note_field(memory, table, json_object_get(spec, "columns"), name,
				   field);
}

/* An entity's names stay, and its table is no new one. */
static void
note_entity(struct introspect_folder *folder,
			const struct introspect_options *options,
			struct introspect_catalog *catalog, const json_t *documents,
			size_t at)
{
	const json_t *document = json_array_get(documents, at);
	struct memory *memory = catalog->memory;
	const json_t *spec = json_object_get(document, "spec");
	struct introspect_declared *declared =
		&folder->entities[folder->entity_count];
	const char *table = json_string_value(json_object_get(spec, "table"));
	struct introspect_table key = {0};

	if (table == NULL || !introspect_names_split(memory, table,
												 &declared->schema,
												 &declared->name))
		return;
	declared->file = file_of(memory, document);
	declared->is_alone = is_alone(memory, documents, at);
	declared->entity = member(memory, json_object_get(document, "metadata"),
							  "name");
	declared->collection = member(memory, spec, "plural");
	if (declared->entity == NULL)
		return;
	folder->entity_count++;
	key.schema = declared->schema;
	key.name = declared->name;
	declared->table = bsearch(&key, catalog->tables, catalog->table_count,
							  sizeof(key), compare_tables);
	if (declared->table == NULL)
		return;
	if (options->mode != INTROSPECT_WRITE && !declared->table->is_wanted)
		declared->table->is_wanted = declared->table->is_context = true;
	declared->table->declared = declared->file;
	declared->table->is_alone = declared->is_alone;
	declared->table->entity = declared->entity;
	declared->table->collection = declared->collection;
	note_fields(memory, declared->table, spec);
}

static void
note_document(struct introspect_folder *folder,
			  const struct introspect_options *options,
			  struct introspect_catalog *catalog, const json_t *documents,
			  size_t at)
{
	const json_t *document = json_array_get(documents, at);
	const char *kind = json_string_value(json_object_get(document, "kind"));

	if (kind == NULL)
		return;
	folder->has_roles = folder->has_roles || strcmp(kind, "Roles") == 0;
	if (strcmp(kind, "Service") == 0)
		folder->service = file_of(catalog->memory, document);
	else if (strcmp(kind, "Roles") == 0 &&
			 json_object_get(json_object_get(json_object_get(document, "spec"),
											 "roles"), "Reader") != NULL)
		folder->roles = file_of(catalog->memory, document);
	else if (strcmp(kind, "Entity") == 0)
		note_entity(folder, options, catalog, documents, at);
}

bool
introspect_folder_read(struct introspect_folder *folder,
					   const struct introspect_options *options,
					   struct introspect_catalog *catalog)
{
	struct manifest_files files = {0};
	struct buffer array = {0};
	struct stat status;
	json_t	   *documents = NULL;
	bool		fine;

	folder->path = options->folder;
	folder->memory = catalog->memory;
	if (stat(folder->path, &status) != 0)
		return errno == ENOENT ? true : fail(folder->path);
	if (!S_ISDIR(status.st_mode))
	{
		errno = ENOTDIR;
		return fail(folder->path);
	}
	fine = manifest_files_add(&files, folder->path) &&
		manifest_files_read(&files, &array);
	if (fine)
		documents = json_read(array.data, array.length, 0, JSON_LIST_DEPTH,
							  NULL);
	folder->entities = memory_array(catalog->memory,
									json_array_size(documents),
									sizeof(*folder->entities));
	for (size_t i = 0; i < json_array_size(documents); i++)
		note_document(folder, options, catalog, documents, i);
	json_decref(documents);
	buffer_free(&array);
	manifest_files_free(&files);
	return fine;
}

/* -------- what comes -------- */

static void
set_path(struct buffer *path, const struct introspect_folder *folder,
		 const char *name)
{
	buffer_clear(path);
	buffer_printf(path, "%s%s%s", folder->path,
				  folder->path[strlen(folder->path) - 1] == '/' ? "" : "/",
				  name);
	if (path->failed)
		memory_none();
}

/* A file that could not be written whole does not stay. */
static bool
write_new(const char *path, const struct introspect_file *file)
{
	int			descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL |
								  O_CLOEXEC, 0666);
	size_t		done = 0;
	bool		fine = descriptor >= 0;

	while (fine && done < file->length)
	{
		ssize_t		got = write(descriptor, file->text + done,
								file->length - done);

		fine = got > 0 || (got < 0 && errno == EINTR);
		done += got > 0 ? got : 0;
	}
	if (descriptor >= 0)
		fine = close(descriptor) == 0 && fine;
	if (!fine)
	{
		fail(path);
		if (descriptor >= 0)
			unlink(path);
	}
	return fine;
}

/* The whole file; false after a line on stderr, unless there is none. */
static bool
read_old(const char *path, struct buffer *text, bool *there)
{
	int			descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t		got = 1;

	*there = descriptor >= 0;
	if (descriptor < 0)
		return errno == ENOENT ? true : fail(path);
	while (got > 0 && text->length <= MOST_BYTES &&
		   buffer_reserve(text, 65536))
	{
		got = read(descriptor, text->data + text->length, 65536);
		if (got > 0)
			text->length += got;
	}
	close(descriptor);
	if (text->data != NULL)
		text->data[text->length] = '\0';
	if (got < 0)
		return fail(path);
	if (text->length > MOST_BYTES || text->failed)
	{
		errno = EFBIG;
		return fail(path);
	}
	return true;
}

/* The other file that declares what this one would, or NULL. */
static const char *
other_file(const struct introspect_folder *folder,
		   const struct introspect_file *file)
{
	if (file->table != NULL)
		return file->table->declared;
	return strcmp(file->name, SERVICE_FILE) == 0 ? folder->service :
		folder->roles;
}

/* Nothing is written unless all can be. */
static bool
is_free(const struct introspect_folder *folder,
		const struct introspect_files *files, struct buffer *path)
{
	struct stat status;

	for (size_t i = 0; i < files->count; i++)
	{
		const char *other = other_file(folder, &files->files[i]);

		set_path(path, folder, other ? other : files->files[i].name);
		if (other == NULL && lstat(path->data, &status) != 0)
			continue;
		fprintf(stderr, "entityapi-shim introspect: %s is there already; "
				"--update writes what is new, and shows what differs\n",
				path->data);
		return false;
	}
	return true;
}

static bool
make_folder(const struct introspect_folder *folder)
{
	return mkdir(folder->path, 0777) == 0 || errno == EEXIST ? true :
		fail(folder->path);
}

static bool
write_all(const struct introspect_folder *folder,
		  const struct introspect_files *files, struct buffer *path,
		  volatile bool *interrupted)
{
	if (!is_free(folder, files, path) || !make_folder(folder))
		return false;
	for (size_t i = 0; i < files->count && !*interrupted; i++)
	{
		set_path(path, folder, files->files[i].name);
		if (!write_new(path->data, &files->files[i]))
			return false;
	}
	return true;
}

/* -------- what differs -------- */

struct comparison
{
	const struct introspect_folder *folder;
	const struct introspect_options *options;
	enum introspect_mode mode;
	struct buffer path;
	struct buffer patch;
	struct buffer notes;
	bool		differs;
};

/*
 * Roles are people's affair, and what tables are used with does not follow
 * from some of them.
 */
static bool
is_compared(const struct comparison *comparison,
			const struct introspect_file *file)
{
	if (file->table != NULL)
		return true;
	return strcmp(file->name, SERVICE_FILE) == 0 ?
		comparison->folder->service == NULL ||
		comparison->options->table_count == 0 :
		!comparison->folder->has_roles;
}

/* The difference that is left of what introspect knows. */
static void
compare_texts(struct comparison *comparison,
			  const struct introspect_file *file, const struct buffer *old)
{
	struct introspect_file kept = *file;
	struct patch_side before = {file->name, old->data, old->length};
	struct patch_side after = {file->name, NULL, 0};

	if (old->data != NULL)
		introspect_keep(comparison->folder->memory, comparison->folder,
						old->data, old->length, &kept);
	after.text = kept.text;
	after.length = kept.length;
	patch_write(&comparison->patch, &before, &after);
}

static bool
compare_file(struct comparison *comparison, const struct introspect_file *file)
{
	const char *other = other_file(comparison->folder, file);
	struct buffer old = {0};
	bool		there;
	bool		fine;

	if (!is_compared(comparison, file))
		return true;
	set_path(&comparison->path, comparison->folder, file->name);
	fine = read_old(comparison->path.data, &old, &there);
	if (fine && !there && other != NULL)
		buffer_printf(&comparison->notes, "%s is declared in %s, which is not "
					  "compared\n", file->table ? file->table->entity :
					  file->name, other);
	else if (fine && !there && comparison->mode == INTROSPECT_UPDATE)
	{
		fine = write_new(comparison->path.data, file);
		buffer_printf(&comparison->notes, "new: %s\n", comparison->path.data);
	}
	else if (fine)
		compare_texts(comparison, file, &old);
	buffer_free(&old);
	return fine;
}

/* The table of an entity has gone. */
static bool
compare_gone(struct comparison *comparison,
			 const struct introspect_declared *declared)
{
	struct patch_side before = {declared->file, NULL, 0};
	struct patch_side after = {declared->file, NULL, 0};
	struct buffer old = {0};
	bool		there;
	bool		fine;

	if (!declared->is_alone)
	{
		buffer_printf(&comparison->notes, "the table of %s, in %s, has gone\n",
					  declared->entity, declared->file);
		comparison->differs = true;
		return true;
	}
	set_path(&comparison->path, comparison->folder, declared->file);
	fine = read_old(comparison->path.data, &old, &there);
	before.text = there ? old.data : NULL;
	before.length = old.length;
	if (fine)
		patch_write(&comparison->patch, &before, &after);
	buffer_free(&old);
	return fine;
}

/* Would its table be among those that are asked for? */
static bool
is_asked_for(const struct introspect_options *options,
			 const struct introspect_declared *declared)
{
	if (options->table_count > 0)
		return false;
	for (int i = 0; i < options->schema_count; i++)
	{
		if (strcmp(options->schemas[i], declared->schema) == 0)
			return true;
	}
	return options->schema_count == 0;
}

static bool
compare_all(struct comparison *comparison,
			const struct introspect_options *options,
			const struct introspect_files *files, volatile bool *interrupted)
{
	const struct introspect_folder *folder = comparison->folder;

	if (comparison->mode == INTROSPECT_UPDATE && !make_folder(folder))
		return false;
	for (size_t i = 0; i < files->count && !*interrupted; i++)
	{
		if (!compare_file(comparison, &files->files[i]))
			return false;
	}
	for (size_t i = 0; i < folder->entity_count && !*interrupted; i++)
	{
		if (folder->entities[i].table == NULL &&
			is_asked_for(options, &folder->entities[i]) &&
			!compare_gone(comparison, &folder->entities[i]))
			return false;
	}
	return true;
}

/* 1: something differs, where that was asked */
static int
compare(const struct introspect_folder *folder,
		const struct introspect_options *options,
		const struct introspect_files *files, volatile bool *interrupted)
{
	struct comparison comparison = {
		.folder = folder,.options = options,.mode = options->mode
	};
	bool		fine = compare_all(&comparison, options, files, interrupted);

	if (comparison.patch.failed || comparison.notes.failed)
		memory_none();
	fwrite(comparison.patch.data ? comparison.patch.data : "", 1,
		   comparison.patch.length, stdout);
	fwrite(comparison.notes.data ? comparison.notes.data : "", 1,
		   comparison.notes.length, stdout);
	comparison.differs = comparison.differs || comparison.patch.length > 0;
	buffer_free(&comparison.path);
	buffer_free(&comparison.patch);
	buffer_free(&comparison.notes);
	return !fine || (options->mode == INTROSPECT_CHECK && comparison.differs);
}

int
introspect_folder_write(const struct introspect_folder *folder,
						const struct introspect_options *options,
						const struct introspect_files *files,
						volatile bool *interrupted)
{
	struct buffer path = {0};
	int			status;

	if (options->mode == INTROSPECT_WRITE)
		status = write_all(folder, files, &path, interrupted) ? 0 : 1;
	else
		status = compare(folder, options, files, interrupted);
	buffer_free(&path);
	return status;
}
