/*
 * The manifests of a database, as texts.
 */
#ifndef INTROSPECT_WRITE_H
#define INTROSPECT_WRITE_H

#include "command/introspect_catalog.h"
#include "command/introspect_options.h"

/* The files that are no tables' */
#define SERVICE_FILE "service.yaml"
#define ROLES_FILE "roles.yaml"

/* A file, and of which table it is; NULL: of none. */
struct introspect_file
{
	char	   *name;
	char	   *text;
	size_t		length;
	const struct introspect_table *table;
};

struct introspect_files
{
	struct introspect_file *files;
	size_t		count;
};

extern void introspect_write(struct introspect_catalog *catalog,
							 const struct introspect_options *options,
							 struct introspect_files *files);

#endif							/* INTROSPECT_WRITE_H */
