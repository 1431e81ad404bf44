/*
 * Passwords: policy, bcrypt hash, verification.
 */
#ifndef EA_PASSWORD_H
#define EA_PASSWORD_H

/* Characters of a password, in NFC. */
#define EA_PASSWORD_MIN 12
#define EA_PASSWORD_MAX 128

/*
 * The fault of a new password of the user with this username key, as a
 * sentence; NULL if nothing is.  The list of common passwords is the caller's
 * to look into.
 */
extern const char *ea_password_fault(const char *password, int len,
									 const char *username_key);

/*
 * The password in NFC, palloc'd; one that is too long to be one stays as it
 * is.
 */
extern char *ea_password_nfc(const char *password, int len);
extern bool ea_password_is_nfc(const char *password, int len);

/* Hash of its NFC with the cost of the settings.  palloc'd. */
extern char *ea_password_hash(const char *password, int len);

/*
 * Does the password belong to the hash, which is of its NFC, or else of what
 * was typed, as all were until 1.2? The work is that of one hash of the
 * given cost, the highest there is, or of the settings' cost if that is more,
 * whatever the hash's own cost is.  The same goes for NULL and for texts that
 * are no hash, so the time of an answer reveals nothing of a user, nor that
 * there is one.
 */
extern bool ea_password_verify(const char *password, int len,
							   const char *hash, bool of_nfc,
							   int highest_cost);

/* The hash was made with another cost than the current one. */
extern bool ea_password_outdated(const char *hash);

#endif							/* EA_PASSWORD_H */
