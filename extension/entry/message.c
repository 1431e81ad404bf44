#include "postgres.h"

#include <sys/socket.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/inet.h"
#include "utils/jsonb.h"

#include "base/compat.h"
#include "base/jsonwrite.h"
#include "base/text.h"
#include "entry/message.h"

/* Headers with this prefix are for the shim, and go no further. */
#define PRIVATE_PREFIX "x-entityapi-"

#define READS_ONLY PRIVATE_PREFIX "reads-only: "

/* Names that are not simply capitalised word by word. */
static const struct
{
	const char *lower;
	const char *usual;
}			usual_names[] =
{
	{"etag", "ETag"},
	{"www-authenticate", "WWW-Authenticate"}
};

/*
 * The client's address.  One of IPv4 that is written as one of IPv6, as
 * systems do that listen for both (RFC 4291, section 2.5.5.2), is the one of
 * IPv4 from here on: otherwise all clients would be one network.
 */
static void
take_remote(EaRequest *req, Datum remote)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	inet	   *address = DatumGetInetPP(remote);

	if (ip_family(address) == PGSQL_AF_INET6 &&
		ip_bits(address) >= BITS_PER_BYTE * sizeof(mapped) &&
		memcmp(ip_addr(address), mapped, sizeof(mapped)) == 0)
	{
		inet	   *plain = palloc0(sizeof(inet));

		ip_family(plain) = PGSQL_AF_INET;
		ip_bits(plain) = ip_bits(address) - BITS_PER_BYTE * sizeof(mapped);
		memcpy(ip_addr(plain), ip_addr(address) + sizeof(mapped), 4);
		SET_INET_VARSIZE(plain);
		address = plain;
	}
	req->remote = DatumGetCString(DirectFunctionCall1(inet_out,
													  InetPGetDatum(address)));
}

/*
 * Four numbers without zeros before them are written by inet_out() as they are
 * read by inet_in().
 */
static bool
is_plain_ipv4(const char *text)
{
	for (int i = 0; i < 4; i++)
	{
		const char *start = text;
		int			number = 0;

		for (; *text >= '0' && *text <= '9' && text - start < 3; text++)
			number = number * 10 + (*text - '0');
		if (text == start || number > 255 ||
			(*start == '0' && text - start > 1) ||
			*text++ != (i < 3 ? '.' : '\0'))
			return false;
	}
	return true;
}

/* -------- as SQL has it -------- */

static void
add_header(EaRequest *req, const char *name, const JsonbValue *value)
{
	EaHeader   *header;

	if (value->type != jbvString)
		return;
	header = &req->headers[req->nheaders++];
	header->name = name;
	header->value = pnstrdup(value->val.string.val, value->val.string.len);
}

/*
 * Headers of a JSON object; a value is a string, or an array of strings for a
 * header sent more than once.
 */
static void
read_headers(EaRequest *req, Jsonb *jsonb)
{
	JsonbIterator *it = JsonbIteratorInit(&jsonb->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	const char *name = NULL;
	int			depth = 0;

	if (!JB_ROOT_IS_OBJECT(jsonb))
		return;

	/* no header takes less than its name, quotes and all */
	req->headers = palloc(sizeof(EaHeader) * VARSIZE(jsonb) /
						  sizeof(JEntry));
	while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
			case WJB_BEGIN_OBJECT:
			case WJB_BEGIN_ARRAY:
				depth++;
				break;
			case WJB_END_OBJECT:
			case WJB_END_ARRAY:
				depth--;
				break;
			case WJB_KEY:
				if (depth == 1)
					name = pnstrdup(value.val.string.val,
									value.val.string.len);
				break;
			case WJB_VALUE:
				if (depth == 1)
					add_header(req, name, &value);
				break;
			case WJB_ELEM:
				if (depth == 2)
					add_header(req, name, &value);
				break;
			default:
				break;
		}
	}
}

char *
ea_message_read_arguments(EaRequest *req, FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("method and target must not be null")));
	req->target = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (!PG_ARGISNULL(2))
		read_headers(req, PG_GETARG_JSONB_P(2));
	if (!PG_ARGISNULL(3))
	{
		bytea	   *body = PG_GETARG_BYTEA_PP(3);

		req->body = VARDATA_ANY(body);
		req->body_len = VARSIZE_ANY_EXHDR(body);
	}
	if (!PG_ARGISNULL(4))
		take_remote(req, PG_GETARG_DATUM(4));
	return text_to_cstring(PG_GETARG_TEXT_PP(0));
}

static Datum
headers_jsonb(const EaRequest *req)
{
	StringInfoData buf;

	initStringInfo(&buf);
	ea_jsonwrite_lit(&buf, "{");
	for (int i = 0; i < req->nanswer; i++)
	{
		ea_jsonwrite_key(&buf, req->answer[i].name);
		ea_jsonwrite_cstring(&buf, req->answer[i].value);
	}
	ea_jsonwrite_lit(&buf, "}");
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

Datum
ea_message_write_record(EaRequest *req, FunctionCallInfo fcinfo)
{
	TupleDesc	desc;
	Datum		values[3];
	bool		isnull[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "handle() must return a record");
	values[0] = Int32GetDatum(req->status);
	values[1] = headers_jsonb(req);
	isnull[2] = req->out->len == 0;
	if (!isnull[2])
		values[2] = PointerGetDatum(cstring_to_text_with_len(req->out->data,
															 req->out->len));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values,
											 isnull));
}

/* -------- as the shim has it -------- */

static void
refuse_message(const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("this is no request message: %s", why)));
}

/*
 * Cut the text at *p off at its first "end" before the line's end, and move
 * on behind it.
 */
static char *
take_word(char **p, char end)
{
	char	   *word = *p;
	char	   *stop = strpbrk(word, end == ' ' ? " \n" : "\n");

	if (stop == NULL || *stop != end)
		refuse_message("a line is cut short");
	*stop = '\0';
	*p = stop + 1;
	return word;
}

static void
read_header_lines(EaRequest *req, char *p, int nlines)
{
	req->headers = palloc(nlines * sizeof(EaHeader));
	while (*p != '\0')
	{
		char	   *line = take_word(&p, '\n');
		char	   *colon = strstr(line, ": ");

		if (colon == NULL)
			refuse_message("a header has no value");
		*colon = '\0';
		req->headers[req->nheaders].name = line;
		req->headers[req->nheaders].value = colon + 2;
		req->nheaders++;
	}
}

/* Clients cannot come first: the request's id goes before their headers. */
static bool
take_reads_only(char **p)
{
	const int	len = strlen(READS_ONLY);

	return strncmp(*p, READS_ONLY, len) == 0 &&
		strcmp(take_word(p, '\n') + len, "1") == 0;
}

char *
ea_message_read(EaRequest *req, bytea *message)
{
	char	   *bytes = VARDATA_ANY(message);
	int			size = VARSIZE_ANY_EXHDR(message);
	int			head = 0;
	int			nlines = 0;
	char	   *p;
	char	   *method;
	char	   *remote;

	/* up to the empty line; it has none before its first line */
	do
	{
		char	   *line_end = memchr(bytes + head, '\n', size - head);

		if (line_end == NULL)
			refuse_message("no empty line ends its head");
		head = line_end + 1 - bytes;
		nlines++;
	} while (head == size || bytes[head] != '\n');

	/* this is text, as if it had come in as such */
	if (!ea_text_is_ascii(bytes, head))
		pg_verifymbstr(bytes, head, false);
	p = pnstrdup(bytes, head);
	method = take_word(&p, ' ');
	req->target = take_word(&p, ' ');
	remote = take_word(&p, '\n');
	if (is_plain_ipv4(remote))
		req->remote = remote;
	else if (strcmp(remote, "-") != 0)
		take_remote(req, DirectFunctionCall1(inet_in,
											 CStringGetDatum(remote)));
	req->reads_only = take_reads_only(&p);
	read_header_lines(req, p, nlines);
	if (size > head + 1)
	{
		req->body = bytes + head + 1;
		req->body_len = size - head - 1;
	}
	return method;
}

static bool
is_private(const char *name)
{
	return name[0] == 'x' &&
		strncmp(name, PRIVATE_PREFIX, strlen(PRIVATE_PREFIX)) == 0;
}

/* A field name in its usual spelling. */
static void
append_name(StringInfo buf, const char *name)
{
	int			start = buf->len;
	char	   *p;

	for (int i = 0; i < lengthof(usual_names); i++)
	{
		if (name[0] == usual_names[i].lower[0] &&
			strcmp(name, usual_names[i].lower) == 0)
		{
			ea_text_string(buf, usual_names[i].usual);
			return;
		}
	}
	ea_text_string(buf, name);
	for (p = buf->data + start; p != NULL; p = strchr(p, '-'))
	{
		if (*p == '-')
			p++;
		*p = pg_ascii_toupper(*p);
	}
}

static bool
has_control(const char *value, int len)
{
	for (; len >= EA_TEXT_WORD; value += EA_TEXT_WORD, len -= EA_TEXT_WORD)
	{
		if (ea_text_any_control(ea_text_word(value)))
			return true;
	}
	for (; len > 0; value++, len--)
	{
		if ((unsigned char) *value < ' ' || *value == 0x7f)
			return true;
	}
	return false;
}

/* A value, which must not break out of its line. */
static void
append_value(StringInfo buf, const char *value)
{
	int			len = strlen(value);

	if (has_control(value, len))
		elog(ERROR, "a header of the answer has control characters");
	ea_text_bytes(buf, value, len);
}

bytea *
ea_message_write(const EaRequest *req)
{
	StringInfoData buf;

	initStringInfo(&buf);
	enlargeStringInfo(&buf, VARHDRSZ + 1024 + req->out->len);
	buf.len = VARHDRSZ;
	buf.len += pg_ltoa(req->status, buf.data + buf.len);
	ea_jsonwrite_lit(&buf, "\n");
	for (int i = 0; i < req->nanswer; i++)
	{
		const EaHeader *header = &req->answer[i];

		if (!is_private(header->name) || header->value == NULL)
			continue;
		ea_text_string(&buf, header->name);
		ea_jsonwrite_lit(&buf, ": ");
		append_value(&buf, header->value);
		ea_jsonwrite_lit(&buf, "\n");
	}
	ea_jsonwrite_lit(&buf, "\n");
	for (int i = 0; i < req->nanswer; i++)
	{
		const EaHeader *header = &req->answer[i];

		if (is_private(header->name) || header->value == NULL)
			continue;
		append_name(&buf, header->name);
		ea_jsonwrite_lit(&buf, ": ");
		append_value(&buf, header->value);
		ea_jsonwrite_lit(&buf, "\r\n");
	}
	ea_jsonwrite_lit(&buf, "\r\n");
	ea_text_bytes(&buf, req->out->data, req->out->len);
	SET_VARSIZE(buf.data, buf.len);
	return (bytea *) buf.data;
}
