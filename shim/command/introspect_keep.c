/*
 * Both texts are taken apart by lines: what introspect writes has few forms.
 * A mapping is looked into in one line or in a line for each member; what is
 * written otherwise counts as a whole.
 */
#include <string.h>

#include "command/introspect_keep.h"

/* A member with its value, as text; without a key comments and empty lines */
struct part
{
	const char *key;
	size_t		key_length;
	const char *text;
	size_t		length;
	const struct part *came;	/* the new one that it is, or NULL */
};

struct parts
{
	struct part *parts;
	size_t		count;
};

/* Mappings that introspect writes, and which of their members. */
enum mapping
{
	OF_ENTITY, OF_SERVICE, OF_COLUMNS, OF_FIELD, OF_EXISTING
};

#define MOST_KNOWN 20

static const char *const known[][MOST_KNOWN] =
{
	[OF_ENTITY] = {"description", "plural", "table", "tenantScoped", "tenant",
	"key", "columns", "unseen", "fields"},
	[OF_SERVICE] = {"tenancy", "existing", ""},
	[OF_FIELD] = {"type", "target", "relation", "mappedBy", "through",
		"required", "onDelete", "maxLength", "precision", "scale", "unique",
	"readOnly", "enum", "zone", "description"},
	[OF_EXISTING] = {"role", "searchPath"}
};

/* Of columns, those that no field has. */
static const char *const unknown_columns[] =
{"version", "deletedAt", "deletionId", "createdAt", "updatedAt"};

static bool
is_key(const struct part *part, const char *key)
{
	return part->key_length == strlen(key) &&
		memcmp(part->key, key, part->key_length) == 0;
}

static bool
is_known(enum mapping mapping, const struct part *part)
{
	if (mapping == OF_COLUMNS)
	{
		for (size_t i = 0;
			 i < sizeof(unknown_columns) / sizeof(unknown_columns[0]); i++)
		{
			if (is_key(part, unknown_columns[i]))
				return false;
		}
		return true;
	}
	for (int i = 0; i < MOST_KNOWN && known[mapping][i] != NULL; i++)
	{
		if (is_key(part, known[mapping][i]))
			return true;
	}
	return false;
}

static const struct part *
find(const struct parts *parts, const struct part *like)
{
	for (size_t i = 0; i < parts->count; i++)
	{
		const struct part *part = &parts->parts[i];

		if (part->key_length == like->key_length &&
			memcmp(part->key, like->key, like->key_length) == 0)
			return part;
	}
	return NULL;
}

static bool
is_same(const struct part *one, const struct part *other)
{
	return one->length == other->length &&
		memcmp(one->text, other->text, one->length) == 0;
}

/* -------- apart -------- */

static size_t
line_length(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', end - at);

	return (newline ? newline + 1 : end) - at;
}

static size_t
blanks(const char *at, const char *end)
{
	size_t		n = 0;

	while (at + n < end && at[n] == ' ')
		n++;
	return n;
}

/*
 * The members whose keys begin in this column, and what is between them; false
 * where the first is none.
 */
static bool
split(struct memory *memory, const char *text, size_t length, size_t indent,
	  struct parts *parts)
{
	const char *end = text + length;
	size_t		lines = 1;
	struct part *part = NULL;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	parts->parts = memory_array(memory, lines, sizeof(struct part));
	parts->count = 0;
	for (const char *at = text; at < end;)
	{
		size_t		width = line_length(at, end);
		size_t		first = blanks(at, end);
		bool		empty = first >= width || at[first] == '\n';
		bool		note = empty ? part == NULL || part->key_length == 0 :
			first <= indent && at[first] == '#';
		bool		inside = empty || first > indent;
		const char *colon = memchr(at, ':', width);

		if (!note && !inside && (first < indent || colon == NULL))
			return false;
		if (note ? part == NULL || part->key_length > 0 : !inside)
		{
			part = &parts->parts[parts->count++];
			part->text = at;
			part->key = note ? "" : at + indent;
			part->key_length = note ? 0 : (size_t) (colon - at) - indent;
		}
		else if (part == NULL || (!note && part->key_length == 0))
			return false;
		part->length = (size_t) (at - part->text) + width;
		at += width;
	}
	return true;
}

/* The end of a value in a flow mapping, where its comma or bracket is. */
static const char *
end_of_value(const char *at, const char *end)
{
	int			depth = 0;
	char		quote = '\0';
	char		before = ':';

	for (; at < end; at++)
	{
		if (quote != '\0')
			quote = *at == quote ? '\0' : quote;
		else if ((*at == '"' || *at == '\'') && strchr(":,[{", before) != NULL)
			quote = *at;
		else if (*at == '{' || *at == '[')
			depth++;
		else if (depth == 0 && (*at == ',' || *at == '}'))
			return at;
		else if (*at == '}' || *at == ']')
			depth--;
		if (*at != ' ' && *at != '\n')
			before = *at;
	}
	return NULL;
}

static void
trim(struct part *part)
{
	while (part->length > 0 && strchr(" \n", *part->text) != NULL)
	{
		part->text++;
		part->length--;
	}
	while (part->length > 0 &&
		   strchr(" \n", part->text[part->length - 1]) != NULL)
		part->length--;
}

/* `{a: b, c: d}`, and nothing behind it. */
static bool
split_flow(struct memory *memory, const char *at, const char *end,
		   struct parts *parts)
{
	parts->parts = memory_array(memory, end - at, sizeof(struct part));
	parts->count = 0;
	for (at++; at < end && *at != '}';)
	{
		struct part *part = &parts->parts[parts->count];
		const char *colon = memchr(at, ':', end - at);
		const char *last = colon ? end_of_value(colon + 1, end) : NULL;
		struct part key = {.text = at};

		if (last == NULL)
			return false;
		key.length = colon - at;
		trim(&key);
		part->key = key.text;
		part->key_length = key.length;
		part->text = colon + 1;
		part->length = last - part->text;
		trim(part);
		parts->count++;
		at = *last == ',' ? last + 1 : last;
	}
	return at < end && *at == '}' && blanks(at + 1, end) +
		1 == (size_t) (end - at) - (end[-1] == '\n');
}

/* The members of a value that is a mapping; its key is in this column. */
static bool
members(struct memory *memory, const struct part *part, size_t indent,
		struct parts *parts)
{
	const char *end = part->text + part->length;
	const char *at = part->text + indent + part->key_length + 1;

	at += at < end ? blanks(at, end) : 0;
	if (at >= end)
		return false;
	if (*at == '{')
		return split_flow(memory, at, end, parts);
	if (*at != '\n' ||
		!split(memory, at + 1, end - at - 1, indent + 2, parts))
		return false;
	for (size_t i = 0; i < parts->count; i++)
	{
		struct part *member = &parts->parts[i];
		size_t		skipped = indent + 2 + member->key_length + 1;

		if (member->key_length == 0)
			return false;
		member->text += skipped;
		member->length -= skipped;
		trim(member);
	}
	return true;
}

/* -------- mappings -------- */

/* All that introspect knows of one is the same. */
static bool
agree(enum mapping mapping, const struct parts *old, const struct parts *new)
{
	for (size_t i = 0; i < new->count; i++)
	{
		const struct part *was = find(old, &new->parts[i]);

		if (was == NULL || !is_same(was, &new->parts[i]))
			return false;
	}
	for (size_t i = 0; i < old->count; i++)
	{
		if (is_known(mapping, &old->parts[i]) &&
			find(new, &old->parts[i]) == NULL)
			return false;
	}
	return true;
}

static void
add_member(struct buffer *out, const struct part *part, bool first)
{
	buffer_printf(out, "%s%.*s: %.*s", first ? "" : ", ",
				  (int) part->key_length, part->key, (int) part->length,
				  part->text);
}

/* The new one, with what was in the old one besides. */
static void
write_mapping(struct memory *memory, enum mapping mapping, size_t indent,
			  const struct part *name, const struct parts *old,
			  const struct parts *new, struct part *part)
{
	struct buffer out = {0};
	size_t		n = 0;

	buffer_printf(&out, "%*s%.*s: {", (int) indent, "",
				  (int) name->key_length, name->key);
	for (size_t i = 0; i < new->count; i++)
		add_member(&out, &new->parts[i], n++ == 0);
	for (size_t i = 0; i < old->count; i++)
	{
		if (!is_known(mapping, &old->parts[i]) &&
			find(new, &old->parts[i]) == NULL)
			add_member(&out, &old->parts[i], n++ == 0);
	}
	buffer_string(&out, "}\n");
	part->length = n > 0 ? out.length : 0;
	part->text = memory_take(memory, &out);
}

/* A setting of people's own is none of a difference. */
static void
forget_settings(struct memory *memory, struct parts *old, struct parts *new)
{
	struct part key = {.key = "settings",.key_length = 8};
	struct part *was = (struct part *) find(old, &key);
	struct part *is = (struct part *) find(new, &key);
	struct parts before = {0};
	struct parts after = {0};

	if (was == NULL || is == NULL || *was->text != '{' || *is->text != '{' ||
		!split_flow(memory, was->text, was->text + was->length, &before) ||
		!split_flow(memory, is->text, is->text + is->length, &after))
		return;
	for (size_t i = 0; i < after.count; i++)
	{
		const struct part *setting = find(&before, &after.parts[i]);

		if (setting == NULL || !is_same(setting, &after.parts[i]))
			return;
	}
	is->text = was->text;
	is->length = was->length;
}

/* new: NULL where introspect writes none */
static void
merge_mapping(struct memory *memory, enum mapping mapping, size_t indent,
			  const struct part *old, const struct part *new,
			  struct part *part)
{
	struct parts before;
	struct parts after = {0};

	if (!members(memory, old, indent, &before) ||
		(new != NULL && !members(memory, new, indent, &after)))
		return;
	if (mapping == OF_EXISTING)
		forget_settings(memory, &before, &after);
	if (agree(mapping, &before, &after))
	{
		part->text = old->text;
		part->length = old->length;
	}
	else
		write_mapping(memory, mapping, indent, old, &before, &after, part);
}

/* -------- together -------- */

/* The place behind the new part that comes before this one. */
static size_t
place_behind(const struct parts *all, const struct parts *new, size_t at)
{
	while (at-- > 0)
	{
		for (size_t i = 0; i < all->count; i++)
		{
			if (all->parts[i].came == &new->parts[at])
				return i + 1;
		}
	}
	return 0;
}

/* Parts that are new stand where introspect puts them. */
static void
add_new(struct parts *all, const struct parts *new,
		bool (*is_wanted) (const struct part *part))
{
	for (size_t i = 0; i < new->count; i++)
	{
		const struct part *part = &new->parts[i];
		bool		there = false;
		size_t		place;

		for (size_t k = 0; k < all->count; k++)
			there = there || all->parts[k].came == part;
		if (there || !is_wanted(part))
			continue;
		place = place_behind(all, new, i);
		memmove(&all->parts[place + 1], &all->parts[place],
				(all->count - place) * sizeof(struct part));
		all->parts[place] = *part;
		all->parts[place].came = part;
		all->count++;
	}
}

static struct parts
begin_all(struct memory *memory, const struct parts *old,
		  const struct parts *new)
{
	struct parts all = {0};

	all.parts = memory_array(memory, old->count + new->count + 1,
							 sizeof(struct part));
	return all;
}

static char *
text_of(struct memory *memory, const char *head, size_t head_length,
		const struct parts *all)
{
	struct buffer out = {0};

	buffer_append(&out, head, head_length);
	for (size_t i = 0; i < all->count; i++)
		buffer_append(&out, all->parts[i].text, all->parts[i].length);
	return memory_take(memory, &out);
}

/* -------- fields -------- */

/* A relationship with what introspect does not look at, as a made table. */
static bool
is_of_people(struct memory *memory, const struct introspect_folder *folder,
			 const struct part *field)
{
	struct part target = {.key = "target",.key_length = 6};
	struct part mapped = {.key = "mappedBy",.key_length = 8};
	const struct part *found;
	struct parts parts;

	if (field->key_length == 0 || !members(memory, field, 4, &parts) ||
		find(&parts, &mapped) == NULL)
		return false;
	found = find(&parts, &target);
	for (size_t i = 0; found != NULL && i < folder->entity_count; i++)
	{
		const char *entity = folder->entities[i].entity;

		if (strlen(entity) == found->length &&
			memcmp(entity, found->text, found->length) == 0)
			return false;
	}
	return found != NULL;
}

static bool
is_any(const struct part *part)
{
	(void) part;
	return true;
}

/* All comments among fields are introspect's. */
static void
merge_fields(struct memory *memory, const struct introspect_folder *folder,
			 const struct part *was, const struct part *is, struct part *part)
{
	size_t		head = line_length(is->text, is->text + is->length);
	struct parts old;
	struct parts new;
	struct parts all;

	if (was->length < head || memcmp(was->text, is->text, head) != 0 ||
		!split(memory, was->text + head, was->length - head, 4, &old) ||
		!split(memory, is->text + head, is->length - head, 4, &new))
		return;
	all = begin_all(memory, &old, &new);
	for (size_t i = 0; i < old.count; i++)
	{
		const struct part *field = &old.parts[i];
		const struct part *came = field->key_length == 0 ? NULL :
			find(&new, field);
		struct part *kept = &all.parts[all.count];

		if (came == NULL && !is_of_people(memory, folder, field))
			continue;
		*kept = came ? *came : *field;
		kept->came = came;
		if (came != NULL)
			merge_mapping(memory, OF_FIELD, 4, field, came, kept);
		all.count++;
	}
	add_new(&all, &new, is_any);
	part->text = text_of(memory, is->text, head, &all);
	part->length = strlen(part->text);
}

/* -------- files -------- */

static bool
is_of_entity(const struct part *part)
{
	return is_known(OF_ENTITY, part);
}

static bool
is_of_service(const struct part *part)
{
	return is_known(OF_SERVICE, part);
}

/* came: NULL where introspect writes none */
static void
merge_member(struct memory *memory, const struct introspect_folder *folder,
			 const struct part *old, const struct part *came,
			 struct part *kept)
{
	if (is_key(old, "columns"))
		merge_mapping(memory, OF_COLUMNS, 2, old, came, kept);
	else if (came != NULL && is_key(old, "existing"))
		merge_mapping(memory, OF_EXISTING, 2, old, came, kept);
	else if (came != NULL && is_key(old, "fields"))
		merge_fields(memory, folder, old, came, kept);
}

static void
merge_spec(struct memory *memory, const struct introspect_folder *folder,
		   enum mapping mapping, const struct parts *old,
		   const struct parts *new, struct parts *all)
{
	for (size_t i = 0; i < old->count; i++)
	{
		const struct part *part = &old->parts[i];
		bool		theirs = !is_known(mapping, part);
		const struct part *came = theirs || part->key_length == 0 ? NULL :
			find(new, part);
		struct part *kept = &all->parts[all->count];

		if (theirs || came != NULL)
			*kept = theirs ? *part : *came;
		else
			*kept = (struct part) {.key = "",.text = ""};
		kept->came = came;
		if (!theirs)
			merge_member(memory, folder, part, came, kept);
		all->count += kept->length > 0;
	}
	add_new(all, new, mapping == OF_ENTITY ? is_of_entity : is_of_service);
}

/* All up to the members of "spec"; 0: there are none */
static size_t
head_of(const char *text, size_t length)
{
	static const char spec[] = "\nspec:\n";
	const char *found = length == 0 ? NULL : strstr(text, spec);

	return found ? (size_t) (found - text) + sizeof(spec) - 1 : 0;
}

void
introspect_keep(struct memory *memory, const struct introspect_folder *folder,
				const char *old, size_t length, struct introspect_file *file)
{
	size_t		before = head_of(old, length);
	size_t		after = head_of(file->text, file->length);
	enum mapping mapping = file->table ? OF_ENTITY : OF_SERVICE;
	struct parts were;
	struct parts are;
	struct parts all;

	if (before == 0 || after == 0 || strlen(old) != length ||
		!split(memory, old + before, length - before, 2, &were) ||
		!split(memory, file->text + after, file->length - after, 2, &are))
		return;
	all = begin_all(memory, &were, &are);
	merge_spec(memory, folder, mapping, &were, &are, &all);
	file->text = text_of(memory, file->text, after, &all);
	file->length = strlen(file->text);
}
