/*
 * The running service: its start, signals and the drain.
 */
#ifndef SERVER_H
#define SERVER_H

#include "base/config.h"
#include "config/load.h"

/*
 * Serves until SIGTERM or SIGINT; SIGHUP reloads the configuration.  Takes
 * the configuration over.  Returns the exit status of the process.
 */
extern int	server_run(const struct config_source *source,
					   struct config *config);

#endif							/* SERVER_H */
