/*
 * Accounts of programs.
 */
#ifndef EA_SERVICE_ACCOUNTS_H
#define EA_SERVICE_ACCOUNTS_H

#include "management/records.h"

extern const EaRecord ea_service_accounts;
extern const EaBodyForm ea_service_accounts_form;

#endif							/* EA_SERVICE_ACCOUNTS_H */
