/*
 * Change relationships that are not columns of the resource's own row.
 *
 * The targets have been checked to be visible.  Rows whose column changes
 * get a new version.
 */
#ifndef EA_LINKS_H
#define EA_LINKS_H

#include "write/audit_changes.h"

/*
 * Put the targets into a relationship of resource id, take them out of it, or
 * make its members exactly these; and note in the open record, if there is
 * one, which members there were and are.  Those already there, or not, are
 * left alone.  Throws 400 when a member would lose a required relationship.
 */
extern void ea_links_write(EaRequest *req, EaWriteLinks how, EaField *field,
						   const EaInputField *in, const EaId *id);

/*
 * `, updated_at = $n` and, for locking entities, `, version = version + 1`:
 * columns that every update of a row sets besides.
 */
extern void ea_links_touch(EaSqlBuf *b, StringInfo set, EaEntity *entity);

#endif							/* EA_LINKS_H */
