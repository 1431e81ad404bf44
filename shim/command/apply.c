#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "command/apply.h"
#include "command/connect.h"
#include "command/help.h"
#include "command/manifest_files.h"
#include "command/retry.h"
#include "command/rights.h"
#include "command/steps.h"

/* %s: one of the two functions */
#define APPLY_SQL \
	"select statement, deferred, lock, effect, rows from " \
	"entityapi.%s($1::json, $2::bool, $3::text[]) order by step"
#define OPENAPI_SQL "select entityapi.openapi($1::int4)"

/* The effects of what is no statement. */
#define DECLARED "declaration"
#define DIFFERENT "difference"

/* SQLSTATE of manifests that are not valid; the faults are in the DETAIL. */
#define INVALID_MANIFEST "JA400"
#define UNDEFINED_FUNCTION "42883"
#define UNDEFINED_SCHEMA "3F000"


/* Seconds for which tables that are in use are tried again. */
#define DEFAULT_WAIT 60
#define MAX_WAIT (24 * 3600)

struct apply_options
{
	bool		dry_run;
	bool		rights;			/* what roles would gain and lose */
	bool		resume;			/* only what is pending */
	bool		defer;			/* leave what is pending alone */
	bool		repair;			/* put back what was dropped or altered */
	int			wait;
	struct buffer data_loss;	/* a text[] literal */
	struct manifest_files files;
};

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
	if (options->rights && (!options->dry_run || options->repair))
	{
		fprintf(stderr, "entityapi-shim apply: --rights goes with --dry-run, "
				"and without --repair\n");
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
		else if (strcmp(argument, "--rights") == 0)
			options->rights = true;
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
		else if (!manifest_files_add(&options->files, argument))
			return false;
	}
	buffer_string(&options->data_loss,
				  options->data_loss.length == 0 ? "{}" : "}");
	return check_options(options);
}

/* Says why a statement failed. */
static void
print_failure(const char *command, PGconn *connection, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	if (sqlstate != NULL && strcmp(sqlstate, INVALID_MANIFEST) == 0 &&
		manifest_files_print_faults(detail))
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
 * Tried again while the tables are in use; NULL after a line on stderr.  What
 * only looks at the database does so beside another apply.
 */
static PGresult *
run(PGconn *connection, const char *sql, int count, const char *const *values,
	const struct apply_options *options)
{
	struct retry retry = {.limit = options->wait};
	PGresult   *result = NULL;

	do
	{
		PQclear(result);
		if (!options->dry_run && !steps_claim(connection, NULL))
			return NULL;
		result = PQexecParams(connection, sql, count, NULL, values, NULL,
							  NULL, 0);
	} while (retry_lock(&retry, result));
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return result;
	print_failure("apply", connection, result);
	PQclear(result);
	return NULL;
}

/* The transaction; sound: the tables are what is declared. */
static bool
apply_documents(PGconn *connection, const char *documents,
				const struct apply_options *options, bool *later, bool *sound)
{
	char		sql[sizeof(APPLY_SQL) + 32];
	const char *values[3] = {documents, options->dry_run ? "true" : "false",
	options->data_loss.data};
	PGresult   *result;

	snprintf(sql, sizeof(sql), APPLY_SQL,
			 options->repair ? "repair_and_apply" : "apply_manifest");
	result = run(connection, sql, 3, values, options);
	if (result == NULL)
		return false;
	*later = print_plan(result, options->dry_run);
	*sound = !is_adrift(result);
	PQclear(result);
	return true;
}

static bool
compare_rights(PGconn *connection, const char *documents,
			   const struct apply_options *options)
{
	const char *values[2] = {documents, options->data_loss.data};
	PGresult   *result = run(connection, RIGHTS_SQL, 2, values, options);

	if (result == NULL)
		return false;
	rights_print(result);
	PQclear(result);
	return true;
}

/* documents: NULL to go on with what is pending. */
static int
apply(const struct config *config, const char *documents,
	  const struct apply_options *options)
{
	PGconn	   *connection = command_connect("apply", config);
	bool		later = options->resume;
	bool		sound = true;
	bool		fine = true;

	if (connection == NULL)
		return 1;
	if (documents != NULL)
		fine = apply_documents(connection, documents, options, &later,
							   &sound);
	if (fine && options->rights)
		fine = compare_rights(connection, documents, options);
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
			status = manifest_files_read(&options.files, &documents) ?
				apply(config, documents.data, &options) : 1;
	}

	manifest_files_free(&options.files);
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
	connection = command_connect("openapi", config);
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
