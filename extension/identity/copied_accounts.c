/*
 * Functions that keep the rows of User in line with the accounts.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "model/account_copy.h"
#include "model/row_tenant.h"
#include "model/trigger_write.h"
#include "model/value_checks.h"
#include "trust/owner.h"
#include "write/written.h"

/*
 * entityapi.profile_value(profile jsonb, part text, type text, most int4,
 * scale int4): the part as text that the type reads, NULL if it is none of
 * the type.  most is the longest text, or the digits of a decimal.
 */
PG_FUNCTION_INFO_V1(ea_sql_profile_value);

Datum
ea_sql_profile_value(PG_FUNCTION_ARGS)
{
	Jsonb	   *profile = PG_GETARG_JSONB_P(0);
	char	   *source = JsonbToCString(NULL, &profile->root,
										VARSIZE(profile));
	const EaType *type = ea_types_find(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	EaJsonFault fault;
	EaJson	   *tree = ea_jsonread_parse(source, strlen(source),
										 EA_JSON_MAX_DEPTH, &fault);
	EaJson	   *part = ea_jsonread_get(tree,
									   text_to_cstring(PG_GETARG_TEXT_PP(1)));
	EaField		field = {.type = type, .min_length = -1, .max_length = -1};
	const char *why;
	Datum		value;
	Oid			output;
	bool		varlena;

	if (type == NULL || part == NULL || part->kind == EA_JSON_NULL)
		PG_RETURN_NULL();
	if (type->modifier == EA_MODIFIER_DIGITS)
	{
		field.precision = PG_GETARG_INT32(3);
		field.scale = PG_GETARG_INT32(4);
	}
	else
		field.max_length = PG_GETARG_INT32(3);
	if (!ea_types_from_json(type, part, source, &value, &why) ||
		!ea_value_check(&field, value, &why))
		PG_RETURN_NULL();
	getTypeOutputInfo(type->oid, &output, &varlena);
	PG_RETURN_TEXT_P(cstring_to_text(OidOutputFunctionCall(output, value)));
}

/*
 * A dump brings the copies along, and makes the primary key after all rows:
 * before that there is nothing to keep in line.
 */
static bool
is_whole(const EaEntity *user)
{
	return ea_trigger_write_asks("SELECT true FROM pg_catalog.pg_index"
								 " WHERE indisprimary AND indrelid ="
								 " pg_catalog.to_regclass($1)", user->table);
}

static Datum
column_of(TriggerData *trigger, HeapTuple row, const char *name, bool *isnull)
{
	TupleDesc	desc = trigger->tg_relation->rd_att;
	int			number = SPI_fnumber(desc, name);

	if (number <= 0)
		elog(ERROR, "entityapi.account has no column \"%s\"", name);
	return SPI_getbinval(row, desc, number, isnull);
}

/*
 * The table that a copy goes to, or NULL.  An account is written on each node
 * of a cluster, and the trigger runs there: its copy is made on that of its
 * tenant, in a part of the table, which may be another's though the table is
 * not.
 */
static const char *
find_place(const EaEntity *entity, Datum tenant)
{
	const char *table = entity->table;

	if (ea_distributed())
	{
		const EaShard *part = ea_shards_find(table, DatumGetUUIDP(tenant));

		if (part->number != 0 && part->node != part->here)
			return NULL;

		/* the object in the place of the table may be none of Citus' */
		if (part->number != 0 && part->name == NULL)
			elog(ERROR, "a part of the table %s is not there", table);
		if (part->number != 0)
			table = pstrdup(part->name);
	}
	if (table != entity->table)
		ea_trigger_write_check(entity->table);
	return table;
}

/*
 * Citus has no foreign key that sets one of its columns to null: the author of
 * such rows becomes null, as on one node.
 */
static void
release_authors(const EaEntity *user, Oid *types, Datum *values)
{
	for (int i = 0; i < user->nreferences; i++)
	{
		EaField    *field = ea_catalog_referring(unconstify(EaEntity *, user),
												 i);
		const char *column = field->columns[0].name;
		const char *table;

		if (!field->system)
			continue;
		table = find_place(field->entity, values[1]);
		ea_trigger_write(table,
						 psprintf("UPDATE %s SET %s = NULL"
								  " WHERE %s = $1 AND %s = $2", table, column,
								  column, ea_row_tenant_column(field->entity)),
						 2, types, values);
	}
}

/*
 * Check that so many copies are there, whatever user-defined triggers have
 * done.
 */
static void
check_copy(const EaEntity *user, const char *table, Oid *types, Datum *values,
		   uint64 copies)
{
	char	   *sql = psprintf("SELECT 1 FROM %s WHERE %s = $1 AND %s = $2",
							   table, user->id_column,
							   ea_row_tenant_column(user));

	if (ea_trigger_write_count(sql, 2, types, values) != copies)
		ea_written_refuse(table);
}

static void
copy_account(TriggerData *trigger, const EaEntity *user)
{
	HeapTuple	row = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	Oid			types[] = {UUIDOID, UUIDOID};
	Datum		values[2];
	const char *table;
	bool		isnull;

	values[0] = column_of(trigger, row, "id", &isnull);
	values[1] = column_of(trigger, row, "tenant_id", &isnull);
	if (isnull || !is_whole(user))
		return;
	table = find_place(user, values[1]);
	if (table == NULL)
		return;
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event) && ea_distributed())
		release_authors(user, types, values);
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		ea_trigger_write(table,
						 psprintf("DELETE FROM %s WHERE %s = $1 AND %s = $2",
								  table, user->id_column,
								  ea_row_tenant_column(user)),
						 2, types, values);
	else
	{
		ea_trigger_write(table, ea_account_copy_sql(user, table, true),
						 1, types, values);
		if (SPI_processed != 1)
			ea_written_refuse(table);
	}
	check_copy(user, table, types, values,
			   TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? 0 : 1);
}

/* entityapi.copy_account(): trigger of entityapi.account, after each row */
EA_TRIGGER_FUNCTION(ea_sql_copy_account)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	EaCatalog  *volatile catalog = NULL;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function is a trigger")));
	SPI_connect();
	PG_TRY();
	{
		EaEntity   *user;

		catalog = ea_catalog_acquire();
		user = ea_account_copy_entity(catalog);
		if (user != NULL)
			copy_account(trigger, user);
	}
	PG_FINALLY();
	{
		if (catalog != NULL)
			ea_catalog_release(catalog);
	}
	PG_END_TRY();
	SPI_finish();
	PG_RETURN_POINTER(NULL);
}
