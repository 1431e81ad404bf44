/*
 * The answer comes from the functions that decide in each request, so it
 * cannot differ from them.  Verdicts of policies and hooks depend on the
 * resource and are left out; so is all that a caller may not do at all.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "authz/authz.h"
#include "base/jsonwrite.h"
#include "engine/exec.h"
#include "management/permissions.h"

/* In some version: that of a request of data is not known here. */
static bool
may_see(EaRequest *req, EaField *field)
{
	if (!ea_authz_open(req, field))
		return false;
	if (field->kind == EA_ATTRIBUTE)
		return true;
	for (int i = 0; i < field->nmembers; i++)
	{
		if (ea_authz_allows(req, ea_catalog_target(field, i), EA_OP_READ))
			return true;
	}
	return false;
}

/*
 * As write/input.c decides.  A field that is neither readable nor granted for
 * writing is unknown; a field that mirrors another one is written there.
 */
static bool
may_set(EaRequest *req, EaField *field)
{
	EaField    *side = field->mapped_by == NULL ? field :
		ea_catalog_mirrored(field);

	if (field->read_only || !ea_authz_writable(req, field) ||
		!(may_see(req, field) || field->write_roles != NULL))
		return false;
	return side == field ||
		(!side->read_only && !side->write_once &&
		 ea_authz_writable(req, side) &&
		 ea_authz_allows(req, side->entity, EA_OP_UPDATE));
}

/* The fields that "judge" lets pass; NULL: none. */
static void
put_fields(EaRequest *req, EaEntity *entity, const char *key,
		   bool (*judge) (EaRequest *req, EaField *field))
{
	ea_jsonwrite_key(req->out, key);
	ea_jsonwrite_lit(req->out, "[");
	for (int i = 0; judge != NULL && i < entity->nfields; i++)
	{
		if (!judge(req, &entity->fields[i]))
			continue;
		ea_jsonwrite_comma(req->out);
		ea_jsonwrite_cstring(req->out, entity->fields[i].name);
	}
	ea_jsonwrite_lit(req->out, "]");
}

/* The operations of this entity that roles allow, as a mask. */
static int
allowed_operations(EaRequest *req, EaEntity *entity)
{
	int			mask = 0;

	for (int i = 0; i < EA_OPS; i++)
	{
		if (((1 << i) != EA_OP_RESTORE || ea_catalog_restores(entity)) &&
			ea_authz_allows(req, entity, 1 << i))
			mask |= 1 << i;
	}
	return mask;
}

static void
put_entity(EaRequest *req, EaEntity *entity)
{
	int			mask = allowed_operations(req, entity);

	if (mask == 0)
		return;
	ea_jsonwrite_key(req->out, entity->type);
	ea_jsonwrite_lit(req->out, "{\"operations\":[");
	for (int i = 0; i < EA_OPS; i++)
	{
		if ((mask & (1 << i)) == 0)
			continue;
		ea_jsonwrite_comma(req->out);
		ea_jsonwrite_cstring(req->out, ea_catalog_operations[i]);
	}
	ea_jsonwrite_lit(req->out, "]");
	put_fields(req, entity, "readable",
			   (mask & EA_OP_READ) != 0 ? may_see : NULL);
	put_fields(req, entity, "writable",
			   (mask & (EA_OP_CREATE | EA_OP_UPDATE)) != 0 ? may_set : NULL);
	ea_jsonwrite_lit(req->out, "}");
}

static void
read_name(void *arg, TupleTableSlot *slot)
{
	List	  **names = arg;

	*names = lappend(*names, TextDatumGetCString(slot->tts_values[0]));
}

void
ea_permissions_show(EaRequest *req)
{
	List	   *names = NIL;
	ListCell   *lc;

	ea_exec_one(EA_EXEC_READ,
				"SELECT name FROM entityapi.entity ORDER BY name",
				EA_NO_PARAMS, EA_READER(read_name, TEXTOID), &names);
	ea_jsonwrite_lit(req->out, "{");
	foreach(lc, names)
	{
		EaEntity   *entity = ea_catalog_entity(req->catalog, lfirst(lc));

		if (entity != NULL)
			put_entity(req, entity);
	}
	ea_jsonwrite_lit(req->out, "}");
	req->status = 200;
}
