/*
 * Two lists in the order of ids, the rows and the tenants that are known to be
 * rows, are read side by side, a part at a time.  What is in both and the same
 * is written nowhere, so a look at tenants that have not changed only reads.
 *
 * The rows are read as the role of the application.  Code of it may run by
 * that, so nothing of the service is held meanwhile but values.  An error is
 * no answer: only rows of a table that was found to be as it has to be, under
 * its lock and with a snapshot from after that, are believed to be all.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"

#include "audit/audit.h"
#include "base/grow.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "identity/username.h"
#include "management/attempt.h"
#include "management/tenant_rows.h"
#include "model/application.h"
#include "model/tenant_table.h"
#include "trust/guard.h"
#include "trust/owner.h"
#include "trust/pin.h"
#include "write/links_deferred.h"

/* Rows, and tenants, that are looked at together. */
#define PART 1000

/* Characters of a name that has the id behind it, and a number. */
#define SHORT_NAME 80

/* Names that are tried, when others have those of rows on purpose. */
#define MOST_NAMES 1000

/* Bytes of a name that are read: enough for one of any characters. */
#define NAME_BYTES 4096

/* A row, or a tenant that is one; for both the id comes first. */
typedef struct Row
{
	pg_uuid_t	id;
	char	   *name;			/* as it is there, or its beginning; or NULL */
} Row;

typedef struct Tenant
{
	pg_uuid_t	id;
	char	   *name;
	bool		suspended;
	bool		there;			/* its row was */
} Tenant;

/* What is to be written. */
typedef struct Rename
{
	const Row  *row;
	char	   *from;
} Rename;

typedef struct Look
{
	EaRequest  *req;
	const EaTenantTable *table;
	int64		limit;
	int64		changes;
	bool		more;
	pg_uuid_t	position;		/* behind it comes the next part */

	/* a part: both have to be read up to its end */
	MemoryContext part;
	int			nrows;
	Row			rows[PART];
	int			ntenants;
	Tenant		tenants[PART];
	List	   *unknown;		/* Row *, of no tenant that is known */
	List	   *renamed;		/* Rename * */
} Look;

/* Where the last look of this backend stopped. */
static struct
{
	bool		valid;
	int			revision;
	pg_uuid_t	position;
} place;

/* -------- the rows -------- */

static void
take_row(Look *look, HeapTuple tuple, TupleDesc desc)
{
	Row		   *row = &look->rows[look->nrows++];
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, desc, 1, &isnull);

	if (isnull)
		elog(ERROR, "an id of a tenant is null");
	row->id = *DatumGetUUIDP(value);
	value = SPI_getbinval(tuple, desc, 2, &isnull);
	row->name = isnull ? NULL :
		text_to_cstring(DatumGetTextPSlice(value, 0, NAME_BYTES));
}

static void
read_as_role(Look *look)
{
	char	   *id = unconstify(char *, quote_identifier(look->table->id));
	char	   *sql = psprintf("SELECT t.%s, t.%s FROM %s t"
							   " WHERE t.%s OPERATOR(pg_catalog.>) $1"
							   " ORDER BY t.%s LIMIT %d",
							   id, quote_identifier(look->table->name),
							   ea_tenant_table_qualified(look->table), id, id,
							   PART);
	Oid			types[] = {UUIDOID};
	Datum		values[] = {UUIDPGetDatum(&look->position)};
	const EaApplication *application = ea_application_of(look->req);
	uint64		calls = ea_guard_calls();
	EaPin		pin;
	int			result;

	ea_pin_begin(&pin);
	ea_application_check(application);
	ea_application_give_way();
	ea_pin_set("enable_sort", "off");
	ea_application_enter(application, false);
	PushActiveSnapshot(GetLatestSnapshot());
	result = SPI_execute_with_args(sql, 1, types, values, NULL, true, 0);
	PopActiveSnapshot();
	ea_pin_end(&pin);

	/* a restricted operation lets nothing wait */
	if (calls != ea_guard_calls() && ea_owner_settles())
		ea_application_note_code(application);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "the tenants of the application cannot be read: %s",
			 SPI_result_code_string(result));
}

static void
read_rows(Look *look)
{
	MemoryContext old;
	SPITupleTable *found;
	uint64		n;

	read_as_role(look);
	found = SPI_tuptable;
	n = SPI_processed;
	old = MemoryContextSwitchTo(look->part);
	look->nrows = 0;
	for (uint64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		take_row(look, found->vals[i], found->tupdesc);
	}
	MemoryContextSwitchTo(old);
	SPI_freetuptable(found);
}

/* -------- the tenants -------- */

static void
take_tenant(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	Tenant	   *tenant = &look->tenants[look->ntenants++];

	tenant->id = *DatumGetUUIDP(slot->tts_values[0]);
	tenant->name = TextDatumGetCString(slot->tts_values[1]);
	tenant->suspended = DatumGetBool(slot->tts_values[2]);
	tenant->there = DatumGetBool(slot->tts_values[3]);
}

static void
read_tenants(Look *look)
{
	static const Oid types[] = {UUIDOID, TEXTOID, BOOLOID, BOOLOID};
	const EaReader reader = {
		take_tenant, lengthof(types), types, EA_PLAN_IN_ORDER
	};
	MemoryContext old = MemoryContextSwitchTo(look->part);

	look->ntenants = 0;
	ea_exec_latest(EA_EXEC_LOOK,
				   "SELECT id, name, status = 'SUSPENDED', row_there"
				   " FROM entityapi.tenant"
				   " WHERE id > $1 AND row_there IS NOT NULL"
				   " AND status <> 'DELETED'"
				   " ORDER BY id LIMIT " CppAsString2(PART),
				   ea_params(EA_UUID(&look->position)), &reader, look);
	MemoryContextSwitchTo(old);
}

/* -------- names -------- */

/*
 * Names of tenants are unique, those of rows need not be: the later one has
 * its id behind it.  Whoever names a row in the application chooses this text,
 * too, so there are further ones.
 */
static char *
name_for(const Row *row, int attempt)
{
	const char *id = ea_uuid_text(&row->id);
	char	   *begin = row->name == NULL ? NULL :
		ea_username_shown(row->name, strlen(row->name),
						  attempt == 0 ? EA_USERNAME_MAX : SHORT_NAME);

	if (begin == NULL)
		begin = pstrdup(id);
	return attempt == 0 ? begin : attempt == 1 ?
		psprintf("%s (%s)", begin, id) :
		psprintf("%s (%s) %d", begin, id, attempt);
}

/* The tenant is called as its row, if only in the end. */
static bool
is_called_so(const Row *row, const char *name)
{
	char	   *second;

	if ((row->name != NULL && strcmp(name, row->name) == 0) ||
		strcmp(name, name_for(row, 0)) == 0)
		return true;
	second = name_for(row, 1);
	return strncmp(name, second, strlen(second)) == 0;
}

/* -------- writing -------- */

static const char *
as_json(const char *value)
{
	StringInfoData buf;

	if (value == NULL)
		return "null";
	initStringInfo(&buf);
	ea_jsonwrite_cstring(&buf, value);
	return buf.data;
}

static void
record(Look *look, const char *action, const pg_uuid_t *id,
	   EaAuditRecord *changes)
{
	look->changes++;
	ea_audit_changes_by_role(action, id, "tenant", ea_uuid_text(id),
							 psprintf("by its row of %s",
									  ea_tenant_table_qualified(look->table)),
							 changes);
}

static void
record_change(Look *look, const pg_uuid_t *id, const char *member,
			  const char *from, const char *to)
{
	EaAuditRecord changes = {0};

	ea_audit_change(&changes, member, as_json(from), as_json(to));
	record(look, "TENANT_UPDATED", id, &changes);
}

static void
record_made(Look *look, const Row *row, const char *name)
{
	EaAuditRecord changes = {0};

	ea_audit_change(&changes, "name", "null", as_json(name));
	ea_audit_change(&changes, "slug", "null",
					as_json(ea_uuid_text(&row->id)));
	ea_audit_change(&changes, "status", "null", "\"ACTIVE\"");
	record(look, "TENANT_CREATED", &row->id, &changes);
}

static bool
is_taken(const char *name)
{
	return ea_exec_write("SELECT 1 FROM entityapi.tenant WHERE name = $1",
						 ea_params(EA_TEXT(name))) > 0;
}

static void
make_tenant(Look *look, const Row *row)
{
	for (int attempt = 0; attempt < MOST_NAMES; attempt++)
	{
		const char *name = name_for(row, attempt);

		CHECK_FOR_INTERRUPTS();
		if (ea_exec_write("INSERT INTO entityapi.tenant (id, name, slug,"
						  " status, attributes, created_at, row_there)"
						  " VALUES ($1, $2, $1::text, 'ACTIVE', '{}', $3,"
						  " true) ON CONFLICT DO NOTHING",
						  ea_params(EA_UUID(&row->id), EA_TEXT(name),
									EA_TIMESTAMP(look->req->now))) > 0)
		{
			record_made(look, row, name);
			return;
		}
		if (!is_taken(name))
			break;
	}
	ereport(LOG,
			(errmsg("entityapi cannot make the tenant %s: its id, or this as "
					"a slug, is taken", ea_uuid_text(&row->id)),
			 errhidestmt(true)));
}

static void
rename_tenant(Look *look, const Rename *rename)
{
	const Row  *row = rename->row;

	for (int attempt = 0; attempt < MOST_NAMES; attempt++)
	{
		const char *name = name_for(row, attempt);

		CHECK_FOR_INTERRUPTS();
		if (ea_exec_write("UPDATE entityapi.tenant SET name = $2"
						  " WHERE id = $1 AND NOT EXISTS (SELECT 1"
						  " FROM entityapi.tenant o"
						  " WHERE o.name = $2 AND o.id <> $1)",
						  ea_params(EA_UUID(&row->id), EA_TEXT(name))) > 0)
		{
			if (strcmp(name, rename->from) != 0)
				record_change(look, &row->id, "name", rename->from, name);
			return;
		}
	}
	elog(ERROR, "there is no name for the tenant %s",
		 ea_uuid_text(&row->id));
}

/*
 * Rows that exchange their names would be in each other's way, so all give
 * theirs up first, for what no client can ask for.
 */
static void
rename_tenants(Look *look)
{
	ListCell   *lc;

	if (list_length(look->renamed) > 1)
	{
		foreach(lc, look->renamed)
		{
			const Rename *rename = lfirst(lc);

			ea_exec_write("UPDATE entityapi.tenant"
						  " SET name = pg_catalog.chr(1) || $1::text"
						  " WHERE id = $1",
						  ea_params(EA_UUID(&rename->row->id)));
		}
	}
	foreach(lc, look->renamed)
		rename_tenant(look, lfirst(lc));
}

static void
want_name(Look *look, const Row *row, char *now)
{
	Rename	   *rename;

	if (is_called_so(row, now))
		return;
	rename = palloc(sizeof(Rename));
	rename->row = row;
	rename->from = now;
	look->renamed = lappend(look->renamed, rename);
}

/* -------- comparing -------- */

/* An administrator's suspension is none of ours, and stays. */
static void
lose_row(Look *look, const Tenant *tenant)
{
	if (!tenant->there)
		return;
	if (tenant->suspended)
	{
		look->changes++;
		ea_exec_write("UPDATE entityapi.tenant SET row_there = NULL"
					  " WHERE id = $1", ea_params(EA_UUID(&tenant->id)));
		return;
	}
	ea_exec_write("UPDATE entityapi.tenant SET status = 'SUSPENDED',"
				  " row_there = false WHERE id = $1",
				  ea_params(EA_UUID(&tenant->id)));
	record_change(look, &tenant->id, "status", "ACTIVE", "SUSPENDED");
}

static void
keep_row(Look *look, const Row *row, const Tenant *tenant)
{
	if (!tenant->there)
	{
		ea_exec_write("UPDATE entityapi.tenant SET status = 'ACTIVE',"
					  " row_there = true WHERE id = $1",
					  ea_params(EA_UUID(&tenant->id)));
		record_change(look, &tenant->id, "status", "SUSPENDED", "ACTIVE");
	}
	want_name(look, row, tenant->name);
}

/* The last id that both lists were read up to; NULL: there is no more. */
static const pg_uuid_t *
find_end(const Look *look)
{
	const pg_uuid_t *end = look->nrows < PART ? NULL :
		&look->rows[look->nrows - 1].id;
	const pg_uuid_t *last = look->ntenants < PART ? NULL :
		&look->tenants[look->ntenants - 1].id;

	if (end == NULL || last == NULL)
		return end == NULL ? last : end;
	return ea_uuid_compare(end, last) < 0 ? end : last;
}

static bool
is_within(const pg_uuid_t *id, const pg_uuid_t *end)
{
	return end == NULL || ea_uuid_compare(id, end) <= 0;
}

static void
compare_part(Look *look, const pg_uuid_t *end)
{
	int			r = 0;
	int			t = 0;

	for (;;)
	{
		const Row  *row = r < look->nrows ? &look->rows[r] : NULL;
		const Tenant *tenant = t < look->ntenants ? &look->tenants[t] : NULL;
		int			order;

		CHECK_FOR_INTERRUPTS();
		if (row != NULL && !is_within(&row->id, end))
			row = NULL;
		if (tenant != NULL && !is_within(&tenant->id, end))
			tenant = NULL;
		if (row == NULL && tenant == NULL)
			break;
		order = row == NULL ? 1 : tenant == NULL ? -1 :
			ea_uuid_compare(&row->id, &tenant->id);
		if (order > 0)
			lose_row(look, tenant);
		else if (order < 0)
			look->unknown = lappend(look->unknown, unconstify(Row *, row));
		else
			keep_row(look, row, tenant);
		r += order <= 0;
		t += order >= 0;
	}
}

/* -------- rows of no tenant -------- */

/* A tenant of before, or one that goes. */
typedef struct Other
{
	pg_uuid_t	id;
	char	   *name;
	bool		goes;
} Other;

typedef struct Others
{
	int			n;
	int			max;
	Other	   *items;
} Others;

static void
take_other(void *arg, TupleTableSlot *slot)
{
	Other	   *other = EA_GROW((Others *) arg);

	other->id = *DatumGetUUIDP(slot->tts_values[0]);
	other->name = TextDatumGetCString(slot->tts_values[1]);
	other->goes = DatumGetBool(slot->tts_values[2]);
}

static void
read_others(Look *look, Others *others)
{
	int			n = list_length(look->unknown);
	Datum	   *ids = palloc(n * sizeof(Datum));
	ListCell   *lc;

	foreach(lc, look->unknown)
		ids[foreach_current_index(lc)] =
			UUIDPGetDatum(&((Row *) lfirst(lc))->id);
	ea_exec_latest(EA_EXEC_LOOK,
				   "SELECT id, name, status = 'DELETED' FROM entityapi.tenant"
				   " WHERE id = ANY ($1) ORDER BY id",
				   ea_params(EA_VALUE(UUIDARRAYOID, PointerGetDatum(
									  construct_array(ids, n, UUIDOID,
													  UUID_LEN, false,
													  TYPALIGN_CHAR)))),
				   EA_READER(take_other, UUIDOID, TEXTOID, BOOLOID), others);
}

/* It is a row from now on, and active or not as it was. */
static void
adopt_tenant(Look *look, const Row *row, const Other *other)
{
	look->changes++;
	ea_exec_write("UPDATE entityapi.tenant SET row_there = true"
				  " WHERE id = $1", ea_params(EA_UUID(&other->id)));
	want_name(look, row, other->name);
}

/* The id of one that was deleted here is free when its data have gone. */
static void
meet_unknown(Look *look)
{
	Others		others = {0};
	List	   *made = NIL;
	ListCell   *lc;

	if (look->unknown == NIL)
		return;
	read_others(look, &others);
	foreach(lc, look->unknown)
	{
		Row		   *row = lfirst(lc);
		const Other *other = others.n == 0 ? NULL :
			bsearch(row, others.items, others.n, sizeof(Other),
					ea_uuid_compare);

		if (other == NULL)
			made = lappend(made, row);
		else if (!other->goes)
			adopt_tenant(look, row, other);
	}
	rename_tenants(look);
	look->renamed = NIL;
	foreach(lc, made)
		make_tenant(look, lfirst(lc));
}

/* -------- a look -------- */

/* False: this was the end. */
static bool
look_at_part(Look *look)
{
	const pg_uuid_t *end;
	bool		last;
	MemoryContext old;

	MemoryContextReset(look->part);
	look->unknown = look->renamed = NIL;
	read_rows(look);
	read_tenants(look);
	end = find_end(look);
	last = end == NULL;
	old = MemoryContextSwitchTo(look->part);
	compare_part(look, end);
	rename_tenants(look);
	look->renamed = NIL;
	meet_unknown(look);
	MemoryContextSwitchTo(old);
	if (!last)
		look->position = *end;
	return !last;
}

/*
 * The table, locked and as it has to be; false where somebody alters it, who
 * is not kept waiting.
 */
static bool
hold_table(EaRequest *req, const EaTenantTable *table)
{
	const EaApplicationModel *application = req->catalog->application;
	Oid			relid = ea_tenant_table_relation(table);
	Relation	rel = NULL;
	List	   *faults;

	if (OidIsValid(relid))
	{
		if (!ConditionalLockRelationOid(relid, AccessShareLock))
			return false;
		if (ea_tenant_table_relation(table) == relid)
			rel = RelationIdGetRelation(relid);
	}
	faults = ea_tenant_table_faults(table, rel, application->role_oid,
									application->owner);
	if (rel != NULL)
		RelationClose(rel);
	if (faults != NIL)
	{
		const EaTenantFault *fault = linitial(faults);

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_internal("%s", fault->message)));
	}
	return true;
}

static Look *
make_look(EaRequest *req, int64 limit)
{
	Look	   *look = palloc0(sizeof(Look));

	look->req = req;
	look->table = req->catalog->application->tenants;
	look->limit = limit;
	look->part = AllocSetContextCreate(CurrentMemoryContext,
									   "entityapi rows of tenants",
									   ALLOCSET_DEFAULT_SIZES);
	return look;
}

static void
look_at_rows(void *arg)
{
	Look	   *look = arg;

	if (!hold_table(look->req, look->table))
		return;
	if (place.valid && place.revision == look->req->catalog->revision)
		look->position = place.position;
	place.valid = false;
	while (look_at_part(look))
	{
		if (look->limit == 0 || look->changes < look->limit)
			continue;
		look->more = true;
		break;
	}

	/* what code of it has left fails here, if it does */
	if (ea_owner_settles())
		ea_links_settle(look->req);
}

int64
ea_tenant_rows_look(EaRequest *req, int64 limit, bool wait, bool *more)
{
	Look	   *look;
	int64		changes = 0;

	*more = false;
	if (!ea_application_has_tenants(req->catalog) || XactReadOnly ||
		!ea_turn_take(EA_TURN_TENANTS, wait))
		return 0;
	look = make_look(req, limit);
	if (ea_attempt(req, look_at_rows, look,
				   psprintf("look at the tenants of %s",
							ea_tenant_table_qualified(look->table))))
	{
		changes = look->changes;
		*more = place.valid = look->more;
		place.revision = req->catalog->revision;
		place.position = look->position;
	}
	MemoryContextDelete(look->part);
	pfree(look);
	return changes;
}

void
ea_tenant_rows_leave(void)
{
	ea_exec_write("UPDATE entityapi.tenant SET row_there = NULL"
				  " WHERE row_there IS NOT NULL", EA_NO_PARAMS);
}

/* -------- what is shown otherwise -------- */

typedef struct Notice
{
	Look	   *look;
	int64		altered;
	pg_uuid_t	first;
} Notice;

static void
count_altered(void *arg)
{
	Notice	   *notice = arg;
	Look	   *look = notice->look;

	if (!hold_table(look->req, look->table))
		return;
	do
	{
		MemoryContext old = MemoryContextSwitchTo(look->part);

		MemoryContextReset(look->part);
		read_rows(look);
		for (int i = 0; i < look->nrows; i++)
		{
			const char *name = look->rows[i].name;

			if (name != NULL && ea_username_clean(name, strlen(name)) != NULL)
				continue;
			if (notice->altered++ == 0)
				notice->first = look->rows[i].id;
		}
		if (look->nrows > 0)
			look->position = look->rows[look->nrows - 1].id;
		MemoryContextSwitchTo(old);
	} while (look->nrows == PART);
}

char *
ea_tenant_rows_notice(EaRequest *req)
{
	Notice		notice = {make_look(req, 0)};

	if (!ea_attempt(req, count_altered, &notice, "count names of tenants") ||
		notice.altered == 0)
		return NULL;
	return psprintf(INT64_FORMAT " name%s of %s, the first that of %s, "
					"%s shown otherwise", notice.altered,
					notice.altered == 1 ? "" : "s",
					ea_tenant_table_qualified(notice.look->table),
					ea_uuid_text(&notice.first),
					notice.altered == 1 ? "is" : "are");
}
