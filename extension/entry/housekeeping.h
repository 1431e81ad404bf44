/*
 * Housekeeping: sweep, erase deleted tenants, and purge what was deleted
 * softly long enough ago.
 */
#ifndef EA_HOUSEKEEPING_H
#define EA_HOUSEKEEPING_H

#include "entry/call.h"

/*
 * The call to run for a message to handle() by which a shim of 1.1 asks for
 * housekeeping; NULL for all others.
 */
extern const EaCall *ea_housekeeping_asked(const bytea *message);

#endif							/* EA_HOUSEKEEPING_H */
