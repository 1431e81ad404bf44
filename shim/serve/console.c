/*
 * The console is a client like any other: what it shows it asks of the public
 * API, with the token of its user.  So nothing here knows a user or asks the
 * database, and everybody may have the files.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "serve/console.h"

#define PLACE "/console"

/*
 * Scripts, styles and answers come from here and nowhere else, and nothing
 * may hold the pages in a frame.
 */
#define POLICY \
	"Content-Security-Policy: default-src 'none'; script-src 'self'; " \
	"style-src 'self'; img-src 'self' data:; connect-src 'self'; " \
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n" \
	"Referrer-Policy: no-referrer\r\n" \
	"Cross-Origin-Opener-Policy: same-origin\r\n" \
	"Cross-Origin-Resource-Policy: same-origin\r\n"

/* Where all begins; relative, as a proxy may have put us below a path. */
#define LEAD "Location: console/\r\nCache-Control: no-store\r\n"

#define HTML "text/html; charset=utf-8"
#define STYLE "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define IMAGE "image/svg+xml"

/* All files of console/ that are served; a test compares. */
#define FILES(FILE) \
	FILE(index, "index.html", HTML) \
	FILE(style, "style.css", STYLE) \
	FILE(icon, "icon.svg", IMAGE) \
	FILE(account, "account.js", SCRIPT) \
	FILE(api, "api.js", SCRIPT) \
	FILE(audit, "audit.js", SCRIPT) \
	FILE(csv, "csv.js", SCRIPT) \
	FILE(declarations, "declarations.js", SCRIPT) \
	FILE(element, "element.js", SCRIPT) \
	FILE(explain, "explain.js", SCRIPT) \
	FILE(explorer, "explorer.js", SCRIPT) \
	FILE(factor, "factor.js", SCRIPT) \
	FILE(filter, "filter.js", SCRIPT) \
	FILE(form, "form.js", SCRIPT) \
	FILE(frame, "frame.js", SCRIPT) \
	FILE(history, "history.js", SCRIPT) \
	FILE(home, "home.js", SCRIPT) \
	FILE(inputs, "inputs.js", SCRIPT) \
	FILE(kinds, "kinds.js", SCRIPT) \
	FILE(list, "list.js", SCRIPT) \
	FILE(login, "login.js", SCRIPT) \
	FILE(main, "main.js", SCRIPT) \
	FILE(manage, "manage.js", SCRIPT) \
	FILE(model, "model.js", SCRIPT) \
	FILE(picker, "picker.js", SCRIPT) \
	FILE(read, "read.js", SCRIPT) \
	FILE(record, "record.js", SCRIPT) \
	FILE(relations, "relations.js", SCRIPT) \
	FILE(route, "route.js", SCRIPT) \
	FILE(rsql, "rsql.js", SCRIPT) \
	FILE(settings, "settings.js", SCRIPT) \
	FILE(system, "system.js", SCRIPT) \
	FILE(text, "text.js", SCRIPT) \
	FILE(transfer, "transfer.js", SCRIPT) \
	FILE(ui, "ui.js", SCRIPT)

/* The bytes of a file, and where they end; the Makefile knows of them. */
#define EMBED(symbol, file, type) \
	__asm__(".section .rodata\n" \
			"console_" #symbol ":\n.incbin \"console/" file "\"\n" \
			"console_" #symbol "_end:\n.byte 0\n.text\n"); \
	extern const char console_##symbol[] \
			__attribute__((visibility("hidden"))); \
	extern const char console_##symbol##_end[] \
			__attribute__((visibility("hidden")));
FILES(EMBED)

#define ROW(symbol, file, type) \
	{file, type, console_##symbol, console_##symbol##_end},
static const struct file
{
	const char *name;
	const char *type;
	const char *bytes;
	const char *end;
}			files[] =
{
	FILES(ROW)
};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

/* What the ETags tell of the files, made once. */
static char tags[FILE_COUNT][20];
static pthread_once_t tags_made = PTHREAD_ONCE_INIT;

/* FNV-1a: it has to tell versions of a file apart, and nothing else. */
static void
make_tags(void)
{
	size_t		i;

	for (i = 0; i < FILE_COUNT; i++)
	{
		uint64_t	hash = UINT64_C(0xcbf29ce484222325);
		const char *p;

		for (p = files[i].bytes; p < files[i].end; p++)
			hash = (hash ^ (unsigned char) *p) * UINT64_C(0x100000001b3);
		snprintf(tags[i], sizeof(tags[i]), "%016llx",
				 (unsigned long long) hash);
	}
}

/* What follows a path must be nothing, or a query, which says nothing here. */
static bool
is_whole(const char *rest)
{
	return rest != NULL && (*rest == '\0' || *rest == '?');
}

static bool
is_reading(const struct request *request)
{
	return request->is_head || strcmp(request->method, "GET") == 0;
}

/* The top is a way to the console for who reads, and nothing for others. */
static bool
is_top(const struct request *request)
{
	return is_reading(request) &&
		is_whole(request_path_rest(request->target.data, "/"));
}

bool
console_concerns(const struct request *request)
{
	const char *rest;

	if (request->area != AREA_OTHER || !request->extra.config->console)
		return false;
	rest = request_path_rest(request->target.data, PLACE);
	return (rest != NULL && (*rest == '/' || is_whole(rest))) ||
		is_top(request);
}

/* The number of the file below PLACE, or -1. */
static int
find_file(const char *rest)
{
	size_t		i;

	for (i = 0; i < FILE_COUNT; i++)
	{
		if (is_whole(request_path_rest(rest, files[i].name)))
			return (int) i;
	}
	return is_whole(rest) ? 0 : -1;
}

/* RFC 9110, section 13.1.2: weak comparison, of a list */
static bool
is_matched(const char *if_none_match, const char *tag)
{
	const char *found;

	if (if_none_match == NULL)
		return false;
	found = strstr(if_none_match, tag);
	return found != NULL || strcmp(if_none_match, "*") == 0;
}

static void
lead(struct console_answer *answer)
{
	answer->status = 302;
	buffer_string(&answer->headers, LEAD POLICY);
}

static void
serve_file(const struct request *request, int number,
		   const char *if_none_match, struct console_answer *answer)
{
	const struct file *file = &files[number];
	size_t		length = (size_t) (file->end - file->bytes);
	char		tag[32];

	/* strong: what is compressed has other bytes, and so another tag */
	pthread_once(&tags_made, make_tags);
	snprintf(tag, sizeof(tag), "\"%.16s%s\"", tags[number],
			 extra_prefers_gzip(&request->extra, length) ? "-gzip" : "");
	answer->status = is_matched(if_none_match, tag) ? 304 : 200;
	buffer_printf(&answer->headers, "ETag: %s\r\n"
				  "Cache-Control: no-cache\r\n" POLICY, tag);
	if (answer->status == 200)
	{
		buffer_printf(&answer->headers, "Content-Type: %s\r\n", file->type);
		buffer_append(&answer->body, file->bytes, length);
	}
}

void
console_serve(const struct request *request, const char *if_none_match,
			  struct console_answer *answer)
{
	const char *rest = request_path_rest(request->target.data, PLACE);
	int			number;

	answer->route = is_top(request) ? "/" : PLACE "/{file}";
	if (!is_reading(request))
		answer->refusal = &refusal_method;
	else if (is_top(request) || is_whole(rest))
		lead(answer);
	else if ((number = find_file(rest + 1)) < 0)
		answer->refusal = &refusal_not_found;
	else
		serve_file(request, number, if_none_match, answer);
}
