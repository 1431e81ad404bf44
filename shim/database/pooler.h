/*
 * A pooler between this program and the server, as PgBouncer.  The service
 * needs a backend for each of its sessions, since it prepares a statement
 * there and has settings; a pooler that pools by transactions or statements
 * hands the backend on after each.
 */
#ifndef POOLER_H
#define POOLER_H

#include <stdbool.h>

#include <libpq-fe.h>

/*
 * The backend's number where the server is not who has accepted this
 * connection, or else 0.
 */
extern int	pooler_backend(PGconn *connection);

/*
 * Tries whether others get the backend of this connection, new to the same
 * pooler.  True proves it; where all backends are in use, or many change
 * hands, it may not show.
 */
extern bool pooler_shares(PGconn *connection, const char *conninfo);

#endif							/* POOLER_H */
