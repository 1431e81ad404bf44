/*
 * What administrators and users may write into an account.
 */
#ifndef EA_ACCOUNT_INPUT_H
#define EA_ACCOUNT_INPUT_H

#include "identity/account.h"

/*
 * Read the members of a new user from an object that ea_body_check() has
 * looked at: username, email, roles, securityAttributes, profile and
 * temporaryPassword, each as far as it is there.  Notes all faults; base is
 * the pointer to the object.  The account is complete if there are none.
 */
extern void ea_account_describe(EaRequest *req, const EaJson *object,
								const char *base, EaNewAccount *account);

/*
 * Bring a stored state to what the members of an object, which
 * ea_body_check() has looked at, make of it: email (null: none any more),
 * status, securityAttributes and profile (merged), temporaryPassword.  Notes
 * all faults.
 */
extern void ea_account_change(EaRequest *req, const EaJson *object,
							  EaAccountState *state);

/*
 * Merge a member of an object, if it is there, into the stored text of another
 * object (RFC 7396).  Notes a fault as ea_account_object() does; then the text
 * stays.
 */
extern void ea_account_merge(EaRequest *req, const EaJson *object,
							 const char *name, const char **stored);

/*
 * The member of an object at base, as a name is to be kept.  NULL if it is
 * absent, or cannot be one, which is noted.
 */
extern char *ea_account_name(EaRequest *req, const EaJson *object,
							 const char *base, const char *member);

/*
 * Read an array of declared roles into a text[] without repetitions.  Notes
 * a fault for each member that is none, or that the caller may not assign, at
 * <pointer>/<index>.  held: a text[] of those that the account has, which may
 * stay, or 0.
 */
extern Datum ea_account_roles(EaRequest *req, const EaJson *array,
							  const char *pointer, Datum held);

/*
 * May the caller get at what an account with these roles (text[]) may do, by
 * a new password or secret?  Nobody but a SuperAdmin gets so at roles that
 * only a SuperAdmin assigns.
 */
extern bool ea_account_may_enter(EaRequest *req, Datum roles);

/*
 * JSON text of an object to be stored to a jsonb Datum, or a fault noted at
 * the pointer: too long, or numbers beyond all use.
 */
extern Datum ea_account_object(EaRequest *req, const char *json,
							   const char *pointer);

/*
 * Note what is wrong with a new password; false if anything is.  The key may
 * be NULL.
 */
extern bool ea_account_check_password(EaRequest *req, const EaJson *password,
									  const char *pointer,
									  const char *username_key);

/*
 * What is wrong with a new password of the user with this username key, the
 * list of common ones included; NULL if nothing is.
 */
extern const char *ea_account_password_fault(const char *password, int len,
											 const char *username_key);

#endif							/* EA_ACCOUNT_INPUT_H */
