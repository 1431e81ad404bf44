/*
 * The validator's answer decides alone: no account is looked up.  An answer
 * that is not exactly a principal rejects the credential.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/fmgrprotos.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "base/text.h"
#include "identity/principal_json.h"
#include "identity/validator.h"
#include "request/errors.h"
#include "trust/udf.h"

bool
ea_validator_is_set(void)
{
	return ea_guc_credential_validator[0] != '\0';
}

static const char *
method_name(const EaRequest *req)
{
	switch (req->method)
	{
		case EA_POST:
			return "POST";
		case EA_PATCH:
			return "PATCH";
		case EA_PUT:
			return "PUT";
		case EA_DELETE:
			return "DELETE";
		default:
			return req->head ? "HEAD" : "GET";
	}
}

/* As handle() takes them: one that was repeated is an array. */
static void
write_headers(StringInfo buf, const EaRequest *req)
{
	ea_jsonwrite_lit(buf, "{");
	for (int i = 0; i < req->nheaders; i++)
	{
		const char *name = req->headers[i].name;
		const char *first = NULL;
		bool		repeated;

		first = ea_request_header(req, name, &repeated);
		if (first != req->headers[i].value)
			continue;
		ea_jsonwrite_key(buf, name);
		if (!repeated)
		{
			ea_jsonwrite_cstring(buf, first);
			continue;
		}
		ea_jsonwrite_lit(buf, "[");
		for (int k = i; k < req->nheaders; k++)
		{
			if (strcmp(req->headers[k].name, name) != 0)
				continue;
			ea_jsonwrite_comma(buf);
			ea_jsonwrite_cstring(buf, req->headers[k].value);
		}
		ea_jsonwrite_lit(buf, "]");
	}
	ea_jsonwrite_lit(buf, "}");
}

/* The whole request; a body that is no text is null. */
static Datum
describe_request(EaRequest *req)
{
	StringInfoData buf;

	initStringInfo(&buf);
	ea_jsonfmt_put(&buf, "{'method':%q,'path':%q,'query':%q,'headers':",
				   method_name(req),
				   pnstrdup(req->target, strcspn(req->target, "?")),
				   req->query);
	write_headers(&buf, req);
	ea_jsonwrite_key(&buf, "body");
	if (req->body != NULL && memchr(req->body, 0, req->body_len) == NULL &&
		ea_text_is_utf8(req->body, req->body_len))
		ea_jsonwrite_string(&buf, req->body, req->body_len);
	else
		ea_jsonwrite_lit(&buf, "null");
	ea_jsonfmt_put(&buf, ",'remoteAddress':%q}", req->remote);
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

static char *
call_validator(EaRequest *req)
{
	const char *name = ea_guc_credential_validator;
	const char *dot = strchr(name, '.');
	char	   *answer = NULL;

	if (dot == NULL ||
		ea_udf_call(req, "credential validator", pnstrdup(name, dot - name),
					dot + 1, false, 0, describe_request(req),
					&answer) != EA_UDF_DONE)
		return NULL;
	return answer;
}

static EaPrincipal *
find_principal(EaRequest *req)
{
	char	   *answer = call_validator(req);
	EaPrincipal *principal;
	EaJson	   *root;
	EaJsonFault fault;
	const char *why;

	if (answer == NULL)
		return NULL;
	root = ea_jsonread_parse(answer, strlen(answer), EA_JSON_MAX_DEPTH,
							 &fault);
	if (root == NULL || ea_jsonread_get(root, "reject") != NULL ||
		ea_jsonread_get(root, "principal") == NULL)
		return NULL;
	principal = ea_principal_read(ea_jsonread_get(root, "principal"), answer,
								  &why);
	if (principal == NULL)
		ereport(LOG,
				(errmsg("entityapi request %s: credential validator: %s",
						req->request_id, ea_text_logged(why)),
				 errhidestmt(true)));
	return principal;
}

void
ea_validator_check(EaRequest *req)
{
	req->principal = find_principal(req);
	if (req->principal == NULL)
		ea_errors_throw(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_HEADER,
						"Authorization", "The credential is not valid.");
}
