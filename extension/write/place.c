#include "postgres.h"

#include "base/guc.h"
#include "request/errors.h"
#include "write/place.h"

char *
ea_place_nearest(EaRequest *req, const char *pointer)
{
	EaJsonFault fault;
	EaJson	   *at = ea_jsonread_parse(req->body, req->body_len,
									   ea_guc_max_json_depth, &fault);
	const char *end = pointer;

	while (at != NULL && *end == '/')
	{
		int			len = strcspn(end + 1, "/");
		char	   *token = pnstrdup(end + 1, len);

		if (at->kind == EA_JSON_ARRAY)
		{
			int			index = atoi(token);

			for (at = at->first; at != NULL && index > 0; index--)
				at = at->next;
		}
		else
			at = ea_jsonread_get(at, token);
		if (at != NULL)
			end += len + 1;
	}
	return pnstrdup(pointer, end - pointer);
}

static char *
field_pointer(EaRequest *req, const EaField *field, const EaField *address)
{
	const EaWriting *w = &req->writing;
	const char *base = w->pointer == NULL ? "/data" : w->pointer;

	/* where a relationship is written, data is its value */
	if (address != NULL)
		return ea_errors_pointer(w->operation == NULL ? "" : w->operation,
								 "data");
	base = ea_errors_pointer(base, field->kind == EA_ATTRIBUTE
							 ? "attributes" : "relationships");
	return ea_errors_pointer(base, field->name);
}

char *
ea_place_field(EaRequest *req, const EaField *field, const EaField *address)
{
	return ea_place_nearest(req, field_pointer(req, field, address));
}

bool
ea_place_is_sent(EaRequest *req, const EaField *field, const EaField *address)
{
	char	   *pointer = field_pointer(req, field, address);

	return strcmp(ea_place_nearest(req, pointer), pointer) == 0;
}
