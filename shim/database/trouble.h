/*
 * Why there is no session with the database.
 */
#ifndef TROUBLE_H
#define TROUBLE_H

#include <stdbool.h>

#include <libpq-fe.h>

#include "base/config.h"

struct trouble
{
	const char *sqlstate;		/* or its class; NULL: found by a look */
	const char *name;			/* for probes */
	const char *text;			/* for whoever runs the service */
	bool		may_serve;		/* sessions can be had all the same */
};

/* A pooler does not leave a session its backend: found by pooler.h. */
extern const struct trouble trouble_pooler;

/*
 * Looks for the reason on a connection of its own to the primary, for a second
 * or two at most.  NULL: nobody answers there, or nothing is wrong.
 */
extern const struct trouble *trouble_find(const struct config *config);

/* The trouble that an error of that SQLSTATE tells of, or NULL. */
extern const struct trouble *trouble_of(const char *sqlstate);

/* The database is none that the extension could serve. */
extern bool trouble_of_encoding(PGconn *connection);

#endif							/* TROUBLE_H */
