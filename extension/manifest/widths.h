/*
 * How wide rows and entries of indexes are: what fits no page of PostgreSQL.
 */
#ifndef EA_WIDTHS_H
#define EA_WIDTHS_H

#include "manifest/manifest.h"

/*
 * A fault where the values that an index has may take more than an entry has
 * room for; pointer is the index's.
 */
extern void ea_manifest_check_entry(EaManifest *m, EaDeclEntity *entity,
									const char *pointer, const EaJson *index);

/*
 * A fault where no row fits a page, a warning where one with all of its fields
 * does not, as their fixed widths alone say.  It is for tables that are made.
 */
extern void ea_manifest_check_row(EaManifest *m, EaDeclEntity *entity);

#endif							/* EA_WIDTHS_H */
