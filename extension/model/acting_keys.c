/*
 * Such keys are found by the triggers that they have on the table they refer
 * to, for which there is an index; one that is not enforced has none.  The
 * search goes from table to table, all entities together, one statement a
 * step.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/regproc.h"

#include "base/compat.h"
#include "base/names.h"
#include "engine/exec.h"
#include "model/acting_keys.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"
#include "trust/pin.h"

/*
 * Of each table in $1 the keys to it that have an action, and, with no name,
 * its partitions, to which there may be keys of their own.  Keys that come of
 * another, as those to partitions do, are followed and not reported.
 */
static const char statement[] =
"SELECT asked.n, k.* FROM unnest($1) WITH ORDINALITY asked (rel, n)"
" CROSS JOIN LATERAL ("
"SELECT DISTINCT f.conrelid, s.nspname::text, c.relname::text,"
" CASE WHEN f.conparentid = 0 THEN f.conname::text END,"
" f.confrelid::regclass::text, f.confdeltype::text,"
" ARRAY(SELECT quote_ident(a.attname) FROM pg_attribute a"
" WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey))"
" FROM pg_trigger t JOIN pg_constraint f ON f.oid = t.tgconstraint"
" JOIN pg_class c ON c.oid = f.conrelid"
" JOIN pg_namespace s ON s.oid = c.relnamespace"
" WHERE t.tgrelid = asked.rel AND f.contype = 'f'"
" AND f.confrelid = asked.rel AND f.confdeltype IN ('c', 'n', 'd')"
" UNION ALL SELECT i.inhrelid, '', '', NULL, '', 'c', '{}'"
" FROM pg_inherits i WHERE i.inhparent = asked.rel) k"
" ORDER BY 1, 3, 4, 5";

/* A table from which rows go along with those of an entity. */
typedef struct Step
{
	struct Root *root;
	Oid			relid;
} Step;

/* An entity, and the tables that were met on the way from it. */
typedef struct Root
{
	EaEntity   *entity;
	Oid			relid;
	List	   *met;			/* of Oid */
} Root;

typedef struct Look
{
	EaTableOf	table_of;
	void	   *arg;
	List	   *steps;			/* those that are looked at now */
	List	   *next;
	List	   *keys;			/* of EaActingKey * */
} Look;

/* A key with an action, as it was read. */
typedef struct Key
{
	Oid			relid;			/* whose rows it deletes or changes */
	const char *schema;
	const char *table;
	const char *name;			/* NULL: only to be followed */
	const char *to;				/* the table that it refers to */
	char		action;
	int			ncolumns;
	char	  **columns;		/* quoted */
} Key;

/* -------- is it meant? -------- */

static bool
is_named(const EaEntity *entity, const Key *key)
{
	const char *name = ea_names_table(key->schema, key->table);

	for (int i = 0; i < entity->nunseen; i++)
	{
		if (strcmp(entity->unseen[i], name) == 0)
			return true;
	}
	return false;
}

/* The key is over this column, or these, and that of the tenant. */
static bool
key_is_over(const Key *key, const EaEntity *entity, const char *column)
{
	int			found = 0;

	for (int i = 0; i < key->ncolumns; i++)
	{
		if (ea_columns_find(column, key->columns[i]) >= 0)
			found++;
		else if (ea_row_tenant_column(entity) == NULL ||
				 strcmp(key->columns[i], ea_row_tenant_column(entity)) != 0)
			return false;
	}
	return found == ea_columns_count(column);
}

/*
 * Deletions that the service makes itself before, with rights and records, so
 * that nothing is left for the key: the row is held first, so none can come.
 * Where deleted rows are kept for a while, plain SQL may bring one back;
 * copies of accounts go with these, and are not held; and for rows that all
 * tenants share, other tenants' rows are left to the key to refuse.
 */
static bool
is_done_before(EaField *field, const EaEntity *target, char action)
{
	if (field->system)
		return action == FKCONSTR_ACTION_SETNULL;
	if (target->soft_delete || target->accounts ||
		(!target->tenant_scoped && field->entity->tenant_scoped))
		return false;
	return (action == FKCONSTR_ACTION_CASCADE &&
			field->on_delete == EA_CASCADE) ||
		(action == FKCONSTR_ACTION_SETNULL &&
		 field->on_delete == EA_SET_NULL);
}

/*
 * The loss of an author is no change.  The accounts' entity does not list the
 * entities that name it so, but on a cluster: the columns show it.
 */
static bool
is_of_author(const EaEntity *entity, const Key *key)
{
	static const char *const columns[] = {
		"tenant_id", "created_by", "updated_by"
	};

	if (!entity->accounts || key->action != FKCONSTR_ACTION_SETNULL)
		return false;
	for (int i = 0; i < key->ncolumns; i++)
	{
		bool		known = false;

		for (int k = 0; k < lengthof(columns); k++)
			known = known || strcmp(key->columns[i], columns[k]) == 0;
		if (!known)
			return false;
	}
	return true;
}

/* The reference to the entity that the key is of, or NULL. */
static EaField *
find_reference(Look *look, const Step *step, const Key *key)
{
	EaEntity   *entity = step->root->entity;

	for (int i = 0; i < entity->nreferences &&
		 step->relid == step->root->relid; i++)
	{
		EaField    *field = ea_catalog_referring(entity, i);

		if (!ea_catalog_has_column(field) ||
			look->table_of(field->entity, look->arg) != key->relid)
			continue;
		for (int m = 0; m < field->nmembers; m++)
		{
			if (ea_catalog_target(field, m) == entity &&
				key_is_over(key, field->entity, field->members[m].column))
				return field;
		}
	}
	return NULL;
}

/*
 * Links of a row that goes are deleted before, as it is held, so that their
 * key finds none, whatever its action is.
 */
static bool
is_of_links(const EaField *field, const EaEntity *target, const Key *key)
{
	if (!field->through || field->join_served || key->ncolumns != 1 ||
		ea_table_find(field->join_table) != key->relid)
		return false;
	return (field->entity == target &&
			strcmp(key->columns[0], field->join_near) == 0) ||
		(strcmp(key->columns[0], field->join_far) == 0 &&
		 ea_catalog_target(unconstify(EaField *, field), 0) == target);
}

/* A key of a join table that leads to the entity. */
static bool
is_link(const Step *step, const Key *key)
{
	EaEntity   *entity = step->root->entity;

	if (step->relid != step->root->relid)
		return false;
	for (int i = 0; i < entity->nfields; i++)
	{
		if (entity->fields[i].mapped_by == NULL &&
			is_of_links(&entity->fields[i], entity, key))
			return true;
	}
	for (int i = 0; i < entity->nreferences; i++)
	{
		if (is_of_links(ea_catalog_referring(entity, i), entity, key))
			return true;
	}
	return false;
}

static bool
is_declared(const Step *step, const Key *key, EaField *field)
{
	EaEntity   *entity = step->root->entity;

	return step->relid == step->root->relid &&
		(is_of_author(entity, key) ||
		 (field != NULL && is_done_before(field, entity, key->action)));
}

/* -------- looking -------- */

/* Keys of an application stay as they are; what is declared follows. */
static char *
make_hint(const Step *step, const Key *key, const EaField *field,
		  const char *drop)
{
	const char *mend = drop;

	if (key->action == FKCONSTR_ACTION_SETDEFAULT)
		return pstrdup(drop);
	if (field != NULL && field->entity->of_application &&
		!step->root->entity->soft_delete)
		mend = psprintf("onDelete: %s in %s.%s",
						key->action == FKCONSTR_ACTION_CASCADE ? "cascade" :
						"setNull", field->entity->name, field->name);
	return psprintf("%s, or, if it is meant, unseen: [%s]", mend,
					ea_names_table(key->schema, key->table));
}

static void
report_key(Look *look, const Step *step, const Key *key, const EaField *field)
{
	EaActingKey *acting = palloc(sizeof(EaActingKey));
	const char *table = quote_qualified_identifier(key->schema, key->table);
	const char *drop = psprintf("ALTER TABLE %s DROP CONSTRAINT %s", table,
								quote_identifier(key->name));
	bool		deletes = key->action == FKCONSTR_ACTION_CASCADE;

	acting->entity = step->root->entity;
	acting->relid = key->relid;
	acting->name = pstrdup(key->name);
	acting->message =
		psprintf("deleting %s %s rows of %s without rights and records: "
				 "its foreign key \"%s\" to %s is ON DELETE %s",
				 acting->entity->name, deletes ? "deletes" : "changes", table,
				 key->name, key->to, deletes ? "CASCADE" :
				 key->action == FKCONSTR_ACTION_SETNULL ? "SET NULL" :
				 "SET DEFAULT");
	acting->hint = make_hint(step, key, field, drop);
	look->keys = lappend(look->keys, acting);
}

/* Rows of the table go, too, which may set others in motion. */
static void
follow_table(Look *look, Root *root, Oid relid)
{
	Step	   *step;

	if (list_member_oid(root->met, relid))
		return;
	root->met = lappend_oid(root->met, relid);
	step = palloc(sizeof(Step));
	step->root = root;
	step->relid = relid;
	look->next = lappend(look->next, step);
}

static char *
text_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL :
		TextDatumGetCString(slot->tts_values[column]);
}

static void
read_key(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	Step	   *step = list_nth(look->steps,
								DatumGetInt64(slot->tts_values[0]) - 1);
	Key			key = {DatumGetObjectId(slot->tts_values[1])};
	EaField    *field;

	CHECK_FOR_INTERRUPTS();
	key.schema = text_of(slot, 2);
	key.table = text_of(slot, 3);
	key.name = text_of(slot, 4);
	key.to = text_of(slot, 5);
	key.action = text_of(slot, 6)[0];
	key.columns = ea_exec_array_text(slot->tts_values[7], &key.ncolumns);
	field = key.name == NULL ? NULL : find_reference(look, step, &key);
	if (key.name != NULL &&
		(is_declared(step, &key, field) || is_link(step, &key)))
		return;
	if (key.name != NULL && (key.action == FKCONSTR_ACTION_SETDEFAULT ||
							 !is_named(step->root->entity, &key)))
		report_key(look, step, &key, field);
	if (key.action == FKCONSTR_ACTION_CASCADE)
		follow_table(look, step->root, key.relid);
}

/* One step of all; invalidation messages for its tables count from before. */
static void
take_step(Look *look)
{
	int			n = list_length(look->next);
	Datum	   *oids = palloc(n * sizeof(Datum));
	ArrayType  *array;
	ListCell   *lc;

	look->steps = look->next;
	look->next = NIL;
	foreach(lc, look->steps)
	{
		Step	   *step = lfirst(lc);

		ea_held_follow(step->relid);
		oids[foreach_current_index(lc)] = ObjectIdGetDatum(step->relid);
	}
	array = construct_array(oids, n, OIDOID, sizeof(Oid), true, TYPALIGN_INT);
	ea_exec_latest(EA_EXEC_LOOK, statement,
				   ea_params(EA_VALUE(OIDARRAYOID, PointerGetDatum(array))),
				   EA_READER(read_key, INT8OID, OIDOID, TEXTOID, TEXTOID,
							 TEXTOID, TEXTOID, TEXTOID, TEXTARRAYOID), look);
}

static void
look_from(Look *look)
{
	EaPin		pin;

	/* all that is looked up is few of many, which no estimate knows */
	ea_pin_begin(&pin);
	ea_pin_set("enable_seqscan", "off");
	ea_pin_set("enable_hashjoin", "off");
	ea_pin_set("enable_mergejoin", "off");
	while (look->next != NIL)
		take_step(look);
	ea_pin_end(&pin);
}

/* Rows of a join table go with the resources, or one by one. */
static void
follow_links(Look *look, Root *root, const EaField *field)
{
	Oid			relid = field->through && !field->join_served ?
	ea_table_find(field->join_table) : InvalidOid;

	if (OidIsValid(relid))
		follow_table(look, root, relid);
}

static Root *
add_root(Look *look, EaEntity *entity)
{
	Root	   *root = palloc0(sizeof(Root));

	root->entity = entity;
	root->relid = look->table_of(entity, look->arg);
	if (OidIsValid(root->relid))
		follow_table(look, root, root->relid);
	for (int i = 0; i < entity->nfields; i++)
		follow_links(look, root, &entity->fields[i]);
	for (int i = 0; i < entity->nreferences; i++)
		follow_links(look, root, ea_catalog_referring(entity, i));
	return root;
}

/* That of an owning field whose links may be taken away. */
static Root *
add_links_root(Look *look, EaField *field)
{
	Root	   *root = palloc0(sizeof(Root));

	root->entity = field->entity;
	follow_links(look, root, field);
	return root;
}

Oid
ea_acting_keys_table(const EaEntity *entity, void *arg)
{
	return ea_table_find(entity->table);
}

/* -------- of which entities rows are deleted -------- */

/* By a caller that has a role for it, or by the sweep. */
static bool
is_deleted_itself(const EaEntity *entity)
{
	if (entity->soft_delete)
		return entity->purge_after_days > 0;
	for (int i = 0; i < entity->npermissions; i++)
	{
		if ((entity->permissions[i].operations & EA_OP_DELETE) != 0)
			return true;
	}
	return entity->accounts;
}

/* Rows go with those that they refer to (write/delete.c). */
static bool
goes_along(const EaEntity *entity, const EaField *field)
{
	return ea_catalog_has_column(field) && !field->system &&
		(field->on_delete == EA_CASCADE ||
		 (field->on_delete == EA_RESTRICT && entity->soft_delete &&
		  field->required));
}

static bool
is_deleted(EaEntity *entity, List **seen)
{
	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	if (list_member_ptr(*seen, entity))
		return false;
	*seen = lappend(*seen, entity);
	if (is_deleted_itself(entity))
		return true;
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; goes_along(entity, field) && m < field->nmembers; m++)
		{
			if (is_deleted(ea_catalog_target(field, m), seen))
				return true;
		}
	}
	return false;
}

bool
ea_acting_keys_deletes(EaEntity *entity)
{
	List	   *seen = NIL;

	return is_deleted(entity, &seen);
}

static int
compare_entities(const ListCell *a, const ListCell *b)
{
	return strcmp(((const EaEntity *) lfirst(a))->name,
				  ((const EaEntity *) lfirst(b))->name);
}

List *
ea_acting_keys(EaCatalog *catalog, EaTableOf table_of, void *arg)
{
	Look		look = {table_of, arg};
	List	   *entities = ea_catalog_loaded(catalog);
	ListCell   *lc;

	list_sort(entities, compare_entities);
	foreach(lc, entities)
	{
		EaEntity   *entity = lfirst(lc);
		bool		goes = ea_acting_keys_deletes(entity);

		if (goes)
			add_root(&look, entity);
		for (int i = 0; !goes && i < entity->nfields; i++)
		{
			EaField    *field = &entity->fields[i];

			if (field->through && field->mapped_by == NULL &&
				!field->read_only)
				add_links_root(&look, field);
		}
	}
	look_from(&look);
	return look.keys;
}

/* -------- at a deletion -------- */

/* Tables that had no such key in an epoch. */
typedef struct EaActing
{
	uint64		then;
	int			n;
	Oid		   *relids;
} EaActing;

static bool
is_known(const EaActing *acting)
{
	for (int i = 0; acting != NULL && i < acting->n; i++)
	{
		if (!ea_held_means_same(acting->relids[i], acting->then))
			return false;
	}
	return acting != NULL;
}

static void
keep_found(MemoryContext mcxt, EaActing **kept, uint64 then, List *relids)
{
	EaActing   *acting = *kept;
	ListCell   *lc;

	if (acting == NULL)
		*kept = acting = MemoryContextAllocZero(mcxt, sizeof(EaActing));
	acting->n = 0;
	if (acting->relids != NULL)
		pfree(acting->relids);
	acting->relids = NULL;
	acting->relids = MemoryContextAlloc(mcxt,
										list_length(relids) * sizeof(Oid));
	foreach(lc, relids)
		acting->relids[acting->n++] = lfirst_oid(lc);
	acting->then = then;
}

/* field: NULL, or only links of it are deleted. */
static void
check_now(EaEntity *entity, EaField *field, EaActing **kept)
{
	Look		look = {ea_acting_keys_table};
	uint64		then = ea_held_epoch();
	Root	   *root;
	EaActingKey *first;

	if (is_known(*kept))
		return;
	root = field != NULL ? add_links_root(&look, field) :
		add_root(&look, entity);
	look_from(&look);
	if (look.keys == NIL)
	{
		if (root->met != NIL)
			keep_found(entity->catalog->mcxt, kept, then, root->met);
		return;
	}
	first = linitial(look.keys);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("no row of %s is deleted: %s", field != NULL ?
					field->join_table : entity->table, first->message),
			 errhint("%s; then apply the manifests again.", first->hint)));
}

void
ea_acting_keys_check(EaEntity *entity)
{
	check_now(entity, NULL, &entity->acting);
}

void
ea_acting_keys_check_links(EaField *field)
{
	check_now(field->entity, field, &field->acting);
}
