/*
 * Targets of the shim: requests, chunks, codings, addresses, traces and
 * manifests.  FUZZ_TARGET of the environment chooses one.
 */
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/address.h"
#include "base/json_read.h"
#include "command/manifest_json.h"
#include "command/manifest_yaml.h"
#include "http/chunks.h"
#include "http/encoding.h"
#include "http/incoming.h"
#include "http/trace.h"

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

/* -------- requests -------- */

static const struct config config = {.max_headers = 40, .max_url = 300,
.max_headers_bytes = 1000, .max_body = 200, .max_body_auth = 100};

/*
 * What is accepted has no second reading: its lines, put together again with
 * single spaces, are the head that came.
 */
static void
must_be_plain(const struct head *head, const char *sent)
{
	struct buffer again = {0};

	while (memcmp(sent, "\r\n", 2) == 0)
		sent += 2;
	buffer_printf(&again, "%s ", head->method);
	if (head->authority != NULL)
		buffer_append(&again, sent + again.length,
					  (size_t) (head->authority - sent) - again.length);
	buffer_append(&again, head->authority ? head->authority : "",
				  head->authority_length);
	buffer_append(&again, head->target, head->target_length);
	buffer_printf(&again, " HTTP/1.%d\r\n", head->is_http_11);
	must_hold(memcmp(again.data, sent, again.length) == 0);
	for (int i = 0; i < head->count; i++)
	{
		const struct header *header = &head->headers[i];
		const char *line = sent + again.length;
		const char *end = strstr(line, "\r\n");
		const char *value = line + header->name_length + 1;

		must_hold(line == header->name && value[-1] == ':');
		must_hold(end != NULL &&
				  memchr(line, '\n', (size_t) (end - line)) == NULL);
		must_hold(value + strspn(value, " \t") == header->value ||
				  header->value_length == 0);
		value = header->value + header->value_length;
		must_hold(strspn(value, " \t") == (size_t) (end - value));
		must_hold(utf8_is_valid(header->value, header->value_length));
		buffer_append(&again, line, (size_t) (end + 2 - line));
	}
	must_hold(memcmp(sent + again.length, "\r\n", 2) == 0);
	buffer_free(&again);
}

/* Says in words what a request was read as. */
static void
tell(struct buffer *told, const struct head *head,
	 const struct arrived *arrived)
{
	if (arrived->refusal != NULL)
	{
		buffer_printf(told, "refused %s %s\n", head->method,
					  arrived->refusal->kind);
		return;
	}
	must_hold(arrived->length <= head->limit);
	must_hold(head->is_chunked || arrived->length == head->length);
	buffer_printf(told, "%s %.*s %d %d %d %d\n", head->method,
				  (int) head->target_length, head->target, head->is_http_11,
				  head->area, head_allows_reuse(head), head->expects);
	for (int i = 0; i < head->count; i++)
		buffer_printf(told, "%.*s: %.*s\n",
					  (int) head->headers[i].name_length,
					  head->headers[i].name,
					  (int) head->headers[i].value_length,
					  head->headers[i].value);
	buffer_append(told, arrived->body, arrived->length);
}

/*
 * Reads a connection that sends pieces of that size, as a front does: what is
 * behind a request comes first when the next one is looked for, and behind a
 * refusal, and behind chunks, nothing is read.
 */
static void
read_all(const char *bytes, size_t length, size_t step, struct buffer *told)
{
	struct incoming incoming = {0};
	struct buffer unread = {0};
	struct head head;
	struct arrived arrived;
	size_t		at = 0;
	bool		goes_on = true;

	while (goes_on && (unread.length > 0 || at < length))
	{
		struct buffer piece = unread;
		enum incoming_state state;

		memset(&unread, 0, sizeof(unread));
		if (piece.length == 0)
		{
			size_t		size = length - at < step ? length - at : step;

			buffer_append(&piece, bytes + at, size);
			at += size;
		}
		state = incoming_take(&incoming, piece.data, piece.length, &config,
							  &head, &arrived);
		must_hold(state != INCOMING_FAILED);

		/* one that has been kept may be looked at again */
		if (state == INCOMING_WHOLE && incoming.bytes.length > 0)
			must_hold(incoming_take(&incoming, "", 0, &config, &head,
									&arrived) == INCOMING_WHOLE);
		if (state == INCOMING_WHOLE || state == INCOMING_REFUSED)
		{
			must_hold((state == INCOMING_REFUSED) ==
					  (arrived.refusal != NULL));
			if (state == INCOMING_WHOLE)
				must_be_plain(&head, incoming.bytes.length > 0 ?
							  incoming.bytes.data : piece.data);
			tell(told, &head, &arrived);
			goes_on = state == INCOMING_WHOLE && !head.is_chunked;
			if (goes_on && arrived.rest_length > 0)
				buffer_append(&unread, arrived.rest, arrived.rest_length);
			incoming_free(&incoming);
			memset(&incoming, 0, sizeof(incoming));
		}
		buffer_free(&piece);
	}
	incoming_free(&incoming);
	buffer_free(&unread);
}

/* However the bytes are cut, they are the same requests. */
static void
run_head(const uint8_t *bytes, size_t length)
{
	struct buffer whole = {0};
	size_t		steps[] = {1, 2, 3, 7, 0};

	steps[4] = length > 0 ? bytes[length - 1] % 64 + 1 : 1;
	read_all((const char *) bytes, length, length, &whole);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		struct buffer cut = {0};

		read_all((const char *) bytes, length, steps[i], &cut);
		must_hold(cut.length == whole.length);
		must_hold(cut.length == 0 ||
				  memcmp(cut.data, whole.data, cut.length) == 0);
		buffer_free(&cut);
	}
	buffer_free(&whole);
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
