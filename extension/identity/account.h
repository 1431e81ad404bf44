/*
 * Accounts: the statements about them, and what may be their password.
 */
#ifndef EA_ACCOUNT_H
#define EA_ACCOUNT_H

#include "executor/tuptable.h"

#include "request/request.h"

typedef struct EaAccount
{
	EaPrincipal principal;		/* session is left zero */
	bool		active;			/* and its tenant, if it has one, too */
} EaAccount;

/*
 * The columns that a statement selects to read an account, in this order, and
 * their tables; other columns come after.
 */
#define EA_ACCOUNT_COLUMNS \
	"a.id, a.kind, a.tenant_id, a.username, a.roles, a.profile::text," \
	" a.security_attributes::text, a.is_super_admin," \
	" ta.account_id IS NOT NULL, a.password_change_required," \
	" a.status = 'ACTIVE' AND CASE WHEN a.is_super_admin" \
	" THEN a.tenant_id IS NULL ELSE t.status IS NOT NULL" \
	" AND t.status = 'ACTIVE' END"
#define EA_ACCOUNT_NCOLUMNS 11
#define EA_ACCOUNT_TYPES \
	UUIDOID, TEXTOID, UUIDOID, TEXTOID, TEXTARRAYOID, TEXTOID, TEXTOID, \
	BOOLOID, BOOLOID, BOOLOID, BOOLOID
#define EA_ACCOUNT_TABLES \
	"entityapi.account a" \
	" LEFT JOIN entityapi.tenant t ON t.id = a.tenant_id" \
	" LEFT JOIN entityapi.tenant_admin ta" \
	" ON ta.account_id = a.id AND ta.tenant_id = a.tenant_id"

/* The same where each node has these tables, for a statement of Citus. */
extern const char *ea_account_tables(void);

/* Fill from the first EA_ACCOUNT_NCOLUMNS columns, in the current context. */
extern void ea_account_read(EaAccount *account, TupleTableSlot *slot);

/*
 * Before the caller changes its own data: hold its account and its session, in
 * this order, and read them again.  Throws 401 when one of them has ended
 * since the request began.
 */
extern void ea_account_hold_own(EaRequest *req);

/*
 * Before declared roles and attributes are given to an account, and before its
 * row is held: a transaction that takes one out of the declarations waits for
 * this one, and then sees that the account has it.  Throws 40001 when the
 * other came first.
 */
extern void ea_account_hold_declarations(EaRequest *req);

/* "USER", ..., and back; false for what is none. */
extern const char *ea_account_kind(EaKind kind);
extern bool ea_account_find_kind(const char *name, EaKind *kind);

/*
 * The fault of a new password of the user with this username key, the list of
 * common ones included; NULL if nothing is.
 */
extern const char *ea_account_password_fault(const char *password, int len,
											 const char *username_key);

/*
 * Note what is wrong with a new password; false if anything is.  The key may
 * be NULL.
 */
extern bool ea_account_check_password(EaRequest *req, const EaJson *password,
									  const char *pointer,
									  const char *username_key);

#endif							/* EA_ACCOUNT_H */
