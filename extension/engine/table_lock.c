#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
#include "rewrite/prs2lock.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/compat.h"
#include "engine/applying.h"
#include "engine/table_lock.h"

/* A class of locks that SQL cannot take: engine/turn_class.h has others. */
#define SLOT_CLASS 0xEA20

/* One of so many sessions may wait. */
#define SHARE 4

/* Modes that hold up ordinary statements, or their use of an index. */
#define STRONG_LOCKS \
	(LOCKBIT_ON(ShareLock) | LOCKBIT_ON(ShareRowExclusiveLock) | \
	 LOCKBIT_ON(ExclusiveLock) | LOCKBIT_ON(AccessExclusiveLock))

static int	pool = 0;			/* sessions; 0: not counted */
static bool waiting = false;	/* since the request began, or till its end */

void
ea_table_lock_begin(int sessions)
{
	pool = sessions;
	waiting = false;
}

bool
ea_table_lock_gave_up(int sqlstate)
{
	return sqlstate == ERRCODE_EA_BUSY ||
		(waiting && sqlstate == ERRCODE_LOCK_NOT_AVAILABLE);
}

/* -------- slots -------- */

static void
set_slot(LOCKTAG *tag, int slot)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, 0, slot, SLOT_CLASS);
}

/* The number of a slot that was free; throws if there is none. */
static int
take_slot(Oid relid)
{
	int			n = Max(1, pool / SHARE);

	for (int slot = 0; slot < n; slot++)
	{
		LOCKTAG		tag;

		set_slot(&tag, slot);
		if (LockAcquire(&tag, ExclusiveLock, false, true) !=
			LOCKACQUIRE_NOT_AVAIL)
			return slot;
	}
	ereport(ERROR,
			(errcode(ERRCODE_EA_BUSY),
			 errmsg("relation %u is locked by others, and %d requests wait "
					"for such locks already", relid, n)));
}

static void
give_slot_back(int slot)
{
	LOCKTAG		tag;

	set_slot(&tag, slot);
	LockRelease(&tag, ExclusiveLock, false);
}

/*
 * An application of declarations is soon done with a table that it locks, or
 * gives up (entityapi.apply_lock_timeout): no request is to be refused for it.
 * It takes its turn before a table and gives it back afterwards; one that has
 * begun or ended between two looks is seen by the second, or has left the
 * table free.  An error gives the slot back, and leaves "waiting" as it is.
 */
static void
wait_for(Oid relid, LOCKMODE mode)
{
	int			slot;

	for (int look = 0; look < 2; look++)
	{
		if (ea_applying())
		{
			LockRelationOid(relid, mode);
			return;
		}
		if (ConditionalLockRelationOid(relid, mode))
			return;
	}
	slot = take_slot(relid);
	waiting = true;
	LockRelationOid(relid, mode);
	waiting = false;
	give_slot_back(slot);
}

/* -------- tables and their indexes -------- */

/*
 * Lock it, if that needs no waiting; *strong: others hold more of it than
 * ordinary statements do, or wait for that.  The locks of these are kept
 * beside the shared table of locks as long as nobody wants more, and then
 * there is no entry to look at.
 */
static bool
lock_at_once(Oid relid, LOCKMODE mode, bool *strong)
{
	LOCKTAG		tag;
	LOCALLOCK  *mine;
	LockAcquireResult result;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	result = ea_compat_lock_at_once(&tag, mode, &mine);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (result != LOCKACQUIRE_ALREADY_CLEAR)
	{
		AcceptInvalidationMessages();
		MarkLockClear(mine);
	}
	*strong = mine->lock != NULL &&
		((mine->lock->grantMask | mine->lock->waitMask) & STRONG_LOCKS) != 0;
	return true;
}

static void
lock_indexes(Oid relid)
{
	Relation	rel = try_relation_open(relid, NoLock);
	List	   *indexes;
	ListCell   *cell;

	if (rel == NULL)
		return;
	indexes = RelationGetIndexList(rel);
	relation_close(rel, NoLock);
	foreach(cell, indexes)
	{
		bool		strong;

		if (!lock_at_once(lfirst_oid(cell), AccessShareLock, &strong))
			wait_for(lfirst_oid(cell), AccessShareLock);
	}
	list_free(indexes);
}

void
ea_table_lock(Oid relid, LOCKMODE mode)
{
	bool		strong = true;

	if (pool == 0)
	{
		LockRelationOid(relid, mode);
		return;
	}
	if (!lock_at_once(relid, mode, &strong))
		wait_for(relid, mode);
	if (strong)
		lock_indexes(relid);
}

/* -------- tables by name -------- */

Oid
ea_table_find(const char *qualified)
{
	List	   *names = ea_compat_qualified_name(qualified);
	Oid			schema = get_namespace_oid(strVal(linitial(names)), true);

	return OidIsValid(schema) ?
		get_relname_relid(strVal(llast(names)), schema) : InvalidOid;
}

/* A table that is neither the extension's nor the system's. */
static bool
is_of_entity(Oid relid)
{
	Oid			namespace = get_rel_namespace(relid);

	return OidIsValid(namespace) && namespace != PG_CATALOG_NAMESPACE &&
		namespace != get_namespace_oid("entityapi", true);
}

void
ea_table_lock_any(Oid relid, LOCKMODE mode)
{
	if (ConditionalLockRelationOid(relid, mode))
		return;
	if (is_of_entity(relid))
		ea_table_lock(relid, mode);
	else
		LockRelationOid(relid, mode);
}

static bool
find_beneath(Node *node, void *arg)
{
	List	  **relids = arg;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (const RangeTblEntry *) node;

		if (rte->rtekind == RTE_RELATION)
			*relids = list_append_unique_oid(*relids, rte->relid);
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_beneath, arg,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, find_beneath, arg);
}

/*
 * Lock the tables of a view before PostgreSQL does so with the statement,
 * where no slot would be taken for the wait.  Views in it join the list.
 */
static void
lock_beneath(Oid view)
{
	List	   *relids = list_make1_oid(view);

	for (int i = 0; i < list_length(relids); i++)
	{
		Oid			relid = list_nth_oid(relids, i);
		Relation	rel;

		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			ea_table_lock_any(relid, AccessShareLock);
		if (get_rel_relkind(relid) != RELKIND_VIEW)
			continue;
		rel = try_relation_open(relid, NoLock);
		for (int r = 0; rel != NULL && rel->rd_rules != NULL &&
			 r < rel->rd_rules->numLocks; r++)
			(void) find_beneath((Node *) rel->rd_rules->rules[r]->actions,
								&relids);
		if (rel != NULL)
			relation_close(rel, NoLock);
	}
	list_free(relids);
}

static void
lock_named(const RangeVar *name, LOCKMODE mode)
{
	Oid			relid;

	if (name == NULL || name->schemaname == NULL)
		return;
	relid = RangeVarGetRelid(name, NoLock, true);
	if (!OidIsValid(relid) || !is_of_entity(relid))
		return;
	ea_table_lock(relid, mode);
	if (get_rel_relkind(relid) == RELKIND_VIEW)
		lock_beneath(relid);
}

/* "arg" is the mode in which a table that is only read is locked. */
static bool
lock_in(Node *node, void *arg)
{
	LOCKMODE	reading = *(LOCKMODE *) arg;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_RangeVar:
			lock_named((RangeVar *) node, reading);
			return false;
		case T_InsertStmt:
			lock_named(((InsertStmt *) node)->relation, RowExclusiveLock);
			break;
		case T_UpdateStmt:
			lock_named(((UpdateStmt *) node)->relation, RowExclusiveLock);
			break;
		case T_DeleteStmt:
			lock_named(((DeleteStmt *) node)->relation, RowExclusiveLock);
			break;
		case T_SelectStmt:
			reading = ((SelectStmt *) node)->lockingClause == NIL ?
				AccessShareLock : RowShareLock;
			break;
		default:
			break;
	}
	return raw_expression_tree_walker(node, lock_in, &reading);
}

void
ea_table_lock_named(const char *sql)
{
	LOCKMODE	reading = AccessShareLock;
	ListCell   *cell;

	if (pool == 0)
		return;
	foreach(cell, raw_parser(sql, RAW_PARSE_DEFAULT))
	{
		Node	   *node = lfirst_node(RawStmt, cell)->stmt;

		/* the walker knows no commands, as SET CONSTRAINTS */
		if (IsA(node, SelectStmt) || IsA(node, InsertStmt) ||
			IsA(node, UpdateStmt) || IsA(node, DeleteStmt))
			lock_in(node, &reading);
	}
}

/* -------- foreign keys -------- */

List *
ea_table_lock_referring(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	const TriggerDesc *triggers = rel->trigdesc;
	List	   *tables = NIL;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK &&
			OidIsValid(trigger->tgconstrrelid) &&
			trigger->tgconstrrelid != relid)
			tables = list_append_unique_oid(tables, trigger->tgconstrrelid);
	}
	relation_close(rel, NoLock);
	return tables;
}
