#include "postgres.h"

#include "manifest/faults.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "request/errors.h"

/* The kind that each form accepts, and its name in messages. */
static const struct
{
	EaJsonKind	kind;
	const char *expected;
}			forms[] =
{
	[EA_KEY_STRING] = {EA_JSON_STRING, "a string"},
	[EA_KEY_TEXT] = {EA_JSON_STRING, "a string"},
	[EA_KEY_BOOL] = {EA_JSON_BOOL, "true or false"},
	[EA_KEY_COUNT] = {EA_JSON_NUMBER, "a whole number from 0"},
	[EA_KEY_NUMBER] = {EA_JSON_NUMBER, "a whole number from 1"},
	[EA_KEY_CHOICE] = {EA_JSON_STRING, "a string"},
	[EA_KEY_NAMES] = {EA_JSON_ARRAY, "a list of names"},
	[EA_KEY_OBJECT] = {EA_JSON_OBJECT, "an object"},
	[EA_KEY_ARRAY] = {EA_JSON_ARRAY, "a list"},
	[EA_KEY_VALUE] = {EA_JSON_NULL, "a value"},
};

typedef struct Place
{
	EaManifest *m;
	const char *label;
	const char *pointer;
} Place;

static bool
read_number(Place *at, const EaKey *key, const EaJson *value, int *result)
{
	int			from = key->form == EA_KEY_NUMBER ? 1 : 0;
	int64		number = 0;
	bool		digits = value->len > 0;

	for (int i = 0; digits && i < value->len; i++)
	{
		digits = value->text[i] >= '0' && value->text[i] <= '9';
		number = number * 10 + (value->text[i] - '0');
		if (number > PG_INT32_MAX)
			digits = false;
	}
	if (!digits || number < from)
	{
		ea_manifest_fault(at->m, at->label, at->pointer,
						  psprintf("must be %s", forms[key->form].expected),
						  NULL);
		return false;
	}
	*result = number;
	return true;
}

static bool
read_choice(Place *at, const EaKey *key, const EaJson *value, int *result)
{
	int			n = 0;
	StringInfoData list;

	for (; key->choices[n] != NULL; n++)
	{
		if (strcmp(key->choices[n], value->text) == 0)
		{
			*result = n;
			return true;
		}
	}

	initStringInfo(&list);
	for (int i = 0; i < n; i++)
		appendStringInfo(&list, "%s%s", i == 0 ? "" : ", ", key->choices[i]);
	ea_manifest_fault(at->m, at->label, at->pointer,
					  psprintf("must be one of %s", list.data),
					  ea_manifest_guess(value->text, key->choices, n, NULL));
	return false;
}

static bool
read_names(Place *at, const EaJson *value, List **result)
{
	EaNameMap  *seen = ea_names_map_create(16);
	bool		sound = true;
	int			i = 0;

	for (EaJson *item = value->first; item != NULL; item = item->next, i++)
	{
		const char *pointer = ea_errors_index(at->pointer, i);

		if (item->kind != EA_JSON_STRING || item->len == 0)
		{
			ea_manifest_fault(at->m, at->label, pointer,
							  psprintf("must be a name, not %s",
									   item->kind == EA_JSON_STRING ? "empty" :
									   ea_jsonread_kind(item)), NULL);
			sound = false;
		}
		else if (!ea_names_map_put(seen, item->text, item))
		{
			ea_manifest_fault(at->m, at->label, pointer,
							  psprintf("\"%s\" is named twice", item->text),
							  NULL);
			sound = false;
		}
		*result = lappend(*result, item->kind == EA_JSON_STRING ?
						  item->text : pstrdup(""));
	}
	return sound;
}

static bool
read_value(Place *at, const EaKey *key, const EaJson *value, void *into)
{
	void	   *target = (char *) into + key->offset;

	if (key->form != EA_KEY_VALUE && value->kind != forms[key->form].kind)
	{
		ea_manifest_fault(at->m, at->label, at->pointer,
						  psprintf("must be %s, not %s",
								   forms[key->form].expected,
								   ea_jsonread_kind(value)), NULL);
		return false;
	}
	switch (key->form)
	{
		case EA_KEY_STRING:
			if (value->len == 0)
			{
				ea_manifest_fault(at->m, at->label, at->pointer,
								  "must not be empty", NULL);
				return false;
			}
			/* FALLTHROUGH */
		case EA_KEY_TEXT:
			*(char **) target = value->text;
			return true;
		case EA_KEY_BOOL:
			*(bool *) target = value->truth;
			return true;
		case EA_KEY_COUNT:
		case EA_KEY_NUMBER:
			return read_number(at, key, value, target);
		case EA_KEY_CHOICE:
			return read_choice(at, key, value, target);
		case EA_KEY_NAMES:
			return read_names(at, value, target);
		case EA_KEY_OBJECT:
		case EA_KEY_ARRAY:
		case EA_KEY_VALUE:
			*(const EaJson **) target = value;
			return true;
	}
	return false;
}

static const EaKey *
find_key(const EaKey *keys, int nkeys, const char *name)
{
	for (int i = 0; i < nkeys; i++)
	{
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

static void
unknown_key(Place *at, const EaKey *keys, int nkeys, const char *name)
{
	const char **names = palloc(sizeof(char *) * (nkeys + 1));
	StringInfoData list;

	initStringInfo(&list);
	appendStringInfoString(&list, "known here: ");
	for (int i = 0; i < nkeys; i++)
	{
		names[i] = keys[i].name;
		appendStringInfo(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
	}
	ea_manifest_fault(at->m, at->label, at->pointer,
					  psprintf("unknown key \"%s\"", name),
					  ea_manifest_guess(name, names, nkeys, list.data));
}

bool
ea_manifest_keys(EaManifest *m, const char *label, const char *pointer,
				 const EaJson *object, const EaKey *keys, int nkeys,
				 void *into)
{
	bool		sound = true;

	if (object->kind != EA_JSON_OBJECT)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("must be an object, not %s",
								   ea_jsonread_kind(object)), NULL);
		return false;
	}

	for (EaJson *value = object->first; value != NULL; value = value->next)
	{
		const EaKey *key = find_key(keys, nkeys, value->key);
		Place		at = {m, label, ea_errors_pointer(pointer, value->key)};

		if (key == NULL)
		{
			unknown_key(&at, keys, nkeys, value->key);
			sound = false;
		}
		else if (!read_value(&at, key, value, into))
			sound = false;
	}

	for (int i = 0; i < nkeys; i++)
	{
		if ((keys[i].flags & EA_KEY_REQUIRED) &&
			ea_jsonread_get(object, keys[i].name) == NULL)
		{
			ea_manifest_fault(m, label, pointer,
							  psprintf("\"%s\" is missing", keys[i].name),
							  NULL);
			sound = false;
		}
	}
	return sound;
}

int
ea_manifest_operations(EaManifest *m, const char *label, const char *pointer,
					   const EaJson *list, int known)
{
	static const char *const names[EA_OPS] =
	{"create", "read", "update", "delete", "restore", "history"};
	StringInfoData otherwise;
	List	   *given = NIL;
	Place		at = {m, label, pointer};
	ListCell   *lc;
	int			mask = 0;

	if (list->kind != EA_JSON_ARRAY)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("must be a list of operations, not %s",
								   ea_jsonread_kind(list)), NULL);
		return 0;
	}
	if (!read_names(&at, list, &given))
		return 0;

	initStringInfo(&otherwise);
	for (int i = 0; i < known; i++)
		appendStringInfo(&otherwise, "%s%s", i == 0 ? "known: " : ", ",
						 names[i]);
	foreach(lc, given)
	{
		const char *name = lfirst(lc);
		int			i = 0;

		while (i < known && strcmp(names[i], name) != 0)
			i++;
		if (i < known)
			mask |= 1 << i;
		else
			ea_manifest_fault(m, label,
							  ea_errors_index(pointer,
											  foreach_current_index(lc)),
							  psprintf("unknown operation \"%s\"", name),
							  ea_manifest_guess(name, names, known,
												otherwise.data));
	}
	return mask;
}
