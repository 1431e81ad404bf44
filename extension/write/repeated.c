/*
 * Attributes are compared as values, so that 1.50 is 1.5 and a time is the
 * same at each offset.  Relationships are compared with the linkage that the
 * caller is shown: a target that it may not read is null here, as it is there,
 * and so nothing is learned of it.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/uuid.h"
#include "model/value_checks.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/resource.h"
#include "request/errors.h"
#include "request/limits.h"
#include "write/lid.h"
#include "write/repeated.h"

/* A value that the row must have. */
typedef struct Wanted
{
	EaField    *field;
	bool		isnull;
	Datum		value;
	bool		written;		/* as it will be: in the same spelling */
	bool		found;			/* the row has it */
} Wanted;

typedef struct Comparison
{
	EaRequest  *req;
	int			n;
	Wanted	   *items;			/* one for each field at most */
} Comparison;

/* -------- attributes -------- */

static bool
is_same_text(Datum a, Datum b)
{
	text	   *x;
	text	   *y;

	/* a long one need not be fetched for that */
	if (toast_raw_datum_size(a) != toast_raw_datum_size(b))
		return false;
	x = DatumGetTextPP(a);
	y = DatumGetTextPP(b);
	return memcmp(VARDATA_ANY(x), VARDATA_ANY(y), VARSIZE_ANY_EXHDR(x)) == 0;
}

static char *
value_text(const EaType *type, Datum value)
{
	StringInfoData buf;

	initStringInfo(&buf);
	type->write(&buf, value);
	return buf.data;
}

static bool
is_same(const EaType *type, Datum a, Datum b)
{
	switch (type->form)
	{
		case EA_FORM_TEXT:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			return is_same_text(a, b);
		case EA_FORM_INT32:
			return DatumGetInt32(a) == DatumGetInt32(b);
		case EA_FORM_INT64:
			return DatumGetInt64(a) == DatumGetInt64(b);
		case EA_FORM_NUMERIC:
			return DatumGetBool(DirectFunctionCall2(numeric_eq, a, b));
		case EA_FORM_BOOL:
			return DatumGetBool(a) == DatumGetBool(b);
		case EA_FORM_DATE:
			return DatumGetDateADT(a) == DatumGetDateADT(b);
		case EA_FORM_TIMESTAMP:
			return DatumGetTimestampTz(a) == DatumGetTimestampTz(b);
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
			return ea_value_compare(type, a, b) == 0;
		case EA_FORM_UUID:
			return ea_uuid_equal(DatumGetUUIDP(a), DatumGetUUIDP(b));
		case EA_FORM_JSONB:
			return DatumGetBool(DirectFunctionCall2(jsonb_eq, a, b));
	}
	return false;
}

/* JSON's null, which plain SQL can store, is shown as any other null. */
static bool
is_null_json(const EaType *type, Datum value)
{
	return (type->form == EA_FORM_JSONB || type->form == EA_FORM_JSON) &&
		strcmp(value_text(type, value), "null") == 0;
}

static bool
is_wanted_value(const Wanted *wanted, Datum value)
{
	const EaType *type = wanted->field->type;

	if (wanted->isnull)
		return is_null_json(type, value);
	if (wanted->written)
		return strcmp(value_text(type, value),
					  value_text(type, wanted->value)) == 0;
	return is_same(type, value, wanted->value);
}

static void
stored_row(void *arg, TupleTableSlot *slot)
{
	Comparison *comparison = arg;

	for (int i = 0; i < comparison->n; i++)
	{
		Wanted	   *wanted = &comparison->items[i];
		Datum		value = slot->tts_values[i + 1];

		if (slot->tts_isnull[i + 1])
		{
			wanted->found = wanted->isnull;
			continue;
		}
		ea_limits_keep(comparison->req,
					   ea_types_bytes(wanted->field->type, value), NULL);
		wanted->found = is_wanted_value(wanted, value);
	}
}

/* Read the attributes, and hold the row in any case. */
static void
compare_row(EaInput *input, Comparison *comparison, const EaId *id)
{
	EaEntity   *entity = input->entity;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, input->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	for (int i = 0; i < comparison->n; i++)
		ea_sqlbuf_select_field(&b, 0, comparison->items[i].field);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_sqlbuf_add(&b, " FOR UPDATE");
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, stored_row, comparison);
}

static Wanted *
find_wanted(const Comparison *comparison, const EaField *field)
{
	for (int i = 0; i < comparison->n; i++)
	{
		if (comparison->items[i].field == field)
			return &comparison->items[i];
	}
	return NULL;
}

static Wanted *
add_wanted(Comparison *comparison, EaField *field)
{
	Wanted	   *wanted = find_wanted(comparison, field);

	if (wanted == NULL)
		wanted = &comparison->items[comparison->n++];
	memset(wanted, 0, sizeof(Wanted));
	wanted->field = field;
	return wanted;
}

/*
 * The value need not be one that could be set: it was stored somehow.  One
 * that the type does not read is none that a row has.
 */
static void
want_attribute(EaInput *input, Comparison *comparison,
			   const EaRepeated *repeated)
{
	EaField    *field = repeated->field;
	const char *source = input->req->body;
	const char *why;
	Datum		value = (Datum) 0;
	bool		isnull = repeated->json->kind == EA_JSON_NULL;
	Wanted	   *wanted;

	if (!isnull &&
		!ea_types_from_json(field->shown, repeated->json, source, &value,
							&why) &&
		!ea_types_odd_from_json(field->type, repeated->json, source, &value))
		return;
	wanted = add_wanted(comparison, field);
	wanted->isnull = isnull;
	wanted->value = value;
}

/* -------- relationships -------- */

static bool
read_target(EaInput *input, EaField *field, const EaJson *json,
			EaTarget *target)
{
	EaRequest  *req = input->req;
	const char *type = ea_jsonread_string(json, "type");
	const char *id = ea_jsonread_string(json, "id");
	EaJson	   *lid = ea_jsonread_get(json, "lid");
	int			nproblems = req->nproblems;

	if (type == NULL || (id == NULL) == (lid == NULL))
		return false;
	for (target->member = 0; target->member < field->nmembers;
		 target->member++)
	{
		if (strcmp(field->members[target->member].type, type) == 0)
			break;
	}
	if (target->member == field->nmembers)
		return false;
	if (id != NULL)
		return ea_id_parse(req,
						   &ea_catalog_target(field, target->member)->key,
						   id, strlen(id), &target->id);
	if (req->lids != NULL &&
		ea_lid_resolve(req, ea_catalog_target(field, target->member), lid, "",
					   &target->id))
		return true;
	req->nproblems = nproblems;
	return false;
}

static int
compare_targets(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(EaTarget));
}

static int
sort_targets(EaTarget *targets, int n)
{
	int			kept = 0;

	qsort(targets, n, sizeof(EaTarget), compare_targets);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 ||
			compare_targets(&targets[kept - 1], &targets[i]) != 0)
			targets[kept++] = targets[i];
	}
	return kept;
}

/* The targets that a member names, each once; -1: it can be no linkage. */
static int
read_targets(EaInput *input, const EaRepeated *repeated, EaTarget **targets)
{
	const EaJson *data = ea_jsonread_get(repeated->json, "data");
	bool		to_many = ea_catalog_is_to_many(repeated->field);
	int			n = 0;

	if (data == NULL || (to_many && data->kind != EA_JSON_ARRAY))
		return -1;
	if (!to_many && data->kind == EA_JSON_NULL)
		return 0;
	*targets = palloc0(Max(to_many ? data->count : 1, 1) * sizeof(EaTarget));
	if (!to_many)
		return read_target(input, repeated->field, data, *targets) ? 1 : -1;
	for (const EaJson *item = data->first; item; item = item->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_target(input, repeated->field, item, &(*targets)[n++]))
			return -1;
	}
	return sort_targets(*targets, n);
}

static bool
is_repeated_link(void *arg, EaField *field)
{
	const EaInput *input = arg;

	for (int i = 0; i < input->nrepeated; i++)
	{
		if (input->repeated[i].field == field)
			return true;
	}
	return false;
}

/* The resource as the caller is shown it, without its attributes; or NULL. */
static EaResource *
read_links(EaInput *input, const EaId *id, bool all)
{
	EaDocument *doc = ea_document_create(input->req, NULL, input->entity,
										 EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_shape_find(doc, input->entity)};

	doc->all_linkage = all;
	ea_shape_narrow(sink.shape, is_repeated_link, input);
	ea_resource_row(&sink, id, EA_EXEC_WRITE);
	if (doc->primary.n == 0)
		return NULL;
	ea_document_complete(doc);
	return ea_document_one(doc);
}

static const EaLinkage *
find_linkage(const EaResource *resource, const EaField *field)
{
	const EaShape *shape = resource->shape;

	for (int i = 0; i < shape->nrels; i++)
	{
		if (shape->rels[i].field == field)
			return &resource->linkage[i];
	}
	return NULL;
}

/*
 * Long linkage is counted and not read, as for any document: it is read if the
 * number is right.
 */
static bool
has_targets(EaInput *input, const EaResource *resource,
			const EaRepeated *repeated)
{
	EaTarget   *targets = NULL;
	int			n = read_targets(input, repeated, &targets);
	const EaLinkage *linkage = find_linkage(resource, repeated->field);

	if (n < 0 || linkage == NULL || linkage->count != n)
		return false;
	if (linkage->n < n)
	{
		resource = read_links(input, &resource->id, true);
		linkage = resource == NULL ? NULL :
			find_linkage(resource, repeated->field);
		if (linkage == NULL || linkage->n != n)
			return false;
	}
	return n == 0 || (sort_targets(linkage->items, n) == n &&
					  memcmp(linkage->items, targets,
							 n * sizeof(EaTarget)) == 0);
}

/* -------- both -------- */

static bool
is_odd(const EaInput *input, int field)
{
	return input->fields[field].given && !input->fields[field].isnull &&
		input->fields[field].odd != NULL;
}

/* Whether there is anything to ask the row. */
static bool
find_wanted_values(EaInput *input, Comparison *comparison, bool *links)
{
	EaEntity   *entity = input->entity;
	bool		any = input->nrepeated > 0;

	for (int i = 0; i < entity->nfields && !any; i++)
		any = is_odd(input, i);
	if (!any)
		return false;
	comparison->items = palloc(entity->nfields * sizeof(Wanted));
	for (int i = 0; i < entity->nfields; i++)
	{
		Wanted	   *wanted;

		if (!is_odd(input, i))
			continue;
		wanted = add_wanted(comparison, &entity->fields[i]);
		wanted->value = input->fields[i].value;
		wanted->written = true;
	}
	for (int i = 0; i < input->nrepeated; i++)
	{
		if (input->repeated[i].field->kind != EA_ATTRIBUTE)
			*links = true;
		else
			want_attribute(input, comparison, &input->repeated[i]);
	}
	return true;
}

static void
check_odd(EaInput *input, const Comparison *comparison)
{
	EaEntity   *entity = input->entity;

	for (int i = 0; i < entity->nfields; i++)
	{
		if (is_odd(input, i) &&
			!find_wanted(comparison, &entity->fields[i])->found)
			ea_errors_add(input->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  input->fields[i].pointer, "The field \"%s\" %s.",
						  entity->fields[i].name, input->fields[i].odd);
	}
}

void
ea_repeated_check(EaInput *input, const EaId *id)
{
	Comparison	comparison = {input->req};
	EaResource *resource = NULL;
	bool		links = false;

	if (!find_wanted_values(input, &comparison, &links))
		return;
	compare_row(input, &comparison, id);
	if (links)
		resource = read_links(input, id, false);
	check_odd(input, &comparison);
	for (int i = 0; i < input->nrepeated; i++)
	{
		const EaRepeated *repeated = &input->repeated[i];
		const Wanted *wanted = find_wanted(&comparison, repeated->field);

		if (repeated->field->kind == EA_ATTRIBUTE
			? wanted == NULL || !wanted->found
			: resource == NULL || !has_targets(input, resource, repeated))
			ea_input_refuse(input->req, repeated->field, repeated->side,
							repeated->pointer);
	}
}
