/*
 * The extension's checks of manifests, without a server.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* What was found in documents. */
struct manifest_findings
{
	size_t		documents;
	size_t		entities;
	bool		patterns;		/* there are some, not checked here */
	const char *faults;			/* a JSON array, as in apply_manifest()'s
								 * refusal; NULL: none */
};

/*
 * All faults of documents (a JSON array) but those that need a server.
 * Warnings go to stderr.  To be called once: the memory that it takes is the
 * program's to the end, and where no answer can be found it ends the program.
 */
extern void standin_check(const char *documents, size_t length,
						  struct manifest_findings *findings);

#endif							/* CHECK_H */
