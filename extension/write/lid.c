#include "postgres.h"

#include "miscadmin.h"

#include "base/grow.h"
#include "request/errors.h"
#include "write/lid.h"

static int
compare_lids(const void *a, const void *b)
{
	const EaLid *x = a;
	const EaLid *y = b;
	int			order = strcmp(x->type, y->type);

	return order != 0 ? order : strcmp(x->lid, y->lid);
}

int
ea_lid_sort(EaLids *lids)
{
	qsort(lids->items, lids->n, sizeof(EaLid), compare_lids);
	for (int i = 1; i < lids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (compare_lids(&lids->items[i - 1], &lids->items[i]) == 0)
			return Max(lids->items[i - 1].operation, lids->items[i].operation);
	}
	return -1;
}

const EaLid *
ea_lid_find(const EaLids *lids, const char *type, const char *lid)
{
	EaLid		key = {type, lid};

	return bsearch(&key, lids->items, lids->n, sizeof(EaLid), compare_lids);
}

bool
ea_lid_resolve(EaRequest *req, const EaEntity *entity, const EaJson *lid,
			   const char *pointer, EaId *id)
{
	const EaLid *found = NULL;

	if (lid->kind == EA_JSON_STRING)
		found = ea_lid_find(req->lids, entity->type, lid->text);
	if (found == NULL || found->operation >= req->lids->operation ||
		!found->known)
	{
		ea_errors_add(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					  "No earlier operation defines this local id for the "
					  "type \"%s\".", entity->type);
		return false;
	}
	*id = found->id;
	return true;
}

/*
 * UUIDs are made in ascending order, and so is their list.  Such an id alone
 * says of which resource it is: no two entities share one, unless user-defined
 * triggers make it so, and then the foreign key knows.
 */
bool
ea_lid_made(EaRequest *req, EaEntity *entity, const EaId *id)
{
	const EaLids *lids = req->lids;

	if (lids == NULL || entity->maker == EA_ID_OF_SERVICE)
		return lids != NULL && ea_id_is_among(id, &lids->made);
	for (int i = 0; i < lids->nadded; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (lids->added[i].entity == entity &&
			ea_id_equal(&lids->added[i].id, id))
			return true;
	}
	return false;
}

void
ea_lid_add_made(EaLids *lids, const EaId *id)
{
	EaIds	   *made = &lids->made;

	made->items[made->n++] = *id;

	/* an id that a user-defined trigger has chosen may come after it */
	if (made->n > 1 && ea_id_compare(&made->items[made->n - 2], id) > 0)
		ea_id_sort(made);
}

void
ea_lid_know(EaLids *lids, const EaEntity *entity, const char *lid,
			const EaId *id)
{
	EaLid	   *found = lid == NULL ? NULL :
		unconstify(EaLid *, ea_lid_find(lids, entity->type, lid));
	EaAdded    *added = EA_GROW_ARRAY(lids->added, lids->nadded,
									  lids->maxadded);

	added->entity = entity;
	added->id = *id;
	if (found == NULL)
		return;
	found->known = true;
	found->id = *id;
}

void
ea_lid_change(EaLids *lids, const EaId *from, const EaId *to)
{
	for (int i = 0; i < lids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ea_id_equal(&lids->items[i].id, from))
			lids->items[i].id = *to;
	}
	for (int i = 0; i < lids->made.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ea_id_equal(&lids->made.items[i], from))
			lids->made.items[i] = *to;
	}
	ea_id_sort(&lids->made);
}
