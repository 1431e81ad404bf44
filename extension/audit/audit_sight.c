/*
 * The log shows an administrator who did what, and the API decides who sees
 * which values.  A caller that would not see a value there does not see it
 * here: fields of other roles, entities of others, rows that a policy may
 * hide.  Then the record is shown without it.
 */
#include "postgres.h"

#include "audit/audit_sight.h"
#include "audit/past_values.h"
#include "authz/authz.h"
#include "authz/policy_sql.h"
#include "base/guc.h"
#include "base/jsonwrite.h"

/* Accounts, keys and the like are administrators' business. */
static bool
is_about_entity(const char *action)
{
	return strncmp(action, "ENTITY_", 7) == 0 ||
		strncmp(action, "RELATIONSHIP_", 13) == 0;
}

/* All rows are for the caller, though maybe not all of their fields. */
static bool
sees_rows(EaRequest *req, EaEntity *entity)
{
	return ea_authz_allows(req, entity, EA_OP_READ) &&
		ea_policy_sql_judge(req, entity, EA_OP_READ, NULL) == EA_VERDICT_YES;
}

/* Whatever a relationship points at is for the caller, too. */
static bool
sees_field(EaRequest *req, EaField *field)
{
	if (!ea_authz_open(req, field))
		return false;
	for (int i = 0; i < field->nmembers; i++)
	{
		if (!sees_rows(req, ea_catalog_target(field, i)))
			return false;
	}
	return true;
}

/* -------- of one entity -------- */

typedef struct EntitySight
{
	EaEntity   *entity;
	EaAuditSight sight;
} EntitySight;

static const EaAuditSight *
sight_of(EaAuditSights *sights, EaEntity *entity)
{
	EntitySight *found;
	ListCell   *lc;

	foreach(lc, sights->known)
	{
		found = lfirst(lc);
		if (found->entity == entity)
			return &found->sight;
	}
	found = palloc0(sizeof(EntitySight));
	found->entity = entity;
	found->sight.all = ea_authz_bypasses(sights->req, entity);
	if (!found->sight.all && sees_rows(sights->req, entity))
		found->sight.names = ea_past_names_read(sights->req, entity);
	sights->known = lappend(sights->known, found);
	return &found->sight;
}

/*
 * Nothing says which callers could see values of what is there no more,
 * whatever has its name today.
 */
const EaAuditSight *
ea_audit_list_sight(EaAuditSights *sights, EaAuditAbout *about)
{
	static const EaAuditSight everything = {.all = true};
	static const EaAuditSight nothing = {.all = false};
	EaRequest  *req = sights->req;
	EaEntity   *entity = NULL;
	const char *name;

	if (req->principal->super_admin || !is_about_entity(about->action))
		return &everything;
	if (sights->types == NULL)
		sights->types = ea_past_names_read(req, NULL);
	if (about->revision == 0)
		about->revision = ea_past_names_revision(about->at);
	name = ea_past_names_entity(sights->types, about->type, about->revision);
	if (name != NULL)
		entity = ea_catalog_entity(req->catalog, name);
	return entity == NULL ? &nothing : sight_of(sights, entity);
}

/* -------- fields -------- */

/* One side of a change; sees_field() has said yes. */
static void
write_side(EaRequest *req, StringInfo out, const EaPastNames *names,
		   EaField *field, int revision, const EaJson *json,
		   const char *source)
{
	const char *text = source + json->start;
	int			len = json->end - json->start;
	EaPastValue value;

	if (ea_catalog_is_to_many(field))
	{
		appendBinaryStringInfo(out, text, len);
		return;
	}
	ea_past_values_take(req, names, field, revision, json, source, &value);

	/* a target that is there no more, or that the field has no more */
	if (field->kind != EA_ATTRIBUTE && !value.known)
		ea_past_values_null(&value);
	ea_past_values_write(out, field, &value, text, len);
}

static void
write_field(EaRequest *req, StringInfo out, const EaPastNames *names,
			EaField *field, int revision, const EaJson *change,
			const char *source)
{
	StringInfoData from;
	StringInfoData to;

	initStringInfo(&from);
	initStringInfo(&to);
	write_side(req, &from, names, field, revision, change->first, source);
	write_side(req, &to, names, field, revision, change->first->next, source);
	if (field->kind != EA_ATTRIBUTE &&
		ea_past_values_alike(from.data, to.data))
		return;
	ea_jsonwrite_key(out, field->name);
	appendStringInfoCharMacro(out, '[');
	appendBinaryStringInfo(out, from.data, from.len);
	appendStringInfoCharMacro(out, ',');
	appendBinaryStringInfo(out, to.data, to.len);
	appendStringInfoCharMacro(out, ']');
}

void
ea_audit_list_fields(EaRequest *req, const EaAuditSight *sight, int revision,
					 const char *changes, int len)
{
	EaJsonFault fault;
	int			depth = Max(ea_guc_max_json_depth, EA_JSON_MAX_DEPTH);
	EaJson	   *tree = ea_jsonread_parse(changes, len, depth, &fault);

	appendStringInfoChar(req->out, '{');
	for (EaJson *member = tree ? tree->first : NULL; member;
		 member = member->next)
	{
		EaField    *field = ea_past_names_field(sight->names, member->key,
												revision);

		if (field == NULL || member->kind != EA_JSON_ARRAY ||
			member->count != 2 || !sees_field(req, field))
			continue;
		write_field(req, req->out, sight->names, field, revision, member,
					changes);
	}
	appendStringInfoChar(req->out, '}');
}
