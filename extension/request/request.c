#include "postgres.h"

#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "request/request.h"

const char *
ea_request_header(const EaRequest *req, const char *name, bool *repeated)
{
	const char *value = NULL;

	if (repeated != NULL)
		*repeated = false;
	for (int i = 0; i < req->nheaders; i++)
	{
		if (req->headers[i].name[0] != name[0] ||
			strcmp(req->headers[i].name, name) != 0)
			continue;
		if (value == NULL)
			value = req->headers[i].value;
		else if (repeated != NULL)
			*repeated = true;
	}
	return value;
}

const char *
ea_request_list(const EaRequest *req, const char *name)
{
	bool		repeated;
	const char *value = ea_request_header(req, name, &repeated);
	StringInfoData list;

	if (!repeated)
		return value;
	initStringInfo(&list);
	for (int i = 0; i < req->nheaders; i++)
	{
		if (strcmp(req->headers[i].name, name) == 0)
			appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "",
							 req->headers[i].value);
	}
	return list.data;
}

void
ea_request_answer(EaRequest *req, const char *name, const char *value)
{
	int			i;

	for (i = 0; i < req->nanswer; i++)
	{
		if (req->answer[i].name[0] == name[0] &&
			strcmp(req->answer[i].name, name) == 0)
			break;
	}
	if (i == EA_MAX_HEADERS)
		elog(ERROR, "too many answer headers");
	req->answer[i].name = name;
	req->answer[i].value = value;
	if (i == req->nanswer)
		req->nanswer++;
}

void
ea_writing_begin(EaRequest *req, struct EaEntity *entity, EaWritingHow how)
{
	req->writing.entity = entity;
	req->writing.field = req->field;
	req->writing.links = NULL;
	req->writing.deleting = how == EA_WRITING_DELETES ||
		how == EA_WRITING_RELEASES;
	req->writing.releasing = how == EA_WRITING_RELEASES;
	req->writing.restoring = how == EA_WRITING_RESTORES;
	req->deletes |= how == EA_WRITING_DELETES;
}

void
ea_writing_links(EaRequest *req, struct EaEntity *entity,
				 struct EaField *links)
{
	ea_writing_begin(req, entity, EA_WRITING_ROWS);
	req->writing.links = links;
}

void
ea_writing_end(EaRequest *req)
{
	req->writing.operation = NULL;
	req->writing.pointer = NULL;
	req->writing.entity = NULL;
	req->writing.field = NULL;
	req->writing.links = NULL;
}

void
ea_writing_at(EaRequest *req, const char *operation, const char *pointer)
{
	req->writing.operation = operation;
	req->writing.pointer = pointer;
}

TimestampTz
ea_request_clock(void)
{
	Datum		set;

	if (ea_guc_clock[0] == '\0')
		return GetCurrentTimestamp();
	set = DirectFunctionCall3(timestamptz_in, CStringGetDatum(ea_guc_clock),
							  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	return DatumGetTimestampTz(set);
}
