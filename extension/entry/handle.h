/*
 * entityapi.handle() for callers within the extension.
 */
#ifndef EA_HANDLE_H
#define EA_HANDLE_H

#include "request/request.h"

/*
 * Requests have this principal, whatever credential they bring; NULL ends it.
 */
extern void ea_handle_assume(EaPrincipal *principal);

#endif							/* EA_HANDLE_H */
