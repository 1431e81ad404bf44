/*
 * The threads of civetweb, begun when there is work for them.
 *
 * civetweb would begin them all with the service.  So many work at once as are
 * of use: those that wait for a client do not count, and another one is called
 * in their place, up to the most there may be.  Who is one too many when his
 * work is done rests until he is called again.
 *
 * All is guarded by the mutex that crew_create() got; each function but
 * crew_create(), crew_recruit() and crew_destroy() is called with it held.
 */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdbool.h>

struct crew;

/*
 * Of "most" threads "wanted" should work at once.  NULL when out of memory.
 */
extern struct crew *crew_create(pthread_mutex_t *mutex, long most,
								long wanted);

/*
 * While this is on, threads that the caller begins are not, but for the first
 * and those of another kind.  He gets numbers for them.
 */
extern void crew_recruit(struct crew *crew, bool on);

/* The thread of a number, or of its id; false if it has never begun. */
extern bool crew_find(const struct crew *crew, pthread_t number,
					  pthread_t *thread);

/*
 * Calls one more, if fewer than wanted work, or "anyway"; false: nobody comes.
 */
extern bool crew_call(struct crew *crew, bool anyway);

/* This thread has a client; has none any more. */
extern void crew_begin(struct crew *crew);
extern void crew_end(struct crew *crew);

/* It waits for its client; goes on. */
extern void crew_wait(struct crew *crew);
extern void crew_resume(struct crew *crew);

/* Threads that have no client and do not rest. */
extern long crew_idle(const struct crew *crew);

/* Whether one that has nothing to do should rest; it does. */
extern bool crew_has_surplus(const struct crew *crew);
extern void crew_rest(struct crew *crew);

/* From now on nobody rests. */
extern void crew_dismiss(struct crew *crew);

/* When all threads have ended. */
extern void crew_destroy(struct crew *crew);

#endif							/* CREW_H */
