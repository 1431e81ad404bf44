/*
 * The commands that end: apply and openapi.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <libpq-fe.h>

#include "command/apply.h"
#include "command/help.h"
#include "command/manifest_json.h"
#include "command/manifest_yaml.h"
#include "command/steps.h"
#include "command/retry.h"

/*
 * Whoever calls may be a superuser, so nothing is looked for but where it must
 * be, and by its exact arguments.
 */
#define PIN_SQL "set search_path = pg_catalog, pg_temp"

/* %s: one of the two functions */
#define APPLY_SQL \
	"select statement, deferred, lock, effect, rows from " \
	"entityapi.%s($1::jsonb, $2::bool, $3::text[]) order by step"
#define OPENAPI_SQL "select entityapi.openapi($1::int4)"

/* The effects of what is no statement. */
#define DECLARED "declaration"
#define DIFFERENT "difference"

/* SQLSTATE of manifests that are not valid; the faults are in the DETAIL. */
#define INVALID_MANIFEST "JA400"
#define UNDEFINED_FUNCTION "42883"
#define UNDEFINED_SCHEMA "3F000"

#define MAX_FILE (16 * 1024 * 1024)
#define MAX_FOLDER_DEPTH 32

/* Files found, each with how it is called in "source". */
struct file_list
{
	char	  **paths;
	size_t	   *label_offsets;
	size_t		count;
};

/* Seconds for which tables that are in use are tried again. */
#define DEFAULT_WAIT 60
#define MAX_WAIT (24 * 3600)

struct apply_options
{
	bool		dry_run;
	bool		resume;			/* only what is pending */
	bool		defer;			/* leave what is pending alone */
	bool		repair;			/* put back what was dropped or altered */
	int			wait;
	struct buffer data_loss;	/* a text[] literal */
	struct file_list files;
};

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
add_file(struct file_list *files, const char *path, size_t label_offset)
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

static void
free_files(struct file_list *files)
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
add_path(struct file_list *files, const char *path, size_t label_offset,
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

/* An element of a text[] literal. */
static void
add_data_loss(struct buffer *array, const char *name)
{
	buffer_char(array, array->length == 0 ? '{' : ',');
	buffer_char(array, '"');
	for (; *name != '\0'; name++)
	{
		if (*name == '"' || *name == '\\')
			buffer_char(array, '\\');
		buffer_char(array, *name);
	}
	buffer_char(array, '"');
}

static bool
parse_wait(struct apply_options *options, const char *value)
{
	char	   *end;
	long		seconds = strtol(value, &end, 10);

	if (*value == '\0' || *end != '\0' || seconds < 0 || seconds > MAX_WAIT)
	{
		fprintf(stderr, "entityapi-shim apply: --wait takes seconds, at most "
				"%d\n", MAX_WAIT);
		return false;
	}
	options->wait = seconds;
	return true;
}

/* Do the options go together? */
static bool
check_options(const struct apply_options *options)
{
	if (options->resume && (options->dry_run || options->defer ||
							options->repair || options->files.count > 0))
	{
		fprintf(stderr, "entityapi-shim apply: --resume goes without "
				"manifests, --dry-run, --defer and --repair\n");
		return false;
	}
	if (!options->resume && options->files.count == 0)
	{
		fprintf(stderr, "entityapi-shim apply: no manifest found\n");
		return false;
	}
	return !options->data_loss.failed;
}

static bool
parse_options(struct apply_options *options, int argc, char **argv)
{
	static const char loss[] = "--allow-data-loss";
	int			i;

	options->wait = DEFAULT_WAIT;
	for (i = 0; i < argc; i++)
	{
		const char *argument = argv[i];

		if (strcmp(argument, "--dry-run") == 0)
			options->dry_run = true;
		else if (strcmp(argument, "--resume") == 0)
			options->resume = true;
		else if (strcmp(argument, "--defer") == 0)
			options->defer = true;
		else if (strcmp(argument, "--repair") == 0)
			options->repair = true;
		else if (strcmp(argument, "--wait") == 0 && i + 1 < argc)
		{
			if (!parse_wait(options, argv[++i]))
				return false;
		}
		else if (strcmp(argument, loss) == 0 && i + 1 < argc)
			add_data_loss(&options->data_loss, argv[++i]);
		else if (strncmp(argument, loss, strlen(loss)) == 0 &&
				 argument[strlen(loss)] == '=')
			add_data_loss(&options->data_loss, argument + strlen(loss) + 1);
		else if (argument[0] == '-')
		{
			help_unknown_option("apply", argument);
			return false;
		}
		else if (!add_path(&options->files, argument, 0, 0))
			return false;
	}
	buffer_string(&options->data_loss,
				  options->data_loss.length == 0 ? "{}" : "}");
	return check_options(options);
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

/* All documents of all files as a JSON array; false if any has a fault. */
static bool
read_documents(const struct file_list *files, struct buffer *array)
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

bool
apply_read(const char *path, struct buffer *array)
{
	struct file_list files = {0};
	bool		fine = add_path(&files, path, 0, 0) &&
		read_documents(&files, array);

	free_files(&files);
	return fine;
}

static const char *
text_or(const json_t *object, const char *member, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : otherwise;
}

/* One line for each fault that apply_manifest found; false if none. */
static bool
print_faults(const char *detail)
{
	json_t	   *faults = detail ? json_loads(detail, 0, NULL) : NULL;
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

/* Says why a statement failed. */
static void
print_failure(const char *command, PGconn *connection, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (sqlstate != NULL && strcmp(sqlstate, INVALID_MANIFEST) == 0 &&
		print_faults(PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL)))
		return;
	if (sqlstate != NULL && (strcmp(sqlstate, UNDEFINED_FUNCTION) == 0 ||
							 strcmp(sqlstate, UNDEFINED_SCHEMA) == 0))
		fprintf(stderr, "entityapi-shim %s: the extension entityapi, or this "
				"function of it, is not installed in the database: %s\n",
				command, PQresultErrorField(result,
											PG_DIAG_MESSAGE_PRIMARY));
	else
		fprintf(stderr, "entityapi-shim %s: %s", command,
				PQerrorMessage(connection));
}

static void
print_notice(void *argument, const char *message)
{
	(void) argument;
	fputs(message, stderr);
}

static PGconn *
connect_once(const char *command, const struct config *config)
{
	const char *names[] =
	{"dbname", "application_name", "client_encoding", NULL};
	const char *values[] = {config->database, "entityapi-shim", "UTF8", NULL};
	PGconn	   *connection = PQconnectdbParams(names, values, 1);

	if (PQstatus(connection) == CONNECTION_OK)
	{
		PGresult   *result = PQexec(connection, PIN_SQL);
		bool		pinned = PQresultStatus(result) == PGRES_COMMAND_OK;

		PQclear(result);
		PQsetNoticeProcessor(connection, print_notice, NULL);
		if (pinned)
			return connection;
	}
	fprintf(stderr, "entityapi-shim %s: %s", command,
			connection ? PQerrorMessage(connection) : "out of memory\n");
	PQfinish(connection);
	return NULL;
}

/* Columns of APPLY_SQL */
enum
{
	STATEMENT, DEFERRED, LOCK, EFFECT, ROWS
};

/* A statement, and in a dry run what those notice who use its table. */
static void
print_statement(const PGresult *result, int row, bool dry_run)
{
	const char *statement = PQgetvalue(result, row, STATEMENT);
	size_t		length = strlen(statement);

	/* a comment on what changes in the declarations only, or differs */
	if (strcmp(PQgetvalue(result, row, EFFECT), DECLARED) == 0 ||
		strcmp(PQgetvalue(result, row, EFFECT), DIFFERENT) == 0)
	{
		puts(statement);
		return;
	}

	printf("%s%s", statement,
		   length > 0 && statement[length - 1] == ';' ? "" : ";");
	if (dry_run && !PQgetisnull(result, row, LOCK))
		printf(" -- %s lock", PQgetvalue(result, row, LOCK));
	if (dry_run && !PQgetisnull(result, row, EFFECT))
		printf(", %s", PQgetvalue(result, row, EFFECT));
	if (dry_run && !PQgetisnull(result, row, ROWS))
		printf(", about %s", PQgetvalue(result, row, ROWS));
	putchar('\n');
}

static bool
is_deferred(const PGresult *result, int row)
{
	return PQgetvalue(result, row, DEFERRED)[0] == 't';
}

/*
 * The statements of the transaction; in a dry run those for later, too.  True
 * if there are any of these.
 */
static bool
print_plan(const PGresult *result, bool dry_run)
{
	bool		any = false;
	int			row;

	if (PQntuples(result) == 0)
		puts("nothing to change");
	for (row = 0; row < PQntuples(result); row++)
	{
		if (is_deferred(result, row))
			any = true;
		else
			print_statement(result, row, dry_run);
	}
	if (any && dry_run)
		puts("-- then, one by one, while requests are served:");
	for (row = 0; dry_run && row < PQntuples(result); row++)
	{
		if (is_deferred(result, row))
			print_statement(result, row, true);
	}
	fflush(stdout);
	return any;
}

/* Are the tables other than what was made, after all that was done? */
static bool
is_adrift(const PGresult *result)
{
	int			row;

	for (row = 0; row < PQntuples(result); row++)
	{
		if (strcmp(PQgetvalue(result, row, EFFECT), DIFFERENT) == 0)
			return true;
	}
	return false;
}

/*
 * The transaction, which is tried again while the tables are in use; sound:
 * the tables are what is declared.
 */
static bool
apply_documents(PGconn *connection, const char *documents,
				const struct apply_options *options, bool *later, bool *sound)
{
	char		sql[sizeof(APPLY_SQL) + 32];
	const char *values[3] = {documents, options->dry_run ? "true" : "false",
	options->data_loss.data};
	struct retry retry = {.limit = options->wait};
	PGresult   *result = NULL;
	bool		fine;

	snprintf(sql, sizeof(sql), APPLY_SQL,
			 options->repair ? "repair_and_apply" : "apply_manifest");
	do
	{
		PQclear(result);
		result = PQexecParams(connection, sql, 3, NULL, values, NULL,
							  NULL, 0);
	} while (retry_lock(&retry, result));
	fine = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (fine)
	{
		*later = print_plan(result, options->dry_run);
		*sound = !is_adrift(result);
	}
	else
		print_failure("apply", connection, result);
	PQclear(result);
	return fine;
}

/* documents: NULL to go on with what is pending. */
static int
apply(const struct config *config, const char *documents,
	  const struct apply_options *options)
{
	PGconn	   *connection = connect_once("apply", config);
	bool		later = options->resume;
	bool		sound = true;
	bool		fine;

	if (connection == NULL)
		return 1;
	fine = options->dry_run || steps_claim(connection);
	if (fine && documents != NULL)
		fine = apply_documents(connection, documents, options, &later,
							   &sound);
	if (fine && !options->dry_run && !options->defer)
		fine = steps_run(connection, options->wait, later);
	PQfinish(connection);
	return fine && sound ? 0 : 1;
}

int
apply_command(const struct config *config, int argc, char **argv)
{
	struct apply_options options = {0};
	struct buffer documents = {0};
	int			status = 2;

	if (parse_options(&options, argc, argv))
	{
		if (options.resume)
			status = apply(config, NULL, &options);
		else
			status = read_documents(&options.files, &documents) ?
				apply(config, documents.data, &options) : 1;
	}

	free_files(&options.files);
	buffer_free(&options.data_loss);
	buffer_free(&documents);
	return status;
}

int
openapi_command(const struct config *config, int argc, char **argv)
{
	const char *values[1] = {argc > 0 ? argv[0] : "1"};
	PGconn	   *connection;
	PGresult   *result;
	bool		fine;

	if (argc > 0 && argv[0][0] == '-')
		return help_unknown_option("openapi", argv[0]);
	if (argc > 1)
	{
		fprintf(stderr, "entityapi-shim openapi: one version at a time\n");
		return 2;
	}
	connection = connect_once("openapi", config);
	if (connection == NULL)
		return 1;
	result = PQexecParams(connection, OPENAPI_SQL, 1, NULL, values, NULL,
						  NULL, 0);
	fine = PQresultStatus(result) == PGRES_TUPLES_OK &&
		PQntuples(result) == 1;
	if (!fine)
		print_failure("openapi", connection, result);
	else if (PQgetisnull(result, 0, 0))
	{
		fprintf(stderr, "entityapi-shim openapi: there is no version %s\n",
				values[0]);
		fine = false;
	}
	else
		puts(PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(connection);
	return fine ? 0 : 1;
}
