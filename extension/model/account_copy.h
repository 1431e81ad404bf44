/*
 * The rows of User: copies of the accounts of tenants.
 *
 * A copy in a table like those of other entities costs a write where accounts
 * are written, which is rare; in return references, filters, policies and
 * readers of plain SQL need no special case.  A trigger of entityapi.account
 * keeps it (identity/copied_accounts.c), and the application of manifests
 * fills it.
 */
#ifndef EA_ACCOUNT_COPY_H
#define EA_ACCOUNT_COPY_H

#include "model/catalog.h"

/* User, or NULL where it is not declared. */
extern EaEntity *ea_account_copy_entity(EaCatalog *catalog);

/*
 * The statement that brings the rows in line: of all accounts, or of the one
 * with the id $1.  SuperAdmins are in no tenant, and have none.
 */
extern char *ea_account_copy_sql(const EaEntity *user, const char *table,
								 bool one);

#endif							/* EA_ACCOUNT_COPY_H */
