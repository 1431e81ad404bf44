/*
 * Addresses to listen on: TCP ports and Unix sockets.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

#define LISTEN_MAX 16

/* For a path, or an address in brackets with its port. */
#define SOCKET_NAME 128

struct listening
{
	int			socket;			/* -1: it is closed */
	char		name[SOCKET_NAME];	/* address:port, or the path */
	dev_t		device;			/* which file it is, so that no other one is */
	ino_t		inode;			/* removed in its place; 0: it is none */
};

/* All addresses of one setting. */
struct listener
{
	int			count;
	struct listening sockets[LISTEN_MAX];
};

/*
 * Checks the text of a setting: host:port or unix:/path, separated by commas,
 * where host is an address, one of IPv6 in brackets, a name or *.  False after
 * a line on stderr for each fault.
 */
extern bool listen_check(const char *setting, const char *text);

/* True if one of the addresses is a Unix socket. */
extern bool listen_has_socket(const char *text);

/*
 * Makes the sockets, those of Unix with that mode.  False after a line in the
 * log.
 */
extern bool listen_open(struct listener *listener, const char *text,
						long mode);

/* Says in the log where the service can be found. */
extern void listen_announce(const struct listener *listener);

/* Closes the sockets and removes their files. */
extern void listen_close(struct listener *listener);

#endif							/* LISTEN_H */
