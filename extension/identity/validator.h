/*
 * A credential validator in place of the built-in one.
 */
#ifndef EA_VALIDATOR_H
#define EA_VALIDATOR_H

#include "request/request.h"

/* One is set: login and keys of the service are off. */
extern bool ea_validator_is_set(void);

/*
 * Let it find the principal of the request.  Throws 401 for everything but a
 * sound principal.
 */
extern void ea_validator_check(EaRequest *req);

#endif							/* EA_VALIDATOR_H */
