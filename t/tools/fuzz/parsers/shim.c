/*
 * Targets of the shim: heads, chunks, codings, addresses, traces and
 * manifests.  FUZZ_TARGET of the environment chooses one.
 *
 * A head reaches the shim as civetweb has parsed it in place, and http/head.c
 * concludes from the distances between its pointers.  That parser is none of
 * the library's functions, so it is written down here once more, as it is in
 * civetweb 1.15 and 1.16; t/tools/fuzz/requests.pl sends heads through the
 * library.
 */
#include <ctype.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/address.h"
#include "base/calls.h"
#include "base/json_read.h"
#include "command/manifest_json.h"
#include "command/manifest_yaml.h"
#include "http/chunks.h"
#include "http/encoding.h"
#include "http/head.h"
#include "http/trace.h"
#include "connections/whole.h"
#include "connections/wire.h"

#define must_hold(condition) \
	((condition) ? (void) 0 : fault(#condition, __LINE__))

static void
fault(const char *what, int line)
{
	fprintf(stderr, "shim.c:%d: does not hold: %s\n", line, what);
	abort();
}

/* The bytes with NULs behind them, and nothing more. */
static char *
copy(const uint8_t *bytes, size_t length, size_t nuls)
{
	char	   *text = calloc(1, length + nuls + 1);

	memcpy(text, bytes, length);
	return text;
}

/* -------- heads, as civetweb has them -------- */

/* Nothing is received here, and the system's own calls are nobody's. */
const struct calls calls_real;

static size_t
head_length(const char *text, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c < 128 && c != '\r' && c != '\n' && !isprint(c))
			return 0;
		if (text[i] == '\n' && text[i + 1] == '\n')
			return i + 2;
		if (i + 3 < length && memcmp(text + i, "\r\n\r\n", 4) == 0)
			return i + 4;
	}
	return 0;
}

static bool
end_word(char **at, bool of_line)
{
	while ((unsigned char) **at > 127 || isgraph((unsigned char) **at))
		(*at)++;
	if (of_line ? **at != '\r' && **at != '\n' : **at != ' ')
		return false;
	do
		*(*at)++ = '\0';
	while (isspace((unsigned char) **at));
	return of_line || isgraph((unsigned char) **at);
}

static int
parse_headers(char *at, struct mg_header *headers)
{
	int			count = 0;

	while (count < MG_MAX_HEADERS)
	{
		char	   *name = at;

		while (*at != ':' && *at >= 33 && *at <= 126)
			at++;
		if (at == name)
			break;
		while (*at == ' ')
			*at++ = '\0';
		if (*at != ':')
			return -1;
		*at++ = '\0';
		while (*at == ' ' || *at == '\t')
			at++;
		headers[count].name = name;
		headers[count++].value = at;
		at += strcspn(at, "\r\n");
		if (*at == '\r')
		{
			*at++ = '\0';
			if (*at != '\n')
				return -1;
		}
		if (*at == '\0')
			break;
		*at++ = '\0';
		if (*at == '\r' || *at == '\n')
			break;
	}
	return count;
}

static bool
parse_head(char *at, size_t length, struct mg_request_info *info)
{
	static const char methods[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char	   *query;

	memset(info, 0, sizeof(*info));
	while (length > 0 && isspace((unsigned char) *at))
		at++, length--;
	length = head_length(at, length);
	if (length == 0 || iscntrl((unsigned char) *at))
		return false;
	at[length - 1] = '\0';
	info->request_method = at;
	if (!end_word(&at, false) || strspn(info->request_method, methods) !=
		strlen(info->request_method))
		return false;
	info->request_uri = at;
	if (!end_word(&at, false))
		return false;
	info->http_version = at;
	if (!end_word(&at, true) || strncmp(info->http_version, "HTTP/", 5) != 0)
		return false;
	info->http_version += 5;
	info->num_headers = parse_headers(at, info->http_headers);
	query = strchr((char *) info->request_uri, '?');
	if (query != NULL)
	{
		*query = '\0';
		info->query_string = query + 1;
	}
	return info->num_headers >= 0;
}

/*
 * What is accepted has no second reading: its lines, put together again with
 * single spaces, are the head that came.  Only of the request line's end no
 * more is known than that it has two characters, as civetweb overwrites it;
 * and, without headers, that it has at least four.
 */
static void
must_be_plain(const char *sent, size_t length, const struct head *head,
			  const struct mg_request_info *info)
{
	struct buffer again = {0};

	buffer_printf(&again, "%s %s%s%s HTTP/%s", info->request_method,
				  info->request_uri, info->query_string ? "?" : "",
				  info->query_string ? info->query_string : "",
				  info->http_version);
	must_hold(again.length <= length &&
			  memcmp(again.data, sent, again.length) == 0);
	must_hold(strchr("\r\n", sent[again.length]) != NULL &&
			  isspace((unsigned char) sent[again.length + 1]));
	buffer_append(&again, sent + again.length, 2);
	for (int i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];
		const char *line = sent + again.length;
		const char *end = strstr(line, "\r\n");
		const char *value = line + header->name_length + 1;

		must_hold(end != NULL);
		must_hold(memcmp(line, header->name, header->name_length) == 0);
		must_hold(value[-1] == ':');
		value += strspn(value, " \t");
		must_hold(memcmp(value, header->value, header->value_length) == 0);
		value += header->value_length;
		must_hold(strspn(value, " ") == (size_t) (end - value));
		buffer_append(&again, line, (size_t) (end + 2 - line));
	}
	must_hold(head->count == 0 ||
			  strncmp(sent + again.length, "\r\n", 2) == 0);
	buffer_free(&again);
}

/*
 * What the loop took for one request, and all of it, is that for who reads it:
 * nothing is left over, nothing is waited for, and its connection goes on.
 */
static void
must_be_whole(const struct head *head, size_t head_size, size_t size)
{
	must_hold(!head->is_chunked);
	must_hold(head_size + (size_t) head->length == size);
	must_hold(head->known[HEADER_EXPECT] == NULL);
	must_hold(head->known[HEADER_UPGRADE] == NULL);
	must_hold(head_allows_reuse(head, true));
}

static const struct config config = {.max_headers = 40, .max_url = 300,
.max_headers_bytes = 1000};

/*
 * Without the end of its credential a head is read as it is with it: by the
 * same headers, or for the same reason not at all.
 */
static void
must_read_same(const uint8_t *bytes, size_t length,
			   const struct whole_rest *rest, const struct head *head,
			   const struct refusal *refusal)
{
	const size_t place = (size_t) (rest->value - (const char *) bytes);
	const size_t first = place + rest->value_length - rest->length;
	struct mg_request_info info;
	struct head shorter;
	char	   *text;

	text = copy(bytes, length - rest->length, 4);
	memcpy(text + first, bytes + first + rest->length,
		   length - first - rest->length);
	wire_begin();
	wire_received(0, text, length - rest->length);
	wire_shorten(place, rest->value, rest->value_length);
	must_hold(parse_head(text, length - rest->length, &info));
	must_hold(head_read(&shorter, &info, &config) == refusal);
	for (int i = 0; refusal == NULL && i < head->count; i++)
	{
		const struct header *one = &head->headers[i];
		const struct header *other = &shorter.headers[i];

		must_hold(shorter.count == head->count);
		must_hold(strcmp(one->name, other->name) == 0);
		must_hold(one->value_length == other->value_length);
		must_hold(memcmp(one->value, other->value, one->value_length) == 0);
	}
	wire_begin();
	free(text);
}

static void
run_head(const uint8_t *bytes, size_t length)
{
	struct whole_rest rest;
	const bool	is_whole = whole_request((const char *) bytes, length, &rest);
	const size_t size = length;
	struct mg_request_info info;
	struct head head;
	char	   *text;
	char	   *sent;
	char	   *start;
	size_t		spaces = 0;
	bool		is_parsed;
	const struct refusal *refusal = NULL;

	/* A body may begin with bytes that look like the end of the head. */
	while (spaces < length && isspace(bytes[spaces]))
		spaces++;
	length = spaces + head_length((const char *) bytes + spaces,
								  length - spaces);
	text = copy(bytes, length, 4);
	sent = copy(bytes, length, 4);
	start = sent + spaces;
	wire_begin();
	wire_received(0, text, length);
	is_parsed = parse_head(text, length, &info);
	if (is_parsed)
		refusal = head_read(&head, &info, &config);
	if (is_parsed && is_whole && rest.length > 0)
		must_read_same(bytes, length, &rest, &head, refusal);
	if (is_parsed && refusal == NULL)
	{
		bool		is_11 = strcmp(info.http_version, "1.1") == 0;

		must_be_plain(start, strlen(start), &head, &info);
		head_check_host(&head, is_11);
		if (head_check_framing(&head, info.request_method, is_11) == NULL)
		{
			must_hold(head.length >= 0 && head.length <= 9999999999LL);
			if (is_whole)
				must_be_whole(&head, length, size);
		}
		must_hold(!is_whole || (is_11 && spaces == 0));
		head_allows_reuse(&head, is_11);
	}
	free(sent);
	free(text);
}

/* -------- chunks -------- */

/* However the bytes are cut, they are the same body. */
static void
run_chunks(const uint8_t *bytes, size_t length)
{
	struct chunks whole;
	struct chunks cut;
	struct buffer data = {0};
	struct buffer pieces = {0};
	size_t		step;

	if (length < 1)
		return;
	step = bytes[0] % 7 + 1;
	bytes++, length--;
	chunks_begin(&whole, 200);
	chunks_begin(&cut, 200);
	chunks_take(&whole, (const char *) bytes, length, &data);
	for (size_t at = 0; at < length; at += step)
	{
		size_t		size = length - at < step ? length - at : step;
		char	   *piece = malloc(size);

		memcpy(piece, bytes + at, size);
		chunks_take(&cut, piece, size, &pieces);
		free(piece);
	}
	must_hold(whole.state == cut.state);
	must_hold(data.length == pieces.length && data.length <= 200);
	must_hold(data.length == 0 ||
			  memcmp(data.data, pieces.data, data.length) == 0);
	must_hold(whole.ended == cut.ended);
	buffer_free(&data);
	buffer_free(&pieces);
}

/* -------- what stands in single headers -------- */

static void
run_words(const uint8_t *bytes, size_t length)
{
	char	   *text;
	struct address address;
	struct address again;
	struct encoding encoding = ENCODING_UNSAID;
	struct trace trace;
	char		written[INET6_ADDRSTRLEN];
	int			bits;

	if (length < 1)
		return;
	text = copy(bytes + 1, length - 1, 0);
	switch (bytes[0] % 4)
	{
		case 0:
			encoding_read(&encoding, text, length - 1);
			must_hold(encoding.gzip >= -1 && encoding.gzip <= 1000);
			must_hold(encoding.identity >= -1 && encoding.identity <= 1000);
			must_hold(encoding.any >= -1 && encoding.any <= 1000);
			encoding_prefers_gzip(&encoding, false);
			break;
		case 1:
			if (!address_parse(text, &address))
				break;
			address_write(&address, written);
			must_hold(address_parse(written, &again));
			must_hold(memcmp(&address, &again, sizeof(again)) == 0);
			break;
		case 2:
			if (address_parse_network(text, &address, &bits))
			{
				must_hold(bits >= 0 &&
						  bits <= (address.family == AF_INET6 ? 128 : 32));
				must_hold(address_within(&address, &address, bits));
			}
			break;
		default:
			if (trace_read(&trace, text, length - 1))
				must_hold(strlen(trace.trace_id) == TRACE_ID_SIZE - 1 &&
						  strlen(trace.span_id) == SPAN_ID_SIZE - 1);
			else
				must_hold(trace.trace_id[0] == '\0');
	}
	free(text);
}

/* -------- manifests -------- */

static void
read_manifest(const uint8_t *bytes, size_t length,
			  bool (*read) (const struct manifest_file *, struct buffer *))
{
	char	   *text = copy(bytes, length, 0);
	struct manifest_file file = {"file", "file", text, length};
	struct buffer documents = {0};
	struct buffer array = {0};
	json_error_t error;
	json_t	   *json;

	if (read(&file, &documents))
	{
		buffer_char(&array, '[');
		if (documents.length > 0)
			buffer_append(&array, documents.data, documents.length);
		buffer_char(&array, ']');
		must_hold(!documents.failed &&
				  utf8_is_valid(array.data, array.length) &&
				  json_depth_is_fine(array.data, array.length, 0,
									 JSON_LIST_DEPTH, &error));
		json = json_loadb(array.data, array.length,
						  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL |
						  JSON_ALLOW_NUL, &error);
		must_hold(json != NULL ||
				  json_error_code(&error) == json_error_numeric_overflow ||
				  json_error_code(&error) == json_error_null_byte_in_key);
		json_decref(json);
	}
	buffer_free(&documents);
	buffer_free(&array);
	free(text);
}

static void
run_yaml(const uint8_t *bytes, size_t length)
{
	read_manifest(bytes, length, manifest_yaml_read);
}

static void
run_json(const uint8_t *bytes, size_t length)
{
	read_manifest(bytes, length, manifest_json_read);
}

static const struct
{
	const char *name;
	void		(*run) (const uint8_t *bytes, size_t length);
}			targets[] =
{
	{"head", run_head}, {"chunks", run_chunks}, {"words", run_words},
	{"yaml", run_yaml}, {"json", run_json}
};

extern int	LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static int	chosen = -1;

	if (chosen < 0)
	{
		const char *name = getenv("FUZZ_TARGET");
		int			count = sizeof(targets) / sizeof(targets[0]);

		for (chosen = 0; chosen < count &&
			 (name == NULL || strcmp(targets[chosen].name, name) != 0);
			 chosen++)
			;
		must_hold(chosen < count);
	}
	targets[chosen].run(bytes, length);
	return 0;
}

#ifndef WITH_LIBFUZZER

/* Runs what each file holds. */
int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
	{
		FILE	   *file = fopen(argv[i], "rb");
		struct buffer text = {0};
		char		bytes[4096];
		size_t		got;

		must_hold(file != NULL);
		while ((got = fread(bytes, 1, sizeof(bytes), file)) > 0)
			buffer_append(&text, bytes, got);
		fclose(file);
		if (text.length > 0)
			LLVMFuzzerTestOneInput((uint8_t *) text.data, text.length);
		buffer_free(&text);
	}
	printf("%d\n", argc - 1);
	return 0;
}

#endif
