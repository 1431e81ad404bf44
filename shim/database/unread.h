/*
 * Bytes of the server that the socket does not show any more.
 *
 * A record of TLS is decrypted as a whole.  What libpq's buffer had no room
 * for stays in OpenSSL, where poll() does not see it; libpq before the minor
 * versions of 2025 leaves it there, and whoever polls then waits for a server
 * that has nothing more to say.
 */
#ifndef UNREAD_H
#define UNREAD_H

#include <libpq-fe.h>

/*
 * How long poll() may wait on a connection's socket, of the milliseconds that
 * the caller has (-1: for ever).  0: there is something to read already.
 */
extern int	unread_wait(PGconn *connection, int wait_ms);

#endif							/* UNREAD_H */
