/*
 * A line ends with CR LF, and neither of the two is anywhere else.  Two empty
 * lines may come before a request (section 2.2).  No line is folded, no name
 * has a blank before its colon.
 */
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "http/parse.h"

/* Empty lines that are passed over before a request. */
#define EMPTY_LINES 2

#define VERSION_LENGTH (sizeof("HTTP/1.1") - 1)

/* -------- lines -------- */

/* A line that has ended before "end". */
static enum lines_state
take_line(struct lines *lines, const char *bytes, size_t end)
{
	const char *line = bytes + lines->line;
	size_t		length = end - lines->line;

	lines->line = lines->seen = end;
	if (length < 2 || line[length - 2] != '\r' ||
		memchr(line, '\r', length - 2) != NULL)
		return LINES_BAD;
	if (length > 2)
		lines->begun = true;
	else if (lines->begun)
		return LINES_WHOLE;
	else if (++lines->empty > EMPTY_LINES)
		return LINES_BAD;
	return LINES_MORE;
}

enum lines_state
lines_look(struct lines *lines, const char *bytes, size_t length)
{
	size_t		most = length < PARSE_MOST ? length : PARSE_MOST;
	enum lines_state state = LINES_MORE;

	while (state == LINES_MORE && lines->seen < most)
	{
		const char *feed = memchr(bytes + lines->seen, '\n',
								  most - lines->seen);

		if (feed != NULL)
			state = take_line(lines, bytes, (size_t) (feed - bytes) + 1);
		else
			lines->seen = most;
	}
	return state == LINES_MORE && most == PARSE_MOST ? LINES_TOO_LONG : state;
}

/* -------- the request line -------- */

/*
 * Any method will do that is a word of capitals: which ones there are at an
 * address, others know.  But CONNECT is none of a request for a resource.
 */
static bool
read_method(struct head *head, const char *line, size_t length)
{
	size_t		n = 0;

	while (n < length && n < METHOD_SIZE - 1 &&
		   ((line[n] >= 'A' && line[n] <= 'Z') || (n > 0 && line[n] == '-')))
		n++;
	if (n == 0 || n == length || line[n] != ' ')
		return false;
	memcpy(head->method, line, n);
	head->method[n] = '\0';
	return strcmp(head->method, "CONNECT") != 0;
}

/*
 * The absolute form (section 3.2.2): the authority has to be the Host, and
 * what follows it is the target.
 */
static bool
read_absolute(struct head *head)
{
	static const char *const schemes[] = {"http://", "https://"};
	const char *end = head->target + head->target_length;
	const char *at = NULL;
	size_t		i;

	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
	{
		size_t		length = strlen(schemes[i]);

		if (head->target_length > length &&
			strncasecmp(head->target, schemes[i], length) == 0)
			at = head->target + length;
	}
	if (at == NULL)
		return false;
	head->authority = at;
	while (at < end && *at != '/' && *at != '?')
		at++;
	head->authority_length = (size_t) (at - head->authority);
	head->target = at;
	head->target_length = (size_t) (end - at);
	return head->authority_length > 0;
}

static const struct refusal *
read_target(struct head *head, const struct config *config)
{
	unsigned char bits = 0;
	size_t		i;

	if (head->target_length > (size_t) config->max_url)
		return &refusal_target_too_long;
	for (i = 0; i < head->target_length; i++)
	{
		unsigned char c = (unsigned char) head->target[i];

		bits |= c;
		if (c <= ' ' || c == 0x7f)
			return &refusal_bad_line;
		if (c == '#')
			return &refusal_bad_target;
	}
	if (bits > 0x7f && !utf8_is_valid(head->target, head->target_length))
		return &refusal_bad_target;
	return (head->target_length > 0 && head->target[0] == '/') ||
		read_absolute(head) ? NULL : &refusal_bad_target;
}

static const struct refusal *
read_version(struct head *head, const char *version, size_t length)
{
	if (length != VERSION_LENGTH || memcmp(version, "HTTP/", 5) != 0 ||
		version[5] < '0' || version[5] > '9' || version[6] != '.' ||
		version[7] < '0' || version[7] > '9')
		return &refusal_bad_line;
	head->is_http_11 = memcmp(version + 5, "1.1", 3) == 0;
	return head->is_http_11 || memcmp(version + 5, "1.0", 3) == 0 ? NULL :
		&refusal_version;
}

static const struct refusal *
read_request_line(struct head *head, const char *line, size_t length,
				  const struct config *config)
{
	const char *end = line + length;
	const char *space;
	const struct refusal *refusal;

	if (!read_method(head, line, length))
		return &refusal_malformed;
	head->target = line + strlen(head->method) + 1;
	space = memchr(head->target, ' ', (size_t) (end - head->target));
	if (space == NULL)
	{
		head->target = NULL;
		return &refusal_bad_line;
	}
	head->target_length = (size_t) (space - head->target);
	refusal = read_target(head, config);
	return refusal ? refusal :
		read_version(head, space + 1, (size_t) (end - space - 1));
}

/* -------- headers -------- */

/* A character of a token (RFC 9110, section 5.6.2). */
static bool
is_token_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') ||
		(c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A value has no control characters but tabs, and is UTF-8. */
static const struct refusal *
check_value(const struct header *header)
{
	size_t		i;

	if (text_is_printable(header->value, header->value_length))
		return NULL;
	for (i = 0; i < header->value_length; i++)
	{
		unsigned char c = (unsigned char) header->value[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return &refusal_bad_line;
	}
	return utf8_is_valid(header->value, header->value_length) ? NULL :
		&refusal_bad_encoding;
}

static const struct refusal *
read_header(struct header *header, const char *line, size_t length)
{
	const char *end = line + length;
	size_t		n = 0;

	while (n < length && is_token_char((unsigned char) line[n]))
		n++;
	if (n == 0 || n == length || line[n] != ':')
		return &refusal_bad_line;
	header->name = line;
	header->name_length = n;
	line += n + 1;
	while (line < end && is_blank(*line))
		line++;
	while (end > line && is_blank(end[-1]))
		end--;
	header->value = line;
	header->value_length = (size_t) (end - line);
	return check_value(header);
}

void
parse_start(struct head *head, const char *bytes, size_t length)
{
	while (length >= 2 && bytes[0] == '\r' && bytes[1] == '\n')
		bytes += 2, length -= 2;
	head_start(head);
	if (!read_method(head, bytes, length))
		head->method[0] = '\0';
}

const struct refusal *
parse_head(struct head *head, const char *bytes, size_t size,
		   const struct config *config)
{
	const char *end = bytes + size - 2; /* of the lines, but the empty one */
	const struct refusal *refusal;
	const char *line_end;
	const char *headers;

	head_start(head);
	head->size = size;
	while (bytes[0] == '\r')
		bytes += 2;
	line_end = memchr(bytes, '\r', (size_t) (end - bytes));
	refusal = read_request_line(head, bytes, (size_t) (line_end - bytes),
								config);
	if (refusal != NULL)
		return refusal;
	headers = line_end + 2;
	for (bytes = headers; bytes < end; bytes = line_end + 2)
	{
		if (head->count == config->max_headers || head->count == HEAD_HEADERS)
			return &refusal_headers_too_large;
		line_end = memchr(bytes, '\r', (size_t) (end - bytes));
		refusal = read_header(&head->headers[head->count], bytes,
							  (size_t) (line_end - bytes));
		if (refusal != NULL)
			return refusal;
		head->count++;
	}
	return end - headers > config->max_headers_bytes ?
		&refusal_headers_too_large : NULL;
}
