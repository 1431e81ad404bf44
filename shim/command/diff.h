/*
 * The command diff: two sets of manifests, compared.
 */
#ifndef DIFF_H
#define DIFF_H

#include "base/config.h"

/* diff OLD NEW: 0 if both declare the same, 1 if not, 2 if one is no set. */
extern int	diff_command(const struct config *config, int argc, char **argv);

#endif							/* DIFF_H */
