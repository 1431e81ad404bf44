/*
 * lookup.h: PostgreSQL's own look-ups meet one discarding of caches each.
 *
 * With debug_discard_caches, PostgreSQL discards all caches whenever it locks
 * a table, also the catalogs that it reads to look up what it has discarded:
 * dozens of times where code that asked for one row of a catalog, or opened
 * one table, can only tell whether it happened meanwhile.  Files with this
 * one have a look-up discard at its first chance, and at none of the others
 * until it returns.  What calls them meets as many kinds of chances as
 * before, in a tenth of the time.
 *
 * A look-up is known by the address of its stack frame, as an error may leave
 * it any time.  The stack grows downwards.
 */
#ifndef EA_LOOKUP_H
#define EA_LOOKUP_H

/* Kept by inval.c */
extern char *lookup_frame;		/* of the outermost look-up, or NULL */
extern int	lookup_chances;		/* that it has had */

static inline char *
lookup_begin(char *frame)
{
	char	   *outer = lookup_frame;

	if (outer != NULL && frame < outer)
		return outer;
	lookup_frame = frame;
	lookup_chances = 0;
	return NULL;
}

static inline void
lookup_end(char **outer)
{
	lookup_frame = *outer;
}

#define LOOKUP \
	char	   *lookup_outer __attribute__((cleanup(lookup_end), unused)) = \
		lookup_begin(__builtin_frame_address(0))

/* Whether caches are to be discarded at this chance */
#define LOOKUP_DISCARDS() \
	(lookup_frame == NULL || \
	 (char *) __builtin_frame_address(0) > lookup_frame || \
	 lookup_chances++ == 0)

#endif							/* EA_LOOKUP_H */
