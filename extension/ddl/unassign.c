/*
 * A role that is declared again later must not come back to accounts that had
 * it long ago, and a policy must not meet a value of another type.  So a
 * caller that takes a declaration away decides about the assignments: they are
 * taken away as well when that is allowed by name.  Keys need what their
 * owners hold, so they end by themselves.  Invites are offers only: those with
 * a role that goes end with it, and those with one that only a SuperAdmin
 * assigns from now on, since anybody may have made them.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/jsonwrite.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/unassign.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "request/errors.h"

#define ACCOUNTS "entityapi.account"
#define INVITES "entityapi.invite"

/*
 * Nobody is given anything from here on: requests that know the declarations
 * of before wait, and start again (ea_account_hold_declarations).  The lock is
 * on the table of the declarations, as logins write accounts, too.
 */
static void
stop_giving(void)
{
	LockRelationOid(get_relname_relid("service",
									  get_namespace_oid("entityapi", false)),
					ShareRowExclusiveLock);
}

/* A declaration of the service that accounts lean on. */
typedef struct Taken
{
	EaManifest *m;
	EaNameMap  *allowed;
	EaDeclKind	kind;
	const char *document;		/* Roles, SecurityAttributes */
	const char *member;			/* of its spec */
	List	   *statements;
} Taken;

/* The document to blame: that which declares it, or any of the kind. */
static const char *
find_label(Taken *taken, EaDeclDocument *document)
{
	ListCell   *lc;

	foreach(lc, taken->m->documents)
	{
		EaDeclDocument *other = lfirst(lc);

		if (document == NULL && other->kind == taken->kind)
			document = other;
	}
	return document ? document->label : taken->document;
}

/* Do so, at the place in the documents that is the reason. */
static void
add_statement(Taken *taken, const char *label, const char *pointer, char *sql)
{
	EaDdlStatement *statement = palloc0(sizeof(EaDdlStatement));

	statement->sql = sql;
	statement->label = label;
	statement->pointer = pointer;
	taken->statements = lappend(taken->statements, statement);
}

/*
 * Accounts that meet the condition lose something: refuse, or change them.
 * change: what follows SET; what: is lost, for a message.
 */
static void
take_away(Taken *taken, const char *name, EaDeclDocument *document,
		  const char *condition, const char *change, const char *what)
{
	const char *key = psprintf("%s/%s", taken->document, name);
	const char *label = find_label(taken, document);
	const char *pointer = psprintf("/spec/%s", taken->member);
	int64		n = ea_ddl_count(ACCOUNTS, condition);

	if (n == 0)
		return;
	if (document != NULL)
		pointer = ea_errors_pointer(pointer, name);
	if (ea_names_map_get(taken->allowed, key) == NULL)
	{
		ea_manifest_fault(taken->m, label, pointer,
						  psprintf("accounts have %s \"%s\": now "
								   INT64_FORMAT, what, name, n),
						  psprintf("take it from them, "
								   "or allow data loss for \"%s\"", key));
		return;
	}
	add_statement(taken, label, pointer,
				  psprintf("UPDATE " ACCOUNTS " SET %s WHERE %s", change,
						   condition));
}

static bool
is_among(const EaJson *names, const char *name)
{
	const EaJson *item = names == NULL ? NULL : names->first;

	while (item != NULL && strcmp(item->text, name) != 0)
		item = item->next;
	return item != NULL;
}

/* Only of those that are a tenant's offer still. */
static void
end_invites(Taken *taken, const char *role, EaDeclDocument *document)
{
	char	   *condition =
	psprintf("status = 'PENDING' AND expires_at > now() AND %s = ANY (roles)",
			 quote_literal_cstr(role));
	const char *pointer = psprintf("/spec/%s", taken->member);

	if (document != NULL)
		pointer = ea_errors_pointer(pointer, role);
	if (ea_ddl_count(INVITES, condition) > 0)
		add_statement(taken, find_label(taken, document), pointer,
					  psprintf("UPDATE " INVITES " SET expires_at = now()"
							   " WHERE %s", condition));
}

/* before: the roles that only a SuperAdmin assigned. */
static void
check_role(Taken *taken, const char *role, const EaJson *before)
{
	const char *quoted = quote_literal_cstr(role);
	EaDeclDocument *rises = ea_names_map_get(taken->m->by_super_role, role);
	bool		goes = ea_names_map_get(taken->m->by_role, role) == NULL;

	if (!goes && (rises == NULL || is_among(before, role)))
		return;
	stop_giving();
	end_invites(taken, role, rises);
	if (!goes)
		return;
	take_away(taken, role, NULL, psprintf("%s = ANY (roles)", quoted),
			  psprintf("roles = array_remove(roles, %s)", quoted),
			  "the role");
}

/* SQL that holds for values that an attribute may have; v is the value. */
static char *
fitting_sql(const EaJson *declared)
{
	static const struct
	{
		const char *type;
		const char *condition;
	}			types[] =
	{
		{"string", "jsonb_typeof(v) = 'string'"},
		{"boolean", "jsonb_typeof(v) = 'boolean'"},
		{"number", "jsonb_typeof(v) = 'number'"},
		{"integer", "CASE jsonb_typeof(v) WHEN 'number'"
		" THEN v::numeric % 1 = 0 ELSE false END"},
		{"string[]", "jsonb_typeof(v) = 'array' AND NOT"
		" jsonb_path_exists(v, '$[*] ? (@.type() <> \"string\")')"},
	};
	const char *type = ea_jsonread_string(declared, "type");
	const EaJson *values = ea_jsonread_get(declared, "allowedValues");
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < lengthof(types); i++)
	{
		if (strcmp(types[i].type, type) == 0)
			appendStringInfoString(&buf, types[i].condition);
	}
	if (values != NULL)
	{
		StringInfoData list;

		initStringInfo(&list);
		ea_jsonwrite_tree(&list, values);
		appendStringInfo(&buf, " AND %s::jsonb @> v",
						 quote_literal_cstr(list.data));
	}
	return buf.data;
}

static void
check_attribute(Taken *taken, const EaJson *before)
{
	const char *name = ea_jsonread_string(before, "name");
	const char *quoted = quote_literal_cstr(name);
	const char *change =
	psprintf("security_attributes = security_attributes - %s", quoted);
	ListCell   *lc;

	foreach(lc, taken->m->service.attributes)
	{
		const EaJson *declared = lfirst(lc);

		if (strcmp(declared->key, name) != 0)
			continue;
		if (strcmp(fitting_sql(declared), fitting_sql(before)) != 0)
			stop_giving();
		take_away(taken, name,
				  ea_names_map_get(taken->m->by_attribute, name),
				  psprintf("EXISTS (SELECT 1"
						   " FROM (SELECT security_attributes -> %s) x (v)"
						   " WHERE v IS NOT NULL AND NOT (%s))",
						   quoted, fitting_sql(declared)), change,
				  "a value that does not fit any more of");
		return;
	}
	stop_giving();
	take_away(taken, name, NULL, psprintf("security_attributes ? %s", quoted),
			  change, "a value of");
}

List *
ea_manifest_check_assigned(EaManifest *m, const EaJson *stored,
						   EaNameMap *allowed)
{
	Taken		roles = {m, allowed, EA_DECL_ROLES, "Roles", "roles"};
	Taken		attributes = {m, allowed, EA_DECL_SECURITY_ATTRIBUTES,
	"SecurityAttributes", "attributes"};
	const EaJson *before = ea_jsonread_get(stored, "roles");

	for (EaJson *role = before ? before->first : NULL; role;
		 role = role->next)
		check_role(&roles, role->text,
				   ea_jsonread_get(stored, "superRoles"));
	before = ea_jsonread_get(stored, "securityAttributes");
	for (EaJson *attribute = before ? before->first : NULL; attribute;
		 attribute = attribute->next)
		check_attribute(&attributes, attribute);
	return list_concat(roles.statements, attributes.statements);
}
