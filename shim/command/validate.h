/*
 * The command validate: what is wrong with manifests, without a database.
 */
#ifndef VALIDATE_H
#define VALIDATE_H

#include "base/config.h"

/*
 * validate DIR|FILE...: the faults that apply would find before it looks at
 * what is stored.  Returns the exit status.
 */
extern int	validate_command(const struct config *config, int argc,
							 char **argv);

#endif							/* VALIDATE_H */
