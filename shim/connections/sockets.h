/*
 * Sockets that listen, of TCP and of Unix.
 */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* For a path, or an address in brackets with its port. */
#define SOCKET_NAME 128

struct listening
{
	int			socket;			/* -1: it is closed */
	char		name[SOCKET_NAME];	/* address:port, or the path */
	dev_t		device;			/* which file it is, so that no other one is */
	ino_t		inode;			/* removed in its place; 0: it is none */
};

/*
 * Listens at a path, whose file gets that mode.  A file that nobody listens on
 * is replaced.  False, and why.
 */
extern bool sockets_open_path(struct listening *listening, const char *path,
							  long mode, const char **fault);

/*
 * Listens at all addresses of a host, which is a name, an address or * for
 * those of this machine; such as the machine does not have are left out, if
 * there are others.  Returns how many there are, of "most", or 0 and why.
 */
extern int	sockets_open_host(struct listening *first, int most,
							  const char *host, const char *port,
							  const char **fault);

/* Closes it and removes its file; again, that is nothing. */
extern void sockets_close(struct listening *listening);

#endif							/* SOCKETS_H */
