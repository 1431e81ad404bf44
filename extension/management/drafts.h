/*
 * Records that are made, changed, and otherwise seen to, by the table of
 * their kind.
 */
#ifndef EA_DRAFTS_H
#define EA_DRAFTS_H

#include "management/records.h"

/* Handlers.  The caller's authority over the tenant has been checked. */
extern void ea_drafts_create(EaRequest *req);
extern void ea_drafts_change(EaRequest *req);

/*
 * Do the route's statement to a record: $1 is its id, $2 the scope, $3 the
 * time.  Answers 204, or with the record.
 */
extern void ea_drafts_act(EaRequest *req);

/* -------- what they do, in parts -------- */

/*
 * Read the members of the draft's form from its body, which ea_body_check()
 * has looked at.  Notes all faults.  One that is absent is read as well,
 * unless the record is there already.
 */
extern void ea_drafts_read(EaDraft *draft);

/* Put into a column; what comes first stays.  And what was put there. */
extern void ea_drafts_store(EaDraft *draft, const char *column, EaValue value);
extern const EaValue *ea_drafts_stored(const EaDraft *draft,
									   const char *column);

/* Write what is stored: a new row, 409 if there is one like it; a change. */
extern void ea_drafts_insert(EaDraft *draft);
extern void ea_drafts_update(EaDraft *draft);

#endif							/* EA_DRAFTS_H */
