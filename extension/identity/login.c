/*
 * Login and change of the password.
 *
 * A failed login is one answer after one password hash, for any username and
 * any reason, so neither text nor time reveals whether a user exists.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/login.h"
#include "identity/password.h"
#include "identity/session.h"
#include "identity/sweep.h"
#include "identity/throttle.h"
#include "identity/throttle_hash.h"
#include "identity/username.h"
#include "request/body.h"
#include "request/errors.h"

typedef struct LoginRow
{
	EaAccount	account;
	char	   *password_hash;	/* NULL: cannot log in */
	bool		of_nfc;			/* it is of the NFC of what is typed */
} LoginRow;

static void
read_login(void *arg, TupleTableSlot *slot)
{
	LoginRow   *row = arg;

	ea_account_read(&row->account, slot);
	row->password_hash = slot->tts_isnull[EA_ACCOUNT_NCOLUMNS] ? NULL :
		TextDatumGetCString(slot->tts_values[EA_ACCOUNT_NCOLUMNS]);
	row->of_nfc = DatumGetBool(slot->tts_values[EA_ACCOUNT_NCOLUMNS + 1]);
}

/*
 * The name as it was typed.  No user has the empty one, which stands for all
 * impossible names.
 */
static const char *
name_of(const EaJson *username)
{
	char	   *name = ea_username_typed(username->text, username->len);

	return name == NULL ? "" : name;
}

#define LOGIN_BY(column) \
	"SELECT " EA_ACCOUNT_COLUMNS ", a.password_hash, a.password_nfc" \
	" FROM " EA_ACCOUNT_TABLES \
	" WHERE a." column " = $1 AND a.kind = 'USER'"

/* The user; an empty row when there is none. */
static LoginRow *
find_login(const char *sql, EaParams params)
{
	LoginRow   *row = palloc0(sizeof(LoginRow));

	ea_exec_one(EA_EXEC_READ, sql, params,
				EA_READER(read_login, EA_ACCOUNT_TYPES, TEXTOID, BOOLOID),
				row);
	return row;
}

static void
read_cost(void *arg, TupleTableSlot *slot)
{
	*(int *) arg = atoi(TextDatumGetCString(slot->tts_values[0]));
}

/* The highest cost that any user's hash has; found at an end of an index. */
static int
highest_cost(void)
{
	int			cost = 0;

	ea_exec_one(EA_EXEC_READ,
				"SELECT substr(password_hash, 5, 2) COLLATE \"C\""
				" FROM entityapi.account WHERE password_hash IS NOT NULL"
				" ORDER BY substr(password_hash, 5, 2) COLLATE \"C\" DESC"
				" LIMIT 1", EA_NO_PARAMS, EA_READER(read_cost, TEXTOID),
				&cost);
	return cost;
}

/*
 * Replace a password, if it still is what it was when it was verified, by
 * the hash of another or of the same one.
 */
static bool
replace_password(const LoginRow *row, const char *hash, bool change_required)
{
	return ea_exec_write("UPDATE entityapi.account"
						 " SET password_hash = $3, password_nfc = true,"
						 " password_change_required = $4"
						 " WHERE id = $1 AND password_hash = $2",
						 ea_params(EA_UUID(&row->account.principal.account),
								   EA_TEXT(row->password_hash), EA_TEXT(hash),
								   EA_BOOL(change_required))) > 0;
}

/*
 * Note a login, if the user may log in with that password still: another
 * request may have changed it during the hash.  From here on such a change
 * waits for this login and then ends its session.  A password that was typed
 * in NFC shows that the hash is of that.
 */
static bool
note_login(const LoginRow *row, bool is_nfc, TimestampTz now)
{
	return ea_exec_write("UPDATE entityapi.account SET last_login_at = $2,"
						 " password_nfc = password_nfc OR $4"
						 " WHERE id = $1 AND password_hash = $3"
						 " AND status = 'ACTIVE'",
						 ea_params(EA_UUID(&row->account.principal.account),
								   EA_TIMESTAMP(now),
								   EA_TEXT(row->password_hash),
								   EA_BOOL(is_nfc))) > 0;
}

/*
 * A hash to put in the place of that which the password belongs to, or NULL.
 * Nobody who is refused waits for it.
 */
static char *
hash_anew(const LoginRow *row, const EaJson *password, bool is_nfc)
{
	return row->account.active &&
		(ea_password_outdated(row->password_hash) ||
		 !(row->of_nfc || is_nfc)) ?
		ea_password_hash(password->text, password->len) : NULL;
}

const EaBodyForm ea_login_form = EA_BODY_FORM(
	{"username", EA_JSON_STRING, true},
	{"password", EA_JSON_STRING, true, "'format':'password'"}
);

/* All of a login but the tidying up. */
static void
log_in(EaRequest *req)
{
	const EaJson *body = ea_body_read(req, &ea_login_form);
	const EaJson *password = ea_jsonread_get(body, "password");
	const char *name = name_of(ea_jsonread_get(body, "username"));
	EaThrottle	throttle;
	LoginRow   *row;
	bool		is_nfc = ea_password_is_nfc(password->text, password->len);
	bool		known;
	char	   *hash;

	ea_throttle_enter(req, &throttle, ea_username_key(name));
	ea_throttle_hash(req, &throttle);
	row = find_login(LOGIN_BY("username_key"),
					 ea_params(EA_TEXT(ea_username_key(name))));
	if (row->account.principal.user_id != NULL)
		ea_audit_subject(req, &row->account.principal);
	known = ea_password_verify(password->text, password->len,
							   row->password_hash, row->of_nfc,
							   highest_cost());
	hash = known ? hash_anew(row, password, is_nfc) : NULL;
	if (!known || !row->account.active ||
		!note_login(row, is_nfc, req->now))
	{
		/* only noted: a thrown refusal would take the count back */
		ea_throttle_failed(req, &throttle);
		ea_errors_add(req, EA_ERR_LOGIN_FAILED, EA_AT_NONE, NULL,
					  "The username or the password is wrong.");
		return;
	}

	ea_throttle_succeeded(req, &throttle, &row->account.principal.account);
	if (hash != NULL)
		replace_password(row, hash, row->account.principal.force_change);
	ea_session_begin(req, &row->account);
}

/* POST /auth/login */
void
ea_login(EaRequest *req)
{
	log_in(req);

	/* at the end: rows it locks are not to wait for other locks */
	ea_sweep_run(req->now, EA_SWEEP_STEP);
}

static void
check_new_password(EaRequest *req, const EaJson *old, const EaJson *new,
				   const char *username)
{
	if (ea_account_check_password(req, new, "/newPassword",
								  ea_username_key(username)) &&
		strcmp(ea_password_nfc(old->text, old->len),
			   ea_password_nfc(new->text, new->len)) == 0)
		ea_errors_add(req, EA_ERR_WEAK_PASSWORD, EA_AT_POINTER,
					  "/newPassword",
					  "The new password must differ from the old one.");
}

/* Note it; the request is refused, but what it wrote stays. */
static void
refuse_password(EaRequest *req)
{
	ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
				  "/currentPassword", "The current password is wrong.");
}

const EaBodyForm ea_login_change_password_form = EA_BODY_FORM(
	{"currentPassword", EA_JSON_STRING, true, "'format':'password'"},
	{"newPassword", EA_JSON_STRING, true,
	"'format':'password','minLength':12,'maxLength':128"}
);

/* POST /auth/change-password */
void
ea_login_change_password(EaRequest *req)
{
	const EaJson *body = ea_body_read(req, &ea_login_change_password_form);
	const EaJson *old = ea_jsonread_get(body, "currentPassword");
	const EaJson *new = ea_jsonread_get(body, "newPassword");
	EaThrottle	throttle;
	LoginRow   *row;
	char	   *hash;

	ea_throttle_enter(req, &throttle,
					  ea_username_key(req->principal->username));
	ea_throttle_hash(req, &throttle);
	row = find_login(LOGIN_BY("id"),
					 ea_params(EA_UUID(&req->principal->account)));
	check_new_password(req, old, new, req->principal->username);
	if (!ea_password_verify(old->text, old->len, row->password_hash,
							row->of_nfc, highest_cost()))
	{
		ea_throttle_failed(req, &throttle);
		refuse_password(req);
		return;
	}
	ea_errors_check(req);

	/*
	 * The account may have been disabled, or this session ended, during the
	 * two hashes; from here on both wait, and end the new session as well.
	 */
	hash = ea_password_hash(new->text, new->len);
	ea_account_hold_own(req);

	/* another change came first: the password sent is not current any more */
	if (!replace_password(row, hash, false))
	{
		refuse_password(req);
		return;
	}
	ea_throttle_succeeded(req, &throttle, &row->account.principal.account);
	row->account.principal.force_change = false;
	ea_session_end_all(&row->account.principal.account, req->now);
	ea_session_begin(req, &row->account);
}
