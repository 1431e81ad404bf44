/*
 * Answers of the shim by itself: metrics, security.txt, and which request may
 * ask for what at which address.
 */
#ifndef ACTUATOR_H
#define ACTUATOR_H

#include "base/metrics.h"
#include "base/refusal.h"
#include "http/request.h"

/* An answer of the shim's own. */
struct page
{
	const char *route;
	const char *headers;		/* whole lines */
	struct buffer body;
};

enum actuator_verdict
{
	ACTUATOR_PASS,				/* it is for entityapi.handle() */
	ACTUATOR_PAGE,				/* the page is filled */
	ACTUATOR_REFUSED			/* the refusal is set */
};

/*
 * Looks at a request that came to an address of "admin_listen" (is_admin) or
 * of "listen".  The caller frees the body of the page in any case.
 */
extern enum actuator_verdict
			actuator_serve(const struct request *request, bool is_admin,
						   const struct metrics_gauges *gauges,
						   struct page *page, const struct refusal **refusal);

/* Whether actuator_serve() has to look at a request: at most it has not. */
extern bool actuator_concerns(const struct request *request, bool is_admin);

#endif							/* ACTUATOR_H */
