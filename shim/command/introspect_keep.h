/*
 * People's additions to a manifest stay: introspect compares what it knows,
 * and no more.
 */
#ifndef INTROSPECT_KEEP_H
#define INTROSPECT_KEEP_H

#include <stdbool.h>

#include "command/introspect_folder.h"
#include "command/introspect_memory.h"
#include "command/introspect_write.h"

/*
 * The text of a file that is there with all in it that introspect would write
 * otherwise.  Spelling, order and members that it does not write are as they
 * were, and so are relationships with entities that have no table of others.
 */
extern void introspect_keep(struct memory *memory,
							const struct introspect_folder *folder,
							const char *old, size_t length,
							struct introspect_file *file);

#endif							/* INTROSPECT_KEEP_H */
