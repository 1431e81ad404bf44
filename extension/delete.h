/*-------------------------------------------------------------------------
 *
 * delete.h
 *	  Delete resources, and what hangs on them.
 *
 * extension/delete.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DELETE_H
#define EA_DELETE_H

#include "context.h"

/* DELETE /api/v{n}/{entities}/{id} */
extern void ea_delete_one(EaRequest *req);

#endif							/* EA_DELETE_H */
