#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "http/head.h"

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
	{"content-encoding", HEADER_CONTENT_ENCODING, true},
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

void
head_start(struct head *head)
{
	/* the headers are written before they are read */
	head->method[0] = '\0';
	head->target = head->authority = NULL;
	head->target_length = head->authority_length = head->size = 0;
	head->is_http_11 = false;
	head->area = AREA_OTHER;
	head->count = 0;
	memset(head->known, 0, sizeof(head->known));
	memset(head->repeated, 0, sizeof(head->repeated));
	head->is_chunked = head->expects = false;
	head->length = head->limit = 0;
}

bool
header_is_named(const struct header *header, const char *name)
{
	return header->name_length == strlen(name) &&
		strncasecmp(header->name, name, header->name_length) == 0;
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

		while (p < last && (*p == ' ' || *p == '\t'))
			p++;
		while (last > p && (last[-1] == ' ' || last[-1] == '\t'))
			last--;
		if ((size_t) (last - p) == length &&
			strncasecmp(p, token, length) == 0)
			return true;
		p = comma ? comma + 1 : end;
	}
	return false;
}

/* -------- the target -------- */

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char) tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *
head_path_rest(const char *target, size_t length, const char *path)
{
	const char *end = target + length;

	for (; *path != '\0'; path++)
	{
		char		c;

		if (target == end)
			return NULL;
		c = *target++;
		if (c == '%' && end - target >= 2 && hex_value(target[0]) >= 0 &&
			hex_value(target[1]) >= 0)
		{
			c = (char) (hex_value(target[0]) * 16 + hex_value(target[1]));
			target += 2;
		}
		if (c != *path)
			return NULL;
	}
	return target;
}

/* Whether the path is that one, or goes on behind it with a slash. */
static bool
is_below(const struct head *head, const char *path)
{
	const char *rest = head_path_rest(head->target, head->target_length,
									  path);

	return rest != NULL && (rest == head->target + head->target_length ||
							*rest == '?' || *rest == '/');
}

static enum request_area
area_of(const struct head *head)
{
	if (is_below(head, "/api"))
		return AREA_API;
	if (is_below(head, "/auth") || is_below(head, "/manage"))
		return AREA_ACCOUNTS;
	return AREA_OTHER;
}

/* -------- the headers -------- */

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

		for (rule = 0; rule < rule_count; rule++)
		{
			/* letters differ from capitals by that bit */
			if ((header->name[0] | 0x20) == header_rules[rule].name[0] &&
				header_is_named(header, header_rules[rule].name))
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

/*
 * RFC 9112, section 3.2: exactly one host, a name and perhaps a port; and what
 * the target says of it is the same.
 */
static const struct refusal *
check_host(const struct head *head)
{
	const struct header *host = head->known[HEADER_HOST];
	size_t		i;

	if (host == NULL)
		return head->is_http_11 ? &refusal_bad_host :
			head->authority != NULL ? &refusal_bad_target : NULL;
	if (host->value_length == 0)
		return &refusal_bad_host;
	for (i = 0; i < host->value_length; i++)
	{
		char		c = host->value[i];

		if (!isalnum((unsigned char) c) && strchr("-._~:[]%", c) == NULL)
			return &refusal_bad_host;
	}
	return head->authority == NULL ||
		(head->authority_length == host->value_length &&
		 strncasecmp(head->authority, host->value, host->value_length) == 0) ?
		NULL : &refusal_bad_target;
}

static const struct refusal *
read_length(struct head *head, const struct header *header)
{
	size_t		i;

	if (header->value_length < 1 || header->value_length > 10)
		return &refusal_bad_length;
	for (i = 0; i < header->value_length; i++)
	{
		if (!isdigit((unsigned char) header->value[i]))
			return &refusal_bad_length;
		head->length = head->length * 10 + (size_t) (header->value[i] - '0');
	}
	return NULL;
}

/* How the body is framed (RFC 9112, section 6), with nothing ambiguous. */
static const struct refusal *
check_framing(struct head *head)
{
	static const char *const need_length[] = {"POST", "PATCH", "PUT"};
	const struct header *length = head->known[HEADER_CONTENT_LENGTH];
	const struct header *transfer = head->known[HEADER_TRANSFER_ENCODING];
	size_t		i;

	head->is_chunked = transfer != NULL;
	if (transfer != NULL)
	{
		if (length != NULL || !head->is_http_11 ||
			!header_is(transfer, "chunked"))
			return &refusal_bad_transfer;
		return NULL;
	}
	if (length != NULL)
		return read_length(head, length);
	for (i = 0; i < sizeof(need_length) / sizeof(need_length[0]); i++)
	{
		if (strcmp(head->method, need_length[i]) == 0)
			return &refusal_length_required;
	}
	return NULL;
}

const struct refusal *
head_check(struct head *head, const struct config *config)
{
	const struct refusal *refusal;
	const struct header *encoding;
	const struct header *expect;

	head->area = area_of(head);
	head->limit = (size_t) (head->area == AREA_ACCOUNTS ?
							config->max_body_auth : config->max_body);
	if ((refusal = find_known(head)) != NULL ||
		(refusal = check_host(head)) != NULL)
		return refusal;
	if (head->known[HEADER_UPGRADE] != NULL)
		return &refusal_upgrade;
	if ((refusal = check_framing(head)) != NULL)
		return refusal;
	if (head->length > head->limit)
		return &refusal_body_too_large;
	encoding = head->known[HEADER_CONTENT_ENCODING];
	if (encoding != NULL && !header_is(encoding, "identity"))
		return &refusal_encoding;
	expect = head->known[HEADER_EXPECT];
	if (expect == NULL || !head->is_http_11)
		return NULL;
	head->expects = head->is_chunked || head->length > 0;
	return header_is(expect, "100-continue") ? NULL : &refusal_expectation;
}

bool
head_allows_reuse(const struct head *head)
{
	const struct header *connection = head->known[HEADER_CONNECTION];

	/* what follows the last chunk of a body is not looked at */
	if (!head->is_http_11 || head->is_chunked ||
		head->repeated[HEADER_CONNECTION])
		return false;
	return connection == NULL ||
		(header_lists(connection, "keep-alive") &&
		 !header_lists(connection, "close"));
}
