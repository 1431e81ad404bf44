/*
 * Whoever passes a literal without a type passes text: beside both json and
 * jsonb PostgreSQL could not tell which of the two is meant.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "apply/given.h"
#include "base/compat.h"
#include "base/jsonwrite.h"
#include "manifest/manifest.h"
#include "manifest/normalize.h"

bool
ea_given_in_order(FunctionCallInfo fcinfo)
{
	Oid		   *types;
	int			count;

	get_func_signature(fcinfo->flinfo->fn_oid, &types, &count);
	return types[0] != JSONBOID;
}

static char *
normal_text(char *given)
{
	EaJsonFault fault;
	StringInfoData text;

	/* the list that they stand in is no part of them */
	EaJson	   *json = ea_jsonread_parse(given, strlen(given),
										 EA_MANIFEST_MAX_DEPTH + 1, &fault);

	if (json == NULL)
		return given;
	ea_manifest_normalize(json);
	initStringInfo(&text);
	ea_jsonwrite_tree(&text, json);
	return text.data;
}

char *
ea_given_documents(FunctionCallInfo fcinfo)
{
	Jsonb	   *documents;

	if (ea_given_in_order(fcinfo))
		return normal_text(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	documents = PG_GETARG_JSONB_P(0);
	return JsonbToCString(NULL, &documents->root, VARSIZE(documents));
}
