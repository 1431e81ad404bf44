/*
 * Tenants: their making, their records, their suspension, their end.
 */
#ifndef EA_TENANTS_H
#define EA_TENANTS_H

#include "management/users.h"

extern void ea_tenants_create(EaRequest *req);
extern void ea_tenants_list(EaRequest *req);
extern void ea_tenants_show(EaRequest *req);
extern void ea_tenants_update(EaRequest *req);
extern void ea_tenants_delete(EaRequest *req);

extern const EaBodyForm ea_tenants_form;
extern const EaBodyForm ea_tenants_admin_form;
extern const EaBodyForm ea_tenants_change_form;
extern const EaListing ea_tenants;

#endif							/* EA_TENANTS_H */
