/*
 * Calls of civetweb that come to us first.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/calls.h"

static _Thread_local const struct calls *here = NULL;

void
calls_set(const struct calls *calls)
{
	here = calls;
}

/*
 * The C library's function NAME, or that of a sanitizer before it, found when
 * it is first needed.
 */
#define REAL(RESULT, NAME, PARAMETERS, ARGUMENTS) \
static RESULT \
real_##NAME PARAMETERS \
{ \
	static _Atomic(void *) found = NULL; \
	void	   *function = atomic_load_explicit(&found, \
												memory_order_relaxed); \
	RESULT		(*next) PARAMETERS; \
\
	if (function == NULL) \
	{ \
		function = dlsym(RTLD_NEXT, #NAME); \
		atomic_store_explicit(&found, function, memory_order_relaxed); \
	} \
	*(void **) &next = function; \
	return next ARGUMENTS; \
}

/* That, and the program's function, which asks whom the thread has named. */
#define CALL(RESULT, NAME, PARAMETERS, ARGUMENTS) \
REAL(RESULT, NAME, PARAMETERS, ARGUMENTS) \
\
RESULT \
NAME PARAMETERS \
{ \
	return here != NULL && here->NAME != NULL ? here->NAME ARGUMENTS : \
		real_##NAME ARGUMENTS; \
}

CALL(int, poll, (struct pollfd *files, nfds_t count, int wait_ms),
	 (files, count, wait_ms))
CALL(int, accept, (int file, struct sockaddr *address, socklen_t *size),
	 (file, address, size))
CALL(ssize_t, recv, (int file, void *bytes, size_t size, int flags),
	 (file, bytes, size, flags))
CALL(ssize_t, send, (int file, const void *bytes, size_t size, int flags),
	 (file, bytes, size, flags))
CALL(int, getsockname,
	 (int file, struct sockaddr *address, socklen_t *size),
	 (file, address, size))
CALL(int, setsockopt,
	 (int file, int level, int name, const void *value, socklen_t size),
	 (file, level, name, value, size))
CALL(int, shutdown, (int file, int how), (file, how))
CALL(int, close, (int file), (file))
CALL(int, pthread_create,
	 (pthread_t *thread, const pthread_attr_t *attributes,
	  void *(*routine) (void *), void *argument),
	 (thread, attributes, routine, argument))
CALL(int, pthread_join, (pthread_t thread, void **result), (thread, result))

REAL(int, fcntl64, (int file, int command, long value), (file, command, value))

/* All commands have an argument of a register's size, or need none. */
int
fcntl64(int file, int command,...)
{
	va_list		rest;
	long		value;

	va_start(rest, command);
	value = va_arg(rest, long);
	va_end(rest);
	return here != NULL && here->fcntl64 != NULL ?
		here->fcntl64(file, command, value) :
		real_fcntl64(file, command, value);
}

const struct calls calls_real = {
	.poll = real_poll,
	.accept = real_accept,
	.recv = real_recv,
	.send = real_send,
	.getsockname = real_getsockname,
	.setsockopt = real_setsockopt,
	.fcntl64 = real_fcntl64,
	.shutdown = real_shutdown,
	.close = real_close,
	.pthread_create = real_pthread_create,
	.pthread_join = real_pthread_join
};
