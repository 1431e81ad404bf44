/*
 * The folder of manifests: what is there, and what comes into it.
 */
#ifndef INTROSPECT_FOLDER_H
#define INTROSPECT_FOLDER_H

#include "command/introspect_catalog.h"
#include "command/introspect_options.h"
#include "command/introspect_write.h"

/* What the manifests of the folder declare. */
struct introspect_folder
{
	const char *path;
	struct memory *memory;
	const char *service;		/* the file of Service, or NULL */
	const char *roles;			/* and of the role */
	bool		has_roles;		/* some that people have declared */
	struct introspect_declared *entities;	/* with a table */
	size_t		entity_count;
};

/* An entity that a file of the folder declares. */
struct introspect_declared
{
	const char *file;
	bool		is_alone;		/* the file, of YAML, has nothing else */
	const char *entity;
	const char *collection;		/* NULL: it follows from the entity */
	char	   *schema;
	char	   *name;			/* of its table */
	struct introspect_table *table; /* NULL: there is none */
};

/* False after a line on stderr. */
extern bool introspect_folder_read(struct introspect_folder *folder,
								   const struct introspect_options *options,
								   struct introspect_catalog *catalog);

/*
 * Writes the files, or shows what differs; the exit status.  Nothing that
 * exists is written.
 */
extern int	introspect_folder_write(const struct introspect_folder *folder,
									const struct introspect_options *options,
									const struct introspect_files *files,
									volatile bool *interrupted);

#endif							/* INTROSPECT_FOLDER_H */
