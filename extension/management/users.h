/*
 * The users of tenants.
 */
#ifndef EA_USERS_H
#define EA_USERS_H

#include "management/records.h"

/* The draft's own is the new password, or NULL. */
extern const EaRecord ea_users;

extern const EaBodyForm ea_users_form;
extern const EaBodyForm ea_users_change_form;
extern const EaBodyForm ea_users_roles_form;

#endif							/* EA_USERS_H */
