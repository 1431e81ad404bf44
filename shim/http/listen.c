/*
 * Addresses to listen on: TCP ports and Unix sockets.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "http/front.h"
#include "http/listen.h"

#define UNIX_PREFIX "unix:"
#define UNIX_PREFIX_LENGTH 5
#define BACKLOG 1024
#define LAST_FILE 65536

/* -------- the setting -------- */

static bool
is_unix(const char *item)
{
	return strncmp(item, UNIX_PREFIX, UNIX_PREFIX_LENGTH) == 0;
}

/*
 * Returns what is wrong with an item, or NULL.  The host of host:port is cut
 * off from its port.
 */
static const char *
check_item(char *item, bool beside_socket)
{
	struct sockaddr_un name;
	struct in_addr address;
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
	if (port == 0 && beside_socket)
		return "needs a port beside a Unix socket";
	*colon = '\0';
	if (strcmp(item, "*") != 0 && inet_pton(AF_INET, item, &address) != 1)
		return "is neither an IPv4 address nor *";
	return NULL;
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
		const char *fault = check_item(item, listen_has_socket(text));

		count++;
		if (fault != NULL)
		{
			complain("%s: \"%s\" %s", setting, item, fault);
			fine = false;
		}
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

/* -------- Unix sockets -------- */

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
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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
 * Binds and listens.  The folder is locked meanwhile, so that of two that
 * start at once none takes the other's new socket for one left behind.  Nobody
 * can connect before the file has its mode: that takes listen().
 */
static bool
bind_socket(struct listen_address *address, long mode, const char **fault)
{
	char		folder[sizeof(address->name.sun_path)];
	char	   *slash;
	struct stat status;
	int			lock;
	bool		bound;

	strcpy(folder, address->name.sun_path);
	slash = strrchr(folder, '/');
	slash[slash == folder ? 1 : 0] = '\0';
	lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) != 0 ||
		!clear_path(&address->name, fault))
	{
		if (lock < 0)
			*fault = strerror(errno);
		else
			close(lock);
		return false;
	}
	address->socket = socket(AF_UNIX,
							 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bound = address->socket >= 0 &&
		bind(address->socket, (const struct sockaddr *) &address->name,
			 sizeof(address->name)) == 0 &&
		chmod(address->name.sun_path, (mode_t) mode) == 0 &&
		listen(address->socket, BACKLOG) == 0 &&
		lstat(address->name.sun_path, &status) == 0;
	*fault = strerror(errno);
	close(lock);
	if (bound)
	{
		address->device = status.st_dev;
		address->inode = status.st_ino;
	}
	return bound;
}

static void
remove_socket(const struct listen_address *address)
{
	struct stat status;

	if (address->inode != 0 &&
		lstat(address->name.sun_path, &status) == 0 &&
		status.st_dev == address->device && status.st_ino == address->inode)
		unlink(address->name.sun_path);
}

/* -------- descriptors -------- */

/* Calls "found" for each descriptor of this process that listens. */
static void
each_listening(struct listener *listener,
			   void (*found) (struct listener *listener, int file))
{
	struct rlimit limit;
	int			file;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	for (file = 3; file < (int) limit.rlim_cur && file < LAST_FILE; file++)
	{
		int			listens = 0;
		socklen_t	size = sizeof(listens);

		if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens,
					   &size) == 0 && listens)
			found(listener, file);
	}
}

static void
note_other(struct listener *listener, int file)
{
	if (listener->other_count < LISTEN_MAX * 4)
		listener->others[listener->other_count++] = file;
}

static void
note_own(struct listener *listener, int file)
{
	int			i;

	for (i = 0; i < listener->other_count; i++)
	{
		if (listener->others[i] == file)
			return;
	}
	if (listener->file_count < LISTEN_MAX)
		listener->files[listener->file_count++] = file;
}

static int
port_of(int file)
{
	struct sockaddr_in name;
	socklen_t	size = sizeof(name);

	if (getsockname(file, (struct sockaddr *) &name, &size) != 0 ||
		name.sin_family != AF_INET)
		return -1;
	return ntohs(name.sin_port);
}

/* -------- a listener -------- */

/* One item; what is written for civetweb is "8080" instead of "*:8080". */
static bool
open_item(struct listener *listener, const char *item, long mode,
		  struct buffer *ports)
{
	struct listen_address *address = &listener->addresses[listener->count];
	const char *fault;

	memset(address, 0, sizeof(*address));
	address->socket = -1;
	listener->count++;
	if (ports->length > 0)
		buffer_char(ports, ',');
	if (!is_unix(item))
	{
		address->port = atoi(strrchr(item, ':') + 1);
		buffer_string(ports, strncmp(item, "*:", 2) == 0 ? item + 2 : item);
		return true;
	}
	buffer_string(ports, "127.0.0.1:0");
	address->name.sun_family = AF_UNIX;
	strncpy(address->name.sun_path, item + UNIX_PREFIX_LENGTH,
			sizeof(address->name.sun_path) - 1);
	if (bind_socket(address, mode, &fault))
		return true;
	log_event(LOG_ERROR, "start", NULL, NULL, "cannot listen on \"%s\": %s",
			  address->name.sun_path, fault);
	return false;
}

bool
listen_open(struct listener *listener, const char *text, long mode,
			struct buffer *ports)
{
	char	   *list = strdup(text);
	char	   *state = NULL;
	char	   *item;
	bool		fine = list != NULL;

	memset(listener, 0, sizeof(*listener));
	for (item = fine ? strtok_r(list, ",", &state) : NULL;
		 item != NULL && fine; item = strtok_r(NULL, ",", &state))
		fine = listener->count < LISTEN_MAX &&
			open_item(listener, item, mode, ports);
	free(list);
	each_listening(listener, note_other);
	return fine && !ports->failed;
}

bool
listen_attach(struct listener *listener, struct mg_context *context)
{
	struct mg_server_port ports[LISTEN_MAX];
	int			count = mg_get_server_ports(context, LISTEN_MAX, ports);
	int			i;

	each_listening(listener, note_own);
	for (i = 0; i < listener->count && i < count; i++)
	{
		struct listen_address *address = &listener->addresses[i];
		int			file = 0;

		if (address->socket < 0)
			continue;
		while (file < listener->file_count &&
			   port_of(listener->files[file]) != ports[i].port)
			file++;
		if (file == listener->file_count ||
			dup3(address->socket, listener->files[file], O_CLOEXEC) < 0)
		{
			log_event(LOG_ERROR, "start", NULL, NULL,
					  "cannot listen on \"%s\"", address->name.sun_path);
			return false;
		}
		close(address->socket);
		address->socket = -1;
	}
	return true;
}

bool
listen_is_unix(const struct mg_request_info *info)
{
	return info->remote_addr[0] == '\0' ||
		strcmp(info->remote_addr, "*") == 0;
}

bool
listen_knows(const struct listener *listener, int port)
{
	bool		has_socket = false;
	int			i;

	for (i = 0; i < listener->count; i++)
	{
		const struct listen_address *address = &listener->addresses[i];

		if (address->name.sun_family == AF_UNIX)
			has_socket = true;
		else if (address->port == port)
			return true;
	}
	return !has_socket;
}

void
listen_announce(const struct listener *listener, struct mg_context *context)
{
	struct mg_server_port ports[LISTEN_MAX];
	int			count = mg_get_server_ports(context, LISTEN_MAX, ports);
	int			i;

	for (i = 0; i < listener->count && i < count; i++)
	{
		const struct listen_address *address = &listener->addresses[i];

		if (address->name.sun_family == AF_UNIX)
			log_event(LOG_INFO, "start", NULL, NULL, "listening on %s",
					  address->name.sun_path);
		else
			log_event(LOG_INFO, "start", NULL, NULL, "listening on port %d",
					  ports[i].port);
	}
}

bool
listen_begin(struct listener *listener, struct front *front)
{
	bool		fine = true;
	int			i;

	for (i = 0; i < listener->file_count; i++)
		fine = front_listen(front, listener->files[i]) && fine;
	return fine;
}

void
listen_stop(struct listener *listener)
{
	int			i;

	for (i = 0; i < listener->count; i++)
	{
		remove_socket(&listener->addresses[i]);
		if (listener->addresses[i].socket >= 0)
			close(listener->addresses[i].socket);
		listener->addresses[i].socket = -1;
	}
}
