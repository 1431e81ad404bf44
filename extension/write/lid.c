#include "postgres.h"

#include "miscadmin.h"

#include "base/uuid.h"
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
ea_lid_resolve(EaRequest *req, const char *type, const EaJson *lid,
			   const char *pointer, pg_uuid_t *id)
{
	const EaLid *found = NULL;

	if (lid->kind == EA_JSON_STRING)
		found = ea_lid_find(req->lids, type, lid->text);
	if (found == NULL || found->operation >= req->lids->operation)
	{
		ea_errors_add(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					  "No earlier operation defines this local id for the "
					  "type \"%s\".", type);
		return false;
	}
	*id = found->id;
	return true;
}

/*
 * Ids are made in ascending order, and so is the list.  An id alone says of
 * which resource it is: no two entities share one, unless user-defined
 * triggers make it so, and then the foreign key knows.
 */
bool
ea_lid_made(EaRequest *req, EaEntity *entity, const pg_uuid_t *id)
{
	return req->lids != NULL && ea_uuid_is_among(id, &req->lids->made);
}

void
ea_lid_add_made(EaLids *lids, const pg_uuid_t *id)
{
	EaIds	   *made = &lids->made;

	made->items[made->n++] = *id;

	/* an id that a user-defined trigger has chosen may come after it */
	if (made->n > 1 && ea_uuid_compare(&made->items[made->n - 2], id) > 0)
		ea_uuid_sort(made);
}

void
ea_lid_change(EaLids *lids, const pg_uuid_t *from, const pg_uuid_t *to)
{
	for (int i = 0; i < lids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ea_uuid_equal(&lids->items[i].id, from))
			lids->items[i].id = *to;
	}
	for (int i = 0; i < lids->made.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ea_uuid_equal(&lids->made.items[i], from))
			lids->made.items[i] = *to;
	}
	ea_uuid_sort(&lids->made);
}
