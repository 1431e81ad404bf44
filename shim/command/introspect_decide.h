/*
 * The part of a database that is served, and why the rest is not.
 */
#ifndef INTROSPECT_DECIDE_H
#define INTROSPECT_DECIDE_H

#include "command/introspect_catalog.h"
#include "command/introspect_options.h"

/* Marks the tables that are asked for; false after a line on stderr. */
extern bool introspect_decide_wanted(struct introspect_catalog *catalog,
									 const struct introspect_options *options);

/*
 * The role that statements on the tables would run as: the one that is named,
 * else their owner; NULL where only superusers own them.
 */
extern const char *introspect_decide_role(const struct introspect_catalog *
										  catalog,
										  const struct introspect_options *
										  options);

/*
 * Tables of the service's own role are served without "existing", which names
 * another.
 */
extern bool introspect_decide_is_own(const struct introspect_catalog *catalog);

/* The tables are an application's. */
extern bool introspect_decide_of_application(const struct introspect_catalog *
											 catalog);

/* Why a table is not served of which nothing tells one row from another */
extern const char introspect_no_key[];

/* Tables, keys and columns; the role is known. */
extern void introspect_decide_tables(struct introspect_catalog *catalog,
									 const struct introspect_options *options);

#endif							/* INTROSPECT_DECIDE_H */
