/*
 * The links of a page to itself and to others.
 *
 * All have the parameters of the request, of which one says where the page
 * is: it has another value in each link.  They are encoded once, in the link
 * to itself, and copied from there.
 */
#ifndef EA_PAGE_LINKS_H
#define EA_PAGE_LINKS_H

#include "lib/stringinfo.h"

#include "request/query_string.h"

/* Parameters that say where a page is, as they stand in a link. */
#define EA_LINK_NUMBER "page%5Bnumber%5D"
#define EA_LINK_AFTER "page%5Bafter%5D"
#define EA_LINK_BEFORE "page%5Bbefore%5D"

/* Places in a text. */
typedef struct EaPageLinks
{
	StringInfo	out;
	int			path;
	int			query;
	int			place;			/* the parameter that says where it is */
	int			rest;			/* the text after it */
	int			end;
} EaPageLinks;

/* Write the first one, to the page itself; no query: without parameters. */
extern void ea_page_links_begin(EaPageLinks *links, StringInfo out,
								const char *name, const char *path,
								const EaQuery *query);

/*
 * Write one to another place, whose value needs no encoding; NULL: there is
 * none.
 */
extern void ea_page_links_add(EaPageLinks *links, const char *name,
							  const char *parameter, const char *value);

#endif							/* EA_PAGE_LINKS_H */
