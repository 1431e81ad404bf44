/*
 * Two passes over all fields: the first settles the owning sides, which hold
 * a column or a join table, the second looks up what each inverse side
 * mirrors.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "manifest/relations.h"
#include "manifest/several_columns.h"
#include "manifest/through.h"
#include "request/errors.h"

static void
fault(EaManifest *m, EaDeclField *field, const char *key,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label,
					  key ? ea_errors_pointer(field->pointer, key) :
					  field->pointer, message, hint);
	field->sound = false;
}

static EaDeclMember *
add_member(EaDeclField *field, EaDeclEntity *target, const char *column)
{
	EaDeclMember *member = palloc0(sizeof(EaDeclMember));

	member->entity = target;
	member->column = column ? pstrdup(column) : NULL;
	field->members = lappend(field->members, member);
	return member;
}

/*
 * The same, of a column that the field's own table has, or of several, as
 * "columns" has them under a name.
 */
static void
add_owned(EaManifest *m, EaDeclField *field, EaDeclEntity *target,
		  const char *name, const char *column)
{
	EaDeclMember *member = add_member(field, target, column);

	ea_manifest_read_member(m, field, member, name);
	column = member->column;
	ea_manifest_find_key(field->entity, target, column, &member->key);
	if (field->kind == EA_TO_ONE && member->parts == NIL)
		ea_manifest_note_key(field, column);
}

/*
 * Refuse what leads a resource of no tenant to those of tenants.  Where there
 * is one, those that refer to an application's are its.
 */
static void
check_scope(EaManifest *m, EaDeclField *field, EaDeclEntity *target)
{
	if (!field->entity->tenant_scoped && target->tenant_scoped &&
		!(field->entity->of_application && m->service.tenancy == 1 &&
		  field->mapped_by != NULL))
		fault(m, field, "target",
			  psprintf("%s is not tenant-scoped "
					   "and cannot lead to %s, which is", field->entity->name,
					   target->name),
			  "make both tenant-scoped, "
			  "or declare the relationship on the other side only");
}

/* Rows of a view keep nothing from being deleted. */
static void
note_reference(EaDeclField *field, EaDeclEntity *target)
{
	if (!field->entity->view)
		target->references = lappend(target->references, field);
}

static void
check_on_delete(EaManifest *m, EaDeclField *field)
{
	if (field->required && field->on_delete == EA_SET_NULL)
		fault(m, field, "onDelete", "a required field cannot be set to null",
			  "use restrict or cascade");
}

/*
 * A row that is only hidden must not take along rows that would be gone for
 * good: nobody could bring them back, and nothing says that they were there.
 */
static void
check_cascade(EaManifest *m, EaDeclField *field, EaDeclEntity *target)
{
	if (field->on_delete == EA_CASCADE && target->soft_delete &&
		!field->entity->soft_delete)
		fault(m, field, "onDelete",
			  psprintf("deleting a resource of %s only hides it"
					   " (softDelete), and what it takes along would be"
					   " gone for good", target->name),
			  psprintf("give %s softDelete as well, or use %s",
					   field->entity->name,
					   field->required ? "restrict" : "restrict or setNull"));
}

static void
check_one_of_field(EaManifest *m, EaDeclField *field)
{
	EaDeclOneOf *one_of;
	ListCell   *lc;

	check_on_delete(m, field);
	if (field->target == NULL)
	{
		if (ea_jsonread_get(field->json, "target") == NULL)
			fault(m, field, NULL, "\"target\" is missing", "name a OneOf");
		return;
	}
	one_of = ea_names_map_get(m->by_one_of, field->target);
	if (one_of == NULL)
	{
		fault(m, field, "target",
			  psprintf("OneOf \"%s\" is not declared", field->target),
			  ea_manifest_guess_map(field->target, m->by_one_of,
									"declare it in a OneOf document"));
		return;
	}
	foreach(lc, one_of->members)
	{
		EaDeclEntity *target = lfirst(lc);

		add_owned(m, field, target,
				  psprintf("%s.%s", field->name, target->name),
				  ea_manifest_column(field, target,
									 psprintf("%s_%s_id",
											  ea_names_snake(field->name),
											  ea_names_snake(target->name))));
		note_reference(field, target);
		check_cascade(m, field, target);
	}
	if (one_of->members != NIL)
		check_scope(m, field, linitial(one_of->members));
}

/* Names of a join table; both ends may be the same entity. */
static void
name_join(EaDeclField *field, EaDeclEntity *target)
{
	char	   *near = psprintf("%s_id", ea_names_snake(field->entity->name));
	char	   *far = psprintf("%s_id", ea_names_snake(target->name));

	if (target == field->entity)
		far = psprintf("%s_id", ea_names_snake(field->name));
	if (strcmp(near, "tenant_id") == 0 || strcmp(near, far) == 0)
		near = psprintf("near_%s", near);
	if (strcmp(far, "tenant_id") == 0)
		far = psprintf("far_%s", far);
	field->join_near = ea_names_identifier(near);
	field->join_far = ea_names_identifier(far);
	field->join_table =
		ea_names_identifier(psprintf("%s_%s",
									 ea_names_snake(field->entity->name),
									 ea_names_snake(field->name)));
}

static void
settle_relation(EaManifest *m, EaDeclField *field, EaDeclEntity *target)
{
	static const char *const owning_only[] =
	{"required", "onDelete", "index", "default"};
	bool		inverse = field->mapped_by != NULL ||
		field->relation == EA_ONE_TO_MANY_RELATION;

	switch (field->relation)
	{
		case EA_MANY_TO_ONE_RELATION:
			if (field->mapped_by)
				fault(m, field, "mappedBy",
					  "a ManyToOne holds the column itself", "leave it out");
			inverse = false;
			field->kind = EA_TO_ONE;
			break;
		case EA_ONE_TO_ONE_RELATION:
			field->kind = inverse ? EA_TO_ONE_INVERSE : EA_TO_ONE;
			field->unique = !inverse;
			break;
		case EA_ONE_TO_MANY_RELATION:
			field->kind = EA_TO_MANY;
			if (field->mapped_by == NULL &&
				!ea_jsonread_get(field->json, "mappedBy"))
				fault(m, field, NULL, "a OneToMany needs \"mappedBy\"",
					  psprintf("name the field of %s that points here",
							   target->name));
			break;
		case EA_MANY_TO_MANY_RELATION:
			field->kind = EA_MANY_TO_MANY;
			if (!inverse)
			{
				name_join(field, target);
				ea_manifest_settle_through(m, field, target);
				add_member(field, target, field->join_far)->key =
					field->far_key;
				target->references = lappend(target->references, field);
			}
			break;
	}

	if (field->through != NULL &&
		(field->kind != EA_MANY_TO_MANY || field->mapped_by != NULL))
		fault(m, field, "through",
			  "goes with a ManyToMany that mirrors no other field", NULL);
	for (int i = 0; i < lengthof(owning_only); i++)
	{
		if (field->kind != EA_TO_ONE &&
			ea_jsonread_get(field->json, owning_only[i]))
			fault(m, field, owning_only[i],
				  "goes with a reference that has a column here", NULL);
	}
	if (field->kind == EA_TO_ONE)
	{
		add_owned(m, field, target, field->name,
				  ea_manifest_column(field, NULL,
									 psprintf(field->system ? "%s" : "%s_id",
											  ea_names_snake(field->name))));
		ea_manifest_check_caller(m, field);

		/*
		 * The foreign key itself lets go of an author who is deleted, but
		 * with Citus identity/copied_accounts.c does.
		 */
		if (field->system && m->service.distribution == 0)
			return;
		note_reference(field, target);
		if (field->system)
			return;
		check_on_delete(m, field);
		check_cascade(m, field, target);
	}
	check_scope(m, field, target);
}

static void
check_ref(EaManifest *m, EaDeclField *field)
{
	EaDeclEntity *target;

	if (field->relation < 0)
		field->relation = EA_MANY_TO_ONE_RELATION;
	if (field->target == NULL)
	{
		if (ea_jsonread_get(field->json, "target") == NULL)
			fault(m, field, NULL, "\"target\" is missing", "name an entity");
		return;
	}
	target = ea_names_map_get(m->by_entity, field->target);
	if (target == NULL)
		fault(m, field, field->system ? NULL : "target",
			  psprintf("entity \"%s\" is not declared", field->target),
			  strcmp(field->target, EA_USER_ENTITY) == 0 ?
			  "declare it: kind Entity, named User, with accounts: true" :
			  ea_names_map_get(m->by_one_of, field->target) ?
			  "that is a OneOf: use type oneof" :
			  ea_manifest_guess_map(field->target, m->by_entity,
									"declare it in an Entity document"));
	else
		settle_relation(m, field, target);
}

/* Is owner a field that this inverse side can mirror?  NULL, or why not. */
static const char *
mirror_fault(EaDeclField *field, EaDeclField *owner)
{
	static const EaRelation wanted[] =
	{
		[EA_MANY_TO_ONE_RELATION] = EA_ONE_TO_MANY_RELATION,
		[EA_ONE_TO_MANY_RELATION] = EA_MANY_TO_ONE_RELATION,
		[EA_ONE_TO_ONE_RELATION] = EA_ONE_TO_ONE_RELATION,
		[EA_MANY_TO_MANY_RELATION] = EA_MANY_TO_MANY_RELATION,
	};
	static const char *const names[] = {
		[EA_MANY_TO_ONE_RELATION] = "ManyToOne",
		[EA_ONE_TO_MANY_RELATION] = "OneToMany",
		[EA_ONE_TO_ONE_RELATION] = "OneToOne",
		[EA_MANY_TO_MANY_RELATION] = "ManyToMany"
	};
	ListCell   *lc;

	if (owner->type)
		return psprintf("\"%s\" is an attribute", owner->name);
	if (owner->kind == EA_ONE_OF
		? field->relation != EA_ONE_TO_MANY_RELATION
		: owner->relation != wanted[field->relation])
		return psprintf("a %s mirrors a %s, which \"%s\" is not",
						names[field->relation],
						names[wanted[field->relation]], owner->name);
	if (owner->mapped_by)
		return psprintf("\"%s\" is an inverse side itself", owner->name);
	foreach(lc, owner->members)
	{
		if (((EaDeclMember *) lfirst(lc))->entity == field->entity)
			return NULL;
	}
	return psprintf("\"%s\" does not point at %s", owner->name,
					field->entity->name);
}

static void
check_inverse(EaManifest *m, EaDeclField *field)
{
	EaDeclEntity *target = ea_names_map_get(m->by_entity, field->target);
	EaDeclField *owner = ea_names_map_get(target->by_name, field->mapped_by);
	const char *why;
	ListCell   *lc;

	if (owner == NULL)
	{
		fault(m, field, "mappedBy",
			  psprintf("%s has no field \"%s\"", target->name,
					   field->mapped_by),
			  ea_manifest_guess_map(field->mapped_by, target->by_name, NULL));
		return;
	}

	/* a fault of the owner has been noted at the owner */
	if (!owner->sound || (owner->type == NULL && owner->members == NIL &&
						  owner->mapped_by == NULL))
	{
		field->sound = false;
		return;
	}
	why = mirror_fault(field, owner);
	if (why)
	{
		fault(m, field, "mappedBy", why, NULL);
		return;
	}

	field->owner = owner;
	if (field->kind == EA_MANY_TO_MANY)
	{
		add_member(field, target, owner->join_near)->key = owner->near_key;
		return;
	}
	foreach(lc, owner->members)
	{
		EaDeclMember *member = lfirst(lc);

		if (member->entity == field->entity)
		{
			EaDeclMember *mirror = add_member(field, target, member->column);

			mirror->key = member->key;
			mirror->parts = member->parts;
		}
	}
}

static void
check_one_of(EaManifest *m, EaDeclOneOf *one_of)
{
	const char *label = one_of->document->label;
	const char *otherwise = "declare it in an Entity document";
	ListCell   *lc;

	if (ea_jsonread_get(one_of->document->spec, "members") &&
		list_length(one_of->member_names) < 2)
		ea_manifest_fault(m, label, "/spec/members",
						  "must name two entities at least", NULL);
	foreach(lc, one_of->member_names)
	{
		const char *name = lfirst(lc);
		const char *pointer = ea_errors_index("/spec/members",
											  foreach_current_index(lc));
		EaDeclEntity *entity = ea_names_map_get(m->by_entity, name);

		if (entity == NULL && *name != '\0')
			ea_manifest_fault(m, label, pointer,
							  psprintf("entity \"%s\" is not declared", name),
							  ea_manifest_guess_map(name, m->by_entity,
													otherwise));
		if (entity == NULL || list_member_ptr(one_of->members, entity))
			continue;
		if (one_of->members != NIL &&
			((EaDeclEntity *) linitial(one_of->members))->tenant_scoped !=
			entity->tenant_scoped)
			ea_manifest_fault(m, label, pointer,
							  psprintf("%s is%s tenant-scoped, unlike %s",
									   name,
									   entity->tenant_scoped ? "" : " not",
									   ((EaDeclEntity *)
										linitial(one_of->members))->name),
							  "all members must be, or none");
		one_of->members = lappend(one_of->members, entity);
	}
}

void
ea_manifest_check_relations(EaManifest *m)
{
	ListCell   *lc;
	ListCell   *cell;

	/* in the order of the documents, for faults in a stable order */
	foreach(lc, m->documents)
	{
		EaDeclDocument *doc = lfirst(lc);

		if (doc->kind == EA_DECL_ONE_OF)
			check_one_of(m, ea_names_map_get(m->by_one_of, doc->name));
	}

	foreach(lc, m->entities)
	{
		CHECK_FOR_INTERRUPTS();
		foreach(cell, ((EaDeclEntity *) lfirst(lc))->fields)
		{
			EaDeclField *field = lfirst(cell);

			if (field->type != NULL || field->type_name == NULL)
				continue;
			if (strcmp(field->type_name, "ref") == 0)
				check_ref(m, field);
			else if (strcmp(field->type_name, "oneof") == 0)
				check_one_of_field(m, field);
		}
	}
	foreach(lc, m->entities)
	{
		CHECK_FOR_INTERRUPTS();
		foreach(cell, ((EaDeclEntity *) lfirst(lc))->fields)
		{
			EaDeclField *field = lfirst(cell);

			if (field->sound && field->mapped_by && field->type == NULL)
				check_inverse(m, field);
		}
	}
}
