/*
 * Versions of resources as entity tags (RFC 9110 sections 8.8.3, 13.1).
 */
#ifndef EA_ETAG_H
#define EA_ETAG_H

#include "request/request.h"

/* The condition of If-Match. */
typedef struct EaIfMatch
{
	bool		given;
	bool		any;			/* "*" */
	int			n;
	int64	   *versions;		/* those that may match; may be none */
	const char *pointer;		/* of meta.version alone; NULL: the header */
} EaIfMatch;

/*
 * Read If-Match.  Weak tags never match and numbers beyond int64 match
 * nothing; throws 400 for a value that is no list of quoted numbers.
 */
extern void ea_etag_if_match(EaRequest *req, EaIfMatch *match);

/*
 * Read meta.version of a resource object or identifier at that pointer; false
 * without one, throws 400 for a value that is no version.
 */
extern bool ea_etag_meta(EaRequest *req, const struct EaJson *object,
						 const char *pointer, int64 *version);

/* If-Match lets this version pass. */
extern bool ea_etag_matches(const EaIfMatch *match, int64 version);

/* If-None-Match names this version (weak comparison). */
extern bool ea_etag_not_modified(EaRequest *req, int64 version);

/* Set the ETag header. */
extern void ea_etag_answer(EaRequest *req, int64 version);

#endif							/* EA_ETAG_H */
