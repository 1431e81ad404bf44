/*-------------------------------------------------------------------------
 *
 * insert.h
 *	  New rows of an entity, one or many in one statement.
 *
 * extension/insert.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_INSERT_H
#define EA_INSERT_H

#include "document.h"
#include "input.h"

/*
 * Insert a row for each input, all of the sink's entity, with the given ids.
 * The rows go to the sink in the order of the inputs.  Relationships kept
 * elsewhere are not touched.
 */
extern void ea_insert_rows(EaInput *const *inputs, const pg_uuid_t *ids,
						   int n, EaRowSink *sink);

#endif							/* EA_INSERT_H */
