/*
 * What introspect keeps: it grows while the catalog is read and manifests are
 * made of it, and goes at once.  Out of memory ends the command.
 */
#ifndef INTROSPECT_MEMORY_H
#define INTROSPECT_MEMORY_H

#include <stddef.h>

#include "base/buffer.h"

struct memory
{
	struct memory_block *blocks;	/* the one that is being filled first */
};

/* Zeroed, and aligned for anything. */
extern void *memory_get(struct memory *memory, size_t size);

/* count elements; 0 gives a place, too. */
extern void *memory_array(struct memory *memory, size_t count, size_t size);

extern char *memory_text(struct memory *memory, const char *text,
						 size_t length);
extern char *memory_printf(struct memory *memory, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* The text of a buffer, which is freed. */
extern char *memory_take(struct memory *memory, struct buffer *buffer);

extern void memory_free(struct memory *memory);

/* A line on stderr, and the end. */
extern void memory_none(void) __attribute__((noreturn));

#endif							/* INTROSPECT_MEMORY_H */
