/*
 * Policies at writes: may this caller make, change, delete this row?
 *
 * Read policies need no question: they are in every statement.  All of these
 * throw 403, and forget faults noted before, because authority comes before
 * validation.
 */
#ifndef EA_WRITE_POLICY_H
#define EA_WRITE_POLICY_H

#include "authz/policy_sql.h"
#include "base/compat.h"
#include "write/input.h"

/* Before the values of a create are read: refused whatever they are. */
extern bool ea_write_policy_refuse_create(EaRequest *req, EaEntity *entity);

/* A create whose values and targets have been checked. */
extern void ea_write_policy_check_create(EaInput *input);

/* Has the row to be looked at before the operation? */
extern bool ea_write_policy_ask(EaRequest *req, EaEntity *entity,
								EaOperation op);

/*
 * A row that is visible and held, before it is updated or deleted.  input is
 * what an update sets, or NULL when that is not sound.
 */
extern void ea_write_policy_check_row(EaRequest *req, EaEntity *entity,
									  EaOperation op, const EaId *id,
									  EaInput *input);

/* Rows of an entity that are locked and have been judged. */
typedef struct EaRulesHeld
{
	bool		asked;			/* otherwise no policy has a say, nor a lock */
	bool		seen;			/* the caller may see what they lead to */
	EaIds		rows;
} EaRulesHeld;

/*
 * Rows of the target whose reference, field owner, is about to become id, or
 * null: add appends ` AND <which rows>`.  Where a policy has a say they are
 * locked first, as by the clause given, so that a judged row cannot change
 * before it is written.  Others may come to meet the condition afterwards:
 * statements that write add ea_write_policy_only_held(), and do nothing when
 * none is held.
 */
typedef void (*EaRulesRows) (EaSqlBuf *b, int alias, void *arg);

extern void ea_write_policy_hold_members(EaRequest *req, EaField *owner,
										 const EaId *id, const char *lock,
										 EaRulesRows add, void *arg,
										 EaRulesHeld *held);

/* ` AND t<alias>.<column> = ANY ($n)` with the rows held, if any was asked. */
extern void ea_write_policy_only_held(EaSqlBuf *b, int alias,
									  const char *column,
									  const EaRulesHeld *held);

#define ea_write_policy_none_held(held) ((held)->asked && (held)->rows.n == 0)

extern EA_NORETURN void ea_write_policy_refuse(EaRequest *req);

#endif							/* EA_WRITE_POLICY_H */
