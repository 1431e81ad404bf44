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
	char	   *faults;			/* a JSON array, as in apply_manifest()'s
								 * refusal; NULL: none, or out of memory */
	char	   *error;			/* why no answer could be found, or NULL */
	bool		failed;			/* any of both */
};

/*
 * All faults of documents (a JSON array) but those that need a server.
 * Warnings go to stderr.  One at a time; the findings are freed by the second.
 */
extern void standin_check(const char *documents, size_t length,
						  struct manifest_findings *findings);
extern void standin_check_free(struct manifest_findings *findings);

#endif							/* CHECK_H */
