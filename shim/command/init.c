/*
 * What they write are files of the sources, and part of the program as they
 * are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "command/help.h"
#include "command/init.h"

/* The bytes of a file, and a NUL; the Makefile knows that they are used. */
#define EMBED(name, path) \
	__asm__(".section .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n" \
			".text\n"); \
	extern const char name[] __attribute__((visibility("hidden")))

EMBED(embedded_schema, "command/manifest.schema.json");
EMBED(embedded_first, "command/first.yaml");

/* Manifests are not looked for in hidden files. */
static const struct
{
	const char *name;
	const char *text;
}			files[] =
{
	{"manifests.yaml", embedded_first},
	{".entityapi.schema.json", embedded_schema}
};

static bool
write_file(const char *path, const char *text)
{
	int			descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL |
								  O_CLOEXEC, 0666);
	FILE	   *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
	bool		fine = file != NULL;

	if (fine)
		fine = fputs(text, file) != EOF;
	if (file != NULL)
		fine = fclose(file) == 0 && fine;
	if (!fine)
		fprintf(stderr, "entityapi-shim init: %s: %s\n", path,
				strerror(errno));
	else
		puts(path);
	return fine;
}

int
init_command(const struct config *config, int argc, char **argv)
{
	struct buffer path = {0};
	bool		fine;
	size_t		i;

	(void) config;
	if (argc > 0 && argv[0][0] == '-')
		return help_unknown_option("init", argv[0]);
	if (argc != 1)
	{
		fprintf(stderr, "entityapi-shim init: one folder is to be named\n");
		return 2;
	}
	fine = mkdir(argv[0], 0777) == 0 || errno == EEXIST;
	if (!fine)
		fprintf(stderr, "entityapi-shim init: %s: %s\n", argv[0],
				strerror(errno));
	for (i = 0; i < sizeof(files) / sizeof(files[0]) && fine; i++)
	{
		buffer_clear(&path);
		buffer_printf(&path, "%s/%s", argv[0], files[i].name);
		fine = !path.failed && write_file(path.data, files[i].text);
	}
	buffer_free(&path);
	return fine ? 0 : 1;
}

int
schema_command(const struct config *config, int argc, char **argv)
{
	(void) config;
	if (argc > 0)
		return help_unknown_option("schema", argv[0]);
	fputs(embedded_schema, stdout);
	return 0;
}
