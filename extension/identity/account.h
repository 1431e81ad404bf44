/*
 * Accounts of users: reading, making, describing them.
 */
#ifndef EA_ACCOUNT_H
#define EA_ACCOUNT_H

#include "executor/tuptable.h"

#include "request/request.h"

/* Bytes of a profile, of security attributes, as compact JSON. */
#define EA_ACCOUNT_OBJECT_MAX 4096

typedef struct EaAccount
{
	EaPrincipal principal;		/* session is left zero */
	bool		active;			/* and its tenant, if it has one, too */
} EaAccount;

/*
 * What a statement selects to read an account, from which tables, in this
 * order; whatever it selects besides comes after.
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

/* Fill from the first EA_ACCOUNT_NCOLUMNS columns, in the current context. */
extern void ea_account_read(EaAccount *account, TupleTableSlot *slot);

/*
 * Before the caller changes what is his own: hold his account and his session,
 * in this order, and read again what he has.  Throws 401 when one of them has
 * ended since the request began.
 */
extern void ea_account_hold_own(EaRequest *req);

/*
 * Before declared roles and attributes are given to an account, and before
 * its row is held: whoever takes one out of the declarations waits for this
 * transaction, and then sees that the account has it.  Throws 40001 when he
 * came first.
 */
extern void ea_account_hold_declarations(EaRequest *req);

/* "USER", ..., and back; false for what is none. */
extern const char *ea_account_kind(EaKind kind);
extern bool ea_account_find_kind(const char *name, EaKind *kind);

/* An account about to be made. */
typedef struct EaNewAccount
{
	bool		has_tenant;		/* false: a SuperAdmin */
	pg_uuid_t	tenant;
	char	   *username;
	char	   *username_key;
	const char *email;			/* or NULL */
	Datum		roles;			/* text[] */
	Datum		attributes;		/* jsonb */
	Datum		profile;		/* jsonb */
	const char *password;
	bool		temporary;		/* must be changed at the first login */
	bool		generated;		/* the password is to be shown, once */
} EaNewAccount;

/* Insert it; false when the username is taken.  Hashes the password. */
extern bool ea_account_insert(const EaNewAccount *account, TimestampTz now,
							  pg_uuid_t *id);

/* Give a user of the tenant the authority of a TenantAdmin. */
extern void ea_account_make_admin(const pg_uuid_t *tenant,
								  const pg_uuid_t *id);

/* What is to become of an account that is being changed. */
typedef struct EaAccountState
{
	const char *username_key;
	const char *email;			/* or NULL */
	const char *status;
	Datum		roles;			/* text[], those there are */
	const char *attributes;		/* JSON text, of jsonb */
	const char *profile;
	const char *password;		/* a new one, else NULL */
} EaAccountState;

#endif							/* EA_ACCOUNT_H */
