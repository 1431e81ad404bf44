#include <string.h>

#include "http/incoming.h"

/* Bytes in a row, of the request from its beginning. */
struct piece
{
	const char *bytes;
	size_t		length;
};

static enum incoming_state
refuse(struct arrived *arrived, const struct refusal *refusal)
{
	memset(arrived, 0, sizeof(*arrived));
	arrived->refusal = refusal;
	return INCOMING_REFUSED;
}

/* Reads the head, which is whole; why it is refused, or NULL. */
static const struct refusal *
read_head(const struct incoming *incoming, struct piece piece,
		  const struct config *config, struct head *head)
{
	const struct refusal *refusal = parse_head(head, piece.bytes,
											   incoming->lines.seen, config);

	return refusal ? refusal : head_check(head, config);
}

/* Keeps what has come, if it is not kept already. */
static enum incoming_state
keep(struct incoming *incoming, struct piece piece, enum incoming_state state)
{
	if (piece.bytes != incoming->bytes.data)
		buffer_append(&incoming->bytes, piece.bytes, piece.length);
	return incoming->bytes.failed ? INCOMING_FAILED : state;
}

/* A body of a known length. */
static enum incoming_state
look_at_body(struct incoming *incoming, struct piece piece,
			 const struct head *head, struct arrived *arrived)
{
	if (piece.length < incoming->end)
		return keep(incoming, piece, INCOMING_BODY);
	arrived->body = piece.bytes + head->size;
	arrived->length = incoming->end - head->size;
	arrived->rest = piece.bytes + incoming->end;
	arrived->rest_length = piece.length - incoming->end;
	return INCOMING_WHOLE;
}

/* A body in chunks, which are kept without their frames. */
static enum incoming_state
take_chunks(struct incoming *incoming, struct piece piece,
			const struct config *config, struct head *head,
			struct arrived *arrived)
{
	struct buffer *kept = &incoming->bytes;
	const struct refusal *refusal;

	chunks_take(&incoming->chunks, piece.bytes, piece.length, kept);
	if (kept->failed)
		return INCOMING_FAILED;
	if (incoming->chunks.state < CHUNKS_COMPLETE)
		return INCOMING_BODY;
	refusal = chunks_refusal(&incoming->chunks);
	piece = (struct piece) {kept->data, kept->length};
	if (read_head(incoming, piece, config, head) != NULL || refusal != NULL)
		return refuse(arrived, refusal ? refusal : &refusal_bad_body);
	arrived->body = kept->data + head->size;
	arrived->length = kept->length - head->size;
	return INCOMING_WHOLE;
}

/* The first of them; of the piece, the head and what follows it. */
static enum incoming_state
begin_chunks(struct incoming *incoming, struct piece piece,
			 const struct config *config, struct head *head,
			 struct arrived *arrived)
{
	struct buffer before = incoming->bytes;
	struct piece rest = {piece.bytes + head->size, piece.length - head->size};
	enum incoming_state state;

	memset(&incoming->bytes, 0, sizeof(incoming->bytes));
	incoming->is_chunked = true;
	chunks_begin(&incoming->chunks, head->limit);
	buffer_append(&incoming->bytes, piece.bytes, head->size);
	state = take_chunks(incoming, rest, config, head, arrived);
	buffer_free(&before);
	return state;
}

/* The head may be whole by now. */
static enum incoming_state
look_at_head(struct incoming *incoming, struct piece piece,
			 const struct config *config, struct head *head,
			 struct arrived *arrived)
{
	enum lines_state state = lines_look(&incoming->lines, piece.bytes,
										piece.length);
	const struct refusal *refusal;

	if (state == LINES_MORE)
		return keep(incoming, piece, INCOMING_HEAD);
	if (state != LINES_WHOLE)
	{
		parse_start(head, piece.bytes, incoming->lines.seen);
		return refuse(arrived, state == LINES_BAD ? &refusal_bad_line :
					  &refusal_headers_too_large);
	}
	refusal = read_head(incoming, piece, config, head);
	if (refusal != NULL)
		return refuse(arrived, refusal);
	arrived->expects = head->expects;
	incoming->end = head->size + head->length;
	return head->is_chunked ?
		begin_chunks(incoming, piece, config, head, arrived) :
		look_at_body(incoming, piece, head, arrived);
}

enum incoming_state
incoming_take(struct incoming *incoming, const char *bytes, size_t length,
			  const struct config *config, struct head *head,
			  struct arrived *arrived)
{
	struct buffer *kept = &incoming->bytes;
	struct piece piece = {bytes, length};
	const struct refusal *refusal;

	memset(arrived, 0, sizeof(*arrived));
	if (incoming->is_chunked)
		return take_chunks(incoming, piece, config, head, arrived);
	if (kept->length > 0)
	{
		buffer_append(kept, bytes, length);
		if (kept->failed)
			return INCOMING_FAILED;
		piece = (struct piece) {kept->data, kept->length};
	}
	if (incoming->end == 0)
		return look_at_head(incoming, piece, config, head, arrived);
	if (piece.length < incoming->end)
		return INCOMING_BODY;

	/* what it pointed to may lie elsewhere by now */
	refusal = read_head(incoming, piece, config, head);
	return refusal ? refuse(arrived, refusal) :
		look_at_body(incoming, piece, head, arrived);
}

bool
incoming_has_begun(const struct incoming *incoming)
{
	const struct buffer *kept = &incoming->bytes;
	size_t		line = incoming->lines.line;

	return incoming->lines.begun ||
		(kept->length > line && kept->data[line] != '\r');
}

void
incoming_free(struct incoming *incoming)
{
	buffer_free(&incoming->bytes);
}
