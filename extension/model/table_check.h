/*-------------------------------------------------------------------------
 *
 * existing.h
 *	  Tables as they are, which others may change at any time.
 *
 * extension/existing.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_EXISTING_H
#define EA_EXISTING_H

#include "catalog.h"
#include "utils/relcache.h"

/*
 * An error unless the table is one that the declarations know, its columns
 * have the types of their fields, and nobody who could take the rights of
 * whoever uses it has a hand in it (owners.h).  It is locked.
 */
extern void ea_existing_check(EaCatalog *catalog, Relation rel);

#endif							/* EA_EXISTING_H */
