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

/* Privileges of all kinds of objects are asked for in one way since 16. */
#if PG_VERSION_NUM < 160000
#define ea_compat_schema_aclcheck(schema, role, mode) \
	pg_namespace_aclcheck(schema, role, mode)
#else
#define ea_compat_schema_aclcheck(schema, role, mode) \
	object_aclcheck(NamespaceRelationId, schema, role, mode)
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
