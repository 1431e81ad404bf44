/*
 * Words of names in a database, put together as an API spells them.
 */
#ifndef INTROSPECT_WORDS_H
#define INTROSPECT_WORDS_H

#include "base/buffer.h"

/*
 * Appends the words of a name as letters and digits, each with a capital; the
 * first one of all without, where nothing has been written and "small".
 */
extern void words_join(struct buffer *out, const char *name, bool small);

/* Appends a name whose last word is a plural, with its singular. */
extern void words_singular(struct buffer *out, const char *name);

#endif							/* INTROSPECT_WORDS_H */
