#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "audit/past_names.h"
#include "base/grow.h"
#include "engine/exec.h"

typedef struct PastName
{
	const char *entity;			/* today's */
	const char *field;			/* today's; "": the entity itself */
	EaField    *of;				/* that field; NULL: the entity */
	const char *name;
	int			first;
	int			last;
} PastName;

struct EaPastNames
{
	EaEntity   *entity;
	int			n;
	int			max;
	PastName   *items;
};

static void
name_row(void *arg, TupleTableSlot *slot)
{
	EaPastNames *names = arg;
	PastName   *name = EA_GROW(names);

	name->entity = TextDatumGetCString(slot->tts_values[0]);
	name->field = TextDatumGetCString(slot->tts_values[1]);
	name->name = TextDatumGetCString(slot->tts_values[2]);
	name->first = DatumGetInt32(slot->tts_values[3]);
	name->last = slot->tts_isnull[4] ? PG_INT32_MAX
		: DatumGetInt32(slot->tts_values[4]);
	name->of = name->field[0] == '\0' ? NULL :
		ea_catalog_field(names->entity, name->field, strlen(name->field));
}

/*
 * Names that are newer, or older, than the declarations would give a value to
 * another field.
 */
EaPastNames *
ea_past_names_read(EaRequest *req, EaEntity *entity)
{
	EaPastNames *names = palloc0(sizeof(EaPastNames));

	names->entity = entity;
	ea_exec_latest(EA_EXEC_READ,
				   "SELECT entity, field, name, first, last"
				   " FROM entityapi.past_name WHERE entity = $1 OR field = ''",
				   ea_params(EA_TEXT(entity == NULL ? "" : entity->name)),
				   EA_READER(name_row, TEXTOID, TEXTOID, TEXTOID, INT4OID,
							 INT4OID), names);
	ea_catalog_require_current(req->catalog);
	return names;
}

/* The name that something had then. */
static const PastName *
find_name(const EaPastNames *names, bool of_entity, const char *name,
		  int revision)
{
	for (int i = 0; i < names->n; i++)
	{
		const PastName *item = &names->items[i];

		if ((item->field[0] == '\0') == of_entity &&
			item->first <= revision && revision <= item->last &&
			strcmp(item->name, name) == 0)
			return item;
	}
	return NULL;
}

const char *
ea_past_names_entity(const EaPastNames *names, const char *type, int revision)
{
	const PastName *found = find_name(names, true, type, revision);

	return found == NULL ? NULL : found->entity;
}

bool
ea_past_names_is_type(const EaPastNames *names, const char *type,
					  int revision)
{
	const char *entity = ea_past_names_entity(names, type, revision);

	return entity != NULL && strcmp(entity, names->entity->name) == 0;
}

Datum
ea_past_names_types(const EaPastNames *names)
{
	char	  **types = palloc(Max(names->n, 1) * sizeof(char *));
	int			n = 0;

	for (int i = 0; i < names->n; i++)
	{
		const PastName *item = &names->items[i];

		if (item->field[0] == '\0' &&
			strcmp(item->entity, names->entity->name) == 0)
			types[n++] = unconstify(char *, item->name);
	}
	return ea_exec_text_array(types, n);
}

EaField *
ea_past_names_field(const EaPastNames *names, const char *name, int revision)
{
	const PastName *found = find_name(names, false, name, revision);

	return found == NULL ? NULL : found->of;
}

int
ea_past_names_since(const EaPastNames *names, const EaField *field)
{
	int			since = PG_INT32_MAX;

	for (int i = 0; i < names->n; i++)
	{
		if (names->items[i].of == field)
			since = Min(since, names->items[i].first);
	}
	return since;
}

int
ea_past_names_on_since(const EaPastNames *names)
{
	int			since = PG_INT32_MAX;

	for (int i = 0; i < names->n; i++)
	{
		const PastName *item = &names->items[i];

		if (item->field[0] == '\0' &&
			strcmp(item->entity, names->entity->name) == 0)
			since = Min(since, item->first);
	}
	return since;
}

int
ea_past_names_revision(TimestampTz at)
{
	return (int) ea_exec_int64(EA_EXEC_READ,
							   "SELECT coalesce(max(revision), 0)::int8"
							   " FROM entityapi.revision"
							   " WHERE applied_at <= $1",
							   ea_params(EA_TIMESTAMP(at)));
}
