/*
 * The caller's own account: what it is, and its profile.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "base/jsonfmt.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/me.h"
#include "model/catalog.h"
#include "request/body.h"
#include "request/errors.h"

typedef struct OwnRow
{
	char	   *email;
	char	   *profile;
} OwnRow;

static void
read_own(void *arg, TupleTableSlot *slot)
{
	OwnRow	   *row = arg;

	row->email = slot->tts_isnull[0] ? NULL :
		TextDatumGetCString(slot->tts_values[0]);
	row->profile = TextDatumGetCString(slot->tts_values[1]);
}

/* What the principal does not hold. */
static OwnRow
find_own(EaRequest *req)
{
	OwnRow		row = {0};

	ea_exec_one(req->method == EA_GET ? EA_EXEC_READ : EA_EXEC_WRITE,
				"SELECT email, profile::text FROM entityapi.account"
				" WHERE id = $1", ea_params(EA_UUID(&req->principal->account)),
				EA_READER(read_own, TEXTOID, TEXTOID), &row);
	return row;
}

static void
answer_me(EaRequest *req, const char *email)
{
	const EaPrincipal *principal = req->principal;
	const pg_uuid_t *tenant = req->catalog->single ?
		&req->catalog->single_tenant : NULL;

	ea_jsonfmt_put(req->out, "{'userId':%q,'username':%q,'email':%q,"
				   "'tenantId':%u,'roles':%n,'profile':%o,"
				   "'securityAttributes':%o,'accountKind':%q,"
				   "'isSuperAdmin':%b,'isTenantAdmin':%b,'scope':[%s]}",
				   principal->user_id, principal->username, email,
				   principal->has_tenant ? &principal->tenant : tenant,
				   principal->roles, principal->nroles, principal->profile,
				   principal->attributes, ea_account_kind(principal->kind),
				   principal->super_admin, principal->tenant_admin,
				   principal->force_change ? "\"FORCE_CHANGE\"" : "");
	req->status = 200;
}

/* GET /auth/me */
void
ea_me_show(EaRequest *req)
{
	answer_me(req, find_own(req).email);
}

const EaBodyForm ea_me_update_form = EA_BODY_FORM(
	{"profile", EA_JSON_OBJECT, true}
);

/* PATCH /auth/me */
void
ea_me_update(EaRequest *req)
{
	const EaJson *body = ea_body_read(req, &ea_me_update_form);
	OwnRow		row;

	ea_account_hold_own(req);
	row = find_own(req);
	req->principal->profile = row.profile;
	ea_account_merge(req, body, "profile", &req->principal->profile);
	ea_errors_check(req);
	ea_exec_write("UPDATE entityapi.account SET profile = $2::jsonb"
				  " WHERE id = $1",
				  ea_params(EA_UUID(&req->principal->account),
							EA_TEXT(req->principal->profile)));
	ea_users_note_change(req, "profile", row.profile,
						 req->principal->profile, true);
	answer_me(req, row.email);
}
