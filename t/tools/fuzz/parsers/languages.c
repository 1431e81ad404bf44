/*
 * Targets: what callers and manifests write in languages of their own.
 */
#include "target.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#include "authz/policy.h"
#include "authz/policy_types.h"
#include "base/jsonread.h"
#include "model/types.h"
#include "query/rsql.h"
#include "request/errors.h"
#include "request/etag.h"
#include "request/negotiation.h"
#include "request/query_string.h"
#include "request/route.h"

static void
must_be_json(StringInfo text)
{
	EaJsonFault fault;

	must_hold(ea_jsonread_parse(text->data, text->len, 10000, &fault) != NULL,
			  text->data);
}

/* -------- filters -------- */

static void
write_value(StringInfo text, const EaRsqlValue *value)
{
	appendStringInfoChar(text, '"');
	for (int i = 0; i < value->len; i++)
	{
		if (value->text[i] == '"' || value->text[i] == '\\')
			appendStringInfoChar(text, '\\');
		appendStringInfoChar(text, value->text[i]);
	}
	appendStringInfoChar(text, '"');
}

/* The tree as a filter again, in parentheses wherever it may have them. */
static void
write_filter(StringInfo text, const EaRsql *tree)
{
	if (tree->kind != EA_RSQL_COMPARISON)
	{
		for (int i = 0; i < tree->nchildren; i++)
		{
			appendStringInfoChar(text, i == 0 ? '(' :
								 tree->kind == EA_RSQL_AND ? ';' : ',');
			write_filter(text, tree->children[i]);
		}
		appendStringInfoChar(text, ')');
		return;
	}
	for (int i = 0; i < tree->nhops; i++)
		appendStringInfo(text, "%s%s", i == 0 ? "" : ".", tree->hops[i]);
	appendStringInfoString(text, ea_rsql_operators[tree->op].name);
	for (int i = 0; i < tree->nvalues; i++)
	{
		appendStringInfoChar(text, i == 0 ? '(' : ',');
		write_value(text, &tree->values[i]);
	}
	appendStringInfoChar(text, ')');
}

/* A tree that is written as a filter and read again is the same. */
static void
run_rsql(const char *bytes, int len)
{
	static const EaRsqlLimits tight = {400, 3, 5, 2, 20, 4, 2};
	static const EaRsqlLimits wide = {1 << 20, 200, 4096, 4096, 1 << 20, 4096,
	EA_RSQL_MAX_HOPS};
	EaRsqlLimits usual = ea_rsql_limits();
	char	   *text = target_text(bytes, len);
	EaRsqlFault fault;
	EaRsql	   *tree;
	StringInfoData once;
	StringInfoData again;
	StringInfoData filter;

	tree = ea_rsql_parse(text, len, len % 4 == 0 ? &tight : &usual, &fault);
	if (tree == NULL)
	{
		must_hold(fault.message != NULL, text);
		must_hold(fault.offset >= 0 &&
				  fault.offset <= pg_mbstrlen_with_len(text, len), text);
		return;
	}
	initStringInfo(&once);
	ea_rsql_write(&once, tree);
	must_be_json(&once);

	initStringInfo(&filter);
	write_filter(&filter, tree);
	tree = ea_rsql_parse(filter.data, filter.len, &wide, &fault);
	must_hold(tree != NULL, filter.data);
	initStringInfo(&again);
	ea_rsql_write(&again, tree);
	must_hold(strcmp(once.data, again.data) == 0, filter.data);
}

/* -------- policies -------- */

static EaPolicyType
type_of_path(EaPolicyScope *scope, EaPolicy *node, const char **message,
			 const char **hint)
{
	const char *name = node->names[node->nnames - 1];
	const EaType *type = ea_types_find(name);

	if (type != NULL)
		return type->policy;
	if (strcmp(name, "roles") == 0)
		return EA_POLICY_STRINGS;
	*message = "there is no such field";
	return EA_POLICY_UNKNOWN;
}

static EaPolicyType
type_of_attribute(EaPolicyScope *scope, const char *key,
				  const char **message, const char **hint)
{
	EaPolicyType type = ea_policy_type_of(key);

	*message = "there is no such attribute";
	return type;
}

static void
run_policy(const char *bytes, int len)
{
	EaPolicyScope scope = {type_of_path, type_of_attribute, true,
	len % 2 == 0};
	char	   *text = target_text(bytes, len);
	int			nchars = pg_mbstrlen_with_len(text, len);
	EaPolicyFault fault = {0};
	StringInfoData json;
	EaPolicy   *tree = ea_policy_parse(text, &fault);

	if (tree == NULL)
	{
		must_hold(fault.message != NULL, text);
		must_hold(fault.offset >= 0 && fault.offset <= nchars, text);
		return;
	}
	initStringInfo(&json);
	ea_policy_write(&json, tree);
	must_be_json(&json);
	memset(&fault, 0, sizeof(fault));
	if (!ea_policy_check(tree, &scope, &fault))
	{
		must_hold(fault.message != NULL, text);
		must_hold(fault.offset >= 0 && fault.offset <= nchars, text);
		return;
	}
	resetStringInfo(&json);
	ea_policy_write(&json, tree);
	must_be_json(&json);
}

/* -------- queries -------- */

/* What was decoded, encoded and decoded again is the same. */
static void
must_come_back(const char *text, int len)
{
	StringInfoData encoded;
	char	   *decoded;
	int			back;

	initStringInfo(&encoded);
	ea_query_encode(&encoded, text, len);
	decoded = ea_query_decode(encoded.data, encoded.len, true, &back);
	must_hold(decoded != NULL, encoded.data);
	must_hold(back == len && memcmp(decoded, text, len) == 0, encoded.data);
}

/* The first byte says what the endpoint takes. */
static void
run_params(const char *bytes, int len)
{
	EaRequest  *req = target_request();
	EaQuery    *query;
	int			takes;

	if (len < 1)
		return;
	takes = bytes[0] & (EA_TAKES_LIST | EA_TAKES_SHAPE | EA_TAKES_KEYSET |
						EA_TAKES_CURSOR | EA_TAKES_DELETED | EA_TAKES_AS_OF |
						EA_TAKES_SIZE);
	req->query = target_text(bytes + 1, len - 1);
	query = ea_query_read(req, takes);
	must_hold(req->nproblems == 0, req->query);
	must_hold(query->page_size >= 0 && query->page_number >= 1, req->query);
	for (int i = 0; i < query->nparams; i++)
	{
		must_hold(strlen(query->params[i].value) == query->params[i].len,
				  req->query);
		must_come_back(query->params[i].name, strlen(query->params[i].name));
		must_come_back(query->params[i].value, query->params[i].len);
	}
}

/* -------- headers -------- */

static void
run_headers(const char *bytes, int len)
{
	static const EaMedia medias[] = {EA_MEDIA_JSONAPI, EA_MEDIA_ATOMIC,
		EA_MEDIA_JSON, EA_MEDIA_JSON_OR_FORM, EA_MEDIA_OPENAPI,
	};
	static const char *const names[] = {"accept", "content-type", "if-match",
	"if-none-match"};
	EaRequest  *req = target_request();
	EaRoute		route = {0};
	EaHeader	header[2];
	EaIfMatch	match;
	int			kind;

	if (len < 2)
		return;
	kind = (unsigned char) bytes[0] % lengthof(names);
	route.media = medias[(unsigned char) bytes[1] % lengthof(medias)];
	req->route = &route;
	header[0].name = names[kind];
	header[0].value = target_text(bytes + 2, len - 2);
	header[1] = header[0];
	req->headers = header;
	req->nheaders = bytes[1] & 0x40 ? 2 : 1;
	req->body = "x";
	req->body_len = kind == 1;
	if (kind < 2)
	{
		ea_negotiation_is_form(req);
		ea_negotiation_check(req);
	}
	else if (kind == 2)
	{
		ea_etag_if_match(req, &match);
		must_hold(match.given, header[0].value);
		for (int i = 0; i < match.n; i++)
			must_hold(ea_etag_matches(&match, match.versions[i]),
					  header[0].value);
	}
	else
		ea_etag_not_modified(req, 7);
}

const Target language_targets[] = {
	{"rsql", run_rsql},
	{"policy", run_policy},
	{"params", run_params, {ERRCODE_EA_REFUSED}},
	{"headers", run_headers, {ERRCODE_EA_REFUSED}}
};
const int	nlanguage_targets = lengthof(language_targets);
