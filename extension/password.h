/*-------------------------------------------------------------------------
 *
 * password.h
 *	  Passwords: policy, bcrypt hash, verification.
 *
 * extension/password.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_PASSWORD_H
#define EA_PASSWORD_H

/* Characters of a password. */
#define EA_PASSWORD_MIN 12
#define EA_PASSWORD_MAX 128

/*
 * What is wrong with a new password of the user with this username key, as
 * a sentence; NULL if nothing is.  The list of common passwords is the
 * caller's to look into.
 */
extern const char *ea_password_fault(const char *password, int len,
									 const char *username_key);

/* Hash with the cost of the settings.  palloc'd. */
extern char *ea_password_hash(const char *password, int len);

/*
 * Does the password belong to the hash?  With NULL, or what is no hash, it
 * does the work of one at the current cost and says no, so that the answer
 * takes as long for a user that does not exist.
 */
extern bool ea_password_verify(const char *password, int len,
							   const char *hash);

/* The hash was made with another cost than the current one. */
extern bool ea_password_outdated(const char *hash);

#endif							/* EA_PASSWORD_H */
