/*
 * Settings that depend on each other, and what is derived from them.
 */
#ifndef CHECK_H
#define CHECK_H

#include "base/config.h"

/*
 * Fills what is computed and checks what a range cannot say.  Returns false
 * after a line about each fault.
 */
extern bool config_check(struct config *config);

#endif							/* CHECK_H */
