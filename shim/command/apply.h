/*
 * The commands that end: apply and openapi.
 */
#ifndef APPLY_H
#define APPLY_H

#include "base/buffer.h"
#include "base/config.h"

/*
 * apply DIR|FILE... [--dry-run] [--allow-data-loss NAME]...
 *		 [--wait SECONDS] [--defer]
 * apply --resume [--wait SECONDS]
 * Returns the exit status of the process.
 */
extern int	apply_command(const struct config *config, int argc,
						  char **argv);

/*
 * The documents of a file or a folder as a JSON array; false after a line on
 * stderr for each fault.
 */
extern bool apply_read(const char *path, struct buffer *array);

/* openapi [VERSION]: prints the description of that version of the API. */
extern int	openapi_command(const struct config *config, int argc,
							char **argv);

#endif							/* APPLY_H */
