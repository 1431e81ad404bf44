/*
 * The command line of entityapi-shim.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/needs.h"
#include "command/apply.h"
#include "command/diff.h"
#include "command/help.h"
#include "command/init.h"
#include "command/introspect.h"
#include "command/validate.h"
#include "config/load.h"
#include "serve/server.h"

/* The commands that end; each returns the exit status. */
static const struct command
{
	const char *name;
	int			(*run) (const struct config *config, int argc, char **argv);
}			commands[] =
{
	{"apply", apply_command},
	{"openapi", openapi_command},
	{"validate", validate_command},
	{"diff", diff_command},
	{"init", init_command},
	{"introspect", introspect_command},
	{"schema", schema_command},
	{"serve", NULL}
};

static const struct command *
find_command(const char *name)
{
	size_t		i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* Frees the configuration. */
static int
serve_command(const struct config_source *source, struct config *config,
			  int argc, char **argv)
{
	struct buffer text = {0};
	bool		print = argc > 0 && strcmp(argv[0], "--print-config") == 0;

	if (argc == 0)
		return server_run(source, config);
	if (argc == 1 && print)
	{
		config_print(config, &text);
		fputs(text.data ? text.data : "", stdout);
		buffer_free(&text);
	}
	config_free(config);
	return argc == 1 && print ? 0 :
		help_unknown_option("serve", argv[print ? 1 : 0]);
}

int
main(int argc, char **argv)
{
	struct config_source source = {0};
	struct config *config = NULL;
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command = find_command(name);
	int			status = 2;

	if (*name == '\0')
		return help_all(stderr);
	if (strcmp(name, "--version") == 0)
	{
		puts("entityapi-shim " SHIM_VERSION);
		return 0;
	}
	if (strcmp(name, "help") == 0 && argc > 2 && find_command(argv[2]))
		return help_command(argv[2]);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
		strcmp(name, "help") == 0)
		return help_all(stdout);
	if (command == NULL)
		return help_unknown_command(name);

	argc -= 2;
	argv += 2;
	if (help_is_asked(argc, argv))
		return help_command(name);
	if (config_parse_flags(&argc, argv, &source))
		config = config_load(&source);
	if (config != NULL && command->run == NULL)
		status = serve_command(&source, config, argc, argv);
	else if (config != NULL)
	{
		status = command->run(config, argc, argv);
		config_free(config);
	}
	config_source_free(&source);
	return status;
}
