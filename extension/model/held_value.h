/*
 * Values for columns of tables of applications, as their types take them.
 */
#ifndef EA_HELD_VALUE_H
#define EA_HELD_VALUE_H

#include "model/entity.h"
#include "request/request.h"

/*
 * Whether the column's type takes a text: a label that an enumeration has, or
 * what its input function takes, which runs as the role of the application.
 * Else why not; PostgreSQL's words go to the log.  Other fields take all.
 */
extern bool ea_held_value_takes(EaRequest *req, const EaField *field,
								Datum value, const char **why);

/*
 * JSON's null, which is shown as null, stays where null is sent back: a column
 * that takes no other null has it, too.
 */
extern bool ea_held_value_keeps_null(const EaField *field);

#endif							/* EA_HELD_VALUE_H */
