/*-------------------------------------------------------------------------
 *
 * account.h
 *	  Accounts of users: reading, making, describing them.
 *
 *-------------------------------------------------------------------------
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
 * The account with this id, of a session that is its own and alive; false
 * when there is none or it is not active.  Session and force_change of the
 * principal are filled, too.
 */
extern bool ea_session_lookup(const pg_uuid_t *session,
							  const pg_uuid_t *id, TimestampTz now,
							  EaAccount *account);

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

/* "USER", ..., and back. */
extern const char *ea_account_kind(EaKind kind);
extern EaKind ea_account_find_kind(const char *name);

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

/*
 * Read the members of a new user from an object that ea_body_check() has
 * looked at: username, email, roles, securityAttributes, profile and
 * temporaryPassword, each as far as it is there.  Notes all faults; base is
 * the pointer to the object.  The account is complete if there are none.
 */
extern void ea_account_describe(EaRequest *req, const EaJson *object,
								const char *base, EaNewAccount *account);

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

/*
 * Bring a stored state to what the members of an object, which
 * ea_body_check() has looked at, make of it: email (null: none any more),
 * status, securityAttributes and profile (merged), temporaryPassword.  Notes
 * all faults.
 */
extern void ea_account_change(EaRequest *req, const EaJson *object,
							  EaAccountState *state);

/*
 * The stored text of an object with a patch merged into it (RFC 7396), as
 * jsonb, or a fault noted at the pointer as ea_account_object() does.
 */
extern Datum ea_account_merge(EaRequest *req, const char *stored,
							  const EaJson *patch, const char *pointer);

/*
 * Read an array of declared roles into a text[] without repetitions.  Notes
 * a fault for each member that is none, or that the caller may not assign, at
 * <pointer>/<index>.  held: a text[] of those that the account has, which may
 * stay, or 0.
 */
extern Datum ea_account_roles(EaRequest *req, const EaJson *array,
							  const char *pointer, Datum held);

/*
 * May the caller get at what an account with these roles (text[]) may do, by
 * a new password or secret?  Nobody but a SuperAdmin gets so at roles that
 * only a SuperAdmin assigns.
 */
extern bool ea_account_may_enter(EaRequest *req, Datum roles);

/*
 * JSON text of an object to be stored to a jsonb Datum, or a fault noted at
 * the pointer: too long, or numbers beyond all use.
 */
extern Datum ea_account_object(EaRequest *req, const char *json,
							   const char *pointer);

/*
 * What is wrong with a new password of the user with this username key, the
 * list of common ones included; NULL if nothing is.
 */
extern const char *ea_account_password_fault(const char *password, int len,
											 const char *username_key);

#endif							/* EA_ACCOUNT_H */
