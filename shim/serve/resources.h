/*
 * What the process takes from the system: memory and descriptors.
 *
 * Threads take turns, so each would take its memory sometime later, when there
 * may be none, and memory would grow for as long as new ones come into play.
 * They take it at the start.
 */
#ifndef RESOURCES_H
#define RESOURCES_H

/*
 * Before anything else: limits; from now on memory is filled when it is taken.
 */
extern void resources_prepare(void);

/* Everything has started: memory is taken as usual again. */
extern void resources_settle(void);

/* Each thread of civetweb, at its start: uses the stack that it will need. */
extern void resources_touch_stack(void);

#endif							/* RESOURCES_H */
