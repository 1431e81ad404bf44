#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "manifest/faults.h"
#include "manifest/held_type.h"
#include "model/host.h"
#include "request/errors.h"

static void
fault(EaManifest *m, const EaDeclField *field, const char *key,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label,
					  ea_errors_pointer(field->pointer, key), message, hint);
}

/* -------- zones -------- */

/* Names of the zone in which times are kept that way. */
static bool
is_utc(const char *zone)
{
	static const char *const names[] =
	{"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"};

	for (int i = 0; i < lengthof(names); i++)
	{
		if (pg_strcasecmp(names[i], zone) == 0)
			return true;
	}
	return false;
}

/* Defaults and triggers would write another zone's time. */
static void
check_zone(EaManifest *m, const EaDeclField *field)
{
	const EaJson *settings = m->service.settings;
	const char *zone = settings == NULL ? NULL :
		ea_jsonread_string(settings, "TimeZone");

	if (zone != NULL && !is_utc(zone))
		fault(m, field, "zone",
			  psprintf("the setting TimeZone is %s, so the application has "
					   "its own time there", zone),
			  "say TimeZone: UTC, or use localDatetime");
}

/* -------- types -------- */

/* There is a time zone where the manifest says which, or none is asked for. */
static bool
has_zone(const EaDeclField *field, const EaType *type)
{
	return (field->zone >= 0) == (type->id == EA_TYPE_UTC);
}

/* Types that their columns are known by in another way than by an oid */
static const EaType *
choose_crossing(const EaDeclField *field, const EaHostColumn *column)
{
	if (field->of_database)
		return &ea_types[EA_TYPE_ENUM];
	if (column == NULL)
		return NULL;
	if (field->type->form == EA_FORM_TEXT && column->type == BPCHAROID)
		return &ea_types[EA_TYPE_CHAR];
	if (field->type->form == EA_FORM_TEXT &&
		field->type->id != EA_TYPE_NATIVE &&
		strcmp(column->name, "citext") == 0)
		return &ea_types[EA_TYPE_CITEXT];
	if (field->type->form == EA_FORM_JSONB && column->is_array)
		return &ea_types[EA_TYPE_ARRAY];
	return NULL;
}

static const EaType *
choose_type(const EaDeclField *field, const EaHostColumn *column)
{
	const EaType *first = field->type;
	const EaType *crossing = choose_crossing(field, column);

	if (crossing != NULL)
		return crossing;
	for (int i = EA_N_TYPES; i < EA_N_ALL_TYPES; i++)
	{
		const EaType *type = &ea_types[i];

		if (strcmp(type->name, field->type_name) != 0 ||
			!has_zone(field, type))
			continue;
		if (field->zone >= 0 ||
			(column != NULL && type->column_oid == column->type))
			return type;
	}
	return first;
}

/*
 * Digits that the manifest leaves to the column: none is any number.  A scale
 * that a field cannot have rounds.
 */
static void
take_digits(EaDeclField *field, const EaHostColumn *column)
{
	int32		digits = column->modifier - VARHDRSZ;
	int			precision;
	int			scale;

	if (column->type != NUMERICOID || field->precision >= 0 ||
		field->scale >= 0)
		return;
	precision = (digits >> 16) & 0xffff;
	scale = ((digits & 0x7ff) ^ 1024) - 1024;
	field->open = column->modifier < 0 || scale < 0 || scale > precision;
	field->adapted = field->open && column->modifier >= 0;
	if (!field->open)
	{
		field->precision = precision;
		field->scale = scale;
	}
}

/* Times that are rounded are others than were written, and so are texts. */
static bool
is_adapted(const EaDeclField *field, const EaHostColumn *column)
{
	if (field->type->id == EA_TYPE_CHAR || field->type->id == EA_TYPE_NATIVE)
		return true;
	return (column->type == TIMESTAMPOID || column->type == TIMESTAMPTZOID) &&
		column->modifier >= 0 && column->modifier < MAX_TIMESTAMP_PRECISION;
}

static void
check_crossing(EaManifest *m, EaDeclField *field, const EaHostColumn *column)
{
	EaTypeId	id = field->type->id;
	const EaJson *preset = field->default_value;

	field->held_schema = column->schema;
	field->held_type = column->name;
	if (id == EA_TYPE_CHAR && field->max_length < 0 && column->modifier > 0)
		field->max_length = column->modifier - VARHDRSZ;
	if (id == EA_TYPE_ENUM && !column->is_enum)
		fault(m, field, "enum",
			  psprintf("the column's type %s is no enumeration",
					   column->name), NULL);
	else if (column->is_enum && column->is_domain)
		fault(m, field, "type", "domains over enumerations are not served",
			  NULL);
	else if (id == EA_TYPE_ENUM && preset != NULL &&
			 preset->kind == EA_JSON_STRING &&
			 !ea_host_has_label(column, preset->text))
		fault(m, field, "default",
			  psprintf("the enumeration %s has no such label", column->name),
			  NULL);
	if (id == EA_TYPE_NATIVE && preset != NULL)
		fault(m, field, "default", "goes with other types than native",
			  "leave it to the column");
	if (id == EA_TYPE_NATIVE && (column->is_array || !column->is_listed))
		fault(m, field, "type",
			  psprintf("the column's type %s cannot be native", column->name),
			  column->is_array ? "use json" : NULL);
	if (id == EA_TYPE_ARRAY && column->dimensions > 1)
		fault(m, field, "type",
			  "arrays of several dimensions are not served", NULL);
	else if (id == EA_TYPE_ARRAY && !field->read_only)
		fault(m, field, "type", "an array can be read only, as yet",
			  "make the field readOnly");
}

void
ea_manifest_hold_type(EaManifest *m, EaDeclField *field)
{
	EaHostColumn column;
	bool		there;

	if (!field->entity->of_application || field->system)
		return;
	there = ea_host_column(field->entity->schema, field->entity->table,
						   field->column, &column);
	field->type = choose_type(field, there ? &column : NULL);
	if (field->zone >= 0)
		check_zone(m, field);
	if (!there)
		return;
	field->adapted = is_adapted(field, &column);
	if (field->type->modifier == EA_MODIFIER_DIGITS)
		take_digits(field, &column);
	if (field->type->crosses != EA_CROSSES_AS_IS)
		check_crossing(m, field, &column);
}

void
ea_manifest_refuse_held(EaManifest *m, EaDeclField *field)
{
	const char *hint = m->has_application ? NULL :
		"name its role in the Service: existing: {role: ...}";

	if (field->entity->of_application)
		return;
	if (field->type->id >= EA_N_TYPES)
	{
		fault(m, field, "type",
			  psprintf("\"%s\" goes with a table of an application",
					   field->type_name), hint);
		field->sound = false;
	}
	if (field->zone >= 0)
	{
		fault(m, field, "zone", "goes with a table of an application", hint);
		field->sound = false;
	}
}

/* -------- defaults -------- */

bool
ea_manifest_is_defaulted(const EaDeclField *field)
{
	const char *name = field->column;
	EaHostColumn column;

	if (field->kind == EA_TO_ONE && field->members != NIL)
		name = ((EaDeclMember *) linitial(field->members))->column;
	return field->entity->of_application && name != NULL &&
		field != field->entity->key_field && !field->key_part &&
		field != field->entity->rows.by_field &&
		field->default_value == NULL && field->caller == NULL &&
		!field->read_only && !field->system &&
		ea_host_column(field->entity->schema, field->entity->table, name,
					   &column) && column.has_default;
}
