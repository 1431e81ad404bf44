/*
 * One form for what documents may write in several.
 */
#ifndef EA_NORMALIZE_H
#define EA_NORMALIZE_H

#include "base/jsonread.h"

/*
 * Give each number the form in which jsonb has it.  The order of members
 * stays.  Throws for a number that no numeric can hold.
 */
extern void ea_manifest_normalize(EaJson *json);

#endif							/* EA_NORMALIZE_H */
