/*
 * The endpoints below /manage (docs/api.md).
 *
 * The caller's authority over the tenant in args[0] has been checked.
 */
#ifndef EA_USERS_H
#define EA_USERS_H

#include "identity/account.h"
#include "management/records.h"
#include "request/body.h"

/* For the endpoints below /manage. */

/* The {id} at a position of the path; 404 for what cannot be one. */
extern void ea_users_id(EaRequest *req, int arg, pg_uuid_t *id);

/*
 * The tenant of /manage/tenants/{id}/..., 404 if there is none.  But for GET
 * it stays until the transaction ends.
 */
extern void ea_users_tenant(EaRequest *req, pg_uuid_t *tenant);

/* Insert an account; 409 at the pointer when its username is taken. */
extern void ea_users_insert(EaRequest *req, const EaNewAccount *account,
							const char *pointer, pg_uuid_t *id);

/* GET /manage/tenants/{id}/...: a page of the route's listing. */
extern void ea_users_list_of_tenant(EaRequest *req);

/* The endpoints. */
extern void ea_users_create(EaRequest *req);
extern void ea_users_update(EaRequest *req);
extern void ea_users_delete(EaRequest *req);
extern void ea_users_set_roles(EaRequest *req);
extern void ea_users_grant_admin(EaRequest *req);
extern void ea_users_revoke_admin(EaRequest *req);

extern const EaBodyForm ea_users_form;
extern const EaBodyForm ea_users_change_form;
extern const EaBodyForm ea_users_roles_form;

/* The users of a tenant, as answers show them. */
extern const EaListing ea_users;

#endif							/* EA_USERS_H */
