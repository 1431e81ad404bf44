/*
 * Addresses to listen on: TCP ports and Unix sockets.
 *
 * civetweb 1.15 as Debian builds it knows neither IPv6 nor Unix sockets, and
 * what it says of a port that it does not get is little.  So the sockets are
 * made here.  For each it is told to listen on a free port of 127.0.0.1, and
 * then finds the socket under the descriptor of that port.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>

#include <civetweb.h>

#include "base/buffer.h"
#include "connections/sockets.h"

#define LISTEN_MAX 16

struct front;

/* All addresses of one instance of civetweb. */
struct listener
{
	int			count;
	struct listening sockets[LISTEN_MAX];
	int			files[LISTEN_MAX];	/* civetweb's listening descriptors */
	int			file_count;
	int			others[LISTEN_MAX * 4];	/* listening ones of others */
	int			other_count;
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
 * Makes the sockets, those of Unix with that mode, and writes the ports for
 * civetweb's "listening_ports".  False after a line in the log.
 */
extern bool listen_open(struct listener *listener, const char *text,
						long mode, struct buffer *ports);

/* Puts the sockets into the places of civetweb's ports; false as above. */
extern bool listen_attach(struct listener *listener,
						  struct mg_context *context);

/* Says in the log where the service can be found. */
extern void listen_announce(const struct listener *listener);

/*
 * Lets connections in, when the sockets are in their places.  front_close()
 * ends that.
 */
extern bool listen_begin(struct listener *listener, struct front *front);

/* Removes the sockets' files. */
extern void listen_stop(struct listener *listener);

#endif							/* LISTEN_H */
