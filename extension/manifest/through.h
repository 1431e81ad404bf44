/*
 * Many-to-many relationships over a join table of an application's.
 */
#ifndef EA_THROUGH_H
#define EA_THROUGH_H

#include "manifest/manifest.h"

/*
 * The names of the join table that an owning field names, in the place of
 * those that one would be made with; nothing, if it names none.
 */
extern void ea_manifest_settle_through(EaManifest *m, EaDeclField *field,
									   EaDeclEntity *target);

#endif							/* EA_THROUGH_H */
