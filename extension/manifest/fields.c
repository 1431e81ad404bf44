#include "postgres.h"

#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/fields.h"
#include "manifest/held_type.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "model/host.h"
#include "model/value_checks.h"
#include "request/errors.h"

#define LONGEST_STRING 10485760 /* of character varying */
#define GREATEST_PRECISION 1000

/* Fields that a key goes with, beside the types with a bit of EA_KEYS_*. */
#define WITH_REF		0x01
#define WITH_ONE_OF		0x02
#define WITH_ATTRIBUTES 0x04	/* whatever their type */

/* Keys that only some fields have; all others go with every field. */
static const struct
{
	const char *key;
	int			types;			/* EA_KEYS_* */
	int			with;			/* WITH_* */
	const char *expected;		/* "goes with ..."; NULL: the types */
}			keys[] =
{
	{"unique", EA_KEYS_INDEX, 0, NULL},
	{"index", EA_KEYS_INDEX, WITH_REF | WITH_ONE_OF, NULL},
	{"default", 0, WITH_ATTRIBUTES | WITH_REF,
	"attributes and references to User"},
	{"enum", EA_KEYS_TEXT, 0, NULL},
	{"minLength", EA_KEYS_TEXT, 0, NULL},
	{"maxLength", EA_KEYS_TEXT, 0, NULL},
	{"pattern", EA_KEYS_TEXT, 0, NULL},
	{"minimum", EA_KEYS_LIMITS, 0, NULL},
	{"maximum", EA_KEYS_LIMITS, 0, NULL},
	{"precision", EA_KEYS_DIGITS, 0, NULL},
	{"scale", EA_KEYS_DIGITS, 0, NULL},
	{"zone", EA_KEYS_ZONE, 0, NULL},
	{"target", 0, WITH_REF | WITH_ONE_OF, "ref and oneof"},
	{"relation", 0, WITH_REF, "ref"},
	{"mappedBy", 0, WITH_REF, "ref"},
	{"through", 0, WITH_REF, "ref"},
	{"onDelete", 0, WITH_REF | WITH_ONE_OF, "ref and oneof"},
};

/* Types of fields that are no attributes. */
static const char *const references[] = {"ref", "oneof"};

#define N_NAMES (EA_N_TYPES + lengthof(references))

static void
fault(EaManifest *m, EaDeclField *field, const char *key,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label,
					  ea_errors_pointer(field->pointer, key),
					  message, hint);
}

/* All that "type" may be. */
static void
list_names(const char **names)
{
	for (int i = 0; i < EA_N_TYPES; i++)
		names[i] = ea_types[i].name;
	for (int i = 0; i < lengthof(references); i++)
		names[EA_N_TYPES + i] = references[i];
}

static char *
names_of_types(int bit, bool have, const char *last)
{
	StringInfoData buf;
	int			left = 0;

	for (int i = 0; i < EA_N_TYPES; i++)
		left += ((ea_types[i].keys & bit) != 0) == have;
	initStringInfo(&buf);
	for (int i = 0; i < EA_N_TYPES; i++)
	{
		if (((ea_types[i].keys & bit) != 0) != have)
			continue;
		appendStringInfoString(&buf, buf.len == 0 ? "" : left == 1 ? last :
							   ", ");
		appendStringInfoString(&buf, ea_types[i].name);
		left--;
	}
	return buf.data;
}

/* The types that a key goes with, or those that it does not if it is few. */
static char *
expected_types(int bit, int with)
{
	int			lacking = 0;

	for (int i = 0; i < EA_N_TYPES; i++)
		lacking += (ea_types[i].keys & bit) == 0;
	if (lacking >= EA_N_TYPES - lacking)
		return names_of_types(bit, true, " and ");
	return psprintf("%s other than %s", with == 0 ? "attributes" : "fields",
					names_of_types(bit, false, " and "));
}

/* May a key stand at a field, whose type is known by now? */
static bool
goes_with(int key, const EaDeclField *field)
{
	int			with = keys[key].with;

	if (field->type != NULL)
		return (field->type->keys & keys[key].types) != 0 ||
			(with & WITH_ATTRIBUTES) != 0;
	return (with & (field->kind == EA_TO_ONE ? WITH_REF : WITH_ONE_OF)) != 0;
}

static void
refuse_type(EaManifest *m, EaDeclField *field)
{
	const char *names[N_NAMES];
	StringInfoData all;

	list_names(names);
	initStringInfo(&all);
	for (int i = 0; i < lengthof(names); i++)
		appendStringInfo(&all, "%s%s", i > 0 ? ", " : "", names[i]);
	fault(m, field, "type", psprintf("\"%s\" is no type", field->type_name),
		  ea_manifest_guess(field->type_name, names, lengthof(names),
							all.data));
	field->sound = false;
}

/* A list, or that of the column's type, where there can be one. */
static void
check_enum_key(EaManifest *m, EaDeclField *field)
{
	const EaJson *values = field->enum_values;

	if (values == NULL || values->kind == EA_JSON_ARRAY)
		return;
	field->enum_values = NULL;
	field->of_database = values->kind == EA_JSON_STRING &&
		strcmp(values->text, "database") == 0;
	if (field->of_database && field->type != NULL &&
		strcmp(field->type_name, "string") == 0 &&
		field->entity->of_application)
		return;
	fault(m, field, "enum", !field->of_database ?
		  psprintf("must be a list, not %s", ea_jsonread_kind(values)) :
		  "\"database\" goes with a string of a table of an application",
		  NULL);
	field->of_database = false;
	field->sound = false;
}

void
ea_manifest_check_keys(EaManifest *m, EaDeclField *field)
{
	int			allowed;

	if (field->type_name == NULL)
		return;
	field->type = ea_types_find(field->type_name);
	if (field->type == NULL)
		field->type = ea_types_of_others(field->type_name);
	if (strcmp(field->type_name, "ref") == 0)
		field->kind = EA_TO_ONE;
	else if (strcmp(field->type_name, "oneof") == 0)
		field->kind = EA_ONE_OF;
	else if (field->type == NULL)
	{
		refuse_type(m, field);
		return;
	}

	for (int i = 0; i < lengthof(keys); i++)
	{
		if (!goes_with(i, field) &&
			ea_jsonread_get(field->json, keys[i].key) != NULL)
		{
			fault(m, field, keys[i].key,
				  psprintf("goes with %s, not with %s",
						   keys[i].expected != NULL ? keys[i].expected :
						   expected_types(keys[i].types, keys[i].with),
						   field->type_name), NULL);
			field->sound = false;
		}
	}
	if (field->type != NULL)
		ea_manifest_refuse_held(m, field);

	check_enum_key(m, field);

	/* said above; what does not fit the type is not looked at further */
	allowed = field->type == NULL ? 0 : field->type->keys;
	if ((allowed & EA_KEYS_LIMITS) == 0)
		field->minimum = field->maximum = NULL;
	if ((allowed & EA_KEYS_TEXT) == 0)
		field->enum_values = NULL;

	if (field->read_only && field->write_once)
		fault(m, field, "writeOnce",
			  "a readOnly field cannot be written even once", NULL);
}

char *
ea_manifest_value_text(EaManifest *m, const EaType *type,
					   const EaJson *value)
{
	StringInfoData text;
	Datum		stored;
	const char *why;

	/* in the order of jsonb, whatever that of the document is */
	if (type->form == EA_FORM_JSONB &&
		ea_types_from_json(type, value, m->source, &stored, &why))
	{
		initStringInfo(&text);
		type->write(&text, stored);
		return text.data;
	}
	if (value->kind == EA_JSON_BOOL)
		return pstrdup(value->truth ? "true" : "false");
	return value->text;
}

/* A value of the declaration as one of the type, or a fault and false. */
static bool
read_value(EaManifest *m, EaDeclField *field, const char *pointer,
		   const EaJson *value, Datum *result)
{
	const char *why = "does not fit the type";

	if (value->kind == EA_JSON_NULL)
		why = "must not be null";
	else if (ea_types_from_json(field->type, value, m->source, result, &why))
		return true;
	ea_manifest_fault(m, field->entity->document->label, pointer, why, NULL);
	return false;
}

static void
check_enum(EaManifest *m, EaDeclField *field, EaField *checked)
{
	const char *pointer = ea_errors_pointer(field->pointer, "enum");
	EaNameMap  *seen = ea_names_map_create(16);
	int			i = 0;

	if (field->enum_values->count == 0)
		fault(m, field, "enum", "must name a value", NULL);
	checked->enum_values = palloc(sizeof(char *) *
								  (field->enum_values->count + 1));
	for (EaJson *json = field->enum_values->first; json; json = json->next)
	{
		const char *place = ea_errors_index(pointer, i++);
		const char *label = field->entity->document->label;

		if (json->kind != EA_JSON_STRING)
			ea_manifest_fault(m, label, place,
							  psprintf("must be a string, not %s",
									   ea_jsonread_kind(json)), NULL);
		else if (!ea_names_map_put(seen, json->text, json))
			ea_manifest_fault(m, label, place,
							  psprintf("\"%s\" is named twice", json->text),
							  NULL);
		else
		{
			Datum		value;
			const char *why;
			int			n = checked->nenum;

			checked->nenum = 0;
			if (read_value(m, field, place, json, &value) &&
				!ea_value_check(checked, value, &why))
				ea_manifest_fault(m, label, place, why, NULL);
			checked->enum_values[n] = json->text;
			checked->nenum = n + 1;
		}
	}
}

static void
check_text_keys(EaManifest *m, EaDeclField *field)
{
	if (field->type->modifier == EA_MODIFIER_LENGTH && field->max_length < 0)
		field->max_length = field->type->size;
	if (field->max_length > LONGEST_STRING)
		fault(m, field, "maxLength",
			  psprintf("must be at most %d", LONGEST_STRING),
			  "use the type text");
	if (field->max_length >= 0 && field->min_length > field->max_length)
		fault(m, field, "minLength", "must not be greater than maxLength",
			  NULL);
	if (field->pattern)
	{
		const char *why = ea_host_pattern_fault(field->pattern);

		if (why)
		{
			fault(m, field, "pattern", why, "a POSIX regular expression");
			field->pattern = NULL;
		}
	}
	if ((field->unique || field->index) && !field->entity->of_application &&
		(field->max_length < 0 || field->max_length > EA_MANIFEST_MAX_KEY))
		fault(m, field, field->unique ? "unique" : "index",
			  "values may be too long for an index",
			  psprintf("give it a maxLength of at most %d",
					   EA_MANIFEST_MAX_KEY));
}

static void
check_digits_keys(EaManifest *m, EaDeclField *field)
{
	if (field->open)
		return;
	if (field->precision < 0)
		field->precision = field->type->size;
	if (field->scale < 0)
		field->scale = Min(field->type->scale, field->precision);
	if (field->precision > GREATEST_PRECISION)
		fault(m, field, "precision",
			  psprintf("must be at most %d", GREATEST_PRECISION), NULL);
	if (field->scale > field->precision)
		fault(m, field, "scale", "must not be greater than precision", NULL);
}

static bool
read_limit(EaManifest *m, EaDeclField *field, const char *key,
		   const EaJson *json, Datum *value)
{
	return json != NULL &&
		read_value(m, field, ea_errors_pointer(field->pointer, key), json,
				   value);
}

void
ea_manifest_check_attribute(EaManifest *m, EaDeclField *field)
{
	EaField		checked = {0};
	Datum		value;
	const char *why;

	field->kind = EA_ATTRIBUTE;
	field->column = ea_manifest_column(field, NULL,
									   ea_names_snake(field->name));
	ea_manifest_note_key(field, field->column);
	ea_manifest_hold_type(m, field);
	if (field->type->form == EA_FORM_TEXT)
		check_text_keys(m, field);
	if (field->type->modifier == EA_MODIFIER_DIGITS)
		check_digits_keys(m, field);

	checked.type = field->type;
	checked.min_length = field->min_length;
	checked.max_length = field->max_length;
	checked.pattern = field->pattern;
	checked.precision = Max(field->precision, 0);
	checked.scale = field->scale;
	checked.has_minimum = read_limit(m, field, "minimum", field->minimum,
									 &checked.minimum);
	checked.has_maximum = read_limit(m, field, "maximum", field->maximum,
									 &checked.maximum);
	if (checked.has_minimum && checked.has_maximum &&
		ea_value_compare(field->type, checked.minimum,
						 checked.maximum) > 0)
		fault(m, field, "minimum", "must not be greater than maximum", NULL);
	if (field->enum_values)
		check_enum(m, field, &checked);

	if (!ea_manifest_check_caller(m, field) && field->default_value &&
		read_value(m, field, ea_errors_pointer(field->pointer, "default"),
				   field->default_value, &value) &&
		!ea_value_check(&checked, value, &why))
		fault(m, field, "default", why, NULL);
}
