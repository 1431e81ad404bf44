/*
 * The shape in which a document shows an entity's resources: the fields that
 * the caller may read and has asked for.
 */
#ifndef EA_SHAPE_H
#define EA_SHAPE_H

#include "model/catalog.h"
#include "model/sqlbuf.h"
#include "request/query_string.h"

typedef struct EaDocument EaDocument;

/* A relationship as one entity's resources show it in this document. */
typedef struct EaShapeRel
{
	EaField    *field;
	bool		shown;			/* else only followed by include */
	bool		followed;		/* some include path goes through it */
	bool	   *visible;		/* per member: entity readable, in version */
} EaShapeRel;

/* The parts of an entity's resources that this document needs. */
typedef struct EaShape
{
	EaEntity   *entity;
	bool		tells_deleted;	/* when each was, in its meta */
	bool		tells_updated;	/* when each was, which is not shown */
	int			nattributes;
	EaField    *const *attributes;
	int			nrels;
	const EaShapeRel *rels;
	char	   *path;			/* /api/v1/invoices/ */

	/* statements, once they have been written; NULL: none are kept */
	EaSqlPart  *columns;		/* the columns of a resource */
	EaSqlPart  *by_id;			/* one resource */
	EaSqlPart  *links;			/* targets of one, by relationship */
	struct EaShape *next;
} EaShape;

/*
 * How this document shows an entity.  Statements that were written for a shape
 * that callers of the same rights have had before are kept with it.
 */
extern EaShape *ea_shape_find(EaDocument *doc, EaEntity *entity);

/*
 * The document was asked for in such a way that all it has of a resource of
 * the entity changes with its version, as long as the declarations stay: for
 * attributes by their names, which everybody may read who may read the
 * resource, and for nothing else.
 */
extern bool ea_shape_is_versioned(const EaDocument *doc, EaEntity *entity);

/* Show nothing of an entity but one relationship; before any other shape. */
extern EaShape *ea_shape_only(EaDocument *doc, EaField *field);

/*
 * Show deleted resources as primary ones, too, or only those: throws 403 for a
 * caller that may not restore them.
 */
extern void ea_shape_show(EaDocument *doc, EaShape *shape, EaShown shown);

typedef bool (*EaWantsField) (void *arg, EaField *field);

/* Leave the fields out of which "is_wanted" says no. */
extern void ea_shape_narrow(EaShape *shape, EaWantsField is_wanted, void *arg);

#endif							/* EA_SHAPE_H */
