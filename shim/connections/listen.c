#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "connections/listen.h"

#define BACKLOG 1024
#define KIND (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

#define UNIX_PREFIX "unix:"
#define UNIX_PREFIX_LENGTH 5

/* -------- the setting -------- */

static bool
is_unix(const char *item)
{
	return strncmp(item, UNIX_PREFIX, UNIX_PREFIX_LENGTH) == 0;
}

/* Letters as names and addresses have them. */
static bool
is_host(const char *text)
{
	return *text != '\0' &&
		text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"
					"ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_")] == '\0';
}

/* What is wrong with the host of host:port, or NULL. */
static const char *
check_host(char *host)
{
	unsigned char address[sizeof(struct in6_addr)];
	size_t		length = strlen(host);

	if (*host == '[' && host[length - 1] == ']')
	{
		host[length - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, address) == 1 ? NULL :
			"is no IPv6 address in brackets";
	}
	if (strchr(host, ':') != NULL)
		return "needs brackets around its IPv6 address";
	return strcmp(host, "*") == 0 || is_host(host) ? NULL :
		"is neither an address, a name nor *";
}

/* What is wrong with an item, or NULL; it is cut up meanwhile. */
static const char *
check_item(char *item)
{
	struct sockaddr_un name;
	char	   *colon = strrchr(item, ':');
	char	   *end;
	long		port;

	if (is_unix(item))
	{
		if (item[UNIX_PREFIX_LENGTH] != '/')
			return "is not an absolute path";
		return strlen(item + UNIX_PREFIX_LENGTH) < sizeof(name.sun_path) ?
			NULL : "is longer than a socket's path may be";
	}
	if (colon == NULL)
		return "is not host:port";
	port = strtol(colon + 1, &end, 10);
	if (!isdigit((unsigned char) colon[1]) || *end != '\0' || port > 65535)
		return "ends in what is not a port";
	*colon = '\0';
	return check_host(item);
}

bool
listen_check(const char *setting, const char *text)
{
	char	   *list = strdup(text);
	char	   *state = NULL;
	char	   *item;
	int			count = 0;
	bool		fine = list != NULL;

	for (item = fine ? strtok_r(list, ",", &state) : NULL; item != NULL;
		 item = strtok_r(NULL, ",", &state))
	{
		char	   *shown = strdup(item);
		const char *fault = check_item(item);

		count++;
		if (fault != NULL)
		{
			complain("%s: \"%s\" %s", setting, shown ? shown : "", fault);
			fine = false;
		}
		free(shown);
	}
	if (count == 0 || count > LISTEN_MAX)
	{
		complain("%s: %s", setting,
				 count == 0 ? "no address" : "too many addresses");
		fine = false;
	}
	free(list);
	return fine;
}

bool
listen_has_socket(const char *text)
{
	return is_unix(text) || strstr(text, "," UNIX_PREFIX) != NULL;
}

/* -------- sockets -------- */

/* Closes it and removes its file; again, that is nothing. */
static void
close_socket(struct listening *listening)
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
 * Listens at a path, whose file gets that mode.  A file that nobody listens on
 * is replaced.  False, and why.
 *
 * The folder is locked meanwhile, so that of two that start at once none takes
 * the other's new socket for one left behind.  Nobody can connect before the
 * file has its mode: that takes listen().
 */
static bool
listen_at_path(struct listening *listening, const char *path, long mode,
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
		close_socket(listening);
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
		close_socket(listening);
		*fault = strerror(why);
		if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT)
			break;
	}
	if (item == NULL)
		return count;
	while (count > 0)
		close_socket(&first[--count]);
	return 0;
}

/*
 * Listens at all addresses of a host, which is a name, an address or * for
 * those of this machine; such as the machine does not have are left out, if
 * there are others.  Returns how many there are, of "most", or 0 and why.
 */
static int
listen_at_host(struct listening *first, int most, const char *host,
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

/* -------- a listener -------- */

/* Of unix:/path; returns how many sockets there are now: one or none. */
static int
open_path(struct listening *next, int most, const char *path, long mode)
{
	const char *fault = "too many addresses";

	if (most > 0 && listen_at_path(next, path, mode, &fault))
		return 1;
	log_event(LOG_ERROR, "start", NULL, NULL, "cannot listen on \"%s\": %s",
			  path, fault);
	return 0;
}

/* Of host:port, which is cut up meanwhile; returns how many there are. */
static int
open_host(struct listening *next, int most, char *host)
{
	const char *fault = "too many addresses";
	char	   *port = strrchr(host, ':');
	int			opened = 0;

	*port++ = '\0';
	if (*host == '[')
	{
		host++;
		host[strlen(host) - 1] = '\0';
	}
	if (most > 0)
		opened = listen_at_host(next, most, host, port, &fault);
	if (opened == 0)
		log_event(LOG_ERROR, "start", NULL, NULL,
				  "cannot listen on \"%s\" port %s: %s", host, port, fault);
	return opened;
}

static bool
open_item(struct listener *listener, char *item, long mode)
{
	struct listening *next = &listener->sockets[listener->count];
	int			most = LISTEN_MAX - listener->count;
	int			opened = is_unix(item) ?
		open_path(next, most, item + UNIX_PREFIX_LENGTH, mode) :
		open_host(next, most, item);

	listener->count += opened;
	return opened > 0;
}

bool
listen_open(struct listener *listener, const char *text, long mode)
{
	char	   *list = strdup(text);
	char	   *state = NULL;
	char	   *item;
	bool		fine = list != NULL;

	memset(listener, 0, sizeof(*listener));
	for (item = fine ? strtok_r(list, ",", &state) : NULL;
		 item != NULL && fine; item = strtok_r(NULL, ",", &state))
		fine = open_item(listener, item, mode);
	free(list);
	return fine;
}

void
listen_announce(const struct listener *listener)
{
	int			i;

	for (i = 0; i < listener->count; i++)
		log_event(LOG_INFO, "start", NULL, NULL, "listening on %s",
				  listener->sockets[i].name);
}

void
listen_close(struct listener *listener)
{
	int			i;

	for (i = 0; i < listener->count; i++)
		close_socket(&listener->sockets[i]);
	listener->count = 0;
}
