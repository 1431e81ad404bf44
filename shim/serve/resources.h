/*
 * What the process takes from the system: memory and descriptors.
 */
#ifndef RESOURCES_H
#define RESOURCES_H

#include "base/config.h"

/* Before anything else. */
extern void resources_prepare(void);

/*
 * How many connections of clients there is room for, of those that the
 * configuration wants; says so in the log if that is fewer.
 */
extern long resources_connections(const struct config *config);

#endif							/* RESOURCES_H */
