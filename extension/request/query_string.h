/*
 * The query string, read as form-encoded text, and percent-decoding of path
 * segments.  Pure: knows no catalog.
 */
#ifndef EA_QUERY_STRING_H
#define EA_QUERY_STRING_H

#include "request/request.h"

typedef struct EaParam
{
	char	   *name;			/* decoded, brackets raw: "page[size]" */
	char	   *value;			/* decoded */
	int			len;			/* of value */
} EaParam;

/* fields[type]=a,b: names is split, empty for an empty value */
typedef struct EaFieldset
{
	char	   *type;
	char	   *parameter;		/* "fields[type]", for messages */
	int			nnames;
	char	  **names;
} EaFieldset;

typedef struct EaSortKey
{
	char	   *path;			/* dotted */
	bool		descending;
} EaSortKey;

/* Parameters that an endpoint takes. */
#define EA_TAKES_LIST	0x01	/* filter, sort, page[...] */
#define EA_TAKES_SHAPE	0x02	/* include, fields[...] */
#define EA_TAKES_KEYSET	0x04	/* filter, page[size], page[after] */
#define EA_TAKES_CURSOR	0x08	/* page[after], page[before] beside LIST */
#define EA_TAKES_DELETED	0x10	/* show[deleted] */
#define EA_TAKES_AS_OF	0x20	/* asOf */
#define EA_TAKES_SIZE	0x40	/* page[size] beside CURSOR alone */

/* Resources that are shown, where deletion only hides them. */
typedef enum EaShown
{
	EA_SHOWN_LIVE,
	EA_SHOWN_DELETED,			/* show[deleted]=only */
	EA_SHOWN_ALL				/* show[deleted]=with */
} EaShown;

typedef struct EaQuery
{
	/* parameters as sent, in order, for links */
	int			nparams;
	EaParam    *params;

	/* lists */
	char	   *filter;			/* NULL: none */
	int			nsort;
	EaSortKey  *sort;
	int64		page_number;	/* from 1 */
	int			page_size;
	bool		totals;			/* page[totals] */
	bool		has_number;		/* page[number] was given */
	bool		has_totals;		/* page[totals] was given */
	char	   *page_after;		/* NULL: from the beginning */
	char	   *page_before;	/* NULL: not backwards */
	char	   *as_of;			/* a time; NULL: now */

	EaShown		shown;

	/* shape */
	bool		has_include;	/* parameter was given, perhaps empty */
	int			ninclude;
	char	  **include;		/* dotted paths */
	int			nfieldsets;
	EaFieldset *fieldsets;
} EaQuery;

/*
 * Read req->query.  Adds every fault to the request (400 with
 * source.parameter) and throws when there are any: unknown, repeated, empty
 * parameters, bad encoding, page values out of range or whose offset does
 * not fit 64 bits, two positions at once.  takes: EA_TAKES_*; parameters of a
 * group not taken are unknown.  With a cursor there are totals only if they
 * are asked for.  The result lives in the current memory context.
 */
extern EaQuery *ea_query_read(EaRequest *req, int takes);

/* The parameter says where the page is: a number or a cursor. */
extern bool ea_query_is_position(const char *name);

/*
 * Percent-decode len bytes; plus: '+' is a space.  Returns a palloc'd
 * string and its length, or NULL for bad hex, a NUL byte or invalid UTF-8.
 */
extern char *ea_query_decode(const char *str, int len, bool plus,
							 int *decoded);

/*
 * Append text percent-encoded for a query component of a URI: all but
 * unreserved characters (RFC 3986 section 2.3) and a few harmless ones.
 */
extern void ea_query_encode(StringInfo buf, const char *str, int len);

#endif							/* EA_QUERY_STRING_H */
