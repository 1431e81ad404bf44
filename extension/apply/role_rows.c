/*
 * Statements come from the builder that requests use, with its predicates, so
 * the rows that count are those that would be shown.  Both sides look at the
 * same rows for a caller, the first of its tenant by id: a policy that leaves
 * few of many costs no more.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "apply/role_rows.h"
#include "authz/authz.h"
#include "authz/caller_number.h"
#include "base/names.h"
#include "base/sha256.h"
#include "identity/account.h"
#include "model/application.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"
#include "model/sqlbuf.h"

/* Holders of a role that are asked about; the same in HOLDERS_SQL. */
#define MOST_HOLDERS 1000

#define HOLDERS_SQL(condition) \
	"SELECT " EA_ACCOUNT_COLUMNS " FROM " EA_ACCOUNT_TABLES \
	" WHERE a.status = 'ACTIVE' AND t.status = 'ACTIVE' AND " condition \
	" ORDER BY a.id LIMIT 1001"

/* How many rows may be looked at is the first parameter of all statements. */
#define LIMIT "$1"

static void
add_holder(void *arg, TupleTableSlot *slot)
{
	EaAccount  *account = palloc(sizeof(EaAccount));
	List	  **holders = arg;

	ea_account_read(account, slot);
	*holders = lappend(*holders, &account->principal);
}

List *
ea_role_rows_holders(const char *role, bool *all)
{
	const EaReader *reader = EA_READER(add_holder, EA_ACCOUNT_TYPES);
	EaParams	none = EA_NO_PARAMS;
	List	   *holders = NIL;

	if (strcmp(role, EA_ROLE_EVERYBODY) == 0)
		ea_exec_each(EA_EXEC_READ, HOLDERS_SQL("true"), none, reader,
					 &holders);
	else if (strcmp(role, EA_ROLE_TENANT_ADMIN) == 0)
		ea_exec_each(EA_EXEC_READ, HOLDERS_SQL("ta.account_id IS NOT NULL"),
					 none, reader, &holders);
	else
		ea_exec_each(EA_EXEC_READ, HOLDERS_SQL("$1 = ANY (a.roles)"),
					 ea_params(EA_TEXT(role)), reader, &holders);
	*all = list_length(holders) <= MOST_HOLDERS;
	return list_truncate(holders, MOST_HOLDERS);
}

void
ea_role_rows_assume(EaPrincipal *principal, const char *role)
{
	bool		everybody = strcmp(role, EA_ROLE_EVERYBODY) == 0;

	principal->tenant_admin = strcmp(role, EA_ROLE_TENANT_ADMIN) == 0;
	principal->super_admin = false;
	principal->nroles = everybody || principal->tenant_admin ? 0 : 1;
	principal->roles = palloc(sizeof(char *));
	principal->roles[0] = pstrdup(role);
	ea_caller_changed(principal);
}

/* -------- statements -------- */

/* Rows of a table that are looked at: the tenant's, deleted ones too. */
static char *
first_rows(EaSqlBuf *b, EaEntity *entity, const char *what, int alias)
{
	int			len = b->text.len;
	char	   *condition = "true";

	if (entity->tenant_scoped)
	{
		ea_row_tenant_add(b, entity, alias, ea_sqlbuf_tenant(b));
		condition = pstrdup(b->text.data + len);
		b->text.len = len;
		b->text.data[len] = '\0';
	}
	return psprintf("(SELECT %s FROM %s t%d WHERE %s", what, entity->table,
					alias, condition);
}

static bool
reads_entity(EaRoleSide *side)
{
	return side->entity != NULL &&
		ea_authz_allows(&side->req, side->entity, EA_OP_READ);
}

/* `t<n>.id`, or each part of it */
static char *
order_of(const EaEntity *entity, int alias)
{
	StringInfoData list;

	initStringInfo(&list);
	ea_columns_append(&list, entity->id_column, alias);
	return list.data;
}

/* `(SELECT t<n>.id AS id FROM ...)`: what this side shows of these rows */
static void
add_shown(EaSqlBuf *b, EaRoleSide *side)
{
	EaEntity	looked = *side->entity;
	int			alias;
	int			first;

	b->req = &side->req;
	alias = ea_sqlbuf_reserve(b);
	first = ea_sqlbuf_reserve(b);
	looked.table = psprintf("%s ORDER BY %s LIMIT " LIMIT ")",
							first_rows(b, side->entity, "*", first),
							order_of(side->entity, first));
	ea_sqlbuf_add(b, "(SELECT ");
	ea_sqlbuf_column(b, alias, looked.id_column);
	ea_sqlbuf_add(b, " AS id");
	ea_sqlbuf_from_as(b, &looked, EA_OP_READ, alias);
	ea_sqlbuf_add(b, ")");

	/* policies' memory stays with the entity, not once a statement */
	side->entity->judged = looked.judged;
}

static void
begin_statement(EaSqlBuf *b, EaRoleSide *side)
{
	ea_sqlbuf_init(b, &side->req);
	ea_sqlbuf_param(b, INT8OID, (Datum) 0, false);
}

/* Text and values but for the limit: equal ones show the same rows. */
static void
add_key(StringInfo key, EaRoleSide *side)
{
	EaSqlBuf	b;

	begin_statement(&b, side);
	if (reads_entity(side))
		add_shown(&b, side);
	appendBinaryStringInfo(key, b.text.data, b.text.len + 1);
	for (int i = 1; i < b.nparams; i++)
	{
		const EaValue *param = &b.params[i];
		int16		len;
		bool		by_value;
		char	   *at;

		get_typlenbyval(param->type, &len, &by_value);
		enlargeStringInfo(key, datumEstimateSpace(param->value, param->isnull,
												  by_value, len));
		at = key->data + key->len;
		datumSerialize(param->value, param->isnull, by_value, len, &at);
		key->len = at - key->data;
	}
}

/* Numbers of before, after, both, and of the rows that there are to look at */
static void
write_statement(EaSqlBuf *b, EaRoleSide *before, EaRoleSide *after, bool same)
{
	EaRoleSide *any = before->entity != NULL ? before : after;
	EaRoleSide *one = reads_entity(before) ? before : after;

	begin_statement(b, any);
	ea_sqlbuf_addf(b, "SELECT %s, (SELECT count(*) FROM %s LIMIT "
				   LIMIT " + 1) n) FROM ",
				   same ? "count(*), count(*), count(*)" :
				   !reads_entity(after) ? "count(*), 0::int8, 0::int8" :
				   !reads_entity(before) ? "0::int8, count(*), 0::int8" :
				   "count(b.id), count(a.id),"
				   " count(*) FILTER (WHERE a.id = b.id)",
				   first_rows(b, any->entity, "1", ea_sqlbuf_reserve(b)));
	add_shown(b, one);
	if (!same && reads_entity(before) && reads_entity(after))
	{
		ea_sqlbuf_add(b, " b FULL JOIN ");
		add_shown(b, after);
		ea_sqlbuf_add(b, " a ON a.id = b.id");
	}
	else
		ea_sqlbuf_add(b, " s");
}

/*
 * Rows of an application are read as its role.  False where that may not see
 * all that the statement is over.
 */
static bool
begin_as_role(const EaSqlBuf *b, const EaEntity *entity, EaPin *pin)
{
	const EaApplicationModel *application = entity->catalog->application;
	Oid			role = application == NULL ? InvalidOid :
	get_role_oid(application->role, true);

	if (b->of_application && (b->of_service || !OidIsValid(role) ||
							  !entity->of_application))
		return false;
	if (b->of_application)
		ea_application_look(role, pin);
	else
		ea_pin_begin(pin);
	return true;
}

/* Returns how many rows there were to look at, one more than max at most. */
static int64
count_rows(EaSqlBuf *b, int64 max, EaRoleRows *rows)
{
	MemoryContext old = CurrentMemoryContext;
	Oid		   *types = palloc(b->nparams * sizeof(Oid));
	Datum	   *values = palloc(b->nparams * sizeof(Datum));
	char	   *nulls = palloc(b->nparams);
	int64		numbers[4];

	for (int i = 0; i < b->nparams; i++)
	{
		types[i] = b->params[i].type;
		values[i] = b->params[i].value;
		nulls[i] = b->params[i].isnull ? 'n' : ' ';
	}
	values[0] = Int64GetDatum(max);
	if (SPI_execute_with_args(b->text.data, b->nparams, types, values, nulls,
							  false, 0) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not count rows");
	for (int i = 0; i < lengthof(numbers); i++)
	{
		bool		isnull;

		numbers[i] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
												 SPI_tuptable->tupdesc,
												 i + 1, &isnull));
	}
	SPI_freetuptable(SPI_tuptable);
	MemoryContextSwitchTo(old);
	rows->before += numbers[0];
	rows->after += numbers[1];
	rows->both += numbers[2];
	return numbers[3];
}

/* -------- callers -------- */

/* A name for the pair of what both sides show; *same: they are equal. */
static char *
name_view(EaRoleSide *before, EaRoleSide *after, bool *same)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	char	   *name = palloc(2 * sizeof(digest) + 1);
	StringInfoData key;
	int			first;

	initStringInfo(&key);
	add_key(&key, before);
	first = key.len;
	add_key(&key, after);
	*same = key.len == 2 * first &&
		memcmp(key.data, key.data + first, first) == 0;
	ea_sha256(key.data, key.len, digest);
	name[hex_encode((const char *) digest, sizeof(digest), name)] = '\0';
	return name;
}

static void
become_holder(EaRoleSide *side, const EaPrincipal *holder, const char *role)
{
	EaPrincipal *principal = palloc(sizeof(EaPrincipal));

	*principal = *holder;
	ea_role_rows_assume(principal, role);
	side->req.principal = principal;
	side->req.has_tenant = principal->has_tenant;
	side->req.tenant = principal->tenant;
}

static void
count_all(EaRoleRows *rows, EaRoleSide *before, EaRoleSide *after,
		  const char *role, List *holders, int64 left, TimestampTz deadline)
{
	EaNameMap  *seen = ea_names_map_create(64);
	ListCell   *lc;

	foreach(lc, holders)
	{
		EaSqlBuf	b;
		EaPin		pin;
		bool		same;
		int64		there;

		CHECK_FOR_INTERRUPTS();
		become_holder(before, lfirst(lc), role);
		become_holder(after, lfirst(lc), role);
		if (!reads_entity(before) && !reads_entity(after))
			return;
		if (GetCurrentTimestamp() > deadline)
		{
			rows->differ = true;	/* for all that is known */
			rows->complete = false;
			return;
		}
		if (!ea_names_map_put(seen, name_view(before, after, &same), rows))
			continue;
		rows->callers++;
		rows->differ |= !same;
		if (left <= 0)
		{
			rows->complete = false;
			return;
		}
		write_statement(&b, before, after, same);
		if (!begin_as_role(&b, reads_entity(after) ? after->entity :
						   before->entity, &pin))
		{
			rows->differ = true;
			rows->complete = false;
			return;
		}
		there = count_rows(&b, left, rows);
		ea_pin_end(&pin);
		if (there > left)
			rows->complete = false;
		left -= there;
	}
}

void
ea_role_rows_count(EaRoleRows *rows, EaRoleSide *before, EaRoleSide *after,
				   const char *role, List *holders, int max_rows,
				   TimestampTz deadline)
{
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi rows of a role",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);

	count_all(rows, before, after, role, holders, max_rows, deadline);
	before->req.principal = NULL;
	after->req.principal = NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(mcxt);
}
