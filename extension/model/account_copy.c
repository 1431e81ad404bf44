#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "cluster/shards.h"
#include "model/account_copy.h"
#include "model/row_tenant.h"

#define ACCOUNT "entityapi.account"
#define PROFILE "profile."

EaEntity *
ea_account_copy_entity(EaCatalog *catalog)
{
	EaEntity   *user = ea_catalog_entity(catalog, "User");

	return user != NULL && user->accounts ? user : NULL;
}

/*
 * The value of an account a for the field; NULL where it does not fit the
 * type.
 */
static char *
source(const EaField *field)
{
	const char *part = field->from + strlen(PROFILE);
	bool		digits = field->type->modifier == EA_MODIFIER_DIGITS;

	if (strncmp(field->from, PROFILE, strlen(PROFILE)) != 0)
		return psprintf("a.%s", quote_identifier(field->from));
	return psprintf("entityapi.profile_value(a.profile, %s, %s, %d, %d)::%s",
					quote_literal_cstr(part),
					quote_literal_cstr(field->type->name),
					digits ? field->precision : field->max_length,
					digits ? field->scale : 0, field->type->sql);
}

char *
ea_account_copy_sql(const EaEntity *user, const char *table, bool one)
{
	StringInfoData into;
	StringInfoData values;
	StringInfoData changes;

	initStringInfo(&into);
	initStringInfo(&values);
	initStringInfo(&changes);
	for (int i = 0; i < user->nfields; i++)
	{
		const EaField *field = &user->fields[i];

		if (field->from == NULL)
			continue;
		appendStringInfo(&into, ", %s", field->columns[0].name);
		appendStringInfo(&values, ", %s", source(field));
		appendStringInfo(&changes, ", %s = excluded.%s",
						 field->columns[0].name, field->columns[0].name);
	}
	return psprintf("INSERT INTO %s (%s, %s, %s, %s%s)"
					" SELECT a.tenant_id, a.id, a.created_at,"
					" pg_catalog.now()%s FROM %s a"
					" WHERE a.tenant_id IS NOT NULL%s"
					" ON CONFLICT (%s, %s) DO UPDATE SET"
					" %s = excluded.%s%s",
					table, ea_row_tenant_column(user), user->id_column,
					user->created_column, user->updated_column, into.data,
					values.data, one ? ea_shards_name(ACCOUNT) : ACCOUNT,
					one ? " AND a.id = $1" : "",
					ea_row_tenant_column(user), user->id_column,
					user->updated_column, user->updated_column, changes.data);
}
