/*
 * Selectors and sort keys resolved against an entity.
 *
 * A path becomes a tree of steps: one for each name, with several ways on
 * where a one-of relationship is crossed.
 */
#ifndef EA_PATH_H
#define EA_PATH_H

#include "model/catalog.h"
#include "query/rsql.h"
#include "query/rsql_literal.h"
#include "request/request.h"

typedef struct EaStep EaStep;

/* A way on through a relationship. */
typedef struct EaBranch
{
	int			member;
	EaStep	   *rest;			/* NULL: the path ends at the relationship */
	int			joined;			/* alias of the target in the statement at
								 * hand, 0: it has none */
} EaBranch;

/* Relationships that the paths of one filter or sort cross. */
typedef struct EaCrossings
{
	int			n;
	int			shared;			/* hops of the next path, from its first on,
								 * whose rows an earlier one has joined */
} EaCrossings;

struct EaStep
{
	EaEntity   *entity;			/* whose field or id it is */
	EaField    *field;			/* NULL: the id */
	const EaType *type;			/* of the attribute or id that the path ends
								 * at; NULL: of a relationship */
	const char *part;			/* a column of an id that it is about; NULL:
								 * all of it */
	bool		to_many;		/* crosses a to-many relationship here or
								 * later on */
	int			nbranches;		/* 0: attribute or id */
	EaBranch   *branches;
	EaValue		value;			/* to compare with: one value or, for lists,
								 * an array */
};

/*
 * Resolve a path from entity on, for a comparison or, when that is NULL, for a
 * sort key: then it crosses no to-many relationship.  crossings counts what
 * all paths of one filter or sort go through.  Returns NULL with *fault for a
 * name that the caller may not see, or a use that the path does not allow.
 * Lives in the current memory context.
 */
extern EaStep *ea_path_resolve(EaRequest *req, EaEntity *entity,
							   const char *const *names, int nnames,
							   const EaRsql *comparison,
							   EaCrossings *crossings, EaRsqlFault *fault);

/* The column, quoted, or the columns of an id, that a path ends at. */
#define ea_rsql_sql_column(end) \
	((end)->part != NULL ? (end)->part : \
	 (end)->field == NULL ? (end)->entity->id_column : \
	 (end)->field->columns[0].name)

#endif							/* EA_PATH_H */
