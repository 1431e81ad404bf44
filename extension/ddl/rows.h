/*
 * Looking at the rows that are there, before anything is changed.
 */
#ifndef EA_ROWS_H
#define EA_ROWS_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/*
 * Are the tables that were made those of their names?  The owner of a schema
 * could have put others there: a fault for each.
 */
extern bool ea_ddl_owns_schemas(EaDdlPlan *plan);

/* All of these look at the stored table through SPI. */
extern bool ea_ddl_has_rows(EaDdlTable *table);

/* Has it so many rows that nobody may wait until all are looked at? */
extern bool ea_ddl_is_live(EaDdlTable *table);

/* Rows that meet the condition; rows: a table, or a query in parentheses. */
extern int64 ea_ddl_count(const char *rows, const char *condition);

/* A table of others must not refer to one that goes: a fault. */
extern void ea_ddl_check_dropped(EaDdlPlan *plan, EaDdlTable *table);

/*
 * Values that two rows or more of a table that stays would have, where a
 * unique object wants them different.
 */
extern int64 ea_ddl_count_duplicates(EaDdlTable *to, EaDdlObject *object);

/* The table as it is now, InvalidOid when there is none. */
extern Oid	ea_ddl_relation(const EaDdlTable *table);

#endif							/* EA_ROWS_H */
