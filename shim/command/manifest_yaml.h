/*
 * Manifest files, YAML or JSON, as one JSON array of documents.
 *
 * Each document gets a member "source", "<label>#<number>", as its first one,
 * so that the database can say where a fault is.  Numbers keep all their
 * digits: they go from text to text.
 */
#ifndef MANIFEST_YAML_H
#define MANIFEST_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* A file that was read: how to call it in messages and in "source". */
struct manifest_file
{
	const char *path;
	const char *label;
	const char *text;
	size_t		length;
};

/*
 * Appends the documents of a YAML file, by the core schema of YAML 1.2,
 * comma-separated, to "documents".  Returns false after writing the first
 * fault, with file and line, to stderr.
 */
extern bool manifest_yaml_read(const struct manifest_file *file,
							   struct buffer *documents);

#endif							/* MANIFEST_YAML_H */
