#include "postgres.h"

#include "utils/memutils.h"

#include "base/jsonwrite.h"
#include "request/errors.h"
#include "request/request.h"

typedef struct EaErrorKind
{
	int			status;
	const char *word;
	const char *title;
} EaErrorKind;

static const EaErrorKind ea_error_table[] = {
	[EA_ERR_MALFORMED_REQUEST] =
	{400, "MALFORMED_REQUEST", "Malformed request"},
	[EA_ERR_MALFORMED_JSON] = {400, "MALFORMED_JSON", "Malformed JSON"},
	[EA_ERR_INVALID_DOCUMENT] = {400, "INVALID_DOCUMENT", "Invalid document"},
	[EA_ERR_UNKNOWN_FIELD] = {400, "UNKNOWN_FIELD", "Unknown field"},
	[EA_ERR_INVALID_VALUE] = {400, "INVALID_VALUE", "Invalid value"},
	[EA_ERR_REQUIRED] = {400, "REQUIRED", "Required value missing"},
	[EA_ERR_READ_ONLY] = {400, "READ_ONLY", "Read-only field"},
	[EA_ERR_UNKNOWN_PARAMETER] =
	{400, "UNKNOWN_PARAMETER", "Unknown query parameter"},
	[EA_ERR_INVALID_PARAMETER] =
	{400, "INVALID_PARAMETER", "Invalid query parameter"},
	[EA_ERR_INVALID_FILTER] = {400, "INVALID_FILTER", "Invalid filter"},
	[EA_ERR_INVALID_SORT] = {400, "INVALID_SORT", "Invalid sort"},
	[EA_ERR_INVALID_INCLUDE] = {400, "INVALID_INCLUDE", "Invalid include"},
	[EA_ERR_INVALID_FIELDS] =
	{400, "INVALID_FIELDS", "Invalid sparse fieldset"},
	[EA_ERR_INVALID_PAGE] = {400, "INVALID_PAGE", "Invalid page"},
	[EA_ERR_INVALID_HEADER] = {400, "INVALID_HEADER", "Invalid header"},
	[EA_ERR_TYPE_NOT_ALLOWED] =
	{400, "TYPE_NOT_ALLOWED", "Resource type not allowed"},
	[EA_ERR_HOOK_REJECTED] = {400, "HOOK_REJECTED", "Rejected by a hook"},
	[EA_ERR_CHECK_FAILED] = {400, "CHECK_FAILED", "Check failed"},
	[EA_ERR_REFUSED_BY_TABLE] =
	{400, "REFUSED_BY_TABLE", "Refused by the table"},
	[EA_ERR_VALUE_TOO_LARGE] = {400, "VALUE_TOO_LARGE", "Value too large"},
	[EA_ERR_WEAK_PASSWORD] = {400, "WEAK_PASSWORD", "Weak password"},
	[EA_ERR_INVITE_INVALID] = {400, "INVITE_INVALID", "Invalid invite"},
	[EA_ERR_TENANT_REQUIRED] = {400, "TENANT_REQUIRED", "Tenant required"},
	[EA_ERR_TWO_CREDENTIALS] =
	{400, "TWO_CREDENTIALS", "Ambiguous credentials"},
	[EA_ERR_ANSWER_TOO_LARGE] = {400, "ANSWER_TOO_LARGE", "Answer too large"},
	[EA_ERR_UNAUTHENTICATED] =
	{401, "UNAUTHENTICATED", "Authentication required"},
	[EA_ERR_INVALID_CREDENTIAL] =
	{401, "INVALID_CREDENTIAL", "Invalid credential"},
	[EA_ERR_LOGIN_FAILED] = {401, "LOGIN_FAILED", "Login failed"},
	[EA_ERR_FORBIDDEN] = {403, "FORBIDDEN", "Forbidden"},
	[EA_ERR_PASSWORD_CHANGE_REQUIRED] =
	{403, "PASSWORD_CHANGE_REQUIRED", "Password change required"},
	[EA_ERR_CLIENT_ID] =
	{403, "CLIENT_ID_NOT_ALLOWED", "Client-generated id not allowed"},
	[EA_ERR_TO_ONE] =
	{403, "TO_ONE_RELATIONSHIP", "Not possible on a to-one relationship"},
	[EA_ERR_NOT_FOUND] = {404, "NOT_FOUND", "Not found"},
	[EA_ERR_RELATED_NOT_FOUND] =
	{404, "RELATED_NOT_FOUND", "Related resource not found"},
	[EA_ERR_METHOD_NOT_ALLOWED] =
	{405, "METHOD_NOT_ALLOWED", "Method not allowed"},
	[EA_ERR_NOT_ACCEPTABLE] = {406, "NOT_ACCEPTABLE", "Not acceptable"},
	[EA_ERR_TYPE_CONFLICT] = {409, "TYPE_CONFLICT", "Resource type conflict"},
	[EA_ERR_ID_CONFLICT] = {409, "ID_CONFLICT", "Resource id conflict"},
	[EA_ERR_UNIQUE] = {409, "UNIQUE_VIOLATION", "Value already taken"},
	[EA_ERR_OVERLAP] = {409, "OVERLAP", "Overlap with another resource"},
	[EA_ERR_REFERENCED] =
	{409, "STILL_REFERENCED", "Resource is still referred to"},
	[EA_ERR_STILL_DELETED] =
	{409, "STILL_DELETED", "Needed resource is still deleted"},
	[EA_ERR_NOT_WRITTEN] = {409, "NOT_WRITTEN", "Not written"},
	[EA_ERR_GONE_BEYOND_LOG] =
	{410, "GONE_BEYOND_LOG", "Not in the audit log"},
	[EA_ERR_PRECONDITION_FAILED] =
	{412, "PRECONDITION_FAILED", "Precondition failed"},
	[EA_ERR_TOO_LARGE] = {413, "PAYLOAD_TOO_LARGE", "Payload too large"},
	[EA_ERR_URI_TOO_LONG] = {414, "URI_TOO_LONG", "URI too long"},
	[EA_ERR_UNSUPPORTED_MEDIA_TYPE] =
	{415, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type"},
	[EA_ERR_PRECONDITION_REQUIRED] =
	{428, "PRECONDITION_REQUIRED", "Precondition required"},
	[EA_ERR_THROTTLED] = {429, "THROTTLED", "Too many requests"},
	[EA_ERR_HEADERS_TOO_LARGE] =
	{431, "HEADERS_TOO_LARGE", "Request header fields too large"},
	[EA_ERR_INTERNAL] = {500, "INTERNAL_ERROR", "Internal error"},
	[EA_ERR_UNAVAILABLE] = {503, "UNAVAILABLE", "Service unavailable"}
};

static const char *const ea_source_member[] = {
	[EA_AT_NONE] = NULL,
	[EA_AT_POINTER] = "pointer",
	[EA_AT_PARAMETER] = "parameter",
	[EA_AT_HEADER] = "header"
};

static void note_problem(EaRequest *req, EaErrorCode code, EaSource source,
						 const char *where, const char *fmt, va_list args)
			pg_attribute_printf(5, 0);

static void
note_problem(EaRequest *req, EaErrorCode code, EaSource source,
			 const char *where, const char *fmt, va_list args)
{
	MemoryContext old = MemoryContextSwitchTo(req->mcxt);
	EaProblem  *problem = &req->problems[req->nproblems++];
	StringInfoData detail;

	initStringInfo(&detail);
	for (;;)
	{
		va_list		copy;
		int			needed;

		va_copy(copy, args);
		needed = appendStringInfoVA(&detail, fmt, copy);
		va_end(copy);
		if (needed == 0)
			break;
		enlargeStringInfo(&detail, needed);
	}
	problem->code = code;

	/* within atomic operations every fault is one of an operation's */
	if (req->writing.operation != NULL && source != EA_AT_POINTER)
	{
		source = EA_AT_POINTER;
		where = req->writing.operation;
	}
	problem->source = source;
	problem->where = where == NULL ? NULL : pstrdup(where);
	problem->detail = detail.data;
	MemoryContextSwitchTo(old);
}

void
ea_errors_add(EaRequest *req, EaErrorCode code, EaSource source,
			  const char *where, const char *fmt,...)
{
	va_list		args;

	if (req->nproblems >= EA_MAX_PROBLEMS)
		return;
	va_start(args, fmt);
	note_problem(req, code, source, where, fmt, args);
	va_end(args);
}

void
ea_errors_throw(EaRequest *req, EaErrorCode code, EaSource source,
				const char *where, const char *fmt,...)
{
	if (req->nproblems < EA_MAX_PROBLEMS)
	{
		va_list		args;

		va_start(args, fmt);
		note_problem(req, code, source, where, fmt, args);
		va_end(args);
	}
	ereport(ERROR, (errcode(ERRCODE_EA_REFUSED), errmsg("request refused")));
}

void
ea_errors_not_found(EaRequest *req)
{
	ea_errors_check(req);
	ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
					EA_NO_SUCH_RESOURCE);
}

void
ea_errors_check(EaRequest *req)
{
	if (req->nproblems > 0)
		ereport(ERROR,
				(errcode(ERRCODE_EA_REFUSED), errmsg("request refused")));
}

int
ea_errors_status(EaErrorCode code)
{
	return ea_error_table[code].status;
}

const char *
ea_errors_word(EaErrorCode code)
{
	return ea_error_table[code].word;
}

/*
 * Status of the whole answer: that of all faults when they agree, else the
 * general 400 (JSON:API "errors": the most generally applicable one).
 */
static int
common_status(EaRequest *req)
{
	int			status = ea_error_table[req->problems[0].code].status;

	for (int i = 1; i < req->nproblems; i++)
	{
		if (ea_error_table[req->problems[i].code].status != status)
			return 400;
	}
	return status;
}

static void
write_problem(EaRequest *req, const EaProblem *problem)
{
	const EaErrorKind *kind = &ea_error_table[problem->code];
	StringInfo	out = req->out;

	ea_jsonwrite_comma(out);
	ea_jsonwrite_lit(out, "{\"id\":");
	ea_jsonwrite_cstring(out, req->request_id);
	appendStringInfo(out,
					 ",\"status\":\"%d\",\"code\":\"%s\",\"title\":\"%s\"",
					 kind->status, kind->word, kind->title);
	ea_jsonwrite_key(out, "detail");
	ea_jsonwrite_cstring(out, problem->detail);
	if (problem->source != EA_AT_NONE)
	{
		ea_jsonwrite_lit(out, ",\"source\":{");
		ea_jsonwrite_key(out, ea_source_member[problem->source]);
		ea_jsonwrite_cstring(out, problem->where);
		ea_jsonwrite_lit(out, "}");
	}
	ea_jsonwrite_lit(out, "}");
}

void
ea_errors_write(EaRequest *req)
{
	Assert(req->nproblems > 0);

	req->status = common_status(req);
	resetStringInfo(req->out);
	ea_jsonwrite_lit(req->out, "{\"errors\":[");
	for (int i = 0; i < req->nproblems; i++)
		write_problem(req, &req->problems[i]);
	ea_jsonwrite_lit(req->out, "]}");

	/* RFC 6750 section 3 */
	if (req->status == 401)
		ea_request_answer(req, "www-authenticate",
						  req->problems[0].code == EA_ERR_INVALID_CREDENTIAL
						  ? "Bearer realm=\"entityapi\", "
						  "error=\"invalid_token\""
						  : "Bearer realm=\"entityapi\"");
}

char *
ea_errors_pointer(const char *base, const char *token)
{
	/* each may become two */
	char	   *pointer = palloc(strlen(base) + 2 * strlen(token) + 2);
	char	   *to = stpcpy(pointer, base);

	*to++ = '/';
	for (; *token; token++)
	{
		if (*token == '~')
			to = stpcpy(to, "~0");
		else if (*token == '/')
			to = stpcpy(to, "~1");
		else
			*to++ = *token;
	}
	*to = '\0';
	return pointer;
}

char *
ea_errors_index(const char *base, int index)
{
	return psprintf("%s/%d", base, index);
}

/* -------- errors of PostgreSQL's -------- */

/*
 * The texts that say where an error was raised are constants as a rule, so
 * ReThrowError() hands the pointers on.  In a copy they may be copies, too
 * (15.20 makes such), and gone with its memory: an SQL function or a block of
 * PL/pgSQL that is left frees all that was allocated within it before the
 * error is reported.  Nor may they be the error's own memory, which is emptied
 * when a block catches it with a server that copies none of them (16.2), and
 * throws it on.  An error is reported before its transaction ends.
 */
void
ea_errors_rethrow(ErrorData *edata)
{
	const char **const where[] = {
		&edata->filename, &edata->funcname, &edata->domain,
		&edata->context_domain, &edata->message_id
	};
	MemoryContext context = TopTransactionContext ? TopTransactionContext :
		ErrorContext;

	for (int i = 0; i < lengthof(where); i++)
	{
		if (*where[i] != NULL)
			*where[i] = MemoryContextStrdup(context, *where[i]);
	}
	ReThrowError(edata);
}
