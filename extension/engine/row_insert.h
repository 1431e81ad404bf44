/*
 * Plans that are an INSERT of one row, run without the executor.
 *
 * What only the executor knows is left to it: triggers, but those of foreign
 * keys, values that are another each time, several rows.
 */
#ifndef EA_ROW_INSERT_H
#define EA_ROW_INSERT_H

#include "engine/row_kind.h"

extern const EaRowKind ea_row_insert;

#endif							/* EA_ROW_INSERT_H */
