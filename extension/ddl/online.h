/*
 * Changes of tables that are in use: what is left for later.
 */
#ifndef EA_ONLINE_H
#define EA_ONLINE_H

#include "nodes/pg_list.h"

#include "ddl/plan.h"
#include "ddl/tables.h"

/* As schemas and names of what is pending are kept together. */
extern char *ea_ddl_pending_key(const char *schema, const char *name);

/* index, unique, validate; NULL for what cannot be left for later. */
extern const char *ea_ddl_step_kind(const EaDdlObject *object);

/* The statement of an index that no transaction may run. */
extern const char *ea_ddl_concurrently(const EaDdlTable *to,
									   const EaDdlObject *object);

/* The check that stands in for NOT NULL until it has been validated. */
extern char *ea_ddl_filled_name(const EaDdlTable *table,
								const EaDdlColumn *column);

/* The statement that gives rows without a value the default. */
extern const char *ea_ddl_fill(const EaDdlTable *to,
							   const EaDdlColumn *column);

/* Add an object to a live table; false: only the transaction can. */
extern bool ea_ddl_add_online(EaDdlPlan *plan, EaDdlTable *to,
							  EaDdlObject *object);

/* An object that stays is pending and stays so, if it is. */
extern void ea_ddl_keep_pending(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlTable *to, EaDdlObject *stored,
								EaDdlObject *object);

/* An object that is pending, and of which there may be nothing to rename. */
extern bool ea_ddl_is_promised(EaDdlPlan *plan, EaDdlTable *from,
							   EaDdlObject *object);

/* Drop what may not be there yet; false: it is there. */
extern bool ea_ddl_drop_pending(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlObject *object);

/*
 * Was a column required in the stored state, and is it to be so still?  If
 * that is pending it stays so, or what was made for it goes.
 */
extern bool ea_ddl_keep_required(EaDdlPlan *plan, EaDdlTable *from,
								 EaDdlTable *to, EaDdlColumn *stored,
								 EaDdlColumn *column);

/* A column of a live table is required from now on; fill: rows lack it. */
extern void ea_ddl_require_online(EaDdlPlan *plan, EaDdlTable *to,
								  EaDdlColumn *column, bool fill);

/* Make steps the ones that are pending; needs SPI. */
extern void ea_ddl_store_steps(List *steps, int revision);

#endif							/* EA_ONLINE_H */
