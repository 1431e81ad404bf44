/*
 * An expression is checked for each entity and operation it is named for,
 * because names and types depend on both.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "authz/policy.h"
#include "authz/policy_types.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "manifest/policies.h"

/* One use of a policy: by an entity, for an operation. */
typedef struct Use
{
	EaPolicyScope scope;		/* must be first */
	EaManifest *m;
	EaDeclEntity *entity;
	EaDeclPolicy *policy;
	EaNameMap  *warned;			/* of each policy and field once */
	bool		unsound;		/* a fault is noted elsewhere already */
} Use;

/* Entities that read policies look at. */
typedef struct Leads
{
	EaDeclEntity *entity;
	List	   *targets;		/* of EaDeclEntity * */
	bool		visiting;
	bool		done;
} Leads;

static const struct
{
	EaOperation op;
	const char *name;
	bool		record;
	bool		input;
}			operations[] =
{
	{EA_OP_CREATE, "create", false, true},
	{EA_OP_READ, "read", true, false},
	{EA_OP_UPDATE, "update", true, true},
	{EA_OP_DELETE, "delete", true, false}
};

static EaDeclField *
find_field(Use *use, EaDeclEntity *entity, const char *name,
		   const char **message, const char **hint)
{
	EaDeclField *field = ea_names_map_get(entity->by_name, name);

	if (field == NULL)
	{
		*message = psprintf("%s has no field \"%s\"", entity->name, name);
		*hint = ea_manifest_guess_map(name, entity->by_name, NULL);
	}
	else if (!field->sound)
	{
		use->unsound = true;
		*message = "the field is at fault";
		field = NULL;
	}
	return field;
}

/* The values of a field may be the choice of whom a policy is to bind. */
static void
warn_of_profile(Use *use, const EaDeclField *field)
{
	char	   *what = psprintf("policy \"%s\" asks for %s.%s",
								use->policy->name, field->entity->name,
								field->name);

	if (ea_manifest_is_profile_field(field) &&
		ea_names_map_put(use->warned, what, use))
		ea_policy_warn_own(what);
}

static EaPolicyType
resolve_path(EaPolicyScope *scope, EaPolicy *node, const char **message,
			 const char **hint)
{
	Use		   *use = (Use *) scope;
	EaDeclEntity *entity = use->entity;

	for (int i = 0; i < node->nnames; i++)
	{
		bool		last = i == node->nnames - 1;
		EaDeclMember *member;
		EaDeclField *field;

		if (last && strcmp(node->names[i], "id") == 0)
		{
			if (node->kind == EA_POLICY_INPUT && i == 0)
				break;
			return entity->key == NULL ? EA_POLICY_UUID :
				entity->key_parts != NIL ? EA_POLICY_JSON :
				entity->key_column.policy;
		}
		field = find_field(use, entity, node->names[i], message, hint);
		if (field == NULL)
			return EA_POLICY_UNKNOWN;
		if (field->type != NULL && last)
		{
			warn_of_profile(use, field);
			return field->type->policy;
		}
		if (field->type != NULL)
		{
			*message = psprintf("\"%s\" is no relationship", field->name);
			return EA_POLICY_UNKNOWN;
		}
		if (field->kind != EA_TO_ONE)
		{
			*message = psprintf("\"%s\" is no reference to one resource",
								field->name);
			*hint = "policies follow ManyToOne, "
				"and OneToOne where the column is";
			return EA_POLICY_UNKNOWN;
		}
		member = linitial(field->members);
		if (last)
			return member->entity->key == NULL ? EA_POLICY_UUID :
				member->entity->key_parts != NIL ? EA_POLICY_JSON :
				member->key.policy;
		entity = member->entity;
		node->bound = lappend(node->bound, entity);
	}
	*message = "the service makes the id: it is no input";
	return EA_POLICY_UNKNOWN;
}

static EaPolicyType
resolve_attribute(EaPolicyScope *scope, const char *key, const char **message,
				  const char **hint)
{
	EaManifest *m = ((Use *) scope)->m;
	const char *otherwise = "declare it in a SecurityAttributes document";
	ListCell   *lc;

	foreach(lc, m->service.attributes)
	{
		const EaJson *json = lfirst(lc);
		const char *type = ea_jsonread_string(json, "type");

		if (strcmp(json->key, key) == 0 && type != NULL)
			return ea_policy_type_of(type);
	}
	*message = psprintf("security attribute \"%s\" is not declared", key);
	*hint = ea_manifest_guess_map(key, m->by_attribute, otherwise);
	return EA_POLICY_UNKNOWN;
}

static void
note_fault(EaManifest *m, EaDeclPolicy *policy, const EaPolicyFault *fault,
		   const char *where)
{
	ea_manifest_fault(m, policy->document->label, "/spec/expression",
					  psprintf("%s at position %d%s", fault->message,
							   fault->offset + 1, where),
					  fault->hint);
}

/* Entities that the paths of a checked tree lead to. */
static void
collect_targets(EaPolicy *node, Leads *leads)
{
	if (node->kind == EA_POLICY_RECORD)
		leads->targets = list_concat_unique_ptr(leads->targets, node->bound);
	for (int i = 0; i < node->nchildren; i++)
		collect_targets(node->children[i], leads);
}

/* Check one use; false when it has a fault. */
static bool
check_use(EaManifest *m, EaDeclEntity *entity, EaDeclPolicy *policy, int i,
		  Leads *leads, EaNameMap *warned)
{
	Use			use = {{resolve_path, resolve_attribute,
	operations[i].record, operations[i].input}, m, entity, policy, warned};
	EaPolicyFault fault;
	EaPolicy   *tree = ea_policy_parse(policy->expression, &fault);

	if (tree == NULL)
		return false;
	if (!ea_policy_check(tree, &use.scope, &fault))
	{
		if (!use.unsound)
			note_fault(m, policy, &fault,
					   psprintf(" (%s of %s)", operations[i].name,
								entity->name));
		return false;
	}
	if (operations[i].op == EA_OP_READ)
		collect_targets(tree, leads);
	return true;
}

static void
check_policies(EaManifest *m, EaDeclEntity *entity, Leads *leads,
			   EaNameMap *warned)
{
	leads->entity = entity;
	if (entity->policies == NULL)
		return;
	for (EaJson *json = entity->policies->first; json; json = json->next)
	{
		EaDeclPolicy *policy = ea_names_map_get(m->by_policy, json->key);

		if (policy == NULL || policy->expression == NULL ||
			json->kind != EA_JSON_ARRAY)
			continue;
		for (int i = 0; i < lengthof(operations); i++)
		{
			bool		named = false;

			for (EaJson *op = json->first; op; op = op->next)
				named |= op->kind == EA_JSON_STRING &&
					strcmp(op->text, operations[i].name) == 0;
			if (named && !check_use(m, entity, policy, i, leads, warned))
				break;
		}
	}
}

/*
 * A path shows no more of a row than the caller may read, so that the read
 * policies of what it leads to hold as well: they must not lead back.
 */
static void
check_circle(EaManifest *m, Leads *leads, EaNameMap *by_entity)
{
	ListCell   *lc;

	check_stack_depth();
	if (leads->done)
		return;
	leads->visiting = true;
	foreach(lc, leads->targets)
	{
		EaDeclEntity *target = lfirst(lc);
		Leads	   *next = ea_names_map_get(by_entity, target->name);

		if (next->visiting)
			ea_manifest_fault(m, leads->entity->document->label,
							  "/spec/policies",
							  psprintf("the read policies of %s and %s look "
									   "at each other", leads->entity->name,
									   target->name),
							  "let one of the read policies do without a "
							  "path");
		else
			check_circle(m, next, by_entity);
	}
	leads->visiting = false;
	leads->done = true;
}

void
ea_manifest_check_policies(EaManifest *m)
{
	EaNameMap  *by_entity = ea_names_map_create(256);
	EaNameMap  *warned = ea_names_map_create(8);
	ListCell   *lc;

	foreach(lc, m->policies)
	{
		EaDeclPolicy *policy = lfirst(lc);
		EaPolicy   *tree;
		EaPolicyFault fault;

		if (!policy->used)
			ea_manifest_fault(m, policy->document->label, "/metadata/name",
							  "the policy is used by no entity",
							  "name it under policies of an entity");
		if (policy->expression == NULL || *policy->expression == '\0')
			continue;
		tree = ea_policy_parse(policy->expression, &fault);
		if (tree == NULL)
			note_fault(m, policy, &fault, "");
		else
			ea_policy_warn_profile(tree, psprintf("policy \"%s\"",
												  policy->name));
	}
	foreach(lc, m->entities)
	{
		EaDeclEntity *entity = lfirst(lc);
		Leads	   *leads = palloc0(sizeof(Leads));

		CHECK_FOR_INTERRUPTS();
		check_policies(m, entity, leads, warned);
		ea_names_map_put(by_entity, entity->name, leads);
	}
	foreach(lc, m->entities)
		check_circle(m, ea_names_map_get(by_entity,
										 ((EaDeclEntity *) lfirst(lc))->name),
					 by_entity);
}
