/*
 * The protocol is a datagram to the socket that NOTIFY_SOCKET names; a name
 * that starts with @ is in the abstract namespace.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/notify.h"

/* All of this is the main thread's. */
static struct sockaddr_un manager;
static socklen_t manager_size;	/* 0: there is none */
static uint64_t alive_micros;	/* 0: nobody wants to know */
static uint64_t told_at;

void
notify_start(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const char *every = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	size_t		length = path ? strlen(path) : 0;

	manager_size = 0;
	alive_micros = 0;
	if (length < 2 || length >= sizeof(manager.sun_path) ||
		(path[0] != '/' && path[0] != '@'))
		return;
	memset(&manager, 0, sizeof(manager));
	manager.sun_family = AF_UNIX;
	memcpy(manager.sun_path, path, length);
	if (path[0] == '@')
		manager.sun_path[0] = '\0';
	manager_size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) +
								length + (path[0] == '@' ? 0 : 1));

	/* Half of the time that is left us leaves room for a slow moment. */
	if (every != NULL && (pid == NULL || atol(pid) == (long) getpid()))
		alive_micros = strtoull(every, NULL, 10) / 2;
}

void
notify_send(const char *format,...)
{
	char		text[512];
	va_list		arguments;
	int			file;

	if (manager_size == 0)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (file < 0)
		return;
	/* A manager that does not listen is no reason to stop serving. */
	(void) !sendto(file, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
				   (struct sockaddr *) &manager, manager_size);
	close(file);
}

void
notify_alive(void)
{
	uint64_t	now;

	if (alive_micros == 0)
		return;
	now = now_micros();
	if (told_at != 0 && now - told_at < alive_micros)
		return;
	told_at = now;
	notify_send("WATCHDOG=1");
}
