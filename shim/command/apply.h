/*
 * The commands that end: apply and openapi.
 */
#ifndef APPLY_H
#define APPLY_H

#include "base/config.h"

/*
 * apply DIR|FILE... [--dry-run [--rights]] [--allow-data-loss NAME]...
 *		 [--repair] [--wait SECONDS] [--defer]
 * apply --resume [--wait SECONDS]
 * Returns the exit status of the process.
 */
extern int	apply_command(const struct config *config, int argc,
						  char **argv);

/* openapi [VERSION]: prints the description of that version of the API. */
extern int	openapi_command(const struct config *config, int argc,
							char **argv);

#endif							/* APPLY_H */
