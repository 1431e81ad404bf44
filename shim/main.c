/*
 * The command line of entityapi-shim.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/needs.h"
#include "command/apply.h"
#include "config/load.h"
#include "serve/server.h"

static const char usage[] =
"entityapi-shim: a JSON:API service over PostgreSQL, its HTTP side\n"
"\n"
"  entityapi-shim serve [--config FILE] [--print-config] [SETTING...]\n"
"  entityapi-shim apply DIR|FILE... [--dry-run] [--allow-data-loss NAME]...\n"
"                       [--wait SECONDS] [--defer]\n"
"  entityapi-shim apply --resume [--wait SECONDS]\n"
"  entityapi-shim openapi [VERSION]\n"
"  entityapi-shim --help | --version\n"
"\n"
"serve answers HTTP until SIGTERM; SIGHUP reads the configuration again.\n"
"apply makes the database what the manifests (YAML or JSON) declare, and\n"
"prints what it did. Tables that are in use are tried again for --wait (60)\n"
"seconds. Indexes of tables that hold rows, and checks of their rows, come\n"
"after the transaction, one by one; --defer leaves them for a later\n"
"--resume, which also goes on after an interruption.\n"
"openapi prints the description of the API.\n"
"\n"
"A setting is a flag, a variable (--pool-size, ENTITYAPI_POOL_SIZE) or a\n"
"member of the JSON file (pool_size); the first of these counts. Secrets may\n"
"come from a file: --database-file, ENTITYAPI_DATABASE_FILE, database_file.\n"
"\n"
"Settings:\n";

static int
serve_command(const struct config_source *source, struct config *config,
			  int argc, char **argv)
{
	struct buffer text = {0};

	if (argc == 0)
		return server_run(source, config);
	if (argc > 1 || strcmp(argv[0], "--print-config") != 0)
	{
		fprintf(stderr, "entityapi-shim serve: unknown argument %s\n",
				argv[strcmp(argv[0], "--print-config") == 0 ? 1 : 0]);
		config_free(config);
		return 2;
	}
	config_print(config, &text);
	fputs(text.data ? text.data : "", stdout);
	buffer_free(&text);
	config_free(config);
	return 0;
}

static int
help_command(FILE *stream)
{
	struct buffer text = {0};

	buffer_string(&text, usage);
	config_help(&text);
	fputs(text.data ? text.data : "", stream);
	buffer_free(&text);
	return stream == stdout ? 0 : 2;
}

int
main(int argc, char **argv)
{
	struct config_source source = {0};
	struct config *config = NULL;
	const char *command = argc > 1 ? argv[1] : "";
	int			status = 2;

	if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0)
		return help_command(stdout);
	if (strcmp(command, "--version") == 0)
	{
		puts("entityapi-shim " SHIM_VERSION);
		return 0;
	}
	if (strcmp(command, "serve") != 0 && strcmp(command, "apply") != 0 &&
		strcmp(command, "openapi") != 0)
		return help_command(stderr);

	argc -= 2;
	argv += 2;
	if (config_parse_flags(&argc, argv, &source))
		config = config_load(&source);
	if (config != NULL && strcmp(command, "serve") == 0)
		status = serve_command(&source, config, argc, argv);
	else if (config != NULL)
	{
		status = strcmp(command, "apply") == 0 ?
			apply_command(config, argc, argv) :
			openapi_command(config, argc, argv);
		config_free(config);
	}
	config_source_free(&source);
	return status;
}
