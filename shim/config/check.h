/*-------------------------------------------------------------------------
 *
 * config_check.h
 *	  Settings that depend on each other, and what is derived from them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config.h"

/*
 * Fills what is computed and checks what a range cannot say.  Returns false
 * after a line about each fault.
 */
extern bool config_check(struct config *config);

#endif							/* CONFIG_CHECK_H */
