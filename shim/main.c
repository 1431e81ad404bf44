/*
 * The command line of entityapi-shim.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/needs.h"
#include "command/apply.h"
#include "command/help.h"
#include "config/load.h"
#include "serve/server.h"

/* Each returns the exit status, and frees the configuration. */
typedef int (*command_function) (const struct config_source *source,
								 struct config *config, int argc,
								 char **argv);

static int
run_serve(const struct config_source *source, struct config *config,
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

static int
run_apply(const struct config_source *source, struct config *config,
		  int argc, char **argv)
{
	int			status = apply_command(config, argc, argv);

	(void) source;
	config_free(config);
	return status;
}

static int
run_openapi(const struct config_source *source, struct config *config,
			int argc, char **argv)
{
	int			status = openapi_command(config, argc, argv);

	(void) source;
	config_free(config);
	return status;
}

static const struct
{
	const char *name;
	command_function run;
}			commands[] =
{
	{"serve", run_serve},
	{"apply", run_apply},
	{"openapi", run_openapi}
};

static command_function
find_command(const char *name)
{
	size_t		i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run;
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	struct config_source source = {0};
	struct config *config = NULL;
	const char *command = argc > 1 ? argv[1] : "";
	command_function run = find_command(command);
	int			status = 2;

	if (*command == '\0')
		return help_all(stderr);
	if (strcmp(command, "--version") == 0)
	{
		puts("entityapi-shim " SHIM_VERSION);
		return 0;
	}
	if (strcmp(command, "help") == 0 && argc > 2 && find_command(argv[2]))
		return help_command(argv[2]);
	if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
		strcmp(command, "help") == 0)
		return help_all(stdout);
	if (run == NULL)
		return help_unknown_command(command);

	argc -= 2;
	argv += 2;
	if (help_is_asked(argc, argv))
		return help_command(command);
	if (config_parse_flags(&argc, argv, &source))
		config = config_load(&source);
	if (config != NULL)
		status = run(&source, config, argc, argv);
	config_source_free(&source);
	return status;
}
