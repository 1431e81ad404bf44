/*
 * The command introspect: manifests of a database that others made.
 */
#ifndef INTROSPECT_H
#define INTROSPECT_H

#include "base/config.h"

/*
 * introspect [--schema S]... [--table T]... [--role R] [--tenant COLUMN]
 *		 [--timestamps utc|local] [--update|--check] DIR
 * Returns the exit status of the process.
 */
extern int	introspect_command(const struct config *config, int argc,
							   char **argv);

#endif							/* INTROSPECT_H */
