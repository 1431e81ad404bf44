/*-------------------------------------------------------------------------
 *
 * existing.h
 *	  Existing tables, which others may change at any time.
 *
 * extension/existing.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_EXISTING_H
#define EA_EXISTING_H

#include "catalog.h"

/*
 * Hold an entity's existing table as it is until the transaction ends.  An
 * error when its columns have other types by now than their fields, since
 * values are read by the types of the fields.
 */
extern void ea_existing_hold(EaEntity *entity);

#endif							/* EA_EXISTING_H */
