/*
 * Loading the settings of the shim.
 *
 * A setting is given by a flag (--pool-size 8), by a variable of the
 * environment (ENTITYAPI_POOL_SIZE=8) or in the JSON configuration file
 * ({"pool_size": 8}); the first of these three that names it wins.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/config.h"
#include "base/nearest.h"

/* What the command line and the environment said; kept for reloads. */
struct config_source
{
	const char *file;			/* --config or ENTITYAPI_CONFIG, or NULL */
	char	  **flags;			/* one value for each setting, or NULL */
};

/*
 * Takes the flags that are settings out of argv: on return "argc" and "argv"
 * hold what is left, and the process list shows no secrets any more.  Returns
 * false after writing a line to stderr.
 */
extern bool config_parse_flags(int *argc, char **argv,
							   struct config_source *source);

/*
 * Loads the settings.  Returns NULL after writing one line for each fault to
 * stderr.
 */
extern struct config *config_load(const struct config_source *source);

/*
 * Loads the settings again; those that need a restart keep their value, with
 * a line in the log.  Returns NULL, and "old" goes on, if there is a fault.
 */
extern struct config *config_reload(const struct config_source *source,
									struct config *old);

/* Writes the settings as a JSON object; secrets are masked. */
extern void config_print(const struct config *config, struct buffer *out);

/* Writes the table of settings for --help. */
extern void config_help(struct buffer *out);

/* Offers the flags of all settings. */
extern void config_offer_flags(struct nearest *nearest);

/* Frees the configuration and all that it replaced. */
extern void config_free(struct config *config);
extern void config_source_free(struct config_source *source);

#endif							/* LOAD_H */
