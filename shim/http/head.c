/*
 * The head of a request: its lines and headers, nothing ambiguous.
 *
 * civetweb 1.15 parses the head in place: it overwrites the ends of words and
 * lines with NULs and leaves everything else where it was.  The distances
 * between its pointers therefore tell what stood between them, which is how
 * folded lines, bare line feeds and spaces before a colon are found.  How a
 * line really ended, and where the head did, wire.c has seen before.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "http/head.h"
#include "connections/wire.h"

/* Headers with a meaning here, and those that must not be repeated. */
static const struct
{
	const char *name;
	enum known_header known;
	bool		unique;
}			header_rules[] =
{
	{"host", HEADER_HOST, true},
	{"content-length", HEADER_CONTENT_LENGTH, true},
	{"transfer-encoding", HEADER_TRANSFER_ENCODING, true},
	{"authorization", HEADER_OTHER, true},
	{"x-api-key", HEADER_OTHER, true},
	{"if-match", HEADER_OTHER, true},
	{"content-type", HEADER_OTHER, true},
	{"expect", HEADER_EXPECT, true},
	{"upgrade", HEADER_UPGRADE, false},
	{"connection", HEADER_CONNECTION, false},
	{"x-request-id", HEADER_REQUEST_ID, false}
};

/* A character of a token (RFC 9110, section 5.6.2). */
static bool
is_token_char(char c)
{
	return isalnum((unsigned char) c) ||
		(c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Puts in the whole value for one that is not; returns how much that adds. */
static size_t
take_rest(struct header *header)
{
	size_t		before = header->value_length;

	return wire_lengthen(&header->value, &header->value_length) ?
		header->value_length - before : 0;
}

/*
 * Checks that the lines of the head are what they must be: single spaces in
 * the request line, every line ended by CR LF, names directly before their
 * colon, no folded line (which would hide all headers after it), and nothing
 * between the last header and the empty line.
 *
 * The last check looks at up to three bytes after the last value.  They lie in
 * civetweb's buffer: serve/server.c makes that larger than a head within the
 * limits checked here.
 */
static const struct refusal *
read_lines(const struct mg_request_info *info, const struct config *config,
			struct head *head)
{
	const char *target_end = info->query_string ? info->query_string :
		info->request_uri;
	const char *line_end = info->http_version + strlen(info->http_version);
	size_t		elsewhere = 0;	/* of a value that civetweb has in part */
	int			i;

	if (info->num_headers >= MG_MAX_HEADERS ||
		info->num_headers > config->max_headers)
		return &refusal_headers_too_large;

	target_end += strlen(target_end);
	if (target_end - info->request_uri > config->max_url)
		return &refusal_target_too_long;
	if (info->request_uri !=
		info->request_method + strlen(info->request_method) + 1 ||
		info->http_version != target_end + 1 + strlen("HTTP/"))
		return &refusal_bad_line;

	head->count = info->num_headers;
	for (i = 0; i < head->count; i++)
	{
		struct header *header = &head->headers[i];
		const char *name_end;
		const char *p;

		header->name = info->http_headers[i].name;
		header->value = info->http_headers[i].value;
		header->name_length = strlen(header->name);
		header->value_length = strlen(header->value);
		name_end = header->name + header->name_length;

		if (header->name != line_end + 2)
			return &refusal_bad_line;
		for (p = header->name; p < name_end; p++)
		{
			if (!is_token_char(*p))
				return &refusal_bad_line;
		}
		if (header->value > name_end + 1 && name_end[1] == '\0')
			return &refusal_bad_line;

		line_end = header->value + header->value_length;
		elsewhere += take_rest(header);
		if ((size_t) (line_end - head->headers[0].name) + elsewhere >
			(size_t) config->max_headers_bytes)
			return &refusal_headers_too_large;
		while (header->value_length > 0 &&
			   header->value[header->value_length - 1] == ' ')
			header->value_length--;
	}
	if (wire_is_shortened() && elsewhere == 0)
		return &refusal_bad_line;

	/* The request line's end swallows an empty line that follows at once. */
	if (line_end[1] != '\0' ||
		line_end[2] != (head->count > 0 ? '\r' : '\0') ||
		line_end[3] != '\0')
		return &refusal_bad_line;
	return NULL;
}

/* Notes the known headers, and refuses what must not be repeated. */
static const struct refusal *
find_known(struct head *head)
{
	const int	rule_count = sizeof(header_rules) / sizeof(header_rules[0]);
	unsigned	seen = 0;
	int			i;

	for (i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];
		enum known_header known;
		int			rule;

		if (!utf8_is_valid(header->value, header->value_length))
			return &refusal_bad_encoding;
		for (rule = 0; rule < rule_count; rule++)
		{
			/* letters differ from capitals by that bit */
			if ((header->name[0] | 0x20) == header_rules[rule].name[0] &&
				strcasecmp(header->name, header_rules[rule].name) == 0)
				break;
		}
		if (rule == rule_count)
			continue;
		if ((seen & (1u << rule)) && header_rules[rule].unique)
			return header_rules[rule].known == HEADER_HOST ?
				&refusal_bad_host : &refusal_repeated_header;
		known = header_rules[rule].known;
		if (known != HEADER_OTHER)
		{
			head->repeated[known] = head->known[known] != NULL;
			head->known[known] = header;
		}
		seen |= 1u << rule;
	}
	return NULL;
}

bool
header_is(const struct header *header, const char *value)
{
	return header->value_length == strlen(value) &&
		strncasecmp(header->value, value, header->value_length) == 0;
}

/* Whether a comma-separated list of tokens holds one, in any case. */
static bool
header_lists(const struct header *header, const char *token)
{
	const char *p = header->value;
	const char *end = p + header->value_length;
	size_t		length = strlen(token);

	while (p < end)
	{
		const char *comma = memchr(p, ',', (size_t) (end - p));
		const char *last = comma ? comma : end;

		while (p < last && *p == ' ')
			p++;
		while (last > p && last[-1] == ' ')
			last--;
		if ((size_t) (last - p) == length &&
			strncasecmp(p, token, length) == 0)
			return true;
		p = comma ? comma + 1 : end;
	}
	return false;
}

/* RFC 9112, section 3.2: exactly one, and nothing but a name and a port. */
const struct refusal *
head_check_host(const struct head *head, bool is_http_11)
{
	const struct header *host = head->known[HEADER_HOST];
	size_t		i;

	if (host == NULL)
		return is_http_11 ? &refusal_bad_host : NULL;
	if (host->value_length == 0)
		return &refusal_bad_host;
	for (i = 0; i < host->value_length; i++)
	{
		char		c = host->value[i];

		if (!isalnum((unsigned char) c) && strchr("-._~:[]%", c) == NULL)
			return &refusal_bad_host;
	}
	return NULL;
}

/* How the body is framed (RFC 9112, section 6), with nothing ambiguous. */
const struct refusal *
head_check_framing(struct head *head, const char *method, bool is_http_11)
{
	static const char *const need_length[] = {"POST", "PATCH", "PUT"};
	const struct header *length = head->known[HEADER_CONTENT_LENGTH];
	const struct header *transfer = head->known[HEADER_TRANSFER_ENCODING];
	size_t		i;

	head->is_chunked = transfer != NULL;
	head->length = 0;
	if (transfer != NULL)
	{
		if (length != NULL || !is_http_11 || !header_is(transfer, "chunked"))
			return &refusal_bad_transfer;
		return NULL;
	}
	if (length != NULL)
	{
		if (length->value_length < 1 || length->value_length > 10)
			return &refusal_bad_length;
		for (i = 0; i < length->value_length; i++)
		{
			if (!isdigit((unsigned char) length->value[i]))
				return &refusal_bad_length;
			head->length = head->length * 10 + (length->value[i] - '0');
		}
		return NULL;
	}
	for (i = 0; i < sizeof(need_length) / sizeof(need_length[0]); i++)
	{
		if (strcmp(method, need_length[i]) == 0)
			return &refusal_length_required;
	}
	return NULL;
}

/* Whether the client, and the framing, allow another request. */
bool
head_allows_reuse(const struct head *head, bool is_http_11)
{
	const struct header *connection = head->known[HEADER_CONNECTION];

	/*
	 * civetweb looks at the first Connection header only, so two of them are
	 * one too many; and a chunked body may have trailers that it leaves
	 * behind.
	 */
	if (!is_http_11 || head->is_chunked || head->repeated[HEADER_CONNECTION])
		return false;
	return connection == NULL ||
		(header_lists(connection, "keep-alive") &&
		 !header_lists(connection, "close"));
}

const char *
head_end(const struct mg_request_info *info)
{
	const char *last = info->num_headers == 0 ? info->http_version :
		info->http_headers[info->num_headers - 1].value;

	return last + strlen(last) + strlen("\r\n\r\n");
}

const struct refusal *
head_read(struct head *head, const struct mg_request_info *info,
		  const struct config *config)
{
	const struct refusal *refusal;

	memset(head->known, 0, sizeof(head->known));
	memset(head->repeated, 0, sizeof(head->repeated));
	refusal = read_lines(info, config, head);
	if (refusal == NULL)
		refusal = find_known(head);
	if (refusal == NULL && !wire_lines_are_good(head_end(info)))
		refusal = &refusal_bad_line;
	return refusal;
}
