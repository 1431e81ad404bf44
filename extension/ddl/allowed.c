#include "postgres.h"

#include "ddl/allowed.h"
#include "manifest/faults.h"

static void
add_loss(EaNameMap *known, const char *prefix, const char *separator,
		 const char *name)
{
	char	   *whole = psprintf("%s%s%s", prefix, separator, name);

	ea_names_map_put(known, whole, whole);
}

/* The names of objects with a member "name", or of texts. */
static void
add_stored(EaNameMap *known, const char *prefix, const char *separator,
		   const EaJson *list)
{
	for (EaJson *item = list ? list->first : NULL; item; item = item->next)
		add_loss(known, prefix, separator, item->kind == EA_JSON_STRING ?
				 item->text : ea_jsonread_string(item, "name"));
}

static void
add_declared(EaNameMap *known, EaManifest *m)
{
	ListCell   *lc;
	ListCell   *lf;

	foreach(lc, m->entities)
	{
		EaDeclEntity *entity = lfirst(lc);

		add_loss(known, entity->name, "", "");
		foreach(lf, entity->fields)
			add_loss(known, entity->name, ".",
					 ((EaDeclField *) lfirst(lf))->name);
	}
	foreach(lc, m->role_names)
		add_loss(known, "Roles", "/", lfirst(lc));
	foreach(lc, m->service.attributes)
		add_loss(known, "SecurityAttributes", "/",
				 ((const EaJson *) lfirst(lc))->key);
}

EaNameMap *
ea_ddl_read_allowed(char **names, int n, EaManifest *m, List *entities,
					const EaJson *service)
{
	EaNameMap  *allowed = ea_names_map_create(16);
	EaNameMap  *known;
	ListCell   *lc;

	if (n == 0)
		return allowed;
	known = ea_names_map_create(256);
	add_declared(known, m);
	foreach(lc, entities)
	{
		const char *entity = ea_jsonread_string(lfirst(lc), "name");

		add_loss(known, entity, "", "");
		add_stored(known, entity, ".", ea_jsonread_get(lfirst(lc), "fields"));
	}
	add_stored(known, "Roles", "/", ea_jsonread_get(service, "roles"));
	add_stored(known, "SecurityAttributes", "/",
			   ea_jsonread_get(service, "securityAttributes"));

	for (int i = 0; i < n; i++)
	{
		const char *hint;

		ea_names_map_put(allowed, names[i], names[i]);
		if (ea_names_map_get(known, names[i]) != NULL)
			continue;
		hint = ea_manifest_guess_map(names[i], known, NULL);
		ereport(WARNING,
				(errmsg("data loss is allowed for \"%s\", and there is none "
						"of that name", names[i]),
				 hint ? errhint("%s", hint) : 0));
	}
	return allowed;
}
