#include "postgres.h"

#include "base/jsonread.h"
#include "request/errors.h"
#include "request/etag.h"

typedef struct Tag
{
	bool		weak;
	bool		fits;			/* within int64 */
	int64		version;
} Tag;

static const char *
skip_blank(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == ',')
		p++;
	return p;
}

/* One `"12"` or `W/"12"`; NULL when malformed. */
static const char *
read_tag(const char *p, Tag *tag)
{
	const char *digits;

	tag->weak = strncmp(p, "W/", 2) == 0;
	if (tag->weak)
		p += 2;
	if (*p++ != '"')
		return NULL;
	digits = p;
	tag->version = 0;
	tag->fits = true;
	for (; *p >= '0' && *p <= '9'; p++)
	{
		if (tag->version > (PG_INT64_MAX - 9) / 10)
			tag->fits = false;
		else
			tag->version = tag->version * 10 + (*p - '0');
	}
	/* "01" is no version's tag, though it is a number */
	if (*digits == '0' && p - digits > 1)
		tag->fits = false;
	if (p == digits || *p++ != '"')
		return NULL;
	p += strspn(p, " \t");
	return *p == '\0' || *p == ',' ? p : NULL;
}

void
ea_etag_if_match(EaRequest *req, EaIfMatch *match)
{
	const char *p = ea_request_header(req, "if-match", NULL);

	memset(match, 0, sizeof(*match));
	if (p == NULL)
		return;
	match->given = true;
	match->versions = palloc((strlen(p) / 3 + 1) * sizeof(int64));
	p = skip_blank(p);
	if (strcmp(p, "*") == 0)
	{
		match->any = true;
		return;
	}
	do
	{
		Tag			tag;

		p = read_tag(p, &tag);
		if (p == NULL)
			ea_errors_throw(req, EA_ERR_INVALID_HEADER, EA_AT_HEADER,
							"If-Match",
							"If-Match must be a quoted version number.");
		if (!tag.weak && tag.fits)
			match->versions[match->n++] = tag.version;
		p = skip_blank(p);
	} while (*p != '\0');
}

bool
ea_etag_meta(EaRequest *req, const EaJson *object, const char *pointer,
			 int64 *version)
{
	EaJson	   *member = ea_jsonread_get(ea_jsonread_get(object, "meta"),
										 "version");
	char	   *end;

	if (member == NULL)
		return false;
	errno = 0;
	*version = strtoll(member->kind == EA_JSON_NUMBER ? member->text : "",
					   &end, 10);
	if (member->kind != EA_JSON_NUMBER || *end != '\0' || errno != 0 ||
		*version < 0)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						psprintf("%s/meta/version", pointer),
						"The member \"version\" must be a version number.");
	return true;
}

bool
ea_etag_matches(const EaIfMatch *match, int64 version)
{
	if (!match->given || match->any)
		return true;
	for (int i = 0; i < match->n; i++)
	{
		if (match->versions[i] == version)
			return true;
	}
	return false;
}

bool
ea_etag_not_modified(EaRequest *req, int64 version)
{
	const char *p = ea_request_list(req, "if-none-match");

	if (p == NULL)
		return false;
	p = skip_blank(p);
	if (strcmp(p, "*") == 0)
		return true;
	while (*p != '\0')
	{
		Tag			tag;

		/* a tag that is none of ours cannot match */
		p = read_tag(p, &tag);
		if (p == NULL)
			return false;
		if (tag.fits && tag.version == version)
			return true;
		p = skip_blank(p);
	}
	return false;
}

void
ea_etag_answer(EaRequest *req, int64 version)
{
	ea_request_answer(req, "etag", psprintf("\"" INT64_FORMAT "\"", version));
}
