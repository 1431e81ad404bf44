/*
 * Members of an update that are accepted only where they say nothing new: what
 * nobody may set, and values that no document may bring.  So a resource that
 * was read can be sent back whole.
 */
#ifndef EA_REPEATED_H
#define EA_REPEATED_H

#include "write/input.h"

/*
 * Compare them with the row, and note a fault for each that differs.  The row
 * is held then; where there are none, nothing is done.  A row that the caller
 * does not see has no value.
 */
extern void ea_repeated_check(EaInput *input, const EaId *id);

#endif							/* EA_REPEATED_H */
