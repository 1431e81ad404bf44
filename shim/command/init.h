/*
 * The commands that need no database: init and schema.
 */
#ifndef INIT_H
#define INIT_H

#include "base/config.h"

/* init DIR: writes a first manifest, and the schema beside it. */
extern int	init_command(const struct config *config, int argc, char **argv);

/* schema: prints the JSON Schema of manifests. */
extern int	schema_command(const struct config *config, int argc,
						   char **argv);

#endif							/* INIT_H */
