#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "connections/sockets.h"

#define BACKLOG 1024
#define KIND (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

/* -------- Unix -------- */

/* Whether a path may be bound: nothing is there, or a socket left behind. */
static bool
clear_path(const struct sockaddr_un *name, const char **fault)
{
	struct stat status;
	int			probe;
	bool		refused;

	if (lstat(name->sun_path, &status) != 0)
	{
		*fault = strerror(errno);
		return errno == ENOENT;
	}
	if (!S_ISSOCK(status.st_mode))
	{
		*fault = "there is something that is not a socket";
		return false;
	}
	probe = socket(AF_UNIX, KIND, 0);
	refused = probe >= 0 &&
		connect(probe, (const struct sockaddr *) name, sizeof(*name)) != 0 &&
		errno == ECONNREFUSED;
	if (probe >= 0)
		close(probe);
	*fault = "somebody listens there";
	if (!refused)
		return false;
	*fault = strerror(errno);
	return unlink(name->sun_path) == 0;
}

/*
 * The folder is locked meanwhile, so that of two that start at once none takes
 * the other's new socket for one left behind.  Nobody can connect before the
 * file has its mode: that takes listen().
 */
bool
sockets_open_path(struct listening *listening, const char *path, long mode,
				  const char **fault)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char		folder[sizeof(name.sun_path)];
	char	   *slash;
	struct stat status;
	int			lock;
	bool		bound;

	memset(listening, 0, sizeof(*listening));
	listening->socket = -1;
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	snprintf(listening->name, sizeof(listening->name), "%s", path);
	strcpy(folder, name.sun_path);
	slash = strrchr(folder, '/');
	slash[slash == folder ? 1 : 0] = '\0';
	lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) != 0 || !clear_path(&name, fault))
	{
		if (lock < 0)
			*fault = strerror(errno);
		else
			close(lock);
		return false;
	}
	listening->socket = socket(AF_UNIX, KIND, 0);
	bound = listening->socket >= 0 &&
		bind(listening->socket, (const struct sockaddr *) &name,
			 sizeof(name)) == 0 &&
		chmod(name.sun_path, (mode_t) mode) == 0 &&
		listen(listening->socket, BACKLOG) == 0 &&
		lstat(name.sun_path, &status) == 0;
	*fault = strerror(errno);
	close(lock);
	if (!bound)
	{
		sockets_close(listening);
		return false;
	}
	listening->device = status.st_dev;
	listening->inode = status.st_ino;
	return true;
}

/* -------- TCP -------- */

/* Where the port stands in an address. */
static in_port_t *
port_of(struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ?
		&((struct sockaddr_in6 *) address)->sin6_port :
		&((struct sockaddr_in *) address)->sin_port;
}

/* Writes an address as "listen" would have it. */
static void
write_name(struct listening *listening)
{
	struct sockaddr_storage address;
	socklen_t	size = sizeof(address);
	char		host[NI_MAXHOST] = "";
	char		port[NI_MAXSERV] = "";
	bool		is_six;

	getsockname(listening->socket, (struct sockaddr *) &address, &size);
	getnameinfo((struct sockaddr *) &address, size, host, sizeof(host), port,
				sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	is_six = address.ss_family == AF_INET6;
	snprintf(listening->name, sizeof(listening->name), "%s%.100s%s:%.8s",
			 is_six ? "[" : "", host, is_six ? "]" : "", port);
}

static bool
open_address(struct listening *listening, const struct addrinfo *address)
{
	const int	yes = 1;
	int			file = socket(address->ai_family, KIND, 0);

	memset(listening, 0, sizeof(*listening));
	listening->socket = file;

	/* connections are as this is: answers in a row do not wait for others */
	if (file >= 0 &&
		setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
		(address->ai_family != AF_INET6 ||
		 setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &yes,
					sizeof(yes)) == 0) &&
		bind(file, address->ai_addr, address->ai_addrlen) == 0 &&
		listen(file, BACKLOG) == 0)
	{
		write_name(listening);
		return true;
	}
	return false;
}

/* Whether a list has the address before this item, too. */
static bool
is_repeated(const struct addrinfo *list, const struct addrinfo *item)
{
	for (; list != item; list = list->ai_next)
	{
		if (list->ai_addrlen == item->ai_addrlen &&
			memcmp(list->ai_addr, item->ai_addr, item->ai_addrlen) == 0)
			return true;
	}
	return false;
}

/* Opens all of a list; of port 0 all get the port that the first one got. */
static int
open_all(struct listening *first, int most, const struct addrinfo *list,
		 const char **fault)
{
	const struct addrinfo *item;
	in_port_t	port = 0;
	int			count = 0;

	for (item = list; item != NULL; item = item->ai_next)
	{
		struct listening *listening = &first[count];
		int			why;

		if (is_repeated(list, item))
			continue;
		if (count == most)
		{
			*fault = "too many addresses";
			break;
		}
		if (*port_of(item->ai_addr) == 0)
			*port_of(item->ai_addr) = port;
		if (open_address(listening, item))
		{
			struct sockaddr_storage own;
			socklen_t	size = sizeof(own);

			getsockname(listening->socket, (struct sockaddr *) &own, &size);
			port = *port_of((struct sockaddr *) &own);
			count++;
			continue;
		}
		why = errno;
		sockets_close(listening);
		*fault = strerror(why);
		if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT)
			break;
	}
	if (item == NULL)
		return count;
	while (count > 0)
		sockets_close(&first[--count]);
	return 0;
}

int
sockets_open_host(struct listening *first, int most, const char *host,
				  const char *port, const char **fault)
{
	const struct addrinfo wanted = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,.ai_socktype = SOCK_STREAM
	};
	struct addrinfo *list = NULL;
	int			failure = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host,
									  port, &wanted, &list);
	int			count;

	*fault = failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure);
	if (failure != 0)
		return 0;
	count = open_all(first, most, list, fault);
	freeaddrinfo(list);
	return count;
}

void
sockets_close(struct listening *listening)
{
	struct stat status;

	if (listening->inode != 0 && lstat(listening->name, &status) == 0 &&
		status.st_dev == listening->device &&
		status.st_ino == listening->inode)
		unlink(listening->name);
	if (listening->socket >= 0)
		close(listening->socket);
	listening->socket = -1;
}
