/*
 * The log shows an administrator who did what, and the API decides who sees
 * which values.  A caller that would not see a value there does not see it
 * here: fields of other roles, entities of others, rows that a policy may
 * hide.  Then the record is shown without it.
 */
#include "postgres.h"

#include "audit/audit_sight.h"
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

/*
 * Nothing says which callers could see values of a type that is declared no
 * more.
 */
static EaAuditSight *
find_sight(EaRequest *req, const char *type)
{
	EaAuditSight *sight = palloc0(sizeof(EaAuditSight));
	EaEntity   *entity = ea_catalog_type(req->catalog, type);

	sight->type = pstrdup(type);
	if (entity == NULL)
		return sight;
	sight->all = ea_authz_bypasses(req, entity);
	if (!sight->all && sees_rows(req, entity))
		sight->entity = entity;
	return sight;
}

const EaAuditSight *
ea_audit_list_sight(EaRequest *req, List **known, const char *action,
					const char *type)
{
	static const EaAuditSight everything = {.all = true};
	EaAuditSight *sight;
	ListCell   *lc;

	if (req->principal->super_admin || !is_about_entity(action))
		return &everything;
	foreach(lc, *known)
	{
		sight = lfirst(lc);
		if (strcmp(sight->type, type) == 0)
			return sight;
	}
	sight = find_sight(req, type);
	*known = lappend(*known, sight);
	return sight;
}

void
ea_audit_list_fields(EaRequest *req, EaEntity *entity, const char *changes,
					 int len)
{
	EaJsonFault fault;
	int			depth = Max(ea_guc_max_json_depth, EA_JSON_MAX_DEPTH);
	EaJson	   *tree = ea_jsonread_parse(changes, len, depth, &fault);

	appendStringInfoChar(req->out, '{');
	for (EaJson *member = tree ? tree->first : NULL; member;
		 member = member->next)
	{
		EaField    *field = ea_catalog_field(entity, member->key,
											 strlen(member->key));

		if (field == NULL || !sees_field(req, field))
			continue;
		ea_jsonwrite_key(req->out, member->key);
		appendBinaryStringInfo(req->out, changes + member->start,
							   member->end - member->start);
	}
	appendStringInfoChar(req->out, '}');
}
