/*
 * Memory contexts: there is one, and it goes when a check ends.
 */
#ifndef MEMORY_H
#define MEMORY_H

/* Frees all that was allocated. */
extern void standin_memory_free(void);

#endif							/* MEMORY_H */
