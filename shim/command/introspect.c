/*
 * The database is asked in one transaction that only reads; what is made of
 * the answers needs none.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "command/connect.h"
#include "command/help.h"
#include "command/introspect.h"
#include "command/introspect_catalog.h"
#include "command/introspect_decide.h"
#include "command/introspect_folder.h"
#include "command/introspect_links.h"
#include "command/introspect_names.h"
#include "command/introspect_options.h"
#include "command/introspect_report.h"
#include "command/introspect_write.h"

#define NAME "introspect"
#define BEGIN_SQL "begin isolation level repeatable read read only"

/* -------- Ctrl-C -------- */

static volatile bool interrupted;
static PGcancel *volatile cancel;

static void
interrupt(int signal_number)
{
	char		ignored[256];

	(void) signal_number;
	interrupted = true;
	if (cancel != NULL)
		PQcancel(cancel, ignored, sizeof(ignored));
}

/* While a connection is used, its statement ends with us. */
static void
begin_interrupts(PGconn *connection)
{
	struct sigaction action = {.sa_handler = interrupt};

	cancel = PQgetCancel(connection);
	sigaction(SIGINT, &action, NULL);
}

static void
end_connection(PGconn *connection)
{
	PGcancel   *ended = cancel;

	cancel = NULL;
	PQfreeCancel(ended);
	PQfinish(connection);
}

/* -------- options -------- */

/*
 * The value of an option that may follow it, or stand behind "=".  NULL: it is
 * another one, or has none.
 */
static char *
value_of(const char *option, int argc, char **argv, int *at)
{
	size_t		length = strlen(option);

	if (strncmp(argv[*at], option, length) != 0)
		return NULL;
	if (argv[*at][length] == '=')
		return argv[*at] + length + 1;
	if (argv[*at][length] != '\0' || *at + 1 >= argc)
		return NULL;
	return argv[++*at];
}

static bool
parse_timestamps(struct introspect_options *options, const char *value)
{
	options->utc = strcmp(value, "utc") == 0;
	if (options->utc || strcmp(value, "local") == 0)
		return true;
	fprintf(stderr, "entityapi-shim introspect: --timestamps takes utc or "
			"local\n");
	return false;
}

static bool
set_mode(struct introspect_options *options, enum introspect_mode mode)
{
	if (options->mode != INTROSPECT_WRITE && options->mode != mode)
	{
		fprintf(stderr, "entityapi-shim introspect: --update and --check "
				"exclude each other\n");
		return false;
	}
	options->mode = mode;
	return true;
}

/* The next option, or the folder. */
static bool
parse_option(struct introspect_options *options, int argc, char **argv,
			 int *at)
{
	char	   *value;

	if (strcmp(argv[*at], "--update") == 0)
		return set_mode(options, INTROSPECT_UPDATE);
	if (strcmp(argv[*at], "--check") == 0)
		return set_mode(options, INTROSPECT_CHECK);
	if ((value = value_of("--schema", argc, argv, at)) != NULL)
		options->schemas[options->schema_count++] = value;
	else if ((value = value_of("--table", argc, argv, at)) != NULL)
		options->tables[options->table_count++] = value;
	else if ((value = value_of("--role", argc, argv, at)) != NULL)
		options->role = value;
	else if ((value = value_of("--tenant", argc, argv, at)) != NULL)
		options->tenant = value;
	else if ((value = value_of("--timestamps", argc, argv, at)) != NULL)
		return parse_timestamps(options, value);
	else if (argv[*at][0] == '-')
		return help_unknown_option(NAME, argv[*at]) == 0;
	else if (options->folder != NULL || argv[*at][0] == '\0')
	{
		fprintf(stderr, "entityapi-shim introspect: one folder is to be "
				"named\n");
		return false;
	}
	else
		options->folder = argv[*at];
	return true;
}

static bool
parse_options(struct introspect_options *options, struct memory *memory,
			  int argc, char **argv)
{
	options->schemas = memory_array(memory, argc, sizeof(char *));
	options->tables = memory_array(memory, argc, sizeof(char *));
	for (int i = 0; i < argc; i++)
	{
		if (!parse_option(options, argc, argv, &i))
			return false;
	}
	if (options->folder == NULL)
		fprintf(stderr, "entityapi-shim introspect: a folder is to be "
				"named\n");
	return options->folder != NULL;
}

/* -------- the command -------- */

static bool
begin_snapshot(PGconn *connection)
{
	PGresult   *result = PQexec(connection, BEGIN_SQL);
	bool		fine = PQresultStatus(result) == PGRES_COMMAND_OK;

	if (!fine)
		fprintf(stderr, "entityapi-shim introspect: %s",
				PQerrorMessage(connection));
	PQclear(result);
	return fine;
}

static bool
read_database(struct introspect_catalog *catalog, const struct config *config,
			  const struct introspect_options *options)
{
	PGconn	   *connection = command_connect(NAME, config);
	const char *role;
	bool		fine;

	if (connection == NULL)
		return false;
	begin_interrupts(connection);
	fine = begin_snapshot(connection) &&
		introspect_catalog_read(catalog, connection) &&
		introspect_decide_wanted(catalog, options);
	role = fine ? introspect_decide_role(catalog, options) : NULL;
	if (role != NULL)
		fine = introspect_catalog_read_role(catalog, connection, role);
	end_connection(connection);
	return fine;
}

static int
introspect(const struct config *config,
		   const struct introspect_options *options, struct memory *memory)
{
	struct introspect_catalog catalog = {.memory = memory};
	struct introspect_folder folder = {0};
	struct introspect_files files = {0};
	int			status = 1;

	if (read_database(&catalog, config, options) &&
		introspect_folder_read(&folder, options, &catalog))
	{
		introspect_decide_tables(&catalog, options);
		introspect_links_decide(&catalog, options);
		introspect_names_give(&catalog);
		introspect_write(&catalog, options, &files);
		status = introspect_folder_write(&folder, options, &files,
										 &interrupted);
		if (interrupted)
		{
			fprintf(stderr, "entityapi-shim introspect: interrupted\n");
			status = 1;
		}
		else if (status == 0 || options->mode == INTROSPECT_CHECK)
			introspect_report(&catalog);
	}
	introspect_catalog_free(&catalog);
	return status;
}

int
introspect_command(const struct config *config, int argc, char **argv)
{
	struct introspect_options options = {0};
	struct memory memory = {0};
	int			status = 2;

	if (parse_options(&options, &memory, argc, argv))
		status = introspect(config, &options, &memory);
	memory_free(&memory);
	return status;
}
