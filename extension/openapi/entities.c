/*
 * For an entity E: EAttributes, EResource, EDocument, EListDocument,
 * ECreateDocument, EUpdateDocument; for a relationship F of it:
 * EFRelationshipData (a resource identifier, whose type is one of those
 * that F may lead to), EFRelationship (within a resource) and
 * EFRelationshipDocument (alone).
 *
 * Answers require only members that no caller can be denied and no sparse
 * fieldset leaves out.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/jsonfmt.h"
#include "openapi/entities.h"
#include "openapi/labels.h"
#include "openapi/writer.h"

/* The schemas that a field is shown in. */
typedef enum Purpose
{
	FOR_ANSWER,
	FOR_CREATE,
	FOR_UPDATE
} Purpose;

static void
begin_schema(EaApi *api, const EaEntity *entity, const EaField *field,
			 const char *suffix)
{
	ea_jsonfmt_put(api->out, "%,%q:{'type':'object'",
				   ea_openapi_schema(api, entity, field, suffix));
}

/* -------- attributes -------- */

/*
 * The same in the regular expressions of PostgreSQL and of ECMAScript: no
 * classes by name, no escapes but of punctuation, no options.
 */
static bool
is_portable(const char *pattern)
{
	if (strncmp(pattern, "***", 3) == 0 || strstr(pattern, "(?") != NULL)
		return false;
	for (const char *p = pattern; *p; p++)
	{
		if ((unsigned char) *p >= 0x80)
			return false;
		if (*p == '[' && p[1] != '\0' && strchr(":.=", p[1]) != NULL)
			return false;
		if (*p == '\\' &&
			(p[1] == '\0' || strchr("^$\\.*+?()[]{}|/", p[1]) == NULL))
			return false;
		if (*p == '\\')
			p++;
	}
	return true;
}

static void
put_value(EaApi *api, const EaField *field, const char *key, Datum value)
{
	ea_jsonfmt_put(api->out, ",'%s':", key);
	field->shown->write(api->out, value);
}

static bool
is_taken_as(const EaType *type, EaJsonKind kind)
{
	return (type->json_kinds & (1 << kind)) != 0;
}

/* Limits that JSON schema knows: not those of dates, nor of strings. */
static void
put_limits(EaApi *api, const EaField *field)
{
	if (field->min_length > 0)
		ea_jsonfmt_put(api->out, ",'minLength':%d", field->min_length);
	if (field->max_length >= 0)
		ea_jsonfmt_put(api->out, ",'maxLength':%d", field->max_length);
	if (field->pattern != NULL && is_portable(field->pattern))
		ea_jsonfmt_put(api->out, ",'pattern':%q", field->pattern);
	if (!is_taken_as(field->type, EA_JSON_NUMBER) ||
		field->shown != field->type)
		return;
	if (field->has_minimum)
		put_value(api, field, "minimum", field->minimum);
	if (field->has_maximum)
		put_value(api, field, "maximum", field->maximum);
}

static void
add_note(StringInfo text, const char *note)
{
	if (text->len > 0)
		appendStringInfoChar(text, ' ');
	appendStringInfoString(text, note);
}

/* The manifest's text, and notes for what the schema cannot say. */
static void
put_description(EaApi *api, const EaField *field, const EaJson *json)
{
	const char *told = ea_jsonread_string(json, "description");
	const char *preset = ea_jsonread_string(json, "default");
	const EaType *type = field->kind == EA_ATTRIBUTE ? field->type : NULL;
	bool		in_words = type != NULL && !is_taken_as(type, EA_JSON_NUMBER);
	StringInfoData text;

	initStringInfo(&text);
	if (told != NULL)
		appendStringInfoString(&text, told);
	if (type != NULL && ea_catalog_has_digits(field))
		add_note(&text, psprintf("At most %d digits, %d of them after the "
								 "point.", field->precision, field->scale));
	if (type != NULL && type->id == EA_TYPE_ENUM)
		add_note(&text, "A label of the enumeration of its column.");
	if (type != NULL && type->id == EA_TYPE_NATIVE)
		add_note(&text, "A value of PostgreSQL's, as it writes it.");
	if (in_words && field->has_minimum)
		add_note(&text, psprintf("Not before %s.",
								 ea_jsonread_string(json, "minimum")));
	if (in_words && field->has_maximum)
		add_note(&text, psprintf("Not after %s.",
								 ea_jsonread_string(json, "maximum")));
	if (field->kind == EA_ATTRIBUTE && field->pattern != NULL &&
		!is_portable(field->pattern))
		add_note(&text, psprintf("Matches %s (a regular expression of "
								 "PostgreSQL).", field->pattern));
	if (field->unique)
		add_note(&text, "Unique.");
	if (field->write_once)
		add_note(&text, "Set on creation only.");
	if (field->caller != NULL && !field->system)
		add_note(&text, psprintf("Default: the caller's %s%s%s.",
								 field->caller, field->caller_key ? "." : "",
								 field->caller_key ? field->caller_key : ""));
	if (preset != NULL)
		add_note(&text, psprintf("Default: %s.", preset));
	if (field->read_roles != NULL)
		add_note(&text, "Not shown to every caller.");
	if (text.len > 0)
		ea_jsonfmt_put(api->out, "%,'description':%q", text.data);
}

/*
 * Existing tables may hold, and take, values that no other table is given.
 * The schema of a made table leaves out values that only plain SQL can put
 * there: no client should treat every number as a string for that.
 */
static bool
is_odd(const EaField *field, EaForm form)
{
	return field->entity->existing && field->type->form == form;
}

static const char *
string_pattern(const EaField *field, Purpose purpose)
{
	const char *words;

	if (!is_odd(field, EA_FORM_NUMERIC))
		return field->type->schema_pattern;
	words = ea_catalog_has_digits(field) ? "^NaN$" : "^(NaN|-?infinity)$";
	return purpose == FOR_ANSWER && field->shown == field->type ? words :
		psprintf("%s|%s", words, field->type->schema_pattern);
}

/* Numbers, but for those that JSON has none of. */
static bool
is_float(const EaField *field)
{
	return field->type->form == EA_FORM_FLOAT4 ||
		field->type->form == EA_FORM_FLOAT8;
}

static void
put_format(EaApi *api, const EaField *field)
{
	const char *format = field->type->schema_format;

	if (is_odd(field, EA_FORM_DATE) || is_odd(field, EA_FORM_TIMESTAMP))
		ea_jsonfmt_put(api->out, ",'anyOf':[{'format':%q},{'pattern':"
					   "'^(-?infinity|-?[0-9]{4,7}-[0-9T:.Z-]+)$'}]", format);
	else
		ea_jsonfmt_put(api->out, ",'format':%q", format);
}

static void
put_attribute(EaApi *api, const EaField *field, const EaJson *json,
			  Purpose purpose)
{
	const EaType *type = field->type;
	bool		text = field->shown != type;
	bool		either = type->schema_pattern != NULL &&
		is_taken_as(field->shown, EA_JSON_STRING) &&
		is_taken_as(field->shown, EA_JSON_NUMBER);

	ea_jsonfmt_put(api->out, "%,%q:{", field->name);
	if (either && (text || purpose != FOR_ANSWER ||
				   is_odd(field, EA_FORM_NUMERIC)))
	{
		ea_jsonfmt_put(api->out, "'type':[");
		if (purpose != FOR_ANSWER || !text)
			ea_jsonfmt_put(api->out, "%q,", type->schema_type);
		ea_jsonfmt_put(api->out, "'string'%s],'pattern':%q",
					   field->required ? "" : ",\"null\"",
					   string_pattern(field, purpose));
	}
	else if (is_float(field))
		ea_jsonfmt_put(api->out, "'type':['number','string'%s],"
					   "'pattern':%q", field->required ? "" : ",\"null\"",
					   type->schema_pattern);
	else if (type->schema_type != NULL)
		ea_jsonfmt_put(api->out, field->required ? "'type':'%s'" :
					   "'type':['%s','null']", type->schema_type);
	if (type->id == EA_TYPE_LOCAL)
		ea_jsonfmt_put(api->out, ",'pattern':%q", type->schema_pattern);
	if (!text && type->schema_format != NULL)
		put_format(api, field);
	if (field->nenum > 0)
	{
		ea_jsonfmt_put(api->out, ",'enum':[");
		for (int i = 0; i < field->nenum; i++)
			ea_jsonfmt_put(api->out, "%,%q", field->enum_values[i]);
		ea_jsonfmt_put(api->out, field->required ? "]" : ",null]");
	}
	if (type->id == EA_TYPE_ENUM && OidIsValid(field->columns[0].held))
		ea_openapi_labels(api, field);
	put_limits(api, field);
	if (purpose == FOR_ANSWER && field->read_only)
		ea_jsonfmt_put(api->out, "%,'readOnly':true");
	if (purpose != FOR_UPDATE)
		put_description(api, field, json);
	ea_jsonfmt_put(api->out, "}");
}

/* -------- relationships -------- */

/* The field that is written when this one is: of the side that has it. */
static const EaField *
owning_side(EaField *field)
{
	const EaField *side = NULL;

	if (field->mapped_by != NULL)
		side = ea_catalog_field(ea_catalog_target(field, 0), field->mapped_by,
								strlen(field->mapped_by));
	return side != NULL ? side : field;
}

static bool
may_write(EaField *field, Purpose purpose)
{
	const EaField *side = field->kind == EA_ATTRIBUTE ? field
		: owning_side(field);

	if (side->read_only)
		return false;
	return !side->write_once || (purpose == FOR_CREATE && side == field);
}

/* The pattern of a part of an id of several. */
static const char *
part_pattern(const EaIdKey *key)
{
	switch (key->form)
	{
		case EA_ID_UUID:
			return "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
		case EA_ID_NUMBER:
			return key->type->form == EA_FORM_DATE ?
				"(-?infinity|-?[0-9]{4,7}(-[0-9]{2}){2})" :
				"(0|-?[1-9][0-9]*)";
		case EA_ID_TEXT:
		case EA_ID_PARTS:
			break;
	}
	return "([^~/,\\\\]|~[0124])*";
}

static void
put_parts(EaApi *api, const EaIdKey *key)
{
	StringInfoData pattern;

	initStringInfo(&pattern);
	for (int i = 0; i < key->nparts; i++)
		appendStringInfo(&pattern, "%s%s", i == 0 ? "^" : ",",
						 part_pattern(&key->parts[i]));
	ea_jsonfmt_put(api->out, "{'type':'string','pattern':%q}",
				   psprintf("%s$", pattern.data));
}

void
ea_openapi_id(EaApi *api, const EaIdKey *key)
{
	switch (key->form)
	{
		case EA_ID_UUID:
			ea_jsonfmt_put(api->out, "{'type':'string','format':'uuid'}");
			break;
		case EA_ID_NUMBER:
			if (key->type->form == EA_FORM_DATE)
				ea_jsonfmt_put(api->out, "{'type':'string','anyOf':["
							   "{'format':'date'},{'pattern':%q}]}",
							   "^(-?infinity|-?[0-9]{4,7}(-[0-9]{2}){2})$");
			else
				ea_jsonfmt_put(api->out, "{'type':'string','pattern':%q}",
							   "^(0|-?[1-9][0-9]*)$");
			break;
		case EA_ID_TEXT:
			ea_jsonfmt_put(api->out, "{'type':'string','minLength':1,"
						   "'pattern':%q}",
						   "^(~3(\\.\\.?|aggregates)?|"
						   "([^~/,\\\\]|~[0124])+)$");
			break;
		case EA_ID_PARTS:
			put_parts(api, key);
			break;
	}
}

bool
ea_openapi_may_change(EaField *field)
{
	return may_write(field, FOR_UPDATE);
}

/* The value of "data": one identifier or null, or a list. */
static void
put_linkage(EaApi *api, const EaEntity *entity, EaField *field)
{
	ea_jsonfmt_put(api->out, ea_catalog_is_to_many(field) ?
				   "{'type':'array','items':%s}" :
				   "{'anyOf':[%s,{'type':'null'}]}",
				   ea_openapi_refer_schema(api, entity, field,
										   "RelationshipData"));
}

/* The form of the targets' ids, if they have one in common. */
static void
put_target_id(EaApi *api, EaField *field)
{
	const EaIdKey *key = NULL;

	for (int i = 0; i < field->nmembers; i++)
	{
		const EaIdKey *other = &ea_catalog_target(field, i)->key;

		if (key != NULL && !ea_id_same_kind(key, other))
		{
			ea_jsonfmt_put(api->out, "{'type':'string'}");
			return;
		}
		key = other;
	}
	ea_openapi_id(api, key);
}

static void
write_relationship(EaApi *api, const EaEntity *entity, EaField *field,
				   const EaJson *json)
{
	bool		many = ea_catalog_is_to_many(field);

	begin_schema(api, entity, field, "RelationshipData");
	put_description(api, field, json);
	ea_jsonfmt_put(api->out, ",'required':['type','id'],'properties':"
				   "{'type':{'type':'string','enum':[");
	for (int i = 0; i < field->nmembers; i++)
	{
		if (ea_openapi_shows_target(api, field, i))
			ea_jsonfmt_put(api->out, "%,%q", field->members[i].type);
	}
	ea_jsonfmt_put(api->out, "]},'id':");
	put_target_id(api, field);
	ea_jsonfmt_put(api->out, "}}");

	/* a long list is replaced by its length */
	begin_schema(api, entity, field, "Relationship");
	ea_jsonfmt_put(api->out, ",'required':['links'%s],'properties':{'links':%s"
				   ",'data':", many ? "" : ",\"data\"",
				   ea_openapi_refer(api, "schemas/RelationshipLinks"));
	put_linkage(api, entity, field);
	if (many)
		ea_jsonfmt_put(api->out, ",'meta':{'type':'object','required':"
					   "['count'],'properties':{'count':{'type':'integer',"
					   "'format':'int64'}}}");
	ea_jsonfmt_put(api->out, "}}");

	begin_schema(api, entity, field, "RelationshipDocument");
	ea_jsonfmt_put(api->out, ",'required':['data'],'properties':{"
				   "'jsonapi':%s,'links':%s,'data':",
				   ea_openapi_refer(api, "schemas/JsonApi"),
				   ea_openapi_refer(api, "schemas/RelationshipLinks"));
	put_linkage(api, entity, field);
	ea_jsonfmt_put(api->out, "}}");
}

/* -------- resources -------- */

/*
 * The fields of a kind that serve the purpose, as an object's schema without
 * its opening.  Returns whether some of them are required.
 */
static bool
put_fields(EaApi *api, const EaApiEntity *item, bool attributes,
		   Purpose purpose)
{
	EaEntity   *entity = item->entity;
	const EaJson *json = ea_jsonread_get(item->json, "fields")->first;
	StringInfoData required;

	initStringInfo(&required);
	ea_jsonfmt_put(api->out, "{'type':'object','additionalProperties':false,"
				   "'properties':{");
	for (int i = 0; i < entity->nfields; i++, json = json->next)
	{
		EaField    *field = &entity->fields[i];

		if ((field->kind == EA_ATTRIBUTE) != attributes ||
			!ea_openapi_shows(api, field) ||
			(purpose != FOR_ANSWER && !may_write(field, purpose)))
			continue;
		if (attributes)
			put_attribute(api, field, json, purpose);
		else
			ea_jsonfmt_put(api->out, "%,%q:%s", field->name,
						   ea_openapi_refer_schema(api, entity, field,
												   purpose == FOR_ANSWER ?
												   "Relationship" :
												   "RelationshipDocument"));
		if (field->required && !field->has_default && !field->defaulted &&
			field->caller == NULL && purpose == FOR_CREATE)
			ea_jsonfmt_put(&required, "%s%q", required.len > 0 ? "," : "",
						   field->name);
	}
	ea_jsonfmt_put(api->out, "}");
	if (required.len > 0)
		ea_jsonfmt_put(api->out, ",'required':[%s]", required.data);
	ea_jsonfmt_put(api->out, "}");
	return required.len > 0;
}

static void
write_resource(EaApi *api, const EaApiEntity *item)
{
	EaEntity   *entity = item->entity;
	const char *description = ea_jsonread_string(item->json, "description");

	ea_jsonfmt_put(api->out, "%,%q:", ea_openapi_schema(api, entity, NULL,
														"Attributes"));
	put_fields(api, item, true, FOR_ANSWER);

	begin_schema(api, entity, NULL, "Resource");
	if (description != NULL)
		ea_jsonfmt_put(api->out, ",'description':%q", description);
	ea_jsonfmt_put(api->out, ",'required':['type','id','links'%s],"
				   "'properties':{'type':{'type':'string','const':%q},"
				   "'id':", entity->locking ? ",\"meta\"" : "", entity->type);
	ea_openapi_id(api, &entity->key);
	ea_jsonfmt_put(api->out, ",'attributes':%s,'relationships':",
				   ea_openapi_refer_schema(api, entity, NULL, "Attributes"));
	put_fields(api, item, false, FOR_ANSWER);
	ea_jsonfmt_put(api->out, ",'links':%s",
				   ea_openapi_refer(api, "schemas/SelfLink"));
	ea_jsonfmt_put(api->out, ",'meta':%s},'additionalProperties':false}",
				   ea_openapi_refer(api, entity->locking ?
									"schemas/VersionAndDeletion" :
									"schemas/Deletion"));
}

/* One resource, or a list of them. */
static void
write_answer(EaApi *api, const EaEntity *entity, bool list)
{
	begin_schema(api, entity, NULL, list ? "ListDocument" : "Document");
	ea_jsonfmt_put(api->out, ",'required':['links','data'%s],'properties':"
				   "{'jsonapi':%s,'links':%s", list ? ",\"meta\"" : "",
				   ea_openapi_refer(api, "schemas/JsonApi"),
				   ea_openapi_refer(api, list ? "schemas/ListLinks" :
									"schemas/SelfLink"));
	ea_jsonfmt_put(api->out, list ? ",'data':{'type':'array','items':%s}" :
				   ",'data':%s",
				   ea_openapi_refer_schema(api, entity, NULL, "Resource"));
	ea_jsonfmt_put(api->out, ",'included':%s",
				   ea_openapi_refer(api, "schemas/Included"));
	if (list)
		ea_jsonfmt_put(api->out, ",'meta':%s",
					   ea_openapi_refer(api, "schemas/PageMeta"));
	ea_jsonfmt_put(api->out, "},'additionalProperties':false}");
}

static void
write_input(EaApi *api, const EaApiEntity *item, Purpose purpose)
{
	EaEntity   *entity = item->entity;
	bool		update = purpose == FOR_UPDATE;
	bool		attributes;
	bool		relationships;

	begin_schema(api, entity, NULL,
				 update ? "UpdateDocument" : "CreateDocument");
	ea_jsonfmt_put(api->out, ",'required':['data'],'properties':{'data':"
				   "{'type':'object','properties':{'type':{'type':'string',"
				   "'const':%q}", entity->type);
	if (update || entity->maker == EA_ID_OF_CLIENT)
	{
		ea_jsonfmt_put(api->out, ",'id':");
		ea_openapi_id(api, &entity->key);
	}
	ea_jsonfmt_put(api->out, ",'attributes':");
	attributes = put_fields(api, item, true, purpose);
	ea_jsonfmt_put(api->out, ",'relationships':");
	relationships = put_fields(api, item, false, purpose);
	if (update && entity->locking)
		ea_jsonfmt_put(api->out, ",'meta':%s",
					   ea_openapi_refer(api, "schemas/Version"));
	ea_jsonfmt_put(api->out, "},'required':['type'%s%s%s]}}}",
				   update || (entity->maker == EA_ID_OF_CLIENT &&
							  !ea_catalog_fields_say_id(entity)) ?
				   ",\"id\"" : "",
				   attributes ? ",\"attributes\"" : "",
				   relationships ? ",\"relationships\"" : "");
}

void
ea_openapi_entities(EaApi *api)
{
	for (int e = 0; e < api->nentities; e++)
	{
		const EaApiEntity *item = &api->entities[e];
		EaEntity   *entity = item->entity;
		const EaJson *json = ea_jsonread_get(item->json, "fields")->first;

		CHECK_FOR_INTERRUPTS();
		write_resource(api, item);
		write_answer(api, entity, false);
		write_answer(api, entity, true);
		if (!entity->accounts && !entity->view)
		{
			write_input(api, item, FOR_CREATE);
			write_input(api, item, FOR_UPDATE);
		}
		for (int i = 0; i < entity->nfields; i++, json = json->next)
		{
			EaField    *field = &entity->fields[i];

			if (field->kind != EA_ATTRIBUTE && ea_openapi_shows(api, field))
				write_relationship(api, entity, field, json);
		}
	}
}
