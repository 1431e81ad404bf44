/*
 * Which web pages of other origins may use the service (Fetch standard).
 *
 * Off unless "cors_origins" names origins.  They are compared as they are,
 * byte by byte; there is no wildcard, and no answer ever allows cookies,
 * because the service uses none.
 */
#ifndef CORS_H
#define CORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/config.h"

/*
 * Checks the words of "cors_origins"; false after a line on stderr for each
 * that is not an origin as browsers write it.
 */
extern bool cors_check(const char *origins);

/* The allowed origin that is the one given, or NULL. */
extern const char *cors_find(const struct config *config, const char *origin,
							 size_t length);

/*
 * Headers of any answer; "origin" is from cors_find() and may be NULL.
 * Nothing is written unless origins are configured.
 */
extern void cors_write(struct buffer *head, const struct config *config,
					   const char *origin, size_t length);

/* What an answer to a preflight has besides these. */
extern void cors_write_preflight(struct buffer *head,
								 const struct config *config);

#endif							/* CORS_H */
