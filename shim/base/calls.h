/*
 * Calls of civetweb that come to us first.
 *
 * civetweb waits, accepts, receives, closes and begins threads by functions of
 * the C library, and has no setting for how.  Functions of a program go before
 * those of a library, so a thread of civetweb can say here who is asked
 * instead.  All other threads get what they have always got.
 */
#ifndef CALLS_H
#define CALLS_H

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Who is asked instead; NULL: nobody. */
struct calls
{
	int			(*poll) (struct pollfd *files, nfds_t count, int wait_ms);
	int			(*accept) (int file, struct sockaddr *address,
						   socklen_t *size);
	ssize_t		(*recv) (int file, void *bytes, size_t size, int flags);
	ssize_t		(*send) (int file, const void *bytes, size_t size, int flags);
	int			(*getsockname) (int file, struct sockaddr *address,
								socklen_t *size);
	int			(*setsockopt) (int file, int level, int name,
							   const void *value, socklen_t size);
	int			(*fcntl64) (int file, int command, long value);
	int			(*shutdown) (int file, int how);
	int			(*close) (int file);
	int			(*pthread_create) (pthread_t *thread,
								   const pthread_attr_t *attributes,
								   void *(*routine) (void *), void *argument);
	int			(*pthread_join) (pthread_t thread, void **result);
};

/* Those of this thread from now on; NULL: none. */
extern void calls_set(const struct calls *calls);

/* What they would have done, for those who are asked. */
extern const struct calls calls_real;

#endif							/* CALLS_H */
