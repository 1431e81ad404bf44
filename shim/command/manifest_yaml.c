/*
 * YAML documents as JSON text, by the core schema of YAML 1.2.
 *
 * libyaml reports events; each is written as JSON at once.  Nesting lives in
 * an array of frames, not on the stack, and has a limit, as the output has:
 * aliases copy the text of their anchor, and could multiply either.  Keys and
 * anchors lie in balanced trees, so that no file makes us slow.
 */
#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/json_read.h"
#include "command/manifest_yaml.h"

#define MAX_OUTPUT (16 * 1024 * 1024)

/* The text of an anchored node: a part of the output. */
struct anchor
{
	char	   *name;
	size_t		start;
	size_t		end;			/* 0 while the node is open */
	int			height;			/* levels of nesting within */
	struct anchor *before;		/* the one that was noted before this one */
};

/* A collection that is open. */
struct frame
{
	bool		is_mapping;
	bool		after_key;		/* of a mapping: a value comes next */
	size_t		items;
	int			height;			/* levels of nesting so far, with its own */
	void	   *keys;			/* of a mapping, a tree to find duplicates */
	struct anchor *anchor;		/* NULL: none */
};

struct converter
{
	const struct manifest_file *file;
	struct buffer *out;
	struct frame frames[JSON_DEPTH];
	int			depth;
	struct anchor *last_anchor;
	void	   *anchors;		/* a tree: of each name the last one */
	int			document;		/* number of the current one */
	bool		has_root;
	size_t		line;			/* of the current event, from 1 */
};

static bool __attribute__((format(printf, 2, 3)))
fail(const struct converter *converter, const char *format,...)
{
	va_list		arguments;

	fprintf(stderr, "%s:%zu: ", converter->file->path, converter->line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return false;
}

/* Digits of one base; at least one. */
static bool
all_digits(const char *text, size_t length, const char *digits)
{
	return length > 0 && strspn(text, digits) == length;
}

/* A number of the core schema in base 8 or 16, written in base 10. */
static bool
write_based(struct converter *converter, const char *text, int base)
{
	unsigned long long number;

	errno = 0;
	number = strtoull(text + 2, NULL, base);
	if (errno != 0)
		return fail(converter, "the number %s is too large", text);
	buffer_printf(converter->out, "%llu", number);
	return true;
}

/*
 * Writes a plain scalar that is a decimal number as JSON writes it, digit by
 * digit.  Returns false, with nothing written, if it is no number.
 */
static bool
write_decimal(struct buffer *out, const char *text)
{
	static const char digits[] = "0123456789";
	const char *p = text + (*text == '-' || *text == '+');
	size_t		whole = strspn(p, digits);
	const char *fraction = p + whole;
	size_t		decimals = 0;
	const char *exponent;
	size_t		zeros;

	if (*fraction == '.')
		decimals = strspn(++fraction, digits);
	if (whole + decimals == 0)
		return false;
	exponent = fraction + decimals;
	if (*exponent != '\0')
	{
		const char *power = exponent + 1;

		if (*exponent != 'e' && *exponent != 'E')
			return false;
		power += *power == '-' || *power == '+';
		if (!all_digits(power, strlen(power), digits))
			return false;
	}

	if (*text == '-')
		buffer_char(out, '-');
	zeros = strspn(p, "0");
	if (zeros >= whole)
		buffer_char(out, '0');
	else
		buffer_append(out, p + zeros, whole - zeros);
	if (decimals > 0)
	{
		buffer_char(out, '.');
		buffer_append(out, fraction, decimals);
	}
	buffer_string(out, exponent);
	return true;
}

/* YAML 1.2, section 10.3.2: what a plain scalar stands for. */
static bool
write_plain(struct converter *converter, const char *text, size_t length)
{
	static const struct
	{
		const char *yaml;
		const char *json;
	}			words[] =
	{
		{"", "null"}, {"~", "null"}, {"null", "null"}, {"Null", "null"},
		{"NULL", "null"}, {"true", "true"}, {"True", "true"},
		{"TRUE", "true"}, {"false", "false"}, {"False", "false"},
		{"FALSE", "false"}
	};
	static const char *const not_json[] =
	{".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
	const char *unsigned_text = text + (*text == '-' || *text == '+');
	size_t		i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		if (strcmp(text, words[i].yaml) == 0)
		{
			buffer_string(converter->out, words[i].json);
			return true;
		}
	}
	for (i = 0; i < sizeof(not_json) / sizeof(not_json[0]); i++)
	{
		if (strcmp(unsigned_text, not_json[i]) == 0)
			return fail(converter, "%s is no number a manifest can hold",
						text);
	}
	if (strncmp(text, "0o", 2) == 0 &&
		all_digits(text + 2, length - 2, "01234567"))
		return write_based(converter, text, 8);
	if (strncmp(text, "0x", 2) == 0 &&
		all_digits(text + 2, length - 2, "0123456789abcdefABCDEF"))
		return write_based(converter, text, 16);
	if (!write_decimal(converter->out, text))
		buffer_json(converter->out, text, length);
	return true;
}

/* Starts an item of the open collection, or the root. */
static bool
begin_item(struct converter *converter, bool is_scalar)
{
	struct frame *frame;

	if (converter->depth == 0)
	{
		if (converter->has_root)
			return fail(converter, "a document has one root");
		if (is_scalar)
			return fail(converter, "a document must be a mapping");
		converter->has_root = true;
		return true;
	}
	frame = &converter->frames[converter->depth - 1];
	if (frame->is_mapping && !frame->after_key)
		return fail(converter, "a key must be a plain or quoted scalar");
	if (!frame->is_mapping && frame->items++ > 0)
		buffer_char(converter->out, ',');
	frame->after_key = false;
	return true;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int
compare_anchors(const void *a, const void *b)
{
	return strcmp(((const struct anchor *) a)->name,
				  ((const struct anchor *) b)->name);
}

/* Notes an anchor at the end of the output; NULL if there is none. */
static struct anchor *
open_anchor(struct converter *converter, const yaml_char_t *name)
{
	struct anchor *anchor;
	struct anchor **place = NULL;

	if (name == NULL)
		return NULL;
	anchor = calloc(1, sizeof(*anchor));
	if (anchor != NULL)
	{
		anchor->before = converter->last_anchor;
		converter->last_anchor = anchor;
		anchor->start = converter->out->length;
		anchor->name = strdup((const char *) name);
		if (anchor->name != NULL)
			place = tsearch(anchor, &converter->anchors, compare_anchors);
	}
	if (place == NULL)
		converter->out->failed = true;
	else
		*place = anchor;		/* from here on the name means this one */
	return anchor;
}

static void
close_anchor(struct converter *converter, struct anchor *anchor, int height)
{
	if (anchor != NULL)
	{
		anchor->end = converter->out->length;
		anchor->height = height;
	}
}

/* What is so high is to stand within the collections that are open. */
static bool
fits(struct converter *converter, int height)
{
	struct frame *frame = converter->depth > 0 ?
		&converter->frames[converter->depth - 1] : NULL;

	if (converter->depth + height > JSON_DEPTH)
		return fail(converter, "nested deeper than %d", JSON_DEPTH);
	if (frame != NULL && frame->height <= height)
		frame->height = height + 1;
	return true;
}

static bool
write_alias(struct converter *converter, char *name)
{
	struct buffer *out = converter->out;
	const struct anchor wanted = {.name = name};
	struct anchor **place;
	const struct anchor *anchor;

	if (!begin_item(converter, true))
		return false;
	place = tfind(&wanted, &converter->anchors, compare_anchors);
	if (place == NULL)
		return fail(converter, "the alias *%s has no anchor", name);
	anchor = *place;
	if (anchor->end == 0)
		return fail(converter, "the alias *%s stands inside of its own "
					"anchor", name);
	if (!fits(converter, anchor->height))
		return false;
	/* The copy must not move what it copies from. */
	if (buffer_reserve(out, anchor->end - anchor->start))
		buffer_append(out, out->data + anchor->start,
					  anchor->end - anchor->start);
	return true;
}

static bool
write_key(struct converter *converter, const char *key, size_t length)
{
	struct frame *frame = &converter->frames[converter->depth - 1];
	char	   *copy;
	char	  **place;

	if (converter->depth == 1 && strcmp(key, "source") == 0)
		return fail(converter, "\"source\" is not a key of a document");
	copy = strdup(key);
	place = copy ? tsearch(copy, &frame->keys, compare_keys) : NULL;
	if (place == NULL || *place != copy)
	{
		free(copy);
		return place == NULL ? fail(converter, "out of memory") :
			fail(converter, "the key \"%s\" is repeated", key);
	}
	if (frame->items++ > 0)
		buffer_char(converter->out, ',');
	buffer_json(converter->out, key, length);
	buffer_char(converter->out, ':');
	frame->after_key = true;
	return true;
}

/* Tags name a type; of these only the string is of use in a manifest. */
static bool
check_tag(const struct converter *converter, const yaml_char_t *tag,
		  bool *is_string)
{
	const char *text = (const char *) tag;

	*is_string = tag != NULL && (strcmp(text, "!") == 0 ||
								 strcmp(text, YAML_STR_TAG) == 0);
	if (tag != NULL && !*is_string)
		return fail(converter, "the tag %s is not supported", text);
	return true;
}

static bool
write_scalar(struct converter *converter, const yaml_event_t *event)
{
	const char *text = (const char *) event->data.scalar.value;
	size_t		length = event->data.scalar.length;
	bool		is_plain = event->data.scalar.style ==
		YAML_PLAIN_SCALAR_STYLE;
	bool		is_string;
	struct anchor *anchor;

	if (!check_tag(converter, event->data.scalar.tag, &is_string))
		return false;
	if (strlen(text) != length)
		return fail(converter, "a text cannot hold the character U+0000");
	if (converter->depth > 0)
	{
		const struct frame *frame = &converter->frames[converter->depth - 1];

		if (frame->is_mapping && !frame->after_key)
		{
			if (is_plain && strcmp(text, "<<") == 0)
				return fail(converter, "merge keys (<<) are not part of YAML "
							"1.2");
			if (event->data.scalar.anchor != NULL)
				return fail(converter, "a key cannot have an anchor");
			return write_key(converter, text, length);
		}
	}
	if (!begin_item(converter, true))
		return false;
	anchor = open_anchor(converter, event->data.scalar.anchor);
	if (!is_plain || is_string)
		buffer_json(converter->out, text, length);
	else if (!write_plain(converter, text, length))
		return false;
	close_anchor(converter, anchor, 0);
	return true;
}

static bool
open_collection(struct converter *converter, bool is_mapping,
				const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct frame *frame;

	if (tag != NULL)
		return fail(converter, "the tag %s is not supported",
					(const char *) tag);
	if (converter->depth == 0 && !is_mapping)
		return fail(converter, "a document must be a mapping");
	if (!fits(converter, 1) || !begin_item(converter, false))
		return false;
	frame = &converter->frames[converter->depth++];
	memset(frame, 0, sizeof(*frame));
	frame->is_mapping = is_mapping;
	frame->height = 1;
	frame->anchor = open_anchor(converter, anchor);
	buffer_char(converter->out, is_mapping ? '{' : '[');
	if (converter->depth == 1)
	{
		struct buffer source = {0};

		buffer_printf(&source, "%s#%d", converter->file->label,
					  converter->document);
		buffer_string(converter->out, "\"source\":");
		buffer_json_string(converter->out, source.data);
		buffer_free(&source);
		frame->items = 1;
	}
	return true;
}

static void
free_keys(struct frame *frame)
{
	tdestroy(frame->keys, free);
	frame->keys = NULL;
}

static bool
close_collection(struct converter *converter)
{
	struct frame *frame = &converter->frames[--converter->depth];

	buffer_char(converter->out, frame->is_mapping ? '}' : ']');
	close_anchor(converter, frame->anchor, frame->height);
	free_keys(frame);
	return fits(converter, frame->height);
}

static void
keep_node(void *node)
{
	(void) node;
}

/* Anchors do not reach beyond their document. */
static void
forget_anchors(struct converter *converter)
{
	tdestroy(converter->anchors, keep_node);
	converter->anchors = NULL;
	while (converter->last_anchor != NULL)
	{
		struct anchor *anchor = converter->last_anchor;

		converter->last_anchor = anchor->before;
		free(anchor->name);
		free(anchor);
	}
}

static bool
convert_event(struct converter *converter, const yaml_event_t *event)
{
	switch (event->type)
	{
		case YAML_DOCUMENT_START_EVENT:
			converter->document++;
			converter->has_root = false;
			if (converter->out->length > 0)
				buffer_char(converter->out, ',');
			return true;
		case YAML_DOCUMENT_END_EVENT:
			forget_anchors(converter);
			return true;
		case YAML_SCALAR_EVENT:
			return write_scalar(converter, event);
		case YAML_ALIAS_EVENT:
			return write_alias(converter,
							   (char *) event->data.alias.anchor);
		case YAML_MAPPING_START_EVENT:
			return open_collection(converter, true,
								   event->data.mapping_start.anchor,
								   event->data.mapping_start.tag);
		case YAML_SEQUENCE_START_EVENT:
			return open_collection(converter, false,
								   event->data.sequence_start.anchor,
								   event->data.sequence_start.tag);
		case YAML_MAPPING_END_EVENT:
		case YAML_SEQUENCE_END_EVENT:
			return close_collection(converter);
		default:
			return true;
	}
}

bool
manifest_yaml_read(const struct manifest_file *file, struct buffer *documents)
{
	struct converter *converter = calloc(1, sizeof(*converter));
	yaml_parser_t parser;
	bool		more = true;
	bool		fine = true;

	if (converter == NULL || !yaml_parser_initialize(&parser))
	{
		free(converter);
		fprintf(stderr, "%s: out of memory\n", file->path);
		return false;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *) file->text,
								 file->length);
	converter->file = file;
	converter->out = documents;

	while (fine && more)
	{
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event))
		{
			converter->line = parser.problem_mark.line + 1;
			fine = fail(converter, "%s%s%s",
						parser.context ? parser.context : "",
						parser.context ? ", " : "",
						parser.problem ? parser.problem : "not YAML");
			break;
		}
		converter->line = event.start_mark.line + 1;
		more = event.type != YAML_STREAM_END_EVENT;
		fine = convert_event(converter, &event);
		if (fine && documents->failed)
			fine = fail(converter, "out of memory");
		if (fine && documents->length > MAX_OUTPUT)
			fine = fail(converter, "the manifests are too large");
		yaml_event_delete(&event);
	}

	while (converter->depth > 0)
		free_keys(&converter->frames[--converter->depth]);
	forget_anchors(converter);
	free(converter);
	yaml_parser_delete(&parser);
	return fine;
}
