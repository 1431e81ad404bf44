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

#include "account.h"
#include "body.h"
#include "listing.h"

/* For the endpoints below /manage. */

/* The {id} at a position of the path; 404 for what cannot be one. */
extern void ea_manage_id(EaRequest *req, int arg, pg_uuid_t *id);

/*
 * The tenant of /manage/tenants/{id}/..., 404 if there is none.  But for GET
 * it stays until the transaction ends.
 */
extern void ea_manage_tenant(EaRequest *req, pg_uuid_t *tenant);

/* Insert an account; 409 at the pointer when its username is taken. */
extern void ea_manage_insert_user(EaRequest *req, const EaNewAccount *account,
								  const char *pointer, pg_uuid_t *id);

/* tenants: manage_tenant.c */
extern void ea_manage_create_tenant(EaRequest *req);
extern void ea_manage_list_tenants(EaRequest *req);
extern void ea_manage_show_tenant(EaRequest *req);
extern void ea_manage_update_tenant(EaRequest *req);
extern void ea_manage_delete_tenant(EaRequest *req);

extern const EaBodyForm ea_manage_tenant_form;
extern const EaBodyForm ea_manage_tenant_admin_form;
extern const EaBodyForm ea_manage_tenant_change_form;
extern const EaListing ea_manage_tenants;

/* their users: manage.c */
extern void ea_manage_create_user(EaRequest *req);
extern void ea_manage_list_users(EaRequest *req);
extern void ea_manage_update_user(EaRequest *req);
extern void ea_manage_delete_user(EaRequest *req);
extern void ea_manage_set_roles(EaRequest *req);
extern void ea_manage_grant_admin(EaRequest *req);
extern void ea_manage_revoke_admin(EaRequest *req);

extern const EaBodyForm ea_manage_user_form;
extern const EaBodyForm ea_manage_user_change_form;
extern const EaBodyForm ea_manage_roles_form;

/* The users of a tenant, as answers show them. */
extern const EaListing ea_account_users;

#endif							/* EA_MANAGE_H */
