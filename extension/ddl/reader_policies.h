/*
 * Row-level security and rights of entityapi_reader on the tables.
 */
#ifndef EA_READER_POLICIES_H
#define EA_READER_POLICIES_H

#include "ddl/plan.h"
#include "model/catalog.h"

/*
 * Policies and rights that the tables of a state are to have; those that are
 * there stay.
 */
extern void ea_ddl_derive_policies(EaDdlState *state, EaCatalog *catalog);

/* Policies and rights; comes when all other statements are planned. */
extern void ea_ddl_secure(EaDdlPlan *plan, EaCatalog *stored,
						  EaCatalog *wanted);

#endif							/* EA_READER_POLICIES_H */
