/*
 * Foreign keys that are checked later than their statements.
 */
#ifndef EA_LINKS_DEFERRED_H
#define EA_LINKS_DEFERRED_H

#include "model/catalog.h"
#include "request/request.h"

/* All keys of the column can wait: what it refers to may come later. */
extern bool ea_links_can_wait(const EaEntity *entity, const char *column);

/*
 * Let the foreign keys of a column wait, and have all of them checked after
 * all.  The check throws as a violated constraint does.
 */
extern void ea_links_defer(EaRequest *req, const EaEntity *entity,
						   const char *column);
extern void ea_links_check_deferred(EaRequest *req);

/*
 * Check what waits because user-defined code said SET CONSTRAINTS: nothing is
 * to be found out after the answer.
 */
extern void ea_links_settle(EaRequest *req);

#endif							/* EA_LINKS_DEFERRED_H */
