/*
 * Only the server log asks for it, when a request has failed.  A client's text
 * must not write lines of its own there, so it is checked here, whoever has
 * checked it before.
 */
#include "postgres.h"

#include "request/trace.h"

#define HEX "0123456789abcdef"

/* version "-" trace-id "-" parent-id "-" flags */
static const struct
{
	int			start;
	int			len;
}			parts[] =
{
	{0, 2},
	{3, 32},
	{36, 16},
	{53, 2}
};

#define TRACE_ID 1
#define TOTAL 55

char *
ea_trace_id(EaRequest *req)
{
	bool		repeated;
	const char *header = ea_request_header(req, "traceparent", &repeated);

	if (header == NULL || repeated || strlen(header) < TOTAL)
		return NULL;
	for (int i = 0; i < lengthof(parts); i++)
	{
		const char *part = header + parts[i].start;

		if (strspn(part, HEX) != parts[i].len ||
			(i < lengthof(parts) - 1 && part[parts[i].len] != '-'))
			return NULL;
	}
	return pnstrdup(header + parts[TRACE_ID].start, parts[TRACE_ID].len);
}
