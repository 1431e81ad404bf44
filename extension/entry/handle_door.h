/*
 * Entry check: callers of the service, places to call it from, and settings.
 */
#ifndef EA_HANDLE_DOOR_H
#define EA_HANDLE_DOOR_H

#include "fmgr.h"

/*
 * Throw unless this call may be made here and now.  Returns true for callers
 * outside the service's own role.  The service's role must be current. name is
 * the function's, usage how guests may call it.
 */
extern bool ea_handle_door(const FmgrInfo *function, const char *name,
						   const char *usage);

/* Settings of the session that a request does not run with, until unpinned. */
extern void ea_handle_settings(bool guest);

#endif							/* EA_HANDLE_DOOR_H */
