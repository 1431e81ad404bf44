/*
 * Differences between PostgreSQL 15 and 18, in one place, each with the
 * versions it is about.
 *
 * Every other file is written against the newest spelling defined here and
 * never tests PG_VERSION_NUM itself.
 */
#ifndef EA_COMPAT_H
#define EA_COMPAT_H

/*
 * The supported versions, first of all, so that no other error hides this one.
 * scripts/build/check-needs prints these lines before anything is built.
 *
 * The minors: before them a plan could keep the row security of another role
 * (CVE-2024-10976), and the minor right before grew a struct that extensions
 * are compiled with (ResultRelInfo), so that builds for it fit no other.
 */
#if PG_VERSION_NUM < 150000
#error entityapi needs PostgreSQL 15 to 18; this one is older
#elif PG_VERSION_NUM >= 190000
#error entityapi needs PostgreSQL 15 to 18; this one is newer
#elif !defined(EA_ANY_MINOR)
#if PG_VERSION_NUM < 150010
#error entityapi needs PostgreSQL 15.10, for CVE-2024-10976 and the struct \
ResultRelInfo; ANY_MINOR=1 builds all the same
#elif PG_VERSION_NUM >= 160000 && PG_VERSION_NUM < 160006
#error entityapi needs PostgreSQL 16.6, for CVE-2024-10976 and the struct \
ResultRelInfo; ANY_MINOR=1 builds all the same
#elif PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 170002
#error entityapi needs PostgreSQL 17.2, for CVE-2024-10976 and the struct \
ResultRelInfo; ANY_MINOR=1 builds all the same
#endif
#endif

/*
 * Majors on which all that bypasses the executor was compared with it, by the
 * tests and by t/engine/direct_scans.t among them.  It relies on the workings
 * of PostgreSQL's own scans, which may differ in another major: there it is
 * off unless a superuser wants it (entityapi.direct_reads).
 */
#ifndef EA_COMPAT_TESTED_MAJORS
#define EA_COMPAT_TESTED_MAJORS 15, 16, 17, 18
#endif

/*
 * A library fits one major, so the one it was compiled with is the server's.
 */
#define EA_COMPAT_MAJOR (PG_VERSION_NUM / 10000)

/* The statistics of a pg_class row, which 18 has one more of. */
#if PG_VERSION_NUM >= 180000
#define ea_compat_forget_frozen(form) ((form)->relallfrozen = 0)
#else
#define ea_compat_forget_frozen(form) ((void) 0)
#endif

#include "access/transam.h"
#include "access/tupdesc.h"
#include "common/jsonapi.h"
#include "utils/guc_tables.h"

/*
 * The macros of variable-length values: of postgres.h in 15, a header since.
 */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#include "storage/relfilelocator.h"
#else
#include "storage/relfilenode.h"
#endif

/* How many transactions that could write have ended, read without a lock. */
#if PG_VERSION_NUM < 170000
#define ea_compat_transactions_ended() \
	(ShmemVariableCache->xactCompletionCount)
#else
#define ea_compat_transactions_ended() \
	(TransamVariables->xactCompletionCount)
#endif

/*
 * The JSON parser: semantic actions return a result since 16, and the lexer
 * is filled in place since 17.
 */
#if PG_VERSION_NUM < 160000
#define EA_JSON_ACTION void
#define EA_JSON_ACTION_OK return
#else
#define EA_JSON_ACTION JsonParseErrorType
#define EA_JSON_ACTION_OK return JSON_SUCCESS
#endif

#if PG_VERSION_NUM < 170000
#define ea_compat_json_lexer(text, len) \
	makeJsonLexContextCstringLen((char *) (text), (len), PG_UTF8, true)
#else
#define ea_compat_json_lexer(text, len) \
	makeJsonLexContextCstringLen(NULL, (text), (len), PG_UTF8, true)
#endif

/* The arguments of a failed assertion: its kind until 15. */
#if PG_VERSION_NUM < 160000
#define EA_COMPAT_ASSERTION const char *conditionName, \
	const char *errorType, const char *fileName, int lineNumber
#else
#define EA_COMPAT_ASSERTION const char *conditionName, \
	const char *fileName, int lineNumber
#endif

/* Permissions of a plan stand beside its range table since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_check_permissions(stmt) \
	((void) ExecCheckRTPerms((stmt)->rtable, true))
#else
#define ea_compat_check_permissions(stmt) \
	((void) ExecCheckPermissions((stmt)->rtable, (stmt)->permInfos, true))
#endif

/* The permissions that a table of a query takes, for parse_relation.h. */
#if PG_VERSION_NUM < 160000
#define ea_compat_permissions(query, rte) (rte)
#else
#define ea_compat_permissions(query, rte) \
	getRTEPermissionInfo((query)->rteperminfos, (rte))
#endif

/* An index scan can be instrumented since 18. */
#if PG_VERSION_NUM < 180000
#define ea_compat_index_beginscan(table, index, snapshot, nkeys) \
	index_beginscan((table), (index), (snapshot), (nkeys), 0)
#else
#define ea_compat_index_beginscan(table, index, snapshot, nkeys) \
	index_beginscan((table), (index), (snapshot), NULL, (nkeys), 0)
#endif

/*
 * Check constraints: where a statement has them, by the name that 18 has, and
 * whether they are what their texts say.  Since 18 some need not be enforced,
 * and columns in them can stand for expressions.
 */
#if PG_VERSION_NUM < 180000
#define ri_CheckConstraintExprs ri_ConstraintExprs
#define ea_compat_has_plain_checks(constr) true
#else
static inline bool
ea_compat_has_plain_checks(const TupleConstr *constr)
{
	for (int i = 0; i < constr->num_check; i++)
	{
		if (!constr->check[i].ccenforced)
			return false;
	}
	return !constr->has_generated_virtual;
}
#endif

/* Soft errors since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_qualified_name(text) stringToQualifiedNameList(text)
#define ea_compat_parse_type(text, type, typmod) \
	parseTypeString((text), (type), (typmod), false)
#else
#define ea_compat_qualified_name(text) stringToQualifiedNameList((text), NULL)
#define ea_compat_parse_type(text, type, typmod) \
	((void) parseTypeString((text), (type), (typmod), NULL))
#endif

/* Whether a membership (Form_pg_auth_members) gives rights by itself. */
#if PG_VERSION_NUM < 160000
#define ea_compat_inherits(membership) true
#else
#define ea_compat_inherits(membership) ((membership)->inherit_option)
#endif

/* The record of a setting, by its name, or NULL. */
#if PG_VERSION_NUM < 160000
static inline struct config_generic *
ea_compat_find_setting(const char *name)
{
	struct config_generic **all = get_guc_variables();

	for (int i = GetNumConfigOptions(); i-- > 0;)
	{
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}
#else
#define ea_compat_find_setting(name) find_option((name), false, true, ERROR)
#endif

/*
 * Descending a B-tree: the heap is named since 16, only needed for writing.
 * Until 16 a snapshot could become too old while it was used.
 */
#if PG_VERSION_NUM < 160000
#define ea_compat_bt_search(index, key, leaf, snapshot) \
	_bt_search((index), (key), (leaf), BT_READ, (snapshot))
#elif PG_VERSION_NUM < 170000
#define ea_compat_bt_search(index, key, leaf, snapshot) \
	_bt_search((index), NULL, (key), (leaf), BT_READ, (snapshot))
#else
#define ea_compat_bt_search(index, key, leaf, snapshot) \
	_bt_search((index), NULL, (key), (leaf), BT_READ)
#endif

#if PG_VERSION_NUM < 170000
#define ea_compat_test_snapshot(snapshot, relation, page) \
	TestForOldSnapshot((snapshot), (relation), (page))
#else
#define ea_compat_test_snapshot(snapshot, relation, page) ((void) 0)
#endif

/* Privileges of all kinds of objects are asked for in one way since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_schema_aclcheck(schema, role, mode) \
	pg_namespace_aclcheck(schema, role, mode)
#else
#define ea_compat_schema_aclcheck(schema, role, mode) \
	object_aclcheck(NamespaceRelationId, schema, role, mode)
#endif

#if PG_VERSION_NUM < 160000
#define ea_compat_function_aclcheck(function, role, mode) \
	pg_proc_aclcheck(function, role, mode)
#else
#define ea_compat_function_aclcheck(function, role, mode) \
	object_aclcheck(ProcedureRelationId, function, role, mode)
#endif

/* A function that never returns; 18 has a word that stands in front of it. */
#if PG_VERSION_NUM < 180000
#define EA_NORETURN __attribute__((noreturn))
#else
#define EA_NORETURN pg_noreturn
#endif

/* The lock, if it needs no waiting; since 18 a failure can be logged. */
#if PG_VERSION_NUM < 180000
#define ea_compat_lock_at_once(tag, mode, lock) \
	LockAcquireExtended(tag, mode, false, true, true, lock)
#else
#define ea_compat_lock_at_once(tag, mode, lock) \
	LockAcquireExtended(tag, mode, false, true, true, lock, false)
#endif

/* This backend's transaction; PGPROC has it in another place since 17. */
#if PG_VERSION_NUM < 170000
#define ea_compat_transaction() (MyProc->lxid)
#else
#define ea_compat_transaction() (MyProc->vxid.lxid)
#endif

/* A block in the buffer that it was in; what a file is called until 15. */
#if PG_VERSION_NUM < 160000
typedef RelFileNode EaLocator;
#define ea_compat_locator(table) ((table)->rd_node)
#else
typedef RelFileLocator EaLocator;
#define ea_compat_locator(table) ((table)->rd_locator)
#endif

#define ea_compat_read_recent(file, block, buffer) \
	ReadRecentBuffer((file), MAIN_FORKNUM, (block), (buffer))

/*
 * The needs of a write: since 16 more detail says which indexes get an entry
 * of an updated row, and permissions stand beside the range table; 18 wants to
 * know what was pruned of that, has columns that are expressions, and
 * RETURNING for the old row.
 */
#if PG_VERSION_NUM < 160000
typedef bool EaUpdateIndexes;
#define EA_UPDATE_NO_INDEX false
#define ea_compat_insert_entries(table, slot, estate) \
	((void) ExecInsertIndexTuples((table), (slot), (estate), false, false, \
								  NULL, NIL))
#define ea_compat_update_entries(table, slot, estate, indexes) \
	((void) (indexes), \
	 (void) ExecInsertIndexTuples((table), (slot), (estate), true, false, \
								  NULL, NIL))
#define ea_compat_init_range_table(estate, stmt) \
	ExecInitRangeTable((estate), (stmt)->rtable)
#else
#define EaUpdateIndexes TU_UpdateIndexes
#define EA_UPDATE_NO_INDEX TU_None
#define ea_compat_insert_entries(table, slot, estate) \
	((void) ExecInsertIndexTuples((table), (slot), (estate), false, false, \
								  NULL, NIL, false))
#define ea_compat_update_entries(table, slot, estate, indexes) \
	((void) ExecInsertIndexTuples((table), (slot), (estate), true, false, \
								  NULL, NIL, (indexes) == TU_Summarizing))
#if PG_VERSION_NUM < 180000
#define ea_compat_init_range_table(estate, stmt) \
	ExecInitRangeTable((estate), (stmt)->rtable, (stmt)->permInfos)
#else
#define ea_compat_init_range_table(estate, stmt) \
	ExecInitRangeTable((estate), (stmt)->rtable, (stmt)->permInfos, NULL)
#endif
#endif

#if PG_VERSION_NUM < 180000
#define ea_compat_has_generated(constr) \
	((constr) != NULL && (constr)->has_generated_stored)
#define ea_compat_is_new_value(var) true
#else
#define ea_compat_has_generated(constr) \
	((constr) != NULL && ((constr)->has_generated_stored || \
						  (constr)->has_generated_virtual))
#define ea_compat_is_new_value(var) \
	((var)->varreturningtype == VAR_RETURNING_DEFAULT)
#endif

/*
 * The view that a subquery stands for, which 16 says of it; before, the rule
 * left the view in its own list of tables.
 */
#if PG_VERSION_NUM < 160000
#define ea_compat_first(rte) \
	((rte)->rtekind != RTE_SUBQUERY || (rte)->subquery->rtable == NIL ? NULL \
	 : (const RangeTblEntry *) linitial((rte)->subquery->rtable))
#define ea_compat_view(rte) \
	(ea_compat_first(rte) != NULL && \
	 ea_compat_first(rte)->rtekind == RTE_RELATION && \
	 ea_compat_first(rte)->relkind == RELKIND_VIEW \
	 ? ea_compat_first(rte)->relid : InvalidOid)
#else
#define ea_compat_view(rte) \
	((rte)->rtekind == RTE_SUBQUERY ? (rte)->relid : InvalidOid)
#endif

/* All rows of a statement, once; 18 can do it only so. */
#if PG_VERSION_NUM < 180000
#define ea_compat_executor_run(query) \
	ExecutorRun((query), ForwardScanDirection, 0, true)
#else
#define ea_compat_executor_run(query) \
	ExecutorRun((query), ForwardScanDirection, 0)
#endif

/* Bytes to be encoded as base64 are of type char until 17, of uint8 since. */
#define ea_compat_b64_encode(bytes, len, text, size) \
	pg_b64_encode((const void *) (bytes), (len), (text), (size))

/* A backend's row of pg_stat_activity, from 1; by another name since 16. */
#if PG_VERSION_NUM >= 160000
#define ea_compat_local_backend(n) pgstat_get_local_beentry_by_index(n)
#else
#define ea_compat_local_backend(n) pgstat_fetch_stat_local_beentry(n)
#endif

/* No compiler knows its contents: nothing is left out because of them. */
#define EA_COMPAT_UNKNOWN(number) __asm__ volatile ("" : "+r" (number))

/*
 * Comparing secrets in constant time: PostgreSQL has timingsafe_bcmp() since
 * 15.18, 16.14, 17.10 and 18.4 only, and a build with a newer minor runs with
 * an older one.  So it is made here for all; 0 if the bytes are the same.
 */
static inline int
ea_compat_timingsafe_bcmp(const void *a, const void *b, size_t len)
{
	const unsigned char *left = a;
	const unsigned char *right = b;
	uint64		differ = 0;
	size_t		i = 0;

	/* words first, as a token has hundreds of bytes */
	for (; i + sizeof(uint64) <= len; i += sizeof(uint64))
	{
		uint64		x;
		uint64		y;

		memcpy(&x, (const char *) a + i, sizeof(x));
		memcpy(&y, (const char *) b + i, sizeof(y));
		differ |= x ^ y;
		EA_COMPAT_UNKNOWN(differ);
	}
	for (; i < len; i++)
	{
		differ |= left[i] ^ right[i];
		EA_COMPAT_UNKNOWN(differ);
	}
	return differ != 0;
}

#endif							/* EA_COMPAT_H */
