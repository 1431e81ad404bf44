/*-------------------------------------------------------------------------
 *
 * service_account.h
 *	  Accounts of programs, under /manage/tenants/{id}/service-accounts.
 *
 * extension/service_account.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_SERVICE_ACCOUNT_H
#define EA_SERVICE_ACCOUNT_H

#include "account.h"
#include "body.h"
#include "listing.h"

extern void ea_service_account_create(EaRequest *req);
extern void ea_service_account_list(EaRequest *req);
extern void ea_service_account_disable(EaRequest *req);
extern void ea_service_account_rotate(EaRequest *req);

extern const EaBodyForm ea_service_account_form;
extern const EaListing ea_service_account_records;

#endif							/* EA_SERVICE_ACCOUNT_H */
