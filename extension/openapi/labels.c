#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "base/jsonfmt.h"
#include "engine/exec.h"
#include "openapi/labels.h"

static void
put_label(void *arg, TupleTableSlot *slot)
{
	EaApi	   *api = arg;

	ea_jsonfmt_put(api->out, "%,%q", TextDatumGetCString(slot->tts_values[0]));
}

void
ea_openapi_labels(EaApi *api, const EaField *field)
{
	ea_jsonfmt_put(api->out, ",'enum':[");
	ea_exec_each(EA_EXEC_LOOK, "SELECT enumlabel::text FROM pg_enum"
				 " WHERE enumtypid = $1 ORDER BY enumsortorder",
				 ea_params(EA_OID(field->columns[0].held)),
				 EA_READER(put_label, TEXTOID), api);
	ea_jsonfmt_put(api->out, field->required ? "]" : "%,null]");
}

static void
keep_state(void *arg, TupleTableSlot *slot)
{
	*(char **) arg = TextDatumGetCString(slot->tts_values[0]);
}

char *
ea_openapi_labels_state(const EaCatalog *catalog)
{
	char	   *state = "";

	if (catalog->application != NULL)
		ea_exec_one(EA_EXEC_LOOK, "SELECT ' ' || coalesce(sum("
					"hashtextextended(concat_ws(' ', enumtypid, enumsortorder,"
					" enumlabel), 0)), 0) FROM pg_enum", EA_NO_PARAMS,
					EA_READER(keep_state, TEXTOID), &state);
	return state;
}
