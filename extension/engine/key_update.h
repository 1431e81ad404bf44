/*
 * Plans that are an UPDATE of one row by its key, run without the executor.
 *
 * What only the executor knows is left to it: triggers, but those of foreign
 * keys that stay as they are or can be asked by reference.h, more than one
 * row, somebody else who has changed the row meanwhile.
 */
#ifndef EA_KEY_UPDATE_H
#define EA_KEY_UPDATE_H

#include "engine/row_kind.h"

extern const EaRowKind ea_key_update;

#endif							/* EA_KEY_UPDATE_H */
