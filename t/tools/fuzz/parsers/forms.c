/*
 * Targets: documents, values, tokens, cursors and messages.
 */
#include "target.h"

#include "common/hmac.h"
#include "common/sha2.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/fmgrprotos.h"

#include "base/base64url.h"
#include "base/jsonread.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "entry/message.h"
#include "identity/jwt.h"
#include "identity/secret.h"
#include "identity/username.h"
#include "model/catalog.h"
#include "model/types.h"
#include "query/cursor.h"

/* -------- documents -------- */

static void
check_places(const EaJson *value, const char *bytes, int start, int end)
{
	int			count = 0;

	must_hold(value->start >= start && value->start < value->end &&
			  value->end <= end, bytes);
	for (const EaJson *child = value->first; child; child = child->next)
	{
		must_hold((child->key != NULL) == (value->kind == EA_JSON_OBJECT),
				  bytes);
		check_places(child, bytes, value->start, value->end);
		if (child->key != NULL)
			must_hold(ea_jsonread_get(value, child->key) == child, bytes);
		count++;
	}
	must_hold(count == value->count, bytes);
	if (value->kind == EA_JSON_STRING || value->kind == EA_JSON_NUMBER)
		must_hold(strlen(value->text) == value->len, bytes);
}

/* What is read is JSON for PostgreSQL too, and written it reads the same. */
static void
run_jsonread(const char *bytes, int len)
{
	EaJsonFault fault;
	int			depth = len % 3 == 0 ? 4 : EA_JSON_MAX_DEPTH;
	EaJson	   *tree = ea_jsonread_parse(bytes, len, depth, &fault);
	StringInfoData once;
	StringInfoData again;

	if (tree == NULL)
	{
		must_hold(fault.message != NULL, NULL);
		must_hold(fault.offset >= 0 && fault.offset <= len, fault.message);
		return;
	}
	check_places(tree, bytes, 0, len);
	initStringInfo(&once);
	ea_jsonwrite_tree(&once, tree);
	DirectFunctionCall1(json_in, CStringGetDatum(once.data));
	tree = ea_jsonread_parse(once.data, once.len, depth, &fault);
	must_hold(tree != NULL, once.data);
	initStringInfo(&again);
	ea_jsonwrite_tree(&again, tree);
	must_hold(strcmp(once.data, again.data) == 0, once.data);
}

/* -------- values -------- */

/*
 * A value that was read, written and read again is the same.  The first byte
 * is the type, whether it stands in a document, and whether its numbers are
 * written as strings.
 */
static void
run_types(const char *bytes, int len)
{
	const EaType *type;
	char	   *text;
	const char *why = NULL;
	Datum		value;
	StringInfoData once;
	StringInfoData again;
	EaJsonFault fault;
	EaJson	   *json;

	if (len < 1)
		return;
	type = &ea_types[(bytes[0] & 0x3F) % EA_N_TYPES];
	if ((bytes[0] & 0x40) != 0)
		type = ea_types_as_text(type);
	text = target_text(bytes + 1, len - 1);
	if (type->read == NULL)
		return;
	if (!type->read(text, len - 1, (bytes[0] & 0x80) != 0, &value, &why))
	{
		must_hold(why != NULL, text);
		return;
	}
	initStringInfo(&once);
	type->write(&once, value);
	json = ea_jsonread_parse(once.data, once.len, EA_JSON_MAX_DEPTH, &fault);
	must_hold(json != NULL, once.data);
	if (type->form == EA_FORM_JSONB)
		return;
	must_hold(ea_types_from_json(type, json, once.data, &value, &why),
			  once.data);
	initStringInfo(&again);
	type->write(&again, value);
	must_hold(strcmp(once.data, again.data) == 0, once.data);
}

/* -------- cursors -------- */

/* An order with a term of each type that can be sorted by, and the id. */
static EaOrder *
order_of_all(void)
{
	static EaSortTerm terms[EA_N_TYPES + 1];
	static EaOrder order = {0, terms};

	if (order.n > 0)
		return &order;
	for (int i = 0; i < EA_N_TYPES; i++)
	{
		if ((ea_types[i].can & EA_CAN_SORT) == 0)
			continue;
		terms[order.n].path = ea_types[i].name;
		terms[order.n].descending = i % 2 == 1;
		terms[order.n++].type = &ea_types[i];
	}
	terms[order.n].path = "id";
	terms[order.n++].type = &ea_types[EA_TYPE_UUID];
	return &order;
}

/*
 * Text as it comes, or values behind the head of a real cursor, since no
 * hash is guessed.  What is read can be written, and is read again as that.
 */
static void
run_cursor(const char *bytes, int len)
{
	static EaEntity entity = {.name = "Thing"};
	static bool isnull[EA_N_TYPES];
	EaOrder    *order = order_of_all();
	EaCursor	cursor = {.complete = true, .isnull = isnull};
	char	   *text;
	char	   *again;
	StringInfoData made;
	uint8	   *head;
	int			head_len;

	if (len < 1)
		return;
	if (bytes[0] & 1)
		text = target_text(bytes + 1, len - 1);
	else
	{
		/* version, whether there are values, hash, id */
		const int	fixed = 1 + 1 + 4 + UUID_LEN;

		memset(isnull, true, sizeof(isnull));
		text = ea_cursor_write(&entity, order, &cursor);
		head = ea_base64url_decode(text, strlen(text), &head_len);
		must_hold(head != NULL && head_len == fixed + order->n - 1, text);
		if (bytes[0] & 2)
			head[1] = 0;
		initStringInfo(&made);
		appendBinaryStringInfo(&made, (char *) head, fixed);
		appendBinaryStringInfo(&made, bytes + 1, len - 1);
		head = (uint8 *) made.data;
		text = palloc(1);
		initStringInfo(&made);
		ea_base64url_encode(&made, head, fixed + len - 1);
		text = pstrdup(made.data);
	}
	if (!ea_cursor_read(NULL, &entity, order, text, &cursor) ||
		!cursor.complete)
		return;
	again = ea_cursor_write(&entity, order, &cursor);
	must_hold(ea_cursor_read(NULL, &entity, order, again, &cursor), text);
	if (cursor.complete)
		must_hold(strcmp(ea_cursor_write(&entity, order, &cursor), again) == 0,
				  text);
}

/* -------- ids -------- */

/*
 * By the first byte of one part, of any type, or of several.  What is read is
 * written as it came, but for the case of UUIDs, and comes back as the same.
 */
static void
run_ids(const char *bytes, int len)
{
	static const char *const types[] = {
		"uuid", "int2", "int4", "int8", "text", "varchar", "bpchar", "date"
	};
	EaRequest  *req = target_request();
	EaIdKey		parts[EA_ID_MOST_PARTS];
	EaIdKey		key;
	EaId		id;
	EaId		again;
	char	   *once;
	int			n;

	if (len < 1)
		return;
	n = 1 + (bytes[0] & 0x07);
	for (int i = 0; i < n; i++)
		(void) ea_id_key(types[(i + ((unsigned char) bytes[0] >> 3)) %
							   lengthof(types)],
						 i % 2 == 0 ? 4 : 0, &parts[i]);
	key = n == 1 ? parts[0] : ea_id_key_of(parts, n);
	if (!ea_id_parse(req, &key, bytes + 1, len - 1, &id))
		return;
	once = ea_id_text(&key, &id);
	must_hold(strlen(once) == len - 1 &&
			  pg_strncasecmp(once, bytes + 1, len - 1) == 0, once);
	must_hold(ea_id_bytes(&key, &id) == len - 1, once);
	must_hold(ea_id_parse(req, &key, once, strlen(once), &again), once);
	must_hold(ea_id_equal(&id, &again), once);
	must_hold(ea_id_fits(&key, &id), once);
	(void) ea_id_datum(&key, &id);
}

/*
 * What is under tokens, and all that there is to the cursors of histories and
 * of the audit log: bytes have one text, and a text that is read is that one.
 */
static void
run_base64url(const char *bytes, int len)
{
	StringInfoData text;
	uint8	   *read;
	int			nread;

	initStringInfo(&text);
	ea_base64url_encode(&text, bytes, len);
	read = ea_base64url_decode(text.data, text.len, &nread);
	must_hold(read != NULL && nread == len && memcmp(read, bytes, len) == 0,
			  text.data);

	read = ea_base64url_decode(bytes, len, &nread);
	if (read == NULL)
		return;
	resetStringInfo(&text);
	ea_base64url_encode(&text, read, nread);
	must_hold(text.len == len && memcmp(text.data, bytes, len) == 0,
			  text.data);
}

/* -------- tokens and secrets -------- */

static uint8 key_secret[32] = "a secret that no input knows of";
static const EaJwtKey key = {"k1", EA_JWT_ALGORITHM, key_secret,
sizeof(key_secret)};

static const EaJwtKey *
find_key(const char *kid, void *arg)
{
	return strcmp(kid, key.kid) == 0 ? &key : NULL;
}

/*
 * A token as it comes is never one, because nobody signed it; one whose header
 * and payload come and are signed here may be.
 */
static void
run_jwt(const char *bytes, int len)
{
	const char *split;
	StringInfoData token;
	pg_hmac_ctx *hmac;
	uint8		signature[PG_SHA256_DIGEST_LENGTH];
	EaJson	   *claims;
	EaSecret	secret;

	if (len < 1)
		return;
	if (bytes[0] & 1)
	{
		char	   *text = target_text(bytes + 1, len - 1);

		must_hold(ea_jwt_verify(text, len - 1, find_key, NULL) == NULL, text);
		if (ea_secret_read(&secret, EA_SECRET_KEY, text, len - 1))
			must_hold(len - 1 == EA_SECRET_LEN, text);
		return;
	}
	split = memchr(bytes + 1, '\0', len - 1);
	if (split == NULL)
	{
		int			signed_len;
		char	   *text = ea_jwt_sign(&key, bytes + 1, len - 1, &signed_len);

		claims = ea_jwt_verify(text, signed_len, find_key, NULL);
	}
	else
	{
		initStringInfo(&token);
		ea_base64url_encode(&token, bytes + 1, split - (bytes + 1));
		appendStringInfoChar(&token, '.');
		ea_base64url_encode(&token, split + 1, bytes + len - (split + 1));
		hmac = pg_hmac_create(PG_SHA256);
		must_hold(pg_hmac_init(hmac, key.secret, key.secret_len) == 0 &&
				  pg_hmac_update(hmac, (uint8 *) token.data, token.len) == 0 &&
				  pg_hmac_final(hmac, signature, sizeof(signature)) == 0,
				  NULL);
		pg_hmac_free(hmac);
		appendStringInfoChar(&token, '.');
		ea_base64url_encode(&token, signature, sizeof(signature));
		claims = ea_jwt_verify(token.data, token.len, find_key, NULL);
	}
	if (claims != NULL)
	{
		must_hold(claims->kind == EA_JSON_OBJECT, NULL);
		ea_jwt_holds(claims, "entityapi", "entityapi", 0);
	}
}

/* A name that is clean stays as it is, and so does one without case. */
static void
run_username(const char *bytes, int len)
{
	char	   *text = target_text(bytes, len);
	char	   *name = ea_username_clean(text, len);
	char	   *typed = ea_username_typed(text, len);
	char	   *again;
	pg_uuid_t	uuid;

	if (ea_uuid_parse(text, len, &uuid))
		must_hold(pg_strcasecmp(ea_uuid_text(&uuid), text) == 0, text);
	if (typed != NULL)
	{
		char	   *key = ea_username_key(typed);

		must_hold(strcmp(ea_username_key(key), key) == 0, text);
	}
	if (name == NULL)
		return;
	must_hold(typed != NULL && strcmp(name, typed) == 0, text);
	again = ea_username_clean(name, strlen(name));
	must_hold(again != NULL && strcmp(name, again) == 0, text);
}

/* -------- messages -------- */

/* What was read, put together again and read, is the same. */
static void
run_message(const char *bytes, int len)
{
	EaRequest  *req = target_request();
	bytea	   *message = palloc(VARHDRSZ + len);
	StringInfoData once;
	StringInfoData again;
	StringInfoData *text = &once;
	char	   *method;

	SET_VARSIZE(message, VARHDRSZ + len);
	memcpy(VARDATA(message), bytes, len);
	method = ea_message_read(req, message);
	initStringInfo(&once);
	initStringInfo(&again);
	for (;;)
	{
		enlargeStringInfo(text, VARHDRSZ);
		text->len = VARHDRSZ;
		appendStringInfo(text, "%s %s %s\n", method, req->target,
						 req->remote ? req->remote : "-");
		for (int i = 0; i < req->nheaders; i++)
		{
			must_hold(strchr(req->headers[i].value, '\n') == NULL, NULL);
			appendStringInfo(text, "%s: %s\n", req->headers[i].name,
							 req->headers[i].value);
		}
		appendStringInfoChar(text, '\n');
		appendBinaryStringInfo(text, req->body, req->body_len);
		SET_VARSIZE(text->data, text->len);
		if (text == &again)
			break;
		req = target_request();
		method = ea_message_read(req, (bytea *) once.data);
		text = &again;
	}
	must_hold(once.len == again.len &&
			  memcmp(once.data, again.data, once.len) == 0, NULL);
}

const Target form_targets[] = {
	{"jsonread", run_jsonread},
	{"types", run_types},
	{"cursor", run_cursor},
	{"ids", run_ids},
	{"base64url", run_base64url},
	{"jwt", run_jwt},
	{"username", run_username},
	{"message", run_message, {ERRCODE_INVALID_PARAMETER_VALUE,
			ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
	ERRCODE_INVALID_TEXT_REPRESENTATION}}
};
const int	nform_targets = lengthof(form_targets);
