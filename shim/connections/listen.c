#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/log.h"
#include "connections/listen.h"

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

/* -------- a listener -------- */

/* Of unix:/path; returns how many sockets there are now: one or none. */
static int
open_path(struct listening *next, int most, const char *path, long mode)
{
	const char *fault = "too many addresses";

	if (most > 0 && sockets_open_path(next, path, mode, &fault))
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
		opened = sockets_open_host(next, most, host, port, &fault);
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
		sockets_close(&listener->sockets[i]);
	listener->count = 0;
}
