/*
 * Accounts of programs, under /manage/tenants/{id}/service-accounts.
 */
#ifndef EA_SERVICE_ACCOUNTS_H
#define EA_SERVICE_ACCOUNTS_H

#include "management/records.h"
#include "request/body.h"

extern void ea_service_accounts_create(EaRequest *req);
extern void ea_service_accounts_disable(EaRequest *req);
extern void ea_service_accounts_rotate(EaRequest *req);

extern const EaBodyForm ea_service_accounts_form;
extern const EaListing ea_service_accounts_records;

#endif							/* EA_SERVICE_ACCOUNTS_H */
