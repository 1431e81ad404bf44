/*
 * A JSON:API document: resources, their linkage, included resources.
 *
 * Rows of the primary statement are handed to ea_document_row(), which
 * writes the attributes as JSON text at once and keeps the keys.
 * ea_document_complete() then runs one statement for each relationship that
 * is kept elsewhere, and for each step of an include path, over all
 * resources of a level together; the writers put the pieces in order.
 *
 * All of it lives in the memory context that is current at creation.
 */
#ifndef EA_DOCUMENT_H
#define EA_DOCUMENT_H

#include "model/catalog.h"
#include "model/sqlbuf.h"
#include "read/shape.h"
#include "request/limits.h"
#include "request/query_string.h"
#include "request/request.h"

/* A resource identifier within a relationship. */
typedef struct EaTarget
{
	EaId		id;
	int			member;			/* of field->members */
} EaTarget;

typedef struct EaLinkage
{
	int64		count;			/* all there are */
	int			n;				/* those kept in items */
	int			max;
	EaTarget   *items;
	bool		followed;		/* an include step goes on to them */
} EaLinkage;

typedef struct EaResource
{
	EaShape    *shape;
	EaId		id;
	bool		deleted;
	TimestampTz deleted_at;
	TimestampTz updated_at;
	int64		version;
	int			start;			/* attributes: [start, end) of doc->text */
	int			end;
	int			visit;			/* the last include step that began here */
	int			statement;		/* the last one that included it */
	EaLinkage  *linkage;		/* one for each of shape->rels */
} EaResource;

typedef struct EaResourceList
{
	int			n;
	int			max;
	EaResource **items;
} EaResourceList;

typedef struct EaIncludeNode
{
	char	   *name;
	int			nchildren;
	int			room;			/* for so many */
	struct EaIncludeNode **children;
} EaIncludeNode;

struct EaDocument
{
	EaRequest  *req;
	EaQuery    *query;
	EaExecMode	mode;
	EaShape    *shapes;
	EaIncludeNode *root;		/* its children are the first hops */
	StringInfoData text;
	EaShown		shown;			/* of the primary resources; others are live */
	EaResourceList primary;
	EaResourceList included;
	bool		all_linkage;	/* max_linkage does not hold */
	bool		is_list;		/* of resources, not of one */
	int			visits;			/* include steps gone so far */
	int			statements;		/* and statements run for them */

	/*
	 * The one primary resource was made by this request: the fields (by their
	 * index) that may link it to others.  NULL: nothing is known.
	 */
	const bool *linked;
	struct resources_hash *known;	/* by entity and id; made when needed */
};

/*
 * A document over resources of an entity.  Checks include paths and sparse
 * fieldsets; throws 400, or 403 for an include the caller may not read.
 */
extern EaDocument *ea_document_create(EaRequest *req, EaQuery *query,
									  EaEntity *entity, EaExecMode mode);

/*
 * The same over what a relationship leads to: include paths begin in those of
 * its members that have them.
 */
extern EaDocument *ea_document_create_related(EaRequest *req, EaQuery *query,
											  EaField *field,
											  EaExecMode mode);

/* The parameters of an endpoint that shows resources of the entity. */
#define ea_document_takes(entity) \
	((entity)->soft_delete ? EA_TAKES_DELETED : 0)

/* The parameter that makes the answer smaller, NULL if there is none. */
extern const char *ea_document_cause(const EaDocument *doc);

/* Refuse an answer that has, or will have, more bytes than are allowed. */
static inline void
ea_document_bound(EaDocument *doc, Size len)
{
	if (unlikely(len > ea_limits_most()))
		ea_limits_refuse(doc->req, ea_document_cause(doc));
}

/*
 * Append one resource object to out; refuses an answer that gets larger than
 * is allowed.
 */
extern void ea_document_write_resource(EaDocument *doc, StringInfo out,
									   EaResource *resource);

/*
 * The answer holds copies of the resources' texts, which may be as large: give
 * these back.  Nothing of this document is written again.
 */
extern void ea_document_forget_text(EaDocument *doc);

/* The first and the last primary resource; an error if there is none. */
extern EaResource *ea_document_one(const EaDocument *doc);
extern EaResource *ea_document_last(const EaDocument *doc);

/*
 * The whole document into req->out: a single resource (or null), a list with
 * its pagination (total < 0: totals left out; more says then whether there is
 * a next page), or the linkage of the one relationship that the primary
 * resource shows.  path is the address without its query.
 */
extern void ea_document_write_one(EaDocument *doc, const char *path);
extern void ea_document_write_linkage(EaDocument *doc);
extern void ea_document_write_list(EaDocument *doc, const char *path,
								   int64 total, bool more);

/*
 * A list that goes by cursors: before and after are those of the pages next
 * to this one, NULL where there is none.
 */
extern void ea_document_write_cursors(EaDocument *doc, const char *path,
									  const char *before, const char *after,
									  int64 total);

/* The same for items that are no resources: the text of "data". */
extern void ea_document_write_items(EaDocument *doc, const char *path,
									const char *before, const char *after,
									StringInfo items);

/* The names of the cursors of the first and the last page. */
#define EA_CURSOR_START "start"
#define EA_CURSOR_END "end"

/* `/api/v1/invoices`, and with a slash behind; the base URL if one is set. */
extern char *ea_document_path(EaRequest *req, EaEntity *entity);
extern char *ea_document_base(EaRequest *req, EaEntity *entity);

/* `/api/v1/invoices/<id>` */
extern char *ea_document_resource_path(EaResource *resource);

#endif							/* EA_DOCUMENT_H */
