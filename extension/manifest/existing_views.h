/*
 * Entities on views, materialized views and foreign tables of an application,
 * which are only read.
 */
#ifndef EA_EXISTING_VIEWS_H
#define EA_EXISTING_VIEWS_H

#include "manifest/manifest.h"

/*
 * Refuse what takes a write, a constraint or an index.  Needs the relations.
 */
extern void ea_manifest_check_view(EaManifest *m, EaDeclEntity *entity);

#endif							/* EA_EXISTING_VIEWS_H */
