#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/nearest.h"
#include "command/help.h"
#include "config/load.h"

#define MOST_OPTIONS 8

struct option
{
	const char *name;			/* NULL ends the list */
	const char *value;			/* what follows it, or NULL */
	const char *help;
};

struct command
{
	const char *name;
	const char *arguments;		/* ways to call it, a line each */
	const char *help;			/* what it does, the first line in short */
	struct option options[MOST_OPTIONS];
};

static const struct command commands[] =
{
	{"serve", "[--config FILE] [--print-config] [SETTING...]\n",
		"answers HTTP until SIGTERM\n"
		"SIGHUP reads the configuration file again.\n",
		{{"--print-config", NULL,
	"prints the settings that hold, as a JSON object, and ends"}}},
	{"apply", "DIR|FILE... [--dry-run [--rights]] [--repair]\n"
		"\t[--allow-data-loss NAME]... [--wait SECONDS] [--defer]\n"
		"\t[SETTING...]\n"
		"--resume [--wait SECONDS] [SETTING...]\n",
		"makes the database what the manifests declare\n"
		"Manifests are YAML or JSON; what was done is printed. Indexes of\n"
		"tables that hold rows, and checks of their rows, come after the\n"
		"transaction, one by one. Tables that are not as they were made are\n"
		"named, and the command ends with 1.\n",
		{{"--dry-run", NULL, "prints what would be done, and changes nothing"},
		{"--rights", NULL,
			"and what each role would gain and lose: operations, fields, and "
		"how many rows it reads before and after"},
		{"--allow-data-loss", "NAME",
		"an entity, Entity.field, Roles/name or SecurityAttributes/name whose "
		"data may be lost; may be repeated"},
		{"--repair", NULL,
			"makes dropped or altered objects again, as far as no rows stand "
		"against it"},
		{"--wait", "SECONDS",
		"for how long tables that are in use are tried again (default 60)"},
		{"--defer", NULL,
		"leaves what comes after the transaction for a later --resume"},
	{"--resume", NULL, "goes on with the steps that an earlier one left"}}},
	{"openapi", "[VERSION] [SETTING...]\n",
		"prints the description of the API\n"
	"Of a version of it, 1 if none is named.\n",
	{{NULL, NULL, NULL}}},
	{"validate", "DIR|FILE...\n",
		"reports all faults of manifests that need no database to be found\n"
		"It does so in the words of apply, by the same checks, and asks no\n"
		"server. It leaves to apply --dry-run what depends on the database:\n"
		"what has been applied, rows, tables of others, functions of hooks,\n"
		"and patterns, which only the server compiles. Ends with 0 if there\n"
	"is no fault, with 1 if there is one.\n",
	{{NULL, NULL, NULL}}},
	{"diff", "OLD NEW\n",
		"shows what two sets of manifests declare differently\n"
		"Each is a folder or a file; no database is asked. Ends with 0 if\n"
	"there is no difference, with 1 if there is one.\n",
	{{NULL, NULL, NULL}}},
	{"init", "DIR\n",
		"writes a first manifest, with comments, into a folder\n"
	"The schema for editors comes beside it. No file is overwritten.\n",
	{{NULL, NULL, NULL}}},
	{"introspect", "[--schema NAME]... [--table NAME]... [--role ROLE]\n"
		"\t[--tenant COLUMN] [--timestamps utc|local]\n"
		"\t[--update|--check] DIR [SETTING...]\n",
		"writes manifests of a database that others made\n"
		"All tables but the system's are looked at, in one snapshot, and\n"
		"nothing is changed. Each gets a file with an entity that a role may\n"
		"read. The service does not serve all that there is: what is left\n"
		"out is named with the reason. No file is overwritten.\n",
		{{"--schema", "NAME", "only tables of this schema; may be repeated"},
		{"--table", "NAME",
		"only this table, schema.name or a name alone; may be repeated"},
		{"--role", "ROLE",
		"as which the tables are read and written, if not as their owner"},
		{"--tenant", "COLUMN",
		"tables with this column belong to tenants by it"},
		{"--timestamps", "utc|local",
			"what times without zone are: in UTC, or what they are (default "
		"local)"},
		{"--update", NULL,
			"writes the files of new tables, and prints what else differs, "
		"for patch -p0 -d DIR"},
		{"--check", NULL,
	"writes nothing, and ends with 1 if something differs"}}},
	{"schema", "\n",
		"prints the JSON Schema of manifests\n"
		"An editor's YAML server takes it by a first line such as\n"
	"# yaml-language-server: $schema=.entityapi.schema.json\n",
	{{NULL, NULL, NULL}}}
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* All commands take settings; most need nothing but the database's. */
static const char settings_text[] =
"A setting is a flag, a variable (--pool-size, ENTITYAPI_POOL_SIZE) or a\n"
"member of the JSON file (pool_size); the first of these counts. Secrets may\n"
"come from a file: --database-file, ENTITYAPI_DATABASE_FILE, database_file.\n";

static const struct option common[] =
{
	{"--config", "FILE", "a JSON file with settings; also ENTITYAPI_CONFIG"},
	{"--help", NULL, "shows this"},
	{NULL, NULL, NULL}
};

static const struct command *
find_command(const char *name)
{
	size_t		i;

	for (i = 0; i < COMMAND_COUNT; i++)
	{
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* The ways to call a command; what begins with a tab goes on. */
static void
add_usage(struct buffer *out, const struct command *command)
{
	const char *line = command->arguments;

	while (*line != '\0')
	{
		const char *end = strchr(line, '\n');

		if (*line == '\t')
			buffer_printf(out, "                       %.*s\n",
						  (int) (end - line - 1), line + 1);
		else
			buffer_printf(out, "  entityapi-shim %s%s%.*s\n", command->name,
						  end > line ? " " : "", (int) (end - line), line);
		line = end + 1;
	}
}

static void
add_options(struct buffer *out, const struct option *option)
{
	for (; option->name != NULL; option++)
		buffer_printf(out, "  %s%s%s\n        %s\n", option->name,
					  option->value ? " " : "",
					  option->value ? option->value : "", option->help);
}

static void
add_settings(struct buffer *out)
{
	buffer_string(out, "\nSettings:\n");
	config_help(out);
}

/* Prints and frees. */
static void
print(struct buffer *text, FILE *stream)
{
	fputs(text->data ? text->data : "", stream);
	buffer_free(text);
}

int
help_all(FILE *stream)
{
	struct buffer text = {0};
	size_t		i;

	buffer_string(&text, "entityapi-shim: a JSON:API service over PostgreSQL, "
				  "its HTTP side\n\n");
	for (i = 0; i < COMMAND_COUNT; i++)
	{
		add_usage(&text, &commands[i]);
		buffer_printf(&text, "        %.*s\n",
					  (int) strcspn(commands[i].help, "\n"), commands[i].help);
	}
	buffer_string(&text, "  entityapi-shim COMMAND --help\n"
				  "        shows more of a command\n"
				  "  entityapi-shim --version\n\n");
	buffer_string(&text, settings_text);
	add_settings(&text);
	print(&text, stream);
	return stream == stdout ? 0 : 2;
}

int
help_command(const char *name)
{
	const struct command *command = find_command(name);
	const char *rest = command->help + strcspn(command->help, "\n") + 1;
	struct buffer text = {0};

	add_usage(&text, command);
	buffer_printf(&text, "\n%s %.*s.\n%s\nOptions:\n", name,
				  (int) (rest - command->help - 1), command->help, rest);
	add_options(&text, command->options);
	add_options(&text, common);
	buffer_printf(&text, "\n%s", settings_text);
	add_settings(&text);
	print(&text, stdout);
	return 0;
}

int
help_is_asked(int argc, char **argv)
{
	int			i;

	for (i = 0; i < argc; i++)
	{
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return 1;
	}
	return 0;
}

/* Ends a line on stderr. */
static void
suggest(const struct nearest *nearest)
{
	if (nearest->best[0] != '\0')
		fprintf(stderr, "; did you mean %s?", nearest->best);
	fputc('\n', stderr);
}

int
help_unknown_command(const char *word)
{
	struct nearest nearest;
	size_t		i;

	nearest_begin(&nearest, word, strlen(word));
	for (i = 0; i < COMMAND_COUNT; i++)
		nearest_offer(&nearest, commands[i].name);
	fprintf(stderr, "entityapi-shim: unknown command %s", word);
	suggest(&nearest);
	fputs("entityapi-shim --help shows all of them\n", stderr);
	return 2;
}

/* The option that is called exactly so, or NULL; all are offered. */
static const struct option *
offer_options(struct nearest *nearest, const struct option *option)
{
	const struct option *same = NULL;

	for (; option->name != NULL; option++)
	{
		nearest_offer(nearest, option->name);
		if (strlen(option->name) == nearest->length &&
			strncmp(option->name, nearest->word, nearest->length) == 0)
			same = option;
	}
	return same;
}

int
help_unknown_option(const char *name, const char *argument)
{
	const struct option *same;
	struct nearest nearest;

	nearest_begin(&nearest, argument, strcspn(argument, "="));
	same = offer_options(&nearest, find_command(name)->options);
	if (same != NULL)
	{
		fprintf(stderr, "entityapi-shim %s: %s %s\n", name, same->name,
				same->value ? "needs a value" :
				argument[nearest.length] == '=' ? "takes no value" :
				"is given twice");
		return 2;
	}
	offer_options(&nearest, common);
	config_offer_flags(&nearest);
	fprintf(stderr, "entityapi-shim %s: unknown argument %s", name, argument);
	suggest(&nearest);
	return 2;
}
