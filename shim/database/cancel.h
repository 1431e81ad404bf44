/*
 * Asking the server to end what it does for a connection.
 */
#ifndef CANCEL_H
#define CANCEL_H

#include <libpq-fe.h>

#include "base/helpers.h"

/*
 * Has one of the helpers do so: libpq opens another connection for it, and
 * waits for the server to close that, without any limit.  So there are to be
 * as many as connections.  If there is nobody it is left to the server's own
 * timeout.
 */
extern void cancel_later(struct helpers *helpers, PGconn *connection);

#endif							/* CANCEL_H */
