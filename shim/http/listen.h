/*
 * Addresses to listen on: TCP ports and Unix sockets.
 *
 * civetweb 1.15 as Debian builds it knows TCP only.  For each Unix socket it
 * is told to listen on a free port of 127.0.0.1, and then finds the socket
 * under the descriptor of that port.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include <civetweb.h>

#include "base/buffer.h"

#define LISTEN_MAX 16

struct front;

/* One address. */
struct listen_address
{
	struct sockaddr_un name;	/* of a Unix socket; else empty */
	int			socket;			/* that socket, until civetweb has it */
	dev_t		device;			/* which file it is, so that no other one is */
	ino_t		inode;			/* removed in its place */
	int			port;			/* of TCP, as configured */
};

/* All addresses of one instance of civetweb. */
struct listener
{
	int			count;
	struct listen_address addresses[LISTEN_MAX];
	int			files[LISTEN_MAX];	/* civetweb's listening descriptors */
	int			file_count;
	int			others[LISTEN_MAX * 4];	/* listening ones of others */
	int			other_count;
};

/*
 * Checks the text of a setting: host:port or unix:/path, separated by commas.
 * False after a line on stderr for each fault.
 */
extern bool listen_check(const char *setting, const char *text);

/* True if one of the addresses is a Unix socket. */
extern bool listen_has_socket(const char *text);

/*
 * Makes the Unix sockets, with that mode, and writes the ports for civetweb's
 * "listening_ports".  A socket's file that nobody listens on is replaced.
 * False after a line in the log.
 */
extern bool listen_open(struct listener *listener, const char *text,
						long mode, struct buffer *ports);

/* Puts the sockets into the places of civetweb's ports; false as above. */
extern bool listen_attach(struct listener *listener,
						  struct mg_context *context);

/*
 * Whether a connection came over a Unix socket.  civetweb has no address for
 * its peer then, or "*" if it was built to listen on such sockets itself, as
 * Debian's is since 1.16+dfsg-5.
 */
extern bool listen_is_unix(const struct mg_request_info *info);

/*
 * Whether a connection that came over TCP came to a port that is configured.
 * For a moment it can come to one that holds a Unix socket's place.
 */
extern bool listen_knows(const struct listener *listener, int port);

/* Says in the log where the service can be found. */
extern void listen_announce(const struct listener *listener,
							struct mg_context *context);

/*
 * Lets connections in, when the sockets are in their places.  front_close()
 * ends that.
 */
extern bool listen_begin(struct listener *listener, struct front *front);

/* Removes the sockets' files. */
extern void listen_stop(struct listener *listener);

#endif							/* LISTEN_H */
