/*
 * The schemas in which an application's code finds its tables.
 */
#ifndef INTROSPECT_SEARCH_PATH_H
#define INTROSPECT_SEARCH_PATH_H

#include "command/introspect_catalog.h"

/*
 * Appends `, searchPath: [...]`: what is set for the role or the database,
 * else what PostgreSQL takes; schemas that have a table only.
 */
extern void introspect_search_path_write(struct buffer *out,
										 const struct introspect_catalog *
										 catalog);

#endif							/* INTROSPECT_SEARCH_PATH_H */
