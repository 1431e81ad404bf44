/*
 * Names that people type, in one form: NFC, trimmed, compared without case,
 * all of it whatever the database's locale is.
 */
#ifndef EA_USERNAME_H
#define EA_USERNAME_H

/* Characters of a name. */
#define EA_USERNAME_MAX 128

/* So many characters, at most, become one in NFC. */
#define EA_LONGEST_DECOMPOSITION 4

/*
 * The name as it is stored: normalised to NFC and without spaces around it.
 * NULL unless that leaves 1 to EA_USERNAME_MAX characters, all of them such
 * that can be seen, or plain spaces.  The text is valid UTF-8.
 */
extern char *ea_username_clean(const char *name, int len);

/* The same of a function's argument; throws where it is no name. */
extern char *ea_username_given(const text *name);

/*
 * The same for a name that is only looked for: it may be one of those that
 * were taken when more characters were allowed.
 */
extern char *ea_username_typed(const char *name, int len);

/*
 * So much of a text of others as can be a name of at most so many characters:
 * those that cannot be seen are spaces.  NULL: nothing of it can.
 */
extern char *ea_username_shown(const char *text, int len, int most);

/* NFC alone.  The time grows with the square of what stands together. */
extern char *ea_username_nfc(const char *text, int len);

/*
 * The key that spellings of one name share, by Unicode's simple case folding:
 * of a clean or typed name, or of a password that is looked up in a list.
 */
extern char *ea_username_key(const char *name);

#endif							/* EA_USERNAME_H */
