/*
 * Arrays that grow.
 *
 * An array of any type is three members of a struct: the items, how many
 * there are and how many there is room for.  All are 0 at first.
 */
#ifndef EA_GROW_H
#define EA_GROW_H

/* The place of one more item, which counts from now on and is not set yet. */
#define EA_GROW(list) EA_GROW_ARRAY((list)->items, (list)->n, (list)->max)

/* The same for members of other names. */
#define EA_GROW_ARRAY(items, n, max) \
	((n) < (max) ? (void) 0 : \
	 (void) ((items) = ea_grow((items), &(max), sizeof(*(items)))), \
	 &(items)[(n)++])

/*
 * Room for twice as many items, in the memory context that the first of them
 * was put into: the one that was current then.
 */
extern void *ea_grow(void *items, int *max, size_t size);

#endif							/* EA_GROW_H */
