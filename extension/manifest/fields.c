/*
 * One field by itself: the keys its type allows, and their values.
 */
#include "postgres.h"

#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/fields.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "model/value_checks.h"
#include "request/errors.h"

#define LONGEST_STRING 10485760 /* of character varying */
#define GREATEST_PRECISION 1000

/* Types as bits, for the table of keys below. */
#define BIT(type) (1 << (type))
#define TEXTS (BIT(EA_TYPE_STRING) | BIT(EA_TYPE_TEXT))
#define WHOLE (BIT(EA_TYPE_INTEGER) | BIT(EA_TYPE_LONG))
#define DECIMAL BIT(EA_TYPE_DECIMAL)
#define TIMES (BIT(EA_TYPE_DATE) | BIT(EA_TYPE_DATETIME))
#define OTHERS (BIT(EA_TYPE_BOOLEAN) | BIT(EA_TYPE_UUID))
#define JSON BIT(EA_TYPE_JSON)
#define ATTRIBUTES (TEXTS | WHOLE | DECIMAL | TIMES | OTHERS | JSON)
#define REF BIT(EA_TYPE_JSON + 1)
#define ONE_OF BIT(EA_TYPE_JSON + 2)

/* Keys that only some types have; all others go with every type. */
static const struct
{
	const char *key;
	int			types;
	const char *expected;		/* "goes with ..." */
}			keys[] =
{
	{"unique", ATTRIBUTES & ~JSON, "attributes other than json"},
	{"index", (ATTRIBUTES & ~JSON) | REF | ONE_OF,
	"fields other than json"},
	{"default", ATTRIBUTES | REF, "attributes and references to User"},
	{"enum", TEXTS, "string and text"},
	{"minLength", TEXTS, "string and text"},
	{"maxLength", TEXTS, "string and text"},
	{"pattern", TEXTS, "string and text"},
	{"minimum", WHOLE | DECIMAL | TIMES,
	"integer, long, decimal, date and datetime"},
	{"maximum", WHOLE | DECIMAL | TIMES,
	"integer, long, decimal, date and datetime"},
	{"precision", DECIMAL, "decimal"},
	{"scale", DECIMAL, "decimal"},
	{"target", REF | ONE_OF, "ref and oneof"},
	{"relation", REF, "ref"},
	{"mappedBy", REF, "ref"},
	{"onDelete", REF | ONE_OF, "ref and oneof"},
};

static void
fault(EaManifest *m, EaDeclField *field, const char *key, const char *hint,
	  const char *message)
{
	ea_manifest_fault(m, field->entity->document->label,
					  ea_errors_pointer(field->pointer, key), hint,
					  "%s", message);
}

void
ea_manifest_check_keys(EaManifest *m, EaDeclField *field)
{
	const char *names[EA_TYPE_JSON + 3];
	int			type;

	for (type = 0; type < ea_ntypes; type++)
		names[type] = ea_types[type].name;
	names[EA_TYPE_JSON + 1] = "ref";
	names[EA_TYPE_JSON + 2] = "oneof";

	if (field->type_name == NULL)
		return;
	for (type = 0; type < lengthof(names); type++)
	{
		if (strcmp(names[type], field->type_name) == 0)
			break;
	}
	if (type == lengthof(names))
	{
		fault(m, field, "type",
			  ea_manifest_guess(field->type_name, names, lengthof(names),
								"string, text, integer, long, decimal, "
								"boolean, date, datetime, uuid, json, ref, "
								"oneof"),
			  psprintf("\"%s\" is no type", field->type_name));
		field->sound = false;
		return;
	}
	if (BIT(type) & ATTRIBUTES)
		field->type = ea_types_find(field->type_name);
	else
		field->kind = BIT(type) & REF ? EA_TO_ONE : EA_ONE_OF;

	for (int i = 0; i < lengthof(keys); i++)
	{
		if (!(keys[i].types & BIT(type)) &&
			ea_jsonread_get(field->json, keys[i].key) != NULL)
		{
			fault(m, field, keys[i].key, NULL,
				  psprintf("goes with %s, not with %s", keys[i].expected,
						   field->type_name));
			field->sound = false;
		}
	}
	/* said above; what does not fit the type is not looked at further */
	if (!(BIT(type) & (WHOLE | DECIMAL | TIMES)))
		field->minimum = field->maximum = NULL;
	if (!(BIT(type) & TEXTS))
		field->enum_values = NULL;

	if (field->read_only && field->write_once)
		fault(m, field, "writeOnce", NULL,
			  "a readOnly field cannot be written even once");
}

char *
ea_manifest_value_text(EaManifest *m, const EaType *type,
					   const EaJson *value)
{
	if (type->id == EA_TYPE_JSON)
		return pnstrdup(m->source + value->start, value->end - value->start);
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
	ea_manifest_fault(m, field->entity->document->label, pointer, NULL,
					  "%s", why);
	return false;
}

static void
check_enum(EaManifest *m, EaDeclField *field, EaField *checked)
{
	const char *pointer = ea_errors_pointer(field->pointer, "enum");
	EaNameMap  *seen = ea_names_map_create(16);
	int			i = 0;

	if (field->enum_values->count == 0)
		fault(m, field, "enum", NULL, "must name a value");
	checked->enum_values = palloc(sizeof(char *) *
								  (field->enum_values->count + 1));
	for (EaJson *json = field->enum_values->first; json; json = json->next)
	{
		const char *place = ea_errors_index(pointer, i++);
		const char *label = field->entity->document->label;

		if (json->kind != EA_JSON_STRING)
			ea_manifest_fault(m, label, place, NULL,
							  "must be a string, not %s",
							  ea_jsonread_kind(json));
		else if (!ea_names_map_put(seen, json->text, json))
			ea_manifest_fault(m, label, place, NULL,
							  "\"%s\" is named twice", json->text);
		else
		{
			Datum		value;
			const char *why;
			int			n = checked->nenum;

			checked->nenum = 0;
			if (read_value(m, field, place, json, &value) &&
				!ea_value_check(checked, value, &why))
				ea_manifest_fault(m, label, place, NULL, "%s", why);
			checked->enum_values[n] = json->text;
			checked->nenum = n + 1;
		}
	}
}

static void
check_text_keys(EaManifest *m, EaDeclField *field)
{
	if (field->type->id == EA_TYPE_STRING && field->max_length < 0)
		field->max_length = EA_STRING_LENGTH;
	if (field->max_length > LONGEST_STRING)
		fault(m, field, "maxLength", "use the type text",
			  psprintf("must be at most %d", LONGEST_STRING));
	if (field->max_length >= 0 && field->min_length > field->max_length)
		fault(m, field, "minLength", NULL,
			  "must not be greater than maxLength");
	if (field->pattern)
	{
		const char *why = ea_value_pattern_fault(field->pattern);

		if (why)
		{
			fault(m, field, "pattern", "a POSIX regular expression", why);
			field->pattern = NULL;
		}
	}
	if ((field->unique || field->index) &&
		(field->max_length < 0 || field->max_length > EA_MANIFEST_MAX_KEY))
		fault(m, field, field->unique ? "unique" : "index",
			  psprintf("give it a maxLength of at most %d",
					   EA_MANIFEST_MAX_KEY),
			  "values may be too long for an index");
}

static void
check_decimal_keys(EaManifest *m, EaDeclField *field)
{
	if (field->precision < 0)
		field->precision = EA_DECIMAL_PRECISION;
	if (field->scale < 0)
		field->scale = Min(EA_DECIMAL_SCALE, field->precision);
	if (field->precision > GREATEST_PRECISION)
		fault(m, field, "precision", NULL,
			  psprintf("must be at most %d", GREATEST_PRECISION));
	if (field->scale > field->precision)
		fault(m, field, "scale", NULL, "must not be greater than precision");
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
	if (field->type->id == EA_TYPE_STRING || field->type->id == EA_TYPE_TEXT)
		check_text_keys(m, field);
	if (field->type->id == EA_TYPE_DECIMAL)
		check_decimal_keys(m, field);

	checked.type = field->type;
	checked.min_length = field->min_length;
	checked.max_length = field->max_length;
	checked.pattern = field->pattern;
	checked.precision = field->precision;
	checked.scale = field->scale;
	checked.has_minimum = read_limit(m, field, "minimum", field->minimum,
									 &checked.minimum);
	checked.has_maximum = read_limit(m, field, "maximum", field->maximum,
									 &checked.maximum);
	if (checked.has_minimum && checked.has_maximum &&
		ea_value_compare(field->type, checked.minimum,
						 checked.maximum) > 0)
		fault(m, field, "minimum", NULL, "must not be greater than maximum");
	if (field->enum_values)
		check_enum(m, field, &checked);

	if (!ea_manifest_check_caller(m, field) && field->default_value &&
		read_value(m, field, ea_errors_pointer(field->pointer, "default"),
				   field->default_value, &value) &&
		!ea_value_check(&checked, value, &why))
		fault(m, field, "default", NULL, why);
}
