/*
 * Every fault is noted with the parameter it stands in before the request is
 * given up.  Names in faults are decoded where they can be.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"

#include "base/guc.h"
#include "base/names.h"
#include "base/text.h"
#include "base/uuid.h"
#include "request/errors.h"
#include "request/query_string.h"

/* Sort keys beyond this many order nothing that anybody could see. */
#define MAX_SORT_KEYS 32

/* Values that a hint repeats: short, and in need of no quotes. */
#define MAX_SHOWN_VALUE 40
#define PLAIN_VALUE \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@"

/* A parameter that is known, and the function that reads its value. */
typedef struct Known
{
	const char *name;			/* ends in '[': any name in brackets follows */
	int			group;			/* EA_TAKES_* */
	bool		may_be_empty;
	void		(*read) (EaRequest *req, EaQuery *query,
						 const EaParam *param);
	size_t		kept;			/* without a reader: the char * of EaQuery */
} Known;

static bool
has_char(const char *in, int len, char c)
{
	return memchr(in, c, len) != NULL;
}

/* Decode into room for as many bytes; how many it takes, or -1. */
static int
decode_text(const char *in, int len, bool plus, char *out)
{
	int			n = 0;

	/* most bytes stand for themselves */
	if (!has_char(in, len, '%') && !has_char(in, len, '\0') &&
		!(plus && has_char(in, len, '+')))
	{
		memcpy(out, in, len);
		return len;
	}
	for (int i = 0; i < len; i++)
	{
		char		c = in[i];

		if (c == '%')
		{
			int			high = i + 1 < len ? ea_uuid_hex_digit(in[i + 1]) : -1;
			int			low = i + 2 < len ? ea_uuid_hex_digit(in[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -1;
			c = (char) (high << 4 | low);
			i += 2;
		}
		else if (c == '+' && plus)
			c = ' ';
		if (c == '\0')
			return -1;
		out[n++] = c;
	}
	return n;
}

char *
ea_query_decode(const char *in, int len, bool plus, int *decoded)
{
	char	   *out = palloc(len + 1);
	int			n = decode_text(in, len, plus, out);

	if (n < 0 || !ea_text_is_utf8(out, n))
		return NULL;
	out[n] = '\0';
	*decoded = n;
	return out;
}

/*
 * Percent-encode for a query component.  Besides the unreserved characters
 * those stay that filters and sort keys are full of and that mean nothing to
 * the parsers of query strings.
 */
void
ea_query_encode(StringInfo buf, const char *in, int len)
{
	static const char hex[] = "0123456789ABCDEF";
	static const bool stays[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true,
		['-'] = true, ['.'] = true, ['_'] = true, ['~'] = true, [','] = true,
		[':'] = true, ['/'] = true, ['('] = true, [')'] = true
	};
	char	   *out;

	enlargeStringInfo(buf, 3 * len);
	out = buf->data + buf->len;
	for (int i = 0; i < len; i++)
	{
		unsigned char c = in[i];

		if (stays[c])
		{
			*out++ = c;
			continue;
		}
		*out++ = '%';
		*out++ = hex[c >> 4];
		*out++ = hex[c & 15];
	}
	*out = '\0';
	buf->len = out - buf->data;
}

/* Split a list at its commas; an empty value is an empty list. */
static char **
split_list(const char *value, int *count)
{
	char	   *copy = pstrdup(value);
	char	  **items;
	int			n = 1;
	char	   *at;

	*count = 0;
	for (at = copy; *at != '\0'; at++)
		n += *at == ',';
	items = palloc(n * sizeof(char *));
	if (*copy == '\0')
		return items;
	items[(*count)++] = copy;
	for (at = copy; *at != '\0'; at++)
	{
		if (*at == ',')
		{
			*at = '\0';
			items[(*count)++] = at + 1;
		}
	}
	return items;
}

/* A dotted path has no empty names and no spaces; *names counts them. */
static bool
check_path(const char *path, int *names)
{
	const char *at;

	*names = 1;
	for (at = path; *at != '\0'; at++)
	{
		if (*at == ' ' || (*at == '.' && (at == path || at[-1] == '.')))
			return false;
		*names += *at == '.';
	}
	return at > path && at[-1] != '.';
}

/* Digits only, and within 64 bits. */
static bool
parse_count(const char *value, int64 *number)
{
	const char *at;

	*number = 0;
	for (at = value; *at >= '0' && *at <= '9'; at++)
	{
		if (pg_mul_s64_overflow(*number, 10, number) ||
			pg_add_s64_overflow(*number, *at - '0', number))
			return false;
	}
	return at > value && *at == '\0';
}

static void
read_sort(EaRequest *req, EaQuery *query, const EaParam *param)
{
	int			count;
	char	  **items = split_list(param->value, &count);
	int			names;

	if (count > MAX_SORT_KEYS)
	{
		ea_errors_add(req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER, param->name,
					  "The query parameter \"sort\" has more than %d keys.",
					  MAX_SORT_KEYS);
		return;
	}
	query->sort = palloc(count * sizeof(EaSortKey));
	for (int i = 0; i < count; i++)
	{
		EaSortKey  *key = &query->sort[query->nsort];

		key->descending = items[i][0] == '-';
		key->path = items[i] + (key->descending ? 1 : 0);
		if (check_path(key->path, &names))
			query->nsort++;
		else
			ea_errors_add(req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER,
						  param->name,
						  "The sort key \"%s\" is not well-formed.", items[i]);
	}
}

static void
read_page_number(EaRequest *req, EaQuery *query, const EaParam *param)
{
	query->has_number = true;
	if (!parse_count(param->value, &query->page_number) ||
		query->page_number < 1)
	{
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER, param->name,
					  "The query parameter \"page[number]\" must be an "
					  "integer from 1.");
		query->page_number = 1;
	}
}

static void
read_page_size(EaRequest *req, EaQuery *query, const EaParam *param)
{
	int64		size;

	if (!parse_count(param->value, &size) || size < 1 ||
		size > ea_guc_max_page_size)
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER, param->name,
					  "The query parameter \"page[size]\" must be an integer "
					  "from 1 to %d.", ea_guc_max_page_size);
	else
		query->page_size = size;
}

static void
read_page_totals(EaRequest *req, EaQuery *query, const EaParam *param)
{
	query->has_totals = true;
	query->totals = strcmp(param->value, "true") == 0;
	if (!query->totals && strcmp(param->value, "false") != 0)
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER, param->name,
					  "The query parameter \"page[totals]\" must be true or "
					  "false.");
}

static void
read_deleted(EaRequest *req, EaQuery *query, const EaParam *param)
{
	if (strcmp(param->value, "only") == 0)
		query->shown = EA_SHOWN_DELETED;
	else if (strcmp(param->value, "with") == 0)
		query->shown = EA_SHOWN_ALL;
	else
		ea_errors_add(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
					  param->name,
					  "The query parameter \"show[deleted]\" must be only or "
					  "with.");
}

static void
read_include(EaRequest *req, EaQuery *query, const EaParam *param)
{
	int			names;

	query->has_include = true;
	query->include = split_list(param->value, &query->ninclude);
	if (query->ninclude > ea_guc_max_include_paths)
	{
		ea_errors_add(req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
					  param->name,
					  "The query parameter \"include\" has more than %d "
					  "paths.",
					  ea_guc_max_include_paths);
		return;
	}
	for (int i = 0; i < query->ninclude; i++)
	{
		const char *path = query->include[i];

		if (!check_path(path, &names))
			ea_errors_add(req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						  param->name,
						  "The include path \"%s\" is not well-formed.", path);
		else if (names > ea_guc_max_include_depth)
			ea_errors_add(req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						  param->name,
						  "The include path \"%s\" is more than %d deep.",
						  path, ea_guc_max_include_depth);
	}
}

static void
read_fields(EaRequest *req, EaQuery *query, const EaParam *param)
{
	EaFieldset *set = &query->fieldsets[query->nfieldsets++];
	const char *type = strchr(param->name, '[') + 1;
	int			names;

	set->type = pnstrdup(type, strlen(type) - 1);
	set->parameter = param->name;
	set->names = split_list(param->value, &set->nnames);
	for (int i = 0; i < set->nnames; i++)
	{
		if (!check_path(set->names[i], &names) || names > 1)
			ea_errors_add(req, EA_ERR_INVALID_FIELDS, EA_AT_PARAMETER,
						  param->name, "The type \"%s\" has no field \"%s\".",
						  set->type, set->names[i]);
	}
}

#define KEPT(member) false, NULL, offsetof(EaQuery, member)

static const Known known[] =
{
	{"filter", EA_TAKES_LIST | EA_TAKES_KEYSET, KEPT(filter)},
	{"sort", EA_TAKES_LIST, false, read_sort},
	{"page[number]", EA_TAKES_LIST, false, read_page_number},
	{"page[size]", EA_TAKES_LIST | EA_TAKES_KEYSET | EA_TAKES_SIZE, false,
	read_page_size},
	{"page[after]", EA_TAKES_KEYSET | EA_TAKES_CURSOR, KEPT(page_after)},
	{"page[before]", EA_TAKES_CURSOR, KEPT(page_before)},
	{"page[totals]", EA_TAKES_LIST, false, read_page_totals},
	{"show[deleted]", EA_TAKES_DELETED, false, read_deleted},
	{"asOf", EA_TAKES_AS_OF, KEPT(as_of)},
	{"include", EA_TAKES_SHAPE, true, read_include},
	{"fields[", EA_TAKES_SHAPE, true, read_fields},
};

/*
 * Names in other services; the first row whose own name is taken here holds.
 */
static const struct
{
	const char *theirs;
	const char *ours;
}			synonyms[] =
{
	{"limit", "page[size]"},
	{"page[limit]", "page[size]"},
	{"per_page", "page[size]"},
	{"perPage", "page[size]"},
	{"size", "page[size]"},
	{"page", "page[number]"},
	{"page", "page[after]"},
	{"page[number]", "page[after]"},
	{"offset", "page[number]"},
	{"offset", "page[after]"},
	{"page[offset]", "page[number]"},
	{"page[offset]", "page[after]"},
	{"cursor", "page[after]"},
	{"after", "page[after]"},
	{"page[cursor]", "page[after]"},
	{"before", "page[before]"},
	{"order", "sort"},
	{"order_by", "sort"},
	{"orderBy", "sort"},
	{"sort_by", "sort"},
	{"sortBy", "sort"},
	{"expand", "include"},
	{"embed", "include"},
	{"fields", "fields[type]"},
	{"q", "filter"},
	{"where", "filter"},
	{"search", "filter"},
	{"deleted", "show[deleted]"},
	{"trashed", "show[deleted]"},
	{"withDeleted", "show[deleted]"},
	{"includeDeleted", "show[deleted]"},
	{"include_deleted", "show[deleted]"},
};

/* The row of a parameter, or NULL when this endpoint does not take it. */
static const Known *
find_known(const char *param, int takes)
{
	for (int i = 0; i < lengthof(known); i++)
	{
		const char *name = known[i].name;
		int			len = strlen(name);

		if ((known[i].group & takes) == 0)
			continue;
		if (strcmp(name, param) == 0 && name[len - 1] != '[')
			return &known[i];
		if (name[len - 1] == '[' && strncmp(name, param, len) == 0)
		{
			const char *inner = param + len;
			int			inner_len = strcspn(inner, "[]");

			if (inner_len > 0 && strcmp(inner + inner_len, "]") == 0)
				return &known[i];
		}
	}
	return NULL;
}

/* As errors show it. */
static const char *
shown_name(const char *name)
{
	return strcmp(name, "fields[") == 0 ? "fields[type]" : name;
}

/* `filter[status]=x` of other services is `filter=status==x`, or NULL. */
static const char *
filter_guess(const EaParam *param, int takes)
{
	const char *inner;
	const char *value = param->value;
	int			len;

	if (strncmp(param->name, "filter[", strlen("filter[")) != 0 ||
		find_known("filter", takes) == NULL)
		return NULL;
	inner = param->name + strlen("filter[");
	len = strcspn(inner, "[]\"'();,=<>!~ ");
	if (len == 0 || strcmp(inner + len, "]") != 0)
		return NULL;
	if (param->len == 0 || param->len > MAX_SHOWN_VALUE ||
		value[strspn(value, PLAIN_VALUE)] != '\0')
		value = "'...'";
	return ea_names_meant(psprintf("filter=%.*s==%s", len, inner, value));
}

/* A guess at the meaning of a parameter that this endpoint does not take. */
static const char *
guess_parameter(const EaParam *param, int takes)
{
	const char *names[lengthof(known)];
	const char *filter = filter_guess(param, takes);
	int			n = 0;

	if (filter != NULL)
		return filter;
	for (int i = 0; i < lengthof(synonyms); i++)
	{
		const char *ours = synonyms[i].ours;

		if (strcmp(synonyms[i].theirs, param->name) == 0 &&
			find_known(ours, takes) != NULL)
			return ea_names_meant(ours);
	}
	for (int i = 0; i < lengthof(known); i++)
	{
		if ((known[i].group & takes) != 0)
			names[n++] = shown_name(known[i].name);
	}
	return ea_names_guess(param->name, names, n);
}

/* The parameter stands among those before it. */
static bool
is_repeated(const EaQuery *query, const EaParam *param)
{
	for (const EaParam *before = query->params; before < param; before++)
	{
		if (strcmp(before->name, param->name) == 0)
			return true;
	}
	return false;
}

static void
read_param(EaRequest *req, EaQuery *query, const EaParam *param, int takes)
{
	const Known *row = find_known(param->name, takes);

	if (row == NULL)
		ea_errors_add(req, EA_ERR_UNKNOWN_PARAMETER, EA_AT_PARAMETER,
					  param->name, "The query parameter \"%s\" is unknown%s.",
					  param->name, guess_parameter(param, takes));
	else if (is_repeated(query, param))
		ea_errors_add(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
					  param->name,
					  "The query parameter \"%s\" is given more than once.",
					  param->name);
	else if (param->len == 0 && !row->may_be_empty)
		ea_errors_add(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
					  param->name,
					  "The query parameter \"%s\" must not be empty.",
					  param->name);
	else if (row->read != NULL)
		row->read(req, query, param);
	else
		*(char **) ((char *) query + row->kept) = param->value;
}

/* One `name=value`, split at its first '=' and decoded. */
static void
decode_param(EaRequest *req, EaQuery *query, const char *in, int len)
{
	const char *equals = memchr(in, '=', len);
	int			name_len = equals == NULL ? len : equals - in;
	EaParam    *param = &query->params[query->nparams];
	int			ignored;

	param->name = ea_query_decode(in, name_len, true, &ignored);
	if (param->name == NULL)
	{
		ea_errors_add(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
					  pnstrdup(in, name_len),
					  "The name of a query parameter is not encoded "
					  "properly.");
		return;
	}
	if (equals == NULL)
	{
		param->value = pstrdup("");
		param->len = 0;
	}
	else
		param->value = ea_query_decode(equals + 1, len - name_len - 1, true,
									   &param->len);
	if (param->value == NULL)
		ea_errors_add(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
					  param->name,
					  "The query parameter \"%s\" is not encoded properly.",
					  param->name);
	else
		query->nparams++;
}

bool
ea_query_is_position(const char *name)
{
	return strcmp(name, "page[number]") == 0 ||
		strcmp(name, "page[after]") == 0 ||
		strcmp(name, "page[before]") == 0;
}

/* A list stands at one place. */
static void
check_position(EaRequest *req, EaQuery *query)
{
	const char *name = query->page_after != NULL ? "page[after]"
		: "page[before]";

	if (query->page_after == NULL && query->page_before == NULL)
		return;
	if (query->has_number)
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER, name,
					  "The query parameters \"%s\" and \"page[number]\" "
					  "exclude each other.", name);
	if (query->page_after != NULL && query->page_before != NULL)
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
					  "page[before]",
					  "The query parameters \"page[before]\" and "
					  "\"page[after]\" exclude each other.");
	if (!query->has_totals)
		query->totals = false;
}

EaQuery *
ea_query_read(EaRequest *req, int takes)
{
	EaQuery    *query = palloc0(sizeof(EaQuery));
	const char *at;
	int64		offset;
	int			count = 1;

	query->page_number = 1;
	query->page_size = Min(ea_guc_default_page_size, ea_guc_max_page_size);
	query->totals = true;
	if (req->query == NULL)
		return query;

	for (at = req->query; (at = strchr(at, '&')) != NULL; at++)
		count++;
	query->params = palloc(count * sizeof(EaParam));
	query->fieldsets = palloc(count * sizeof(EaFieldset));

	for (at = req->query; *at != '\0'; at += *at == '&' ? 1 : 0)
	{
		int			len = strcspn(at, "&");

		if (len > 0)
			decode_param(req, query, at, len);
		at += len;
	}
	for (int i = 0; i < query->nparams; i++)
	{
		CHECK_FOR_INTERRUPTS();
		read_param(req, query, &query->params[i], takes);
	}
	check_position(req, query);

	if (pg_mul_s64_overflow(query->page_number - 1, query->page_size,
							&offset))
		ea_errors_add(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
					  "page[number]",
					  "The query parameter \"page[number]\" is too large.");
	ea_errors_check(req);
	return query;
}
