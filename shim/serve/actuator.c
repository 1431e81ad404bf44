/*
 * Metrics are for operators.  They are never shown at the addresses of
 * "listen" unless "metrics" says so; then, and always at those of
 * "admin_listen", whoever can connect may read them.  Where they are not
 * shown, entityapi.handle() answers as for any address that there is not.
 */
#include <string.h>

#include "base/metrics_text.h"
#include "serve/actuator.h"

#define METRICS "/actuator/metrics"
#define PROMETHEUS "/actuator/prometheus"
#define LIVENESS "/actuator/health/liveness"
#define SECURITY_TXT "/.well-known/security.txt"
#define MAX_NAME 128

#define JSON_HEADERS \
	"Content-Type: application/json\r\nCache-Control: no-store\r\n"
#define TEXT_HEADERS \
	"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" \
	"Cache-Control: no-store\r\n"
#define SECURITY_HEADERS \
	"Content-Type: text/plain; charset=utf-8\r\n" \
	"Cache-Control: max-age=3600\r\n"

/* What follows a path must be nothing, or a query, which says nothing here. */
static bool
is_whole(const char *rest)
{
	return rest != NULL && (*rest == '\0' || *rest == '?');
}

/* Of other methods than these entityapi.handle() says that there are none. */
static bool
is_liveness(const struct request *request)
{
	return (request->is_head || strcmp(request->method, "GET") == 0) &&
		is_whole(request_path_rest(request->target.data, LIVENESS));
}

bool
actuator_concerns(const struct request *request, bool is_admin)
{
	return is_admin ||
		(request->area == AREA_OTHER &&
		 (request_path_rest(request->target.data, METRICS) != NULL ||
		  request_path_rest(request->target.data, PROMETHEUS) != NULL ||
		  request->extra.config->security_text != NULL ||
		  is_liveness(request)));
}

/* Fills the page for a metrics path; false if there is no such page. */
static bool
write_page(const char *target, const struct metrics_gauges *gauges,
		   struct page *page)
{
	const char *rest;
	char		name[MAX_NAME];
	size_t		length;

	page->headers = JSON_HEADERS;
	if (is_whole(request_path_rest(target, PROMETHEUS)))
	{
		page->route = PROMETHEUS;
		page->headers = TEXT_HEADERS;
		metrics_write_text(&page->body, gauges);
		return true;
	}
	rest = request_path_rest(target, METRICS);
	if (is_whole(rest))
	{
		page->route = METRICS;
		metrics_write_names(&page->body);
		return true;
	}
	if (rest == NULL || *rest++ != '/')
		return false;
	length = strcspn(rest, "?");
	if (length >= sizeof(name))
		return false;
	memcpy(name, rest, length);
	name[length] = '\0';
	page->route = METRICS "/{name}";
	return metrics_write_one(&page->body, name, gauges);
}

/*
 * Liveness is that of the shim: nothing is won by restarting it because the
 * database is away, or has too much to do.
 */
static void
write_liveness(struct page *page)
{
	page->route = LIVENESS;
	page->headers = JSON_HEADERS;
	buffer_string(&page->body, "{\"status\":\"UP\"}");
}

/* Fills the page that is everybody's; false if it is another one. */
static bool
write_public_page(const struct request *request, struct page *page)
{
	const char *text = request->extra.config->security_text;

	if (text == NULL ||
		!is_whole(request_path_rest(request->target.data, SECURITY_TXT)))
		return false;
	page->route = SECURITY_TXT;
	page->headers = SECURITY_HEADERS;
	buffer_string(&page->body, text);
	buffer_char(&page->body, '\n');
	return true;
}

enum actuator_verdict
actuator_serve(const struct request *request, bool is_admin,
			   const struct metrics_gauges *gauges, struct page *page,
			   const struct refusal **refusal)
{
	const char *target = request->target.data;
	const char *rest = request_path_rest(target, "/actuator");
	bool		shown = is_admin || request->extra.config->metrics;

	*refusal = NULL;
	if (is_liveness(request))
		write_liveness(page);
	else if (!gauges->ready && request->probe != NULL &&
		is_whole(request_path_rest(target, "/actuator/health/readiness")))
		*refusal = &refusal_unavailable;
	else if ((!is_admin && write_public_page(request, page)) ||
			 (shown && write_page(target, gauges, page)))
	{
		if (!request->is_head && strcmp(request->method, "GET") != 0)
			*refusal = &refusal_method;
	}
	else if (is_admin && (rest == NULL || *rest != '/'))
		*refusal = &refusal_not_found;
	else
		return ACTUATOR_PASS;
	return *refusal != NULL ? ACTUATOR_REFUSED : ACTUATOR_PAGE;
}
