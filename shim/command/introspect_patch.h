/*
 * The difference of two texts, as patch takes it.
 */
#ifndef INTROSPECT_PATCH_H
#define INTROSPECT_PATCH_H

#include <stddef.h>

#include "base/buffer.h"

/* A text and how it is called; no text: there is no such file. */
struct patch_side
{
	const char *name;
	const char *text;			/* NULL: none */
	size_t		length;
};

/* Appends nothing where both are the same. */
extern void patch_write(struct buffer *out, const struct patch_side *before,
						const struct patch_side *after);

#endif							/* INTROSPECT_PATCH_H */
