/*
 * Values are compared and kept as the JSON that the API shows of them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "base/grow.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "model/row_tenant.h"
#include "request/limits.h"
#include "write/audit_changes.h"
#include "write/written.h"

/* Of a relationship with more members than this, only some are kept. */
#define MAX_LINKS 1000

static const char members_left_out[] = "Members beyond 1000 are left out.";

/* -------- one field as JSON -------- */

static bool
is_null_input(const EaField *field, const EaInputField *in)
{
	return field->kind == EA_ATTRIBUTE ? in->isnull : in->ntargets == 0;
}

/* The value that came in, as the row will have it. */
static void
write_input(StringInfo buf, EaField *field, const EaInputField *in)
{
	Datum		value = in->value;

	if (is_null_input(field, in))
		ea_jsonwrite_lit(buf, "null");
	else if (field->kind != EA_ATTRIBUTE)
		ea_id_identifier(buf, field->members[in->targets[0].member].type,
						 &field->members[in->targets[0].member].key,
						 &in->targets[0].id);
	else
	{
		if (ea_catalog_has_digits(field))
			value = DirectFunctionCall2(numeric_round, value,
										Int32GetDatum(field->scale));
		field->type->write(buf, value);
	}
}

/*
 * A value that is kept outside of its row is there as it is, as JSON, and in
 * the record; said before any of it is fetched.
 */
#define COPIES_OF_VALUE 3

static void
announce_value(EaRequest *req, const EaField *field, TupleTableSlot *slot,
			   int column)
{
	if (field->kind == EA_ATTRIBUTE && !slot->tts_isnull[column])
		ea_limits_keep(req, COPIES_OF_VALUE *
					   ea_types_bytes(field->type, slot->tts_values[column]),
					   NULL);
}

/* The value in a row, from *column on, which is moved behind the field. */
static const char *
stored_json(EaRequest *req, EaField *field, TupleTableSlot *slot,
			int *column)
{
	StringInfoData buf;
	int			first = *column;
	EaId		id;

	*column += field->ncolumns;
	for (int c = 0; c < field->ncolumns; c++)
	{
		Datum		value = slot->tts_values[first + c];

		if (slot->tts_isnull[first + c])
			continue;
		initStringInfo(&buf);
		if (field->kind == EA_ATTRIBUTE)
			field->type->write(&buf, value);
		else
		{
			ea_id_take(req, &field->members[c].key, value, &id);
			ea_id_identifier(&buf, field->members[c].type,
							 &field->members[c].key, &id);
		}
		return buf.data;
	}
	return "null";
}

/* The version, where there is one, is the column after the others. */
static void
select_version(EaSqlBuf *b, EaEntity *entity, int alias)
{
	if (!entity->locking)
		return;
	ea_sqlbuf_add(b, ", ");
	ea_sqlbuf_select_version(b, alias, entity);
}

static int64
stored_version(EaEntity *entity, TupleTableSlot *slot, int column)
{
	return entity->locking ? DatumGetInt64(slot->tts_values[column]) : 0;
}

/* -------- rows as triggers have left them -------- */

typedef struct Stored
{
	EaRequest  *req;
	EaEntity   *entity;
	const char **values;		/* JSON, by field index; NULL: no column */
	int64		version;
} Stored;

static void
keep_stored(void *arg, TupleTableSlot *slot)
{
	Stored	   *stored = arg;
	int			column = 1;

	for (int i = 0; i < stored->entity->nfields; i++)
	{
		EaField    *field = &stored->entity->fields[i];

		if (field->ncolumns == 0)
			continue;
		announce_value(stored->req, field, slot, column);
		stored->values[i] = stored_json(stored->req, field, slot, &column);
	}
	stored->version = stored_version(stored->entity, slot, column);
}

/* Of rows whose values the table has made, in part. */
static bool
is_defaulted(const EaInput *input)
{
	for (int i = 0; input->entity->defaults && i < input->entity->nfields; i++)
	{
		if (input->entity->fields[i].defaulted && !input->fields[i].given)
			return true;
	}
	return false;
}

/*
 * NULL where nothing was there to change it: no user-defined trigger, and no
 * type of a column.
 */
static const Stored *
read_stored(EaRequest *req, EaEntity *entity, const EaId *id, bool defaulted)
{
	Stored	   *stored;
	EaSqlBuf	b;
	int			alias;

	if (!req->triggered && !entity->adapts && !defaulted)
		return NULL;
	stored = palloc0(sizeof(Stored));
	stored->req = req;
	stored->entity = entity;
	stored->values = palloc0(Max(entity->nfields, 1) * sizeof(char *));
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	for (int i = 0; i < entity->nfields; i++)
		ea_sqlbuf_select_field(&b, 0, &entity->fields[i]);
	select_version(&b, entity, 0);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_written_run(&b, entity, true, 1, keep_stored, stored);
	return stored;
}

/* -------- create -------- */

static bool
is_left_out(const EaInput *input, const Stored *stored, int i)
{
	const EaField *field = &input->entity->fields[i];

	if (field->ncolumns == 0)
		return true;
	return stored == NULL ? is_null_input(field, &input->fields[i])
		: strcmp(stored->values[i], "null") == 0;
}

void
ea_changes_created(EaInput *input, const EaId *id)
{
	EaEntity   *entity = input->entity;
	const Stored *stored = read_stored(input->req, entity, id,
									   entity->by_xmin || is_defaulted(input));
	EaAuditRecord *record;

	if (!ea_audit_entities(input->req))
		return;
	record = ea_audit_open(input->req, EA_AUDIT_ENTITY_CREATE, entity, id);
	ea_audit_version(record, entity->locking, stored ? stored->version : 0);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];
		StringInfo	buf;

		if (is_left_out(input, stored, i))
			continue;
		buf = ea_audit_begin_change(record, field->name);
		ea_jsonwrite_lit(buf, "null,");
		if (stored != NULL)
			appendStringInfoString(buf, stored->values[i]);
		else
			write_input(buf, field, &input->fields[i]);
		appendStringInfoCharMacro(buf, ']');
	}
	ea_audit_kept(input->req, record);
}

/* -------- update -------- */

/* A column as it was read. */
typedef struct Column
{
	const EaColumn *of;
	bool		isnull;
	Datum		value;
} Column;

struct EaWriteBefore
{
	EaInput    *input;
	const char **values;		/* JSON, by field index; NULL: not known */
	EaReplaced	replaced;		/* how the update itself returns them */
	bool		keeps;			/* columns are kept, to be compared */
	int			ncolumns;		/* 0: the row was not found */
	Column	   *columns;
};

static void
keep_column(EaWriteBefore *before, const EaField *field, int member,
			TupleTableSlot *slot)
{
	Column	   *column = &before->columns[before->ncolumns++];
	const EaColumn *of = &field->columns[member];
	EaId		id;
	bool		byval;
	int16		len;

	/* the columns of the row come after its id, in the same order */
	column->of = of;
	column->isnull = slot->tts_isnull[before->ncolumns];
	if (column->isnull)
		return;
	column->value = slot->tts_values[before->ncolumns];
	if (of->type == RECORDOID)
	{
		ea_id_take(before->input->req, &field->members[member].key,
				   column->value, &id);
		column->value = ea_id_datum(&field->members[member].key, &id);
		return;
	}
	get_typlenbyval(of->type, &len, &byval);
	if (len == -1)
		column->value = PointerGetDatum(PG_DETOAST_DATUM_COPY(column->value));
	else
		column->value = datumCopy(column->value, byval, len);
}

/* The field's value is kept: where triggers may change any, all are. */
static bool
is_before(const EaWriteBefore *before, int i)
{
	return before->input->entity->fields[i].ncolumns > 0 &&
		(before->input->fields[i].given || before->replaced.triggered);
}

static void
before_row(void *arg, TupleTableSlot *slot)
{
	EaWriteBefore *before = arg;
	EaEntity   *entity = before->input->entity;
	int			first = 1;

	/* one row, but an existing table may have lost the key that says so */
	before->ncolumns = 0;
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (!is_before(before, i))
			continue;
		announce_value(before->input->req, field, slot, first);
		before->values[i] = stored_json(before->input->req, field, slot,
										&first);
		for (int c = 0; before->keeps && c < field->ncolumns; c++)
			keep_column(before, field, c, slot);
	}
}

static void
add_replaced(EaReplaced *replaced, const char *column, Oid type)
{
	replaced->columns[replaced->ncolumns] = column;
	replaced->types[replaced->ncolumns++] = type;
}

EaWriteBefore *
ea_changes_before(EaInput *input)
{
	EaEntity   *entity = input->entity;
	EaWriteBefore *before;
	EaReplaced *replaced;
	int			ncolumns = 0;

	for (int i = 0; i < entity->nfields; i++)
		ncolumns += input->fields[i].given ? entity->fields[i].ncolumns : 0;
	if (!ea_audit_entities(input->req) || ncolumns == 0)
		return NULL;
	before = palloc0(sizeof(EaWriteBefore));
	before->input = input;
	before->values = palloc0(entity->nfields * sizeof(char *));
	before->columns = palloc(ncolumns * sizeof(Column));
	replaced = &before->replaced;
	replaced->row = before_row;
	replaced->arg = before;
	replaced->columns = palloc((1 + ncolumns) * sizeof(char *));
	replaced->types = palloc((1 + ncolumns) * sizeof(Oid));
	replaced->numbers = palloc((1 + ncolumns) * sizeof(AttrNumber));
	replaced->declined = entity->key.nparts > 0;
	add_replaced(replaced, entity->id_column, entity->key.type->oid);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		replaced->declined |= input->fields[i].given &&
			ea_catalog_crosses(field);
		for (int c = 0; input->fields[i].given && c < field->ncolumns; c++)
		{
			replaced->declined |= field->columns[c].type == RECORDOID;
			add_replaced(replaced, field->columns[c].name,
						 field->columns[c].type);
		}
	}
	return before;
}

void
ea_changes_ask(EaSqlBuf *b, EaWriteBefore *before, int alias)
{
	if (before == NULL)
		return;
	if (!before->replaced.declined)
		b->replaced = &before->replaced;
	for (int i = 0; i < before->ncolumns; i++)
	{
		const Column *column = &before->columns[i];

		ea_sqlbuf_add(b, " AND ");
		if (column->of->type == RECORDOID && column->isnull)
		{
			/* some of the columns may have a value all the same */
			ea_sqlbuf_add(b, "NOT ");
			ea_sqlbuf_column(b, alias, column->of->name);
			ea_sqlbuf_add(b, " IS NOT NULL");
			continue;
		}
		ea_sqlbuf_column(b, alias, column->of->name);
		ea_sqlbuf_add(b, " IS NOT DISTINCT FROM ");
		ea_sqlbuf_value(b, column->of->type, column->value, column->isnull);
	}
}

bool
ea_changes_declined(const EaWriteBefore *before)
{
	return before != NULL && before->replaced.declined;
}

/* Values that have crossed are not compared with what is stored. */
static bool
gives_crossing(const EaInput *input)
{
	for (int i = 0; i < input->entity->nfields; i++)
	{
		if (input->fields[i].given &&
			ea_catalog_crosses(&input->entity->fields[i]))
			return true;
	}
	return false;
}

void
ea_changes_read(EaWriteBefore *before, const EaId *id, bool lock)
{
	EaInput    *input = before->input;
	EaEntity   *entity = input->entity;
	EaSqlBuf	b;
	int			alias;

	lock = lock || before->replaced.triggered || gives_crossing(input);
	before->keeps = !lock;
	before->ncolumns = 0;
	ea_sqlbuf_init(&b, input->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	for (int i = 0; i < entity->nfields; i++)
	{
		if (is_before(before, i))
			ea_sqlbuf_select_field(&b, 0, &entity->fields[i]);
	}
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	if (lock)
		ea_sqlbuf_add(&b, " FOR NO KEY UPDATE");
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, before_row, before);
}

int64
ea_changes_updated(EaInput *input, const EaId *id,
				   EaWriteBefore *before, int64 version)
{
	EaRequest  *req = input->req;
	EaEntity   *entity = input->entity;
	const Stored *stored = read_stored(req, entity, id, false);
	EaAuditRecord *record;
	StringInfoData after;

	if (stored != NULL)
		version = stored->version;
	if (!ea_audit_entities(req))
		return version;

	/* the write of a relationship has a field, that of a resource none */
	record = ea_audit_open(req, req->field != NULL
						   ? EA_AUDIT_RELATIONSHIP_REPLACE
						   : EA_AUDIT_ENTITY_UPDATE, entity, id);
	ea_audit_version(record, entity->locking, version);
	initStringInfo(&after);
	for (int i = 0; before != NULL && i < entity->nfields; i++)
	{
		/* without user-defined triggers, fields not given are as they were */
		if (before->values[i] == NULL ||
			(stored == NULL && !input->fields[i].given))
			continue;
		resetStringInfo(&after);
		if (stored != NULL)
			appendStringInfoString(&after, stored->values[i]);
		else
			write_input(&after, &entity->fields[i], &input->fields[i]);
		if (strcmp(after.data, before->values[i]) != 0)
			ea_audit_change(record, entity->fields[i].name,
							before->values[i], after.data);
	}
	ea_audit_kept(req, record);
	return version;
}

/* -------- delete -------- */

void
ea_changes_deleted_columns(EaSqlBuf *b, EaWriteDeleted *deleted, int alias)
{
	EaEntity   *entity = deleted->entity;

	ea_sqlbuf_select_id(b, alias, entity);
	for (int i = 0; !deleted->stays && i < entity->nfields; i++)
		ea_sqlbuf_select_field(b, alias, &entity->fields[i]);
	select_version(b, entity, alias);
}

void
ea_changes_deleted(EaSqlBuf *b, EaWriteDeleted *deleted, int alias)
{
	ea_sqlbuf_add(b, " RETURNING ");
	ea_changes_deleted_columns(b, deleted, alias);
}

/* All that it had, and that there was nothing more. */
static void
note_values(EaWriteDeleted *deleted, EaAuditRecord *record,
			TupleTableSlot *slot, int *column)
{
	EaEntity   *entity = deleted->entity;

	ea_audit_begin_changes(record);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];
		const char *value;

		if (field->ncolumns == 0)
			continue;
		announce_value(deleted->req, field, slot, *column);
		value = stored_json(deleted->req, field, slot, column);
		if (strcmp(value, "null") != 0)
			ea_audit_change(record, field->name, value, "null");
	}
	ea_audit_kept(deleted->req, record);
}

void
ea_changes_deleted_row(void *arg, TupleTableSlot *slot)
{
	EaWriteDeleted *deleted = arg;
	EaEntity   *entity = deleted->entity;
	EaAuditRecord *record;
	int			column = 1;
	EaId		id;

	ea_id_take(deleted->req, &entity->key, slot->tts_values[0], &id);
	record = ea_audit_resource(deleted->req, deleted->restored ?
							   EA_AUDIT_ENTITY_RESTORE :
							   EA_AUDIT_ENTITY_DELETE, entity, &id);
	if (!deleted->stays)
		note_values(deleted, record, slot, &column);
	else if (deleted->deletion != NULL)
		record->detail = psprintf(EA_AUDIT_DELETION "%s",
								  ea_uuid_text(deleted->deletion));
	else
		record->detail = EA_AUDIT_DELETION "without an id";
	ea_audit_version(record, entity->locking,
					 stored_version(entity, slot, column));
}

/* -------- columns of other rows -------- */

EaWriteMoved *
ea_changes_moved(EaRequest *req, EaField *field)
{
	EaWriteMoved *moved;

	if (!ea_audit_entities(req))
		return NULL;
	moved = palloc0(sizeof(EaWriteMoved));
	moved->added.key = moved->removed.key = &ea_catalog_target(field, 0)->key;
	return moved;
}

typedef struct OwnerRow
{
	EaId		id;				/* must be first, as lists are sorted by it */
	const char *before;
	bool		changed;
	int64		version;		/* then */
} OwnerRow;

struct EaWriteOwners
{
	EaRequest  *req;
	EaField    *owner;
	int			n;
	int			max;
	OwnerRow   *rows;
	int			nchanged;
	bool		strange;		/* one has changed that was not held */
};

static void
owner_row(void *arg, TupleTableSlot *slot)
{
	EaWriteOwners *owners = arg;
	OwnerRow   *row;
	int			column = 1;

	row = EA_GROW_ARRAY(owners->rows, owners->n, owners->max);
	ea_id_take(owners->req, &owners->owner->entity->key, slot->tts_values[0],
			   &row->id);
	row->before = stored_json(owners->req, owners->owner, slot, &column);
	row->changed = false;
}

int
ea_changes_owners(EaSqlBuf *b, EaRequest *req, EaField *owner,
				  EaOperation op, bool deleted_too)
{
	ea_sqlbuf_init(b, req);
	b->holds = true;
	b->deleted_too = deleted_too;
	ea_sqlbuf_add(b, "SELECT ");
	ea_sqlbuf_select_id(b, 0, owner->entity);
	ea_sqlbuf_select_field(b, 0, owner);
	return ea_sqlbuf_from(b, owner->entity, op);
}

EaWriteOwners *
ea_changes_hold_owners(EaSqlBuf *b, EaField *owner)
{
	EaWriteOwners *owners = palloc0(sizeof(EaWriteOwners));

	owners->req = b->req;
	owners->owner = owner;
	ea_row_tenant_hold(b, " FOR NO KEY UPDATE", 0);
	if (ea_sqlbuf_run(b, EA_EXEC_WRITE, true, owner_row, owners) == 0)
		return NULL;
	qsort(owners->rows, owners->n, sizeof(OwnerRow), ea_id_compare);
	return owners;
}

void
ea_changes_only_owners(EaSqlBuf *b, int alias,
					   const EaWriteOwners *owners)
{
	EaIds		ids = {0};

	if (owners == NULL)
		return;
	ids.key = &owners->owner->entity->key;
	for (int i = 0; i < owners->n; i++)
		*EA_GROW(&ids) = owners->rows[i].id;
	ea_sqlbuf_among(b, alias, owners->owner->entity->id_column, "= ANY", &ids);
}

static void
changed_row(void *arg, TupleTableSlot *slot)
{
	EaWriteOwners *owners = arg;
	OwnerRow   *row;
	EaId		id;

	ea_id_take(owners->req, &owners->owner->entity->key, slot->tts_values[0],
			   &id);
	row = bsearch(&id, owners->rows, owners->n, sizeof(OwnerRow),
				  ea_id_compare);

	if (row == NULL)
	{
		owners->strange = true;
		return;
	}
	owners->nchanged += !row->changed;
	row->changed = true;
	row->version = stored_version(owners->owner->entity, slot, 1);
}

/* A trigger gives a row another id, or keeps it as it was. */
static void
check_changed(const EaSqlBuf *b, const EaWriteOwners *owners)
{
	if (ea_written_asks(b) &&
		(owners->strange || owners->nchanged < owners->n))
		ea_written_refuse(owners->owner->entity->table);
	if (owners->strange)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("a row came to refer to a resource while references "
						"to it were changed")));
}

/* A trigger that runs afterwards may have taken one away again. */
static void
check_there(const EaSqlBuf *b, const EaWriteOwners *owners)
{
	EaIds		ids = {&owners->owner->entity->key};

	if (!ea_written_asks(b) || owners->n == 0)
		return;
	for (int i = 0; i < owners->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		*EA_GROW(&ids) = owners->rows[i].id;
	}
	ea_written_rows(b, owners->owner->entity, &ids, EA_WRITTEN_THERE);
}

void
ea_changes_run_owners(EaSqlBuf *b, int alias, EaWriteOwners *owners,
					  const EaEntity *after_of, const EaId *after,
					  EaIds *moved)
{
	EaEntity   *entity;
	StringInfoData json;

	if (owners == NULL)
	{
		ea_sqlbuf_run(b, EA_EXEC_WRITE, true, NULL, NULL);
		return;
	}
	entity = owners->owner->entity;
	ea_sqlbuf_add(b, " RETURNING ");
	ea_sqlbuf_select_id(b, alias, entity);
	select_version(b, entity, alias);
	ea_sqlbuf_run(b, EA_EXEC_WRITE, true, changed_row, owners);
	check_changed(b, owners);
	check_there(b, owners);

	initStringInfo(&json);
	if (after == NULL)
		ea_jsonwrite_lit(&json, "null");
	else
		ea_id_identifier(&json, after_of->type, &after_of->key, after);
	for (int i = 0; i < owners->n; i++)
	{
		const OwnerRow *row = &owners->rows[i];
		EaAuditRecord *record;

		CHECK_FOR_INTERRUPTS();
		if (!row->changed)
			continue;
		record = ea_audit_resource(b->req, EA_AUDIT_ENTITY_UPDATE, entity,
								   &row->id);
		ea_audit_change(record, owners->owner->name, row->before, json.data);
		ea_audit_version(record, entity->locking, row->version);
		if (moved != NULL)
			*EA_GROW(moved) = row->id;
	}
}

/* -------- links kept elsewhere -------- */

void
ea_changes_run_links(EaSqlBuf *b, const EaField *field, EaIds *moved)
{
	const EaIdKey *key;

	if (moved == NULL)
	{
		ea_sqlbuf_run(b, EA_EXEC_WRITE, true, NULL, NULL);
		return;
	}
	ea_sqlbuf_addf(b, " RETURNING %s", field->join_far);

	/* read as the column has them, whose type may be a wider one */
	key = moved->key;
	moved->key = &field->members[0].key;
	ea_sqlbuf_reads(b, moved->key->type->oid);
	ea_sqlbuf_run_ids(b, EA_EXEC_WRITE, moved);
	moved->key = key;
}

/* Of links that others have made to what is another tenant's, none. */
static void
only_of_tenant(EaSqlBuf *b, const EaField *field, EaEntity *target, int join)
{
	int			alias;

	b->deleted_too = true;
	ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
	alias = ea_sqlbuf_from(b, target, EA_OP_DELETE);
	ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s)", alias, target->id_column, join,
				   field->join_far);
}

/*
 * The members that a relationship has, whether or not the caller sees them,
 * up to the limit.
 */
static void
read_links(EaRequest *req, EaField *field, const EaId *id, int limit,
		   EaIds *links)
{
	bool		joined = field->kind == EA_MANY_TO_MANY;
	EaEntity   *target = ea_catalog_target(field, 0);
	EaSqlBuf	b;
	int			alias;

	if (joined)
		links->key = &field->members[0].key;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, joined ? field->join_far : target->id_column,
					 links->key->type->oid);
	alias = joined ? ea_sqlbuf_join_from(&b, field)
		: ea_sqlbuf_from(&b, target, EA_OP_DELETE);
	ea_sqlbuf_is(&b, alias,
				 joined ? field->join_near : field->members[0].column,
				 &field->entity->key, id);
	if (joined && ea_catalog_join_may_cross(field, target))
		only_of_tenant(&b, field, target, alias);
	ea_sqlbuf_addf(&b, " LIMIT %d", limit);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, links);
}

static const char *
links_json(EaField *field, EaIds *links)
{
	StringInfoData buf;

	initStringInfo(&buf);
	if (!ea_catalog_is_to_many(field))
	{
		if (links->n == 0)
			return "null";
		ea_id_identifier(&buf, field->members[0].type, links->key,
						 &links->items[0]);
		return buf.data;
	}
	ea_id_sort_values(links);
	appendStringInfoCharMacro(&buf, '[');
	for (int i = 0; i < Min(links->n, MAX_LINKS); i++)
	{
		ea_jsonwrite_comma(&buf);
		ea_id_write(&buf, links->key, &links->items[i]);
	}
	appendStringInfoCharMacro(&buf, ']');
	return buf.data;
}

/* The members before, from those after. */
static void
trace_back(const EaIds *after, const EaWriteMoved *moved,
		   EaIds *before)
{
	for (int i = 0; i < after->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!ea_id_is_among(&after->items[i], &moved->added))
			*EA_GROW(before) = after->items[i];
	}
	for (int i = 0; i < moved->removed.n; i++)
		*EA_GROW(before) = moved->removed.items[i];
}

/* How many members to look at: few numbers, as they stand in the text. */
static int
enough_links(const EaWriteMoved *moved)
{
	int			limit = MAX_LINKS + 1;

	while (limit <= MAX_LINKS + moved->added.n)
		limit *= 2;
	return limit;
}

void
ea_changes_links(EaRequest *req, EaField *field, const EaId *id,
				 EaWriteLinks how, EaWriteMoved *moved)
{
	EaAuditRecord *record = req->audit == NULL ? NULL : req->audit->open;
	EaIds		before = {0};
	EaIds		after = {0};
	int			limit;

	if (moved == NULL || record == NULL)
		return;
	before.key = after.key = moved->added.key;
	limit = enough_links(moved);
	ea_id_sort(&moved->added);
	if (how == EA_LINKS_FIRST)
		after = moved->added;
	else
	{
		read_links(req, field, id, limit, &after);
		trace_back(&after, moved, &before);
	}
	if (before.n > MAX_LINKS &&
		(how != EA_LINKS_REPLACE || after.n >= limit))
	{
		/* too many to list those that stay: only those put in or taken out */
		ea_audit_change(record, field->name,
						links_json(field, &moved->removed),
						links_json(field, &moved->added));
		record->detail = members_left_out;
		return;
	}
	if (before.n > MAX_LINKS || after.n > MAX_LINKS)
		record->detail = members_left_out;
	ea_audit_change(record, field->name, links_json(field, &before),
					links_json(field, &after));
}
