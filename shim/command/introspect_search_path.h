/*
 * The schemas in which an application's code finds its tables.
 */
#ifndef INTROSPECT_SEARCH_PATH_H
#define INTROSPECT_SEARCH_PATH_H

#include "command/introspect_catalog.h"

/*
 * Appends `, searchPath: [...]`: what is set for the role or the database,
 * else what PostgreSQL takes, as far as it is there.  Where nobody has set
 * one and none of it has a table, the application's sessions set it: the
 * schema of most tables comes first.
 */
extern void introspect_search_path_write(struct buffer *out,
										 const struct introspect_catalog *
										 catalog);

#endif							/* INTROSPECT_SEARCH_PATH_H */
