/*
 * The users of tenants.
 */
#ifndef EA_USERS_H
#define EA_USERS_H

#include "management/records.h"

/* The draft's own is the new password, or NULL. */
extern const EaRecord ea_users;

/*
 * Ask for the right to hash the password that is sent; NULL: the one made for
 * a new user.  A login of this user keeps its place among the hashes while it
 * waits for us, so this comes before all locks.  On a cluster, where each
 * login waits for a transaction that has locked any user, the hash is made
 * here as well, though faults may be found later.
 */
extern void ea_users_ask_for_hash(EaDraft *draft, const EaJson *password);

extern const EaBodyForm ea_users_form;
extern const EaBodyForm ea_users_change_form;
extern const EaBodyForm ea_users_roles_form;

#endif							/* EA_USERS_H */
