#include "postgres.h"

#include "mb/pg_wchar.h"

#include "request/errors.h"
#include "request/negotiation.h"

#define JSONAPI "application/vnd.api+json"
#define JSON "application/json"
#define FORM "application/x-www-form-urlencoded"
#define MAX_SHOWN 200			/* bytes of a header, in an error */
#define ATOMIC_EXT "https://jsonapi.org/ext/atomic"

/* One media range or type of a header, with the parameters that matter. */
typedef struct MediaType
{
	char		name[128];		/* lower case; "" when malformed */
	bool		has_ext;
	bool		atomic;			/* ext is exactly the atomic extension */
	bool		has_profile;
	bool		foreign;		/* some parameter but ext, profile, q */
	const char *parameter;		/* the first of these, as sent */
	const char *ext;			/* and the extension, with its name */
	bool		charset_utf8;	/* the only foreign one is charset=utf-8 */
	bool		weighted;		/* has q, which only Accept may */
	bool		excluded;		/* q=0 */
} MediaType;

const char *
ea_negotiation_answer(EaMedia media)
{
	switch (media)
	{
		case EA_MEDIA_JSONAPI:
			return JSONAPI;
		case EA_MEDIA_ATOMIC:
			return JSONAPI ";ext=\"" ATOMIC_EXT "\"";
		default:
			return JSON;
	}
}

/* The case of most clients: the type of the answer, as it is written here. */
static bool
is_answer(const char *header, EaMedia media)
{
	return header != NULL &&
		strcmp(header, ea_negotiation_answer(media)) == 0;
}

static const char *
skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

static bool
is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || (c != '\0' && strchr("!#$%&'*+-.^_`|~/", c));
}

/* Copy a token, or the inside of a quoted string, to out (cut at size). */
static const char *
read_word(const char *p, char *out, int size, bool lower)
{
	int			n = 0;
	bool		quoted = *p == '"';

	if (quoted)
		p++;
	while (*p != '\0' && (quoted ? *p != '"' : is_token(*p)))
	{
		if (quoted && *p == '\\' && p[1] != '\0')
			p++;
		if (n < size - 1)
			out[n++] = lower ? pg_ascii_tolower((unsigned char) *p) : *p;
		p++;
	}
	if (quoted && *p == '"')
		p++;
	out[n] = '\0';
	return p;
}

static void
note_parameter(MediaType *type, const char *name, const char *value,
			   const char *sent)
{
	if (strcmp(name, "ext") == 0)
	{
		type->has_ext = true;
		type->ext = sent;
		type->atomic = strcmp(value, ATOMIC_EXT) == 0;
	}
	else if (strcmp(name, "q") == 0)
	{
		type->weighted = true;
		type->excluded = strtod(value, NULL) <= 0;
	}
	else if (strcmp(name, "profile") == 0)
		type->has_profile = true;
	else
	{
		type->charset_utf8 = !type->foreign &&
			strcmp(name, "charset") == 0 && pg_strcasecmp(value, "utf-8") == 0;
		if (!type->foreign)
			type->parameter = sent;
		type->foreign = true;
	}
}

/* Read one type and its parameters; returns where it ends: ',' or NUL. */
static const char *
read_type(const char *p, MediaType *type)
{
	char		name[32];
	char		value[256];

	memset(type, 0, sizeof(*type));
	p = skip_space(read_word(skip_space(p), type->name, sizeof(type->name),
							 true));
	while (*p == ';')
	{
		const char *sent = p = skip_space(p + 1);

		p = skip_space(read_word(p, name, sizeof(name), true));
		value[0] = '\0';
		if (*p == '=')
			p = skip_space(read_word(skip_space(p + 1), value, sizeof(value),
									 false));
		if (name[0] != '\0')
			note_parameter(type, name, value, sent);
	}
	if (*p != ',' && *p != '\0')
	{
		type->name[0] = '\0';
		while (*p != ',' && *p != '\0')
			p++;
	}
	return p;
}

/*
 * A document of JSON:API is JSON, and most clients say no more of it.  The
 * type is none that a page of another origin may send without being asked
 * for, as it may those of forms.
 */
static bool
is_plain_json(const MediaType *type)
{
	return strcmp(type->name, JSON) == 0 &&
		(!type->foreign || type->charset_utf8) && !type->has_ext &&
		!type->has_profile;
}

static bool
fits_body(const MediaType *type, EaMedia media)
{
	switch (media)
	{
		case EA_MEDIA_JSONAPI:
			return is_plain_json(type) ||
				(strcmp(type->name, JSONAPI) == 0 && !type->foreign &&
				 !type->has_ext);
		case EA_MEDIA_ATOMIC:
			return strcmp(type->name, JSONAPI) == 0 && !type->foreign &&
				type->atomic;
		case EA_MEDIA_JSON_OR_FORM:
			if (strcmp(type->name, FORM) == 0)
				return !type->foreign || type->charset_utf8;
			/* FALLTHROUGH */
		case EA_MEDIA_JSON:
		case EA_MEDIA_OPENAPI:
			return strcmp(type->name, JSON) == 0 &&
				(!type->foreign || type->charset_utf8) && !type->has_ext;
	}
	return false;
}

static bool
is_jsonapi(EaMedia media)
{
	return media == EA_MEDIA_JSONAPI || media == EA_MEDIA_ATOMIC;
}

/* How exactly a range of Accept names the answer's type; 0: not at all. */
static int
precision(const MediaType *type, EaMedia media)
{
	if (strcmp(type->name, "*/*") == 0)
		return 1;
	if (strcmp(type->name, "application/*") == 0)
		return 2;
	/* JSON:API is JSON: whoever wants that gets it, with its own name */
	if (strcmp(type->name, JSON) == 0)
		return is_jsonapi(media) ? (type->excluded ? 0 : 2) : 3;
	return is_jsonapi(media) && fits_body(type, media) ? 3 : 0;
}

/* A parameter as it was sent, or a part of it that an error can show. */
static char *
shown(const char *sent)
{
	int			len = 0;
	bool		quoted = false;

	while (sent[len] != '\0' &&
		   (quoted || strchr(";, \t", sent[len]) == NULL))
	{
		if (sent[len] == '"')
			quoted = !quoted;
		len++;
	}
	return pnstrdup(sent, pg_mbcliplen(sent, len, MAX_SHOWN));
}

/* The reason why a type is not the one that is wanted here, NULL if it is. */
static const char *
misfit(const MediaType *type, EaMedia media)
{
	if (type->name[0] == '\0')
		return "no media type stands there";
	if (media == EA_MEDIA_JSONAPI && strcmp(type->name, JSON) == 0)
	{
		if (type->has_profile)
			return "the parameter profile is not allowed";
		media = EA_MEDIA_JSON;
	}
	if (strcmp(type->name, is_jsonapi(media) ? JSONAPI : JSON) != 0 &&
		!(media == EA_MEDIA_JSON_OR_FORM && strcmp(type->name, FORM) == 0))
		return psprintf("\"%s\" is another type", type->name);
	if (type->foreign && (is_jsonapi(media) || !type->charset_utf8))
		return psprintf("the parameter %s is not allowed",
						shown(type->parameter));
	if (type->has_ext && !(media == EA_MEDIA_ATOMIC && type->atomic))
		return psprintf("the extension %s is not %s", shown(type->ext),
						type->atomic ? "used here" : "known");
	if (media == EA_MEDIA_ATOMIC && !type->has_ext)
		return "the extension is missing";
	return NULL;
}

static void
check_content_type(EaRequest *req)
{
	const char *header = ea_request_header(req, "content-type", NULL);
	const char *why = "the header is missing";
	MediaType	type;

	if (is_answer(header, req->route->media))
		return;
	if (header != NULL)
	{
		bool		single = *read_type(header, &type) == '\0';

		if (single && !type.weighted && fits_body(&type, req->route->media))
			return;
		why = misfit(&type, req->route->media);
		if (why == NULL)
			why = single ? "the parameter q is not allowed"
				: "there is more than one type";
	}
	ea_errors_throw(req, EA_ERR_UNSUPPORTED_MEDIA_TYPE, EA_AT_HEADER,
					"Content-Type", "The body must be sent as %s: %s.",
					ea_negotiation_answer(req->route->media), why);
}

/* The reason why the nearest range does not do: one of the type itself. */
static const char *
refused_range(const char *header, EaMedia media)
{
	const char *nearest = NULL;
	MediaType	type;

	for (const char *p = header;; p++)
	{
		p = read_type(p, &type);
		if (strcmp(type.name, is_jsonapi(media) ? JSONAPI : JSON) == 0)
		{
			const char *why = misfit(&type, media);

			return psprintf(": %s", why != NULL ? why : "q=0 excludes it");
		}
		if (nearest == NULL)
			nearest = type.excluded ? "q=0 excludes it" :
				misfit(&type, media);
		if (*p == '\0')
			return nearest == NULL ? "" : psprintf(": %s", nearest);
	}
}

static void
check_accept(EaRequest *req)
{
	const char *p = ea_request_list(req, "accept");
	MediaType	type;
	int			best = 0;
	bool		accepted = false;
	const char *first = p;

	if (p == NULL || is_answer(p, req->route->media) ||
		*skip_space(p) == '\0')
		return;
	for (;;)
	{
		int			exact;

		p = read_type(p, &type);
		exact = precision(&type, req->route->media);
		/* the most precise range decides (RFC 9110 section 12.5.1) */
		if (exact > best)
			accepted = false;
		if (exact > 0 && exact >= best)
		{
			best = exact;
			accepted = accepted || !type.excluded;
		}
		if (*p == '\0')
			break;
		p++;
	}
	if (accepted)
		return;
	ea_errors_throw(req, EA_ERR_NOT_ACCEPTABLE, EA_AT_HEADER, "Accept",
					"Only %s can be sent%s.",
					ea_negotiation_answer(req->route->media),
					refused_range(first, req->route->media));
}

void
ea_negotiation_check(EaRequest *req)
{
	if (req->body_len > 0)
		check_content_type(req);
	check_accept(req);
}

bool
ea_negotiation_is_form(EaRequest *req)
{
	const char *header = ea_request_header(req, "content-type", NULL);
	MediaType	type;

	if (header == NULL)
		return false;
	read_type(header, &type);
	return strcmp(type.name, FORM) == 0;
}
