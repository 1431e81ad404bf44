/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between PostgreSQL 15 and 18, in one place.
 *
 * Every other file is written against the newest spelling defined here and
 * never tests PG_VERSION_NUM itself.
 *
 * extension/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_COMPAT_H
#define EA_COMPAT_H

#include "common/jsonapi.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 150000
#error "entityapi needs PostgreSQL 15 or newer"
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

/* Permissions of a plan stand beside its range table since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_check_permissions(stmt) \
	((void) ExecCheckRTPerms((stmt)->rtable, true))
#else
#define ea_compat_check_permissions(stmt) \
	((void) ExecCheckPermissions((stmt)->rtable, (stmt)->permInfos, true))
#endif

/* An index scan can be instrumented since 18. */
#if PG_VERSION_NUM < 180000
#define ea_compat_index_beginscan(table, index, snapshot, nkeys) \
	index_beginscan((table), (index), (snapshot), (nkeys), 0)
#else
#define ea_compat_index_beginscan(table, index, snapshot, nkeys) \
	index_beginscan((table), (index), (snapshot), NULL, (nkeys), 0)
#endif

/* Soft errors since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_qualified_name(text) stringToQualifiedNameList(text)
#else
#define ea_compat_qualified_name(text) stringToQualifiedNameList((text), NULL)
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

/* A function that never returns is marked in front since 18. */
#if PG_VERSION_NUM < 180000
#define EA_NORETURN
#define EA_NORETURN_END pg_attribute_noreturn()
#else
#define EA_NORETURN pg_noreturn
#define EA_NORETURN_END
#endif

#endif							/* EA_COMPAT_H */
