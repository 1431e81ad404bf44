/*-------------------------------------------------------------------------
 *
 * manage.h
 *	  The endpoints below /manage (contract section 7).
 *
 * The caller's authority over the tenant in args[0] has been checked.
 *
 * extension/manage.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANAGE_H
#define EA_MANAGE_H

#include "context.h"

extern void ea_manage_create_tenant(EaRequest *req);
extern void ea_manage_create_user(EaRequest *req);
extern void ea_manage_set_roles(EaRequest *req);

#endif							/* EA_MANAGE_H */
