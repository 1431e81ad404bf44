/*
 * Looks at a database by a connection of their own that are over at a given
 * time, whatever the server does.
 */
#ifndef BRIEF_H
#define BRIEF_H

#include <stdint.h>

#include <libpq-fe.h>

/*
 * Connects as PQconnectdbParams() does, expanding the database's name, with
 * errors in full.  The caller looks whether that has been done in time.
 */
extern PGconn *brief_connect(const char *const *names,
							 const char *const *values, uint64_t deadline);

/* The result of a statement; NULL: none has come in time, or at all. */
extern PGresult *brief_ask(PGconn *connection, const char *sql,
						   uint64_t deadline);

#endif							/* BRIEF_H */
