/*
 * One row is a list of parameters.  Many rows are one array parameter for
 * each column, so that the text, and with it the plan, does not depend on
 * their number, and no limit on parameters is met.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "authz/authz.h"
#include "base/uuid.h"
#include "model/id_columns.h"
#include "model/id_part.h"
#include "model/id_parts.h"
#include "model/row_tenant.h"
#include "read/document_rows.h"
#include "request/errors.h"
#include "request/etag.h"
#include "write/create.h"
#include "write/finish.h"
#include "write/hook_phases.h"
#include "write/write_policy.h"
#include "write/written.h"

/* A column that is written, and its value in each row. */
typedef struct Column
{
	const char *name;			/* quoted */
	Oid			type;			/* of the values, */
	Oid			array_type;		/* and of a list of them */
	const EaColumn *into;		/* it has this, or is a part of it */
	EaValue    *values;
} Column;

static int
count_columns(EaEntity *entity)
{
	int			n = 0;

	for (int i = 0; i < entity->nfields; i++)
	{
		for (int c = 0; c < entity->fields[i].ncolumns; c++)
			n += ea_columns_count(entity->fields[i].columns[c].name);
	}
	return n;
}

static EaValue *
column_values(const EaField *field, int column, EaInput *const *inputs, int n)
{
	EaValue    *values = palloc(n * sizeof(EaValue));

	for (int k = 0; k < n; k++)
	{
		CHECK_FOR_INTERRUPTS();
		values[k] = ea_input_value(field, &inputs[k]->fields[field->index],
								   column);
	}
	return values;
}

static Datum
column_array(const Column *column, int n)
{
	Oid			type = column->type;
	Datum	   *values = palloc(n * sizeof(Datum));
	bool	   *isnull = palloc(n * sizeof(bool));
	int			dims[1] = {n};
	int			bounds[1] = {1};
	int16		len;
	bool		byval;
	char		align;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		values[i] = column->values[i].value;
		isnull[i] = column->values[i].isnull;
	}
	get_typlenbyvalalign(type, &len, &byval, &align);
	return PointerGetDatum(construct_md_array(values, isnull, 1, dims, bounds,
											  type, len, byval, align));
}

/* The table itself fills the column, unless a hook or the caller did. */
static bool
is_left_out(const EaField *field, EaInput *const *inputs, int n)
{
	if (ea_catalog_is_time(field))
		return true;
	if (!ea_catalog_is_filled(field) && !field->defaulted)
		return false;
	for (int k = 0; k < n; k++)
	{
		if (inputs[k]->fields[field->index].given)
			return false;
	}
	return true;
}

/* `VALUES ($1, $2, ...` */
static void
add_single(EaSqlBuf *b, EaEntity *entity, const EaId *id, bool with_id,
		   const Column *columns, int ncolumns)
{
	ea_sqlbuf_add(b, ") VALUES ");
	ea_sqlbuf_insert_row(b, entity);
	if (with_id && entity->maker == EA_ID_OF_DATABASE)
		ea_sqlbuf_add(b, "DEFAULT");
	else if (with_id)
		ea_sqlbuf_id_bare(b, &entity->key, id);
	for (int i = 0; i < ncolumns; i++)
	{
		const EaValue *value = columns[i].values;

		if (with_id || i > 0)
			ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_value(b, value->type, value->value, value->isnull);
		ea_sqlbuf_cast(b, columns[i].into, false);
	}
}

/* `SELECT $1, u.* ...`, with the relation u to be written afterwards. */
static void
add_unnest(EaSqlBuf *b, const EaIdKey *key, const EaId *ids, int n,
		   const Column *columns, int ncolumns)
{
	/* unnest() of several arrays is only known by its bare name */
	ea_sqlbuf_add(b, " FROM unnest(");
	if (key->nparts > 0)
		ea_sqlbuf_arrays(b, ea_id_parts_rows(key, ids, n));
	else
		ea_sqlbuf_value(b, key->type->array_oid, ea_id_array(key, ids, n),
						false);
	for (int i = 0; i < ncolumns; i++)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_value(b, columns[i].array_type,
						column_array(&columns[i], n), false);
		ea_sqlbuf_cast(b, columns[i].into, true);
	}
	ea_sqlbuf_add(b, ") u");
}

/* created_at, updated_at and version: the names, and the values. */
static void
add_system_names(EaSqlBuf *b, EaEntity *entity)
{
	const char *const names[] = {
		entity->created_column,
		entity->updated_column,
		entity->locking && !entity->by_xmin ? entity->version_column : NULL
	};

	for (int i = 0; i < lengthof(names); i++)
	{
		if (names[i] == NULL)
			continue;
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_add(b, names[i]);
	}
}

static void
add_system(EaSqlBuf *b, EaEntity *entity)
{
	int			times = (entity->created_column != NULL) +
	(entity->updated_column != NULL);
	int			now = times == 0 ? 0 :
	ea_sqlbuf_param(b, TIMESTAMPTZOID, TimestampTzGetDatum(b->req->now),
					false);

	for (int i = 0; i < times; i++)
		ea_sqlbuf_addf(b, ", $%d", now);
	if (entity->locking && !entity->by_xmin)
		ea_sqlbuf_add(b, ", 0");
}

/* Part i of ids, or null for each. */
static EaValue *
part_values(const EaValue *ids, const EaIdKey *kind, int i, int n)
{
	EaValue    *values = palloc(n * sizeof(EaValue));

	for (int k = 0; k < n; k++)
	{
		CHECK_FOR_INTERRUPTS();
		values[k] = ids[k].isnull ?
			ea_value(kind->type->oid, (Datum) 0, true) :
			EA_VALUE(kind->type->oid, ea_id_parts_datum(
						 (const EaIdParts *) DatumGetPointer(ids[k].value),
						 i));
	}
	return values;
}

/*
 * The columns of a field, or of a member of a one-of.  Those of a key of
 * several parts are the id's.
 */
static int
add_columns(Column *columns, int n, const EaField *field, int c,
			EaInput *const *inputs, int ninputs)
{
	const EaColumn *into = &field->columns[c];
	const EaEntity *entity = field->entity;
	const EaIdKey *key = field->kind == EA_ATTRIBUTE ? NULL :
		&field->members[c].key;
	EaValue    *values;

	if (entity->key.nparts > 0 && into->type != RECORDOID &&
		ea_columns_find(entity->id_column, into->name) >= 0)
		return n;
	values = column_values(field, c, inputs, ninputs);
	if (into->type != RECORDOID)
	{
		columns[n++] = (Column) {
			into->name, into->type, into->array_type, into, values
		};
		return n;
	}
	for (int i = 0; i < key->nparts; i++)
	{
		char	   *name = ea_columns_get(into->name, i);
		char		letter;
		const EaIdKey *kind = ea_id_kind(&key->parts[i], &letter);

		if (entity->key.nparts == 0 ||
			ea_columns_find(entity->id_column, name) < 0)
			columns[n++] = (Column) {
				name, kind->type->oid, kind->type->array_oid, into,
				part_values(values, kind, i, ninputs)
			};
	}
	return n;
}

/* Rows that leave the same columns to their defaults. */
static void
create_alike(EaInput *const *inputs, EaId *ids, int n, EaRowSink *sink)
{
	EaRequest  *req = sink->doc->req;
	EaEntity   *entity = sink->shape->entity;
	Column	   *columns = palloc(count_columns(entity) * sizeof(Column));
	int			first = sink->doc->primary.n;
	int			ncolumns = 0;
	bool		with_id = true;
	EaSqlBuf	b;
	int			alias;

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];
		bool		left_out = is_left_out(field, inputs, n);

		for (int c = 0; !left_out && c < field->ncolumns; c++)
			ncolumns = add_columns(columns, ncolumns, field, c, inputs, n);

		/* the field has the column of the id, and its value */
		with_id &= left_out || field != entity->key_field;
	}

	ea_writing_begin(req, entity, EA_WRITING_ROWS);
	ea_sqlbuf_init(&b, req);
	alias = ea_sqlbuf_insert(&b, entity);
	if (with_id)
		ea_sqlbuf_columns(&b, -1, entity->id_column);
	for (int i = 0; i < ncolumns; i++)
	{
		if (with_id || i > 0)
			ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_add(&b, columns[i].name);
	}
	add_system_names(&b, entity);
	if (n == 1)
	{
		add_single(&b, entity, ids, with_id, columns, ncolumns);
		add_system(&b, entity);
		ea_sqlbuf_add(&b, ")");
	}
	else
	{
		ea_sqlbuf_add(&b, ") SELECT ");
		if (ea_row_tenant_column(entity) != NULL)
			ea_sqlbuf_addf(&b, "$%d, ", ea_sqlbuf_tenant(&b));
		ea_sqlbuf_add(&b, "u.*");
		add_system(&b, entity);
		add_unnest(&b, &entity->key, ids, n, columns, ncolumns);
	}
	ea_sqlbuf_add(&b, " RETURNING ");
	ea_document_columns(&b, sink->shape, alias);
	ea_written_run(&b, entity, n == 1, n, ea_document_row, sink);
	for (int i = 0; i < n; i++)
		ids[i] = sink->doc->primary.items[first + i]->id;
}

static bool
are_alike(const EaInput *a, const EaInput *b)
{
	for (int i = 0; a->entity->defaults && i < a->entity->nfields; i++)
	{
		if (a->entity->fields[i].defaulted &&
			a->fields[i].given != b->fields[i].given)
			return false;
	}
	return true;
}

void
ea_create_rows(EaInput *const *inputs, EaId *ids, int n, EaRowSink *sink)
{
	int			first = 0;

	for (int i = 1; i <= n; i++)
	{
		if (i < n && are_alike(inputs[first], inputs[i]))
			continue;
		create_alike(inputs + first, ids + first, i - first, sink);
		first = i;
	}
}

void
ea_create_resource(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_query_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_shape_find(doc, entity)};
	EaInput    *input = ea_input_form(req, entity, EA_OP_CREATE, NULL);
	EaAround	around;
	const char *path;
	EaId		id;
	bool		known;

	ea_authz_require_open(req, entity);
	ea_hook_phases_guard(&around, req, entity, EA_OP_CREATE, NULL,
						 input->attributes);
	if (ea_write_policy_refuse_create(req, entity))
		ea_write_policy_refuse(req);
	ea_input_values(input);
	known = ea_input_id(input, &id);
	ea_errors_check(req);
	ea_input_targets(&input, 1);
	ea_errors_check(req);
	ea_write_policy_check_create(input);

	ea_hook_phases_before(&around, input, known ? &id : NULL);
	ea_input_take_id(input, &id);
	ea_create_rows(&input, &id, 1, &sink);
	around.id = id;
	ea_finish_created(&input, &id, 1, &sink);
	ea_hook_phases_after(&around);

	req->status = 201;
	path = ea_document_resource_path(ea_document_one(doc));
	ea_request_answer(req, "location", path);
	if (entity->locking)
		ea_etag_answer(req, ea_document_one(doc)->version);
	ea_document_write_one(doc, path);
}
