/*
 * What the service understands by now of tables that others made.
 *
 * Manifests are written in one vocabulary; what the service does not serve yet
 * is left out, with this reason.  A later version of it flips a row, and
 * nothing else.
 */
#ifndef INTROSPECT_SERVED_H
#define INTROSPECT_SERVED_H

#include <stdbool.h>
#include <stddef.h>

enum introspect_construct
{
	/* the service */
	SERVED_ROLE, SERVED_ORDINARY_NAMES,

	/* tables */
	SERVED_VIEWS, SERVED_PARTITIONED,
	SERVED_NUMBER_KEYS, SERVED_TEXT_KEYS, SERVED_DATE_KEYS,
	SERVED_KEYS_OF_SEVERAL, SERVED_REFERRING_KEYS, SERVED_JOIN_TABLES,

	/* columns */
	SERVED_TIMESTAMP, SERVED_ENUM, SERVED_SMALLINT, SERVED_FLOAT,
	SERVED_OPEN_NUMERIC, SERVED_CHAR, SERVED_CITEXT, SERVED_ARRAY,
	SERVED_BYTEA, SERVED_JSON_TEXT, SERVED_NATIVE, SERVED_ROUNDED_TIMES,
	SERVED_UNIQUE_TEXT,
	SERVED_COUNT
};

/* NULL: it is served; else why not. */
extern const char *introspect_lacks(enum introspect_construct construct);

static inline bool
introspect_serves(enum introspect_construct construct)
{
	return introspect_lacks(construct) == NULL;
}

#endif							/* INTROSPECT_SERVED_H */
