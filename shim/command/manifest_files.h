/*
 * Manifest files: found, read, and told what is wrong with them.
 */
#ifndef MANIFEST_FILES_H
#define MANIFEST_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Files found, each with how it is called in "source". */
struct manifest_files
{
	char	  **paths;
	size_t	   *label_offsets;
	size_t		count;
};

/* Adds a file, or the manifests of a folder; false after a line on stderr. */
extern bool manifest_files_add(struct manifest_files *files,
							   const char *path);

/*
 * All documents of all files as a JSON array; false after a line on stderr
 * for each fault.
 */
extern bool manifest_files_read(const struct manifest_files *files,
								struct buffer *array);

extern void manifest_files_free(struct manifest_files *files);

/*
 * A line on stderr for each fault of an array as apply_manifest() has it in
 * the DETAIL of its refusal; false if there is none.
 */
extern bool manifest_files_print_faults(const char *array);

#endif							/* MANIFEST_FILES_H */
