#include <stdio.h>

#include "base/buffer.h"
#include "command/help.h"
#include "command/manifest_files.h"
#include "command/validate.h"
#include "standin/check.h"

static const char *
plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static int
validate(const struct buffer *documents)
{
	struct manifest_findings findings;

	standin_check(documents->data, documents->length, &findings);
	if (findings.faults == NULL)
		printf("no fault in %zu document%s, %zu of them entit%s\n",
			   findings.documents, plural(findings.documents),
			   findings.entities, findings.entities == 1 ? "y" : "ies");
	else if (!manifest_files_print_faults(findings.faults))
		fprintf(stderr, "entityapi-shim validate: out of memory\n");
	if (findings.patterns)
		printf("patterns are not checked here, but by apply and "
			   "apply --dry-run\n");
	return findings.faults == NULL ? 0 : 1;
}

int
validate_command(const struct config *config, int argc, char **argv)
{
	struct manifest_files files = {0};
	struct buffer documents = {0};
	int			status = 0;

	(void) config;
	for (int i = 0; i < argc && status == 0; i++)
	{
		if (argv[i][0] == '-')
			status = help_unknown_option("validate", argv[i]);
		else if (!manifest_files_add(&files, argv[i]))
			status = 2;
	}
	if (status == 0 && files.count == 0)
	{
		fprintf(stderr, "entityapi-shim validate: no manifest found\n");
		status = 2;
	}
	if (status == 0)
		status = manifest_files_read(&files, &documents) ?
			validate(&documents) : 1;
	manifest_files_free(&files);
	buffer_free(&documents);
	return status;
}
