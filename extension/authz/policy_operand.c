#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "authz/authz.h"
#include "authz/policy_operand.h"
#include "authz/policy_types.h"
#include "authz/policy_value.h"
#include "authz/policy_writer.h"
#include "model/host.h"
#include "model/row_tenant.h"

bool
ea_policy_mentions_input(const EaPolicy *tree, const char *name)
{
	if (tree->kind == EA_POLICY_INPUT &&
		(name == NULL || strcmp(tree->names[0], name) == 0))
		return true;
	for (int i = 0; i < tree->nchildren; i++)
	{
		if (ea_policy_mentions_input(tree->children[i], name))
			return true;
	}
	return false;
}

bool
ea_policy_crosses(const EaPolicy *tree)
{
	if (tree->nnames > 1)
		return true;
	for (int i = 0; i < tree->nchildren; i++)
	{
		if (ea_policy_crosses(tree->children[i]))
			return true;
	}
	return false;
}

bool
ea_policy_mentions_now(const EaPolicy *tree)
{
	if (tree->kind == EA_POLICY_NOW)
		return true;
	for (int i = 0; i < tree->nchildren; i++)
	{
		if (ea_policy_mentions_now(tree->children[i]))
			return true;
	}
	return false;
}

static void
set_constant(EaOperand *operand, Datum value, bool isnull)
{
	operand->constant = true;
	operand->value = value;
	operand->isnull = isnull;
}

/* A target that the caller's roles do not let it read shows nothing. */
static bool
crosses_unreadable(EaPolicyWriter *w, EaField **fields, int nnames)
{
	if (w->req == NULL)
		return false;
	for (int i = 0; i < nnames - 1; i++)
	{
		if (!ea_authz_allows(w->req, ea_catalog_target(fields[i], 0),
							 EA_OP_READ))
			return true;
	}
	return false;
}

/* The value that the first name of a path has in the input, if it is there. */
static bool
input_value(EaPolicyWriter *w, const EaPolicy *node, EaField *field,
			Datum *value, bool *isnull)
{
	if (w->input == NULL || field == NULL)
		return false;
	if (node->kind == EA_POLICY_RECORD &&
		(!w->moved || ea_policy_mentions_input(w->tree, node->names[0])))
		return false;
	return w->input->value(w->input->arg, field, value, isnull);
}

/* The type of an attribute, of an id, or of a reference to one. */
static const EaType *
end_type(EaPolicyWriter *w, EaField **fields, int nnames)
{
	EaField    *last = fields[nnames - 1];
	EaEntity   *entity = nnames == 1 ? w->entity :
		ea_catalog_target(fields[nnames - 2], 0);

	if (last == NULL)
		return entity->key.type;
	return last->kind == EA_ATTRIBUTE ? last->type : last->members[0].key.type;
}

/* The target of a reference that no foreign key keeps there. */
static EaEntity *
loose_target(EaField *field)
{
	EaEntity   *target = field == NULL || field->kind != EA_TO_ONE ? NULL :
		ea_catalog_target(field, 0);

	return target != NULL && (ea_catalog_is_loose(field, target) ||
							  ea_catalog_strays(field, target)) ? target :
		NULL;
}

bool
ea_policy_leaves(const EaPolicy *tree)
{
	EaField   **fields = tree->bound;

	for (int i = 0; fields != NULL && i < tree->nnames; i++)
	{
		if (loose_target(fields[i]) != NULL)
			return true;
	}
	for (int i = 0; i < tree->nchildren; i++)
	{
		if (ea_policy_leaves(tree->children[i]))
			return true;
	}
	return false;
}

static void
path_operand(EaPolicyWriter *w, const EaPolicy *node, EaOperand *operand)
{
	EaField   **fields = node->bound;
	EaField    *last = fields[node->nnames - 1];
	bool		isnull = false;

	operand->type = end_type(w, fields, node->nnames);
	if (last != NULL && ea_catalog_crosses(last))
		operand->column = &last->columns[0];
	if (crosses_unreadable(w, fields, node->nnames))
	{
		set_constant(operand, (Datum) 0, true);
		return;
	}
	if (!input_value(w, node, fields[0], &operand->value, &isnull))
	{
		operand->never_null = node->nnames == 1 &&
			node->kind == EA_POLICY_RECORD &&
			(last == NULL || (last->required && loose_target(last) == NULL));
		return;
	}
	if (isnull)
		set_constant(operand, (Datum) 0, true);
	else if (node->nnames == 1)
		/* of an id of several parts only whether it is there can be asked */
		set_constant(operand, operand->type->oid == RECORDOID ? (Datum) 0 :
					 ea_policy_value_of(operand->type, operand->value),
					 false);
	else
		operand->starts = true;
}

void
ea_policy_operand(EaPolicyWriter *w, const EaPolicy *node, EaOperand *operand)
{
	Datum		value = (Datum) 0;

	memset(operand, 0, sizeof(*operand));
	switch (node->kind)
	{
		case EA_POLICY_LITERAL:
			set_constant(operand, ea_policy_value_literal(node), false);
			break;
		case EA_POLICY_NOW:
			if (w->req != NULL)
				set_constant(operand, TimestampTzGetDatum(w->req->now),
							 false);
			break;
		case EA_POLICY_USER:
			if (w->req != NULL)
			{
				bool		known = ea_policy_sql_caller(w->req->principal,
														 node->text,
														 node->key,
														 node->type, &value);

				set_constant(operand, value, !known);
			}
			break;
		default:
			path_operand(w, node, operand);
			break;
	}
}

/* -------- SQL -------- */

/*
 * The relation a path's value is looked up in, up to `AND t<n>.id = `.  Of a
 * reference of several columns the value at the end is a record, and on the
 * way to it there are as many columns.
 */
static void
write_from(EaPolicyWriter *w, EaEntity *target, const char *column, bool end)
{
	EaSqlBuf   *b = w->b;
	int			alias = b->nrelations;

	ea_sqlbuf_add(b, "(SELECT ");
	if (end)
		ea_sqlbuf_id_read(b, alias, column);
	else
		ea_sqlbuf_columns(b, alias, column);
	if (w->req != NULL)
		ea_sqlbuf_from(b, target, EA_OP_READ);
	else
	{
		/* the target's own row-level security narrows it */
		b->nrelations++;
		ea_sqlbuf_addf(b, " FROM %s t%d WHERE ", target->table, alias);
		if (ea_row_tenant_column(target) != NULL)
			ea_sqlbuf_addf(b, "t%d.%s = (SELECT entityapi.current_tenant())",
						   alias, ea_row_tenant_column(target));
		else
			ea_sqlbuf_add(b, target->tenant_scoped ? "false" : "true");
	}
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, target->id_column);
	ea_sqlbuf_add(b, " = ");
}

static const char *
column_of(EaEntity *entity, EaField *field)
{
	return field == NULL ? entity->id_column : field->columns[0].name;
}

/*
 * The column that n names lead to, written from its far end; `end` says that
 * it is the value itself, not one that a row is found by.
 */
static void
write_path(EaPolicyWriter *w, EaField **fields, int n,
		   const EaOperand *operand, bool end)
{
	if (n > 1)
	{
		EaEntity   *target = ea_catalog_target(fields[n - 2], 0);

		write_from(w, target, column_of(target, fields[n - 1]), end);
		write_path(w, fields, n - 1, operand, false);
		ea_sqlbuf_add(w->b, ")");
	}
	else if (operand->starts)
		ea_sqlbuf_value(w->b, fields[0]->members[0].key.type->oid,
						operand->value, false);
	else if (w->req == NULL)
		ea_sqlbuf_addf(w->b, "%s.%s", w->entity->table,
					   column_of(w->entity, fields[0]));
	else if (end)
		ea_sqlbuf_id_read(w->b, w->alias, column_of(w->entity, fields[0]));
	else
		ea_sqlbuf_column(w->b, w->alias, column_of(w->entity, fields[0]));
}

/* The same; a reference whose target is gone is null. */
static void
write_value(EaPolicyWriter *w, EaField **fields, int n,
			const EaOperand *operand)
{
	EaEntity   *target = w->req == NULL ? NULL : loose_target(fields[n - 1]);

	if (target != NULL)
	{
		int			alias;

		ea_sqlbuf_add(w->b, "(SELECT ");
		ea_sqlbuf_id_read(w->b, w->b->nrelations, target->id_column);
		alias = ea_sqlbuf_from(w->b, target, EA_OP_DELETE);
		ea_sqlbuf_add(w->b, " AND ");
		ea_sqlbuf_column(w->b, alias, target->id_column);
		ea_sqlbuf_add(w->b, " = ");
	}
	write_path(w, fields, n, operand, target == NULL);
	if (target != NULL)
		ea_sqlbuf_add(w->b, ")");
}

/* The SQL function that returns the caller's value, as one of the type. */
static const char *
caller_function(EaPolicyType type)
{
	switch (type)
	{
		case EA_POLICY_BOOLEAN:
			return "caller_boolean";
		case EA_POLICY_NUMBER:
			return "caller_number";
		case EA_POLICY_STRING:
			return "caller_text";
		case EA_POLICY_UUID:
			return "caller_uuid";
		case EA_POLICY_DATE:
			return "caller_date";
		case EA_POLICY_DATETIME:
			return "caller_datetime";
		case EA_POLICY_STRINGS:
			return "caller_texts";
		case EA_POLICY_ANY:
			return "caller_known";
		case EA_POLICY_LOCAL:	/* no reader by SQL has such a column */
		case EA_POLICY_UNKNOWN:
		case EA_POLICY_JSON:
		case EA_POLICY_NULL:
			break;
	}
	elog(ERROR, "a caller has nothing of policy type %d", type);
	return NULL;
}

/*
 * `(SELECT entityapi.caller_text('profile', 'team'))`: asked once a scan, with
 * the rows split between processes.  Citus takes no sub-select.
 */
static void
write_caller(EaPolicyWriter *w, const EaPolicy *node)
{
	ea_sqlbuf_addf(w->b, w->entity->catalog->distributed ?
				   "entityapi.%s(%s, %s)" : "(SELECT entityapi.%s(%s, %s))",
				   caller_function(node->type), quote_literal_cstr(node->text),
				   node->key == NULL ? "NULL" : quote_literal_cstr(node->key));
}

/* A constant as text: only in row-level security, where it is a literal. */
static void
write_literal(EaPolicyWriter *w, EaPolicyType type, Datum value)
{
	const EaType *writer = ea_policy_type_reader(type);
	StringInfoData buf;

	initStringInfo(&buf);
	if (type == EA_POLICY_STRING)
	{
		char	   *bare = TextDatumGetCString(value);

		appendStringInfoString(&buf, quote_literal_cstr(bare));
	}
	else
	{
		writer->write(&buf, value);
		if (buf.data[0] == '"')
		{
			char	   *bare = pnstrdup(buf.data + 1, buf.len - 2);

			resetStringInfo(&buf);
			appendStringInfoString(&buf, quote_literal_cstr(bare));
		}
	}
	if (type == EA_POLICY_NUMBER || type == EA_POLICY_BOOLEAN)
		ea_sqlbuf_addf(w->b, "(%s)", buf.data);
	else
		ea_sqlbuf_addf(w->b, "%s::%s", buf.data, writer->sql);
}

static bool
is_integer(const EaType *type)
{
	return type != NULL &&
		(type->form == EA_FORM_INT32 || type->form == EA_FORM_INT64);
}

static bool
is_float(const EaType *type)
{
	return type != NULL &&
		(type->form == EA_FORM_FLOAT4 || type->form == EA_FORM_FLOAT8);
}

/* The number that is nearest, or infinite. */
static Datum
float_of(const EaType *type, Datum number)
{
	bool		single = type->form == EA_FORM_FLOAT4;
	const char *digits = ea_host_number_write(number);
	bool		small = fabs(strtod(digits, NULL)) < 1;
	Datum		value;

	if (!ea_host_float_read(digits, single, &value) &&
		!ea_host_float_read(small ? "0" : digits[0] == '-' ? "-infinity" :
							"infinity", single, &value))
		elog(ERROR, "a number is no floating-point number");
	return value;
}

/*
 * The type of a parameter for a constant that a column is compared with: the
 * column's own where the same value is spelled otherwise in another type, or
 * an index would not serve.
 */
static const EaType *
constant_type(EaPolicyType type, const EaType *against)
{
	if (against != NULL && against->id == EA_TYPE_UTC &&
		type == EA_POLICY_DATETIME)
		return against;
	return ea_policy_type_reader(type);
}

/*
 * A number against a column of integers stays one where it can, so that an
 * index serves the comparison.
 */
static void
write_constant(EaPolicyWriter *w, EaPolicyType type, Datum value,
			   const EaType *against)
{
	int64		whole;

	if (w->req == NULL)
		write_literal(w, type, value);
	else if (is_float(against) && type == EA_POLICY_NUMBER)
		ea_sqlbuf_value(w->b, against->oid, float_of(against, value), false);
	else if (type != EA_POLICY_NUMBER)
		ea_sqlbuf_value(w->b, constant_type(type, against)->oid, value,
						false);
	else if (is_integer(against) && ea_policy_value_whole(value, &whole))
		ea_sqlbuf_value(w->b, INT8OID, Int64GetDatum(whole), false);
	else
	{
		ea_sqlbuf_value(w->b, NUMERICOID, value, false);
		ea_sqlbuf_add(w->b, "::pg_catalog.numeric");
	}
}

void
ea_policy_operand_write(EaPolicyWriter *w, const EaPolicy *node,
						const EaOperand *operand, const EaType *against)
{
	if (operand->constant)
		write_constant(w, node->type, operand->value, against);
	else if (node->kind == EA_POLICY_USER)
		write_caller(w, node);
	else if (node->kind == EA_POLICY_NOW)
		ea_sqlbuf_add(w->b, "pg_catalog.now()");
	else
	{
		bool		utc = operand->type->id == EA_TYPE_UTC &&
		against != NULL && against->id != EA_TYPE_UTC;

		ea_sqlbuf_add(w->b, utc ? "pg_catalog.timezone('UTC', " :
					  operand->column != NULL ? operand->column->before : "");
		write_value(w, node->bound, node->nnames, operand);
		ea_sqlbuf_add(w->b, utc ? ")" :
					  operand->column != NULL ? operand->column->after : "");
	}
}

/* The members of a list as an array of the column's type. */
static void
write_array(EaPolicyWriter *w, const EaPolicy *list, const EaType *against)
{
	const EaType *type = is_integer(against) ? ea_types_find("long") :
		is_float(against) ? against : constant_type(list->type, against);
	Datum	   *items = palloc(list->nchildren * sizeof(Datum));
	int			n = 0;
	int16		len;
	bool		byval;
	char		align;

	for (int i = 0; i < list->nchildren; i++)
	{
		EaOperand	item;
		int64		whole;

		ea_policy_operand(w, list->children[i], &item);
		if (is_float(against))
			items[n++] = float_of(against, item.value);
		else if (!is_integer(against))
			items[n++] = ea_policy_value_fold(against, item.value);
		else if (ea_policy_value_whole(item.value, &whole))
			items[n++] = Int64GetDatum(whole);
	}
	get_typlenbyvalalign(type->oid, &len, &byval, &align);
	ea_sqlbuf_value(w->b, type->array_oid,
					PointerGetDatum(construct_array(items, n, type->oid, len,
													byval, align)), false);
	ea_sqlbuf_addf(w->b, "::%s[]", type->form == EA_FORM_TEXT ?
				   "pg_catalog.text" : type->sql);
}

static Datum
fold_texts(const EaType *type, Datum texts)
{
	int			n;
	char	  **items;

	if (type == NULL ||
		(type->id != EA_TYPE_CITEXT && type->id != EA_TYPE_CHAR))
		return texts;
	items = ea_exec_array_text(texts, &n);
	for (int i = 0; i < n; i++)
	{
		Datum		item = CStringGetTextDatum(items[i]);

		items[i] = TextDatumGetCString(ea_policy_value_fold(type, item));
	}
	return ea_exec_text_array(items, n);
}

void
ea_policy_operand_write_any(EaPolicyWriter *w, const EaPolicy *list,
							const EaType *against)
{
	EaOperand	operand;

	ea_sqlbuf_add(w->b, " = ANY (");
	if (list->kind != EA_POLICY_LIST)
	{
		ea_policy_operand(w, list, &operand);
		if (operand.constant)
			ea_sqlbuf_value(w->b, TEXTARRAYOID,
							fold_texts(against, operand.value), false);
		else
		{
			/* a cast keeps this from being read as a sub-select's rows */
			ea_policy_operand_write(w, list, &operand, NULL);
			ea_sqlbuf_add(w->b, "::pg_catalog.text[]");
		}
	}
	else if (w->req != NULL)
		write_array(w, list, against);
	else
	{
		ea_sqlbuf_add(w->b, "ARRAY[");
		for (int i = 0; i < list->nchildren; i++)
		{
			if (i > 0)
				ea_sqlbuf_add(w->b, ", ");
			ea_policy_operand(w, list->children[i], &operand);
			write_literal(w, list->children[i]->type, operand.value);
		}
		ea_sqlbuf_add(w->b, "]");
	}
	ea_sqlbuf_add(w->b, ")");
}
