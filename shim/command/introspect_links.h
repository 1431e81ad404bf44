/*
 * What ties tables together: references, join tables, and rows that go along
 * with others unseen.
 */
#ifndef INTROSPECT_LINKS_H
#define INTROSPECT_LINKS_H

#include "command/introspect_catalog.h"
#include "command/introspect_options.h"

/* Is the table an entity, and not only a join table or left out? */
extern bool introspect_links_has_entity(const struct introspect_table *table);

/* Join tables, then references; tables are decided. */
extern void introspect_links_decide(struct introspect_catalog *catalog,
									const struct introspect_options *options);

/* Is there a unique index over these columns, and no others but the tenant? */
extern bool introspect_links_is_unique(const struct introspect_table *table,
									   const int *columns, int count);

/*
 * The tables of which rows go, or change, with rows of this one by keys that
 * are no references here: all that such a key passes on, too.  Returns their
 * number, and them.
 */
extern int	introspect_links_unseen(struct introspect_catalog *catalog,
									const struct introspect_table *table,
									const struct introspect_table ***unseen);

#endif							/* INTROSPECT_LINKS_H */
