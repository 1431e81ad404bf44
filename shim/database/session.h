/*
 * A session with the database, as requests need it.
 */
#ifndef SESSION_H
#define SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "base/config.h"
#include "database/trouble.h"

/* The prepared statement every session has. */
#define HANDLE_STATEMENT "handle"

enum session_kind
{
	SESSION_PRIMARY,			/* with the server of the setting "database" */
	SESSION_NODE,				/* with another one that writes */
	SESSION_STANDBY				/* reads only */
};

/* A server, by its connection string, and why the last try has failed. */
struct session_source
{
	const struct config *config;
	enum session_kind kind;
	const char *conninfo;
	atomic_uint_fast64_t logged_at;
	_Atomic(const struct trouble *) trouble;	/* of that time */
	atomic_bool settings_told;	/* those that do not hold */
	atomic_bool pooler_is_fine; /* it was tried; nothing has failed since */
	atomic_bool nodes_told;		/* whether there are others, */
	atomic_bool has_nodes;		/* and there are */
};

/*
 * Waits for it; NULL after a line in the log.  Behind a pooler that was found
 * to leave a session its backend, *backend is its number, or else 0.
 */
extern PGconn *session_open(struct session_source *source, int *backend);

#endif							/* SESSION_H */
