/*
 * The console for browsers, at /console/: files that are part of the program.
 */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/refusal.h"
#include "http/request.h"

/* What is answered; "refusal" instead of all else, if it is set. */
struct console_answer
{
	const struct refusal *refusal;
	int			status;
	const char *route;
	struct buffer headers;		/* whole lines */
	struct buffer body;
};

/* Whether a request is for the console, which has to be switched on. */
extern bool console_concerns(const struct request *request);

/*
 * Answers such a request.  "if_none_match" is that header, or NULL.  The
 * caller frees both buffers in any case.
 */
extern void console_serve(const struct request *request,
						  const char *if_none_match,
						  struct console_answer *answer);

#endif							/* CONSOLE_H */
