/*
 * The connection of a command that ends.
 */
#ifndef CONNECT_H
#define CONNECT_H

#include <libpq-fe.h>

#include "base/config.h"

/* To the database of the settings; NULL after a line on stderr. */
extern PGconn *command_connect(const char *command,
							   const struct config *config);

#endif							/* CONNECT_H */
