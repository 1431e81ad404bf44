/*
 * Linkage: which resources the relationships of a level lead to.
 */
#ifndef EA_LINKAGE_H
#define EA_LINKAGE_H

#include "read/document.h"

/* Resources, each once, from which an include step goes on to the children. */
typedef struct EaVisit
{
	EaIncludeNode *node;
	EaResourceList from;
} EaVisit;

/*
 * Read the linkage of the resources of a shape in a level.  Where an include
 * step of the visits follows a relationship, the resources it leads to come
 * along as far as one statement has both: they go to the fresh ones.
 */
extern void ea_document_fetch_linkage(EaDocument *doc, EaShape *shape,
									  EaResourceList *level, EaVisit *visits,
									  int nvisits, EaResourceList *fresh);

/* The value of a to-one's column may be no resource of the target. */
extern bool ea_linkage_may_lead_nowhere(EaDocument *doc, const EaField *field,
										EaEntity *target);

#endif							/* EA_LINKAGE_H */
