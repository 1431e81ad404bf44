/*
 * How much of the tables the values of a statement stand for.
 */
#ifndef EA_VALUE_CLASS_H
#define EA_VALUE_CLASS_H

#include "utils/plancache.h"

#include "engine/exec_params.h"

typedef struct EaValueClasses EaValueClasses;

/*
 * What is to be looked at, of a statement that has been analyzed, in the
 * current memory context: here the catalogs are read.
 */
extern EaValueClasses *ea_value_classes_make(CachedPlanSource *source);

/*
 * The class of some values: equal if columns that are compared with them have
 * about as many rows of each, by PostgreSQL's statistics, if lists are about
 * as long, and OFFSET leaves out about as many rows.
 */
extern uint64 ea_value_class(const EaValueClasses *classes, EaParams params);

#endif							/* EA_VALUE_CLASS_H */
