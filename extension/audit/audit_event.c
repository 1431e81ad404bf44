/*
 * Code that writes entities notes what a request did to them.  Everything else
 * follows from its route, which names the action, and where its target is
 * found.
 */
#include "postgres.h"

#include "access/xact.h"

#include "audit/audit.h"
#include "audit/audit_event.h"
#include "base/uuid.h"
#include "model/catalog.h"
#include "request/errors.h"
#include "request/route.h"

typedef struct Event
{
	const char *action;
	const char *target_type;	/* NULL: that of the entity in the path */
	int			target;			/* EA_TARGET_* */
} Event;

/* Reading; of interest only when it is denied. */
static const Event reading = {EA_AUDIT_ACCESS_DENIED};

/* A credential that was not believed, whatever it was sent for. */
static const Event authentication = {EA_AUDIT_AUTHENTICATION};

/* Each request that changes something has a name. */
static Event
event_of(const EaRoute *route)
{
	Event		event = {
		route->action, route->target_type, route->target
	};

	if (event.action == NULL)
		event.action = "REQUEST";
	return event;
}

static bool
is_entity_request(EaRequest *req)
{
	return req->route->area == EA_AREA_API;
}

static const EaPrincipal *
subject_of(EaRequest *req)
{
	if (req->principal != NULL)
		return req->principal;
	return req->audit == NULL ? NULL : req->audit->subject;
}

/* An argument of the path, if it is a UUID. */
static const char *
uuid_argument(EaRequest *req, int index)
{
	pg_uuid_t	id;

	if (index >= req->nargs ||
		!ea_uuid_parse(req->args[index], strlen(req->args[index]), &id))
		return NULL;
	return ea_uuid_text(&id);
}

/* Where the address of a resource has its id. */
#define RESOURCE_ARGUMENT 2

/* The same of an entity's resources, whose ids have its key. */
static const char *
id_argument(EaRequest *req, int index)
{
	const EaEntity *entity = req->entity;
	EaId		id;

	if (entity == NULL || index != RESOURCE_ARGUMENT)
		return uuid_argument(req, index);
	if (index >= req->nargs ||
		!ea_id_parse(req, &entity->key, req->args[index],
					 strlen(req->args[index]), &id))
		return NULL;
	return ea_id_text(&entity->key, &id);
}

/* Some refusals have a body of their own and note no fault. */
static bool
has_failed(EaRequest *req)
{
	return req->nproblems > 0 || req->status >= 400;
}

static const char *
target_id(EaRequest *req, const Event *event)
{
	const EaPrincipal *subject = subject_of(req);
	const char *location = NULL;

	if (req->audit != NULL && req->audit->made != NULL && !has_failed(req))
		return req->audit->made;
	switch (event->target)
	{
		case EA_TARGET_NOWHERE:
			return NULL;
		case EA_TARGET_SUBJECT:
			return subject == NULL ? NULL : subject->user_id;
		case EA_TARGET_LOCATION:
			for (int i = 0; i < req->nanswer && !has_failed(req); i++)
			{
				if (strcmp(req->answer[i].name, "location") == 0)
					location = req->answer[i].value;
			}
			location = location == NULL ? NULL : strrchr(location, '/');
			return location == NULL ? NULL : location + 1;
		default:
			return id_argument(req, event->target - EA_TARGET_ARGUMENT(0));
	}
}

/*
 * The tenant that a request acts in, or tried to: for management that of the
 * path.  An actor that was denied authority over a tenant has not acted there,
 * and its administrators do not hear of it.
 */
static void
set_tenant(EaRequest *req, EaAuditFrame *frame, const char *id,
		   const char *type)
{
	const EaPrincipal *subject = subject_of(req);
	bool		denied = strcmp(frame->outcome, "DENIED") == 0;

	if (!denied && id != NULL && type != NULL && strcmp(type, "tenant") == 0)
		frame->has_tenant = ea_uuid_parse(id, strlen(id), &frame->tenant);
	else if (!denied && req->route->area == EA_AREA_TENANT &&
			 uuid_argument(req, 0) != NULL)
		frame->has_tenant = ea_uuid_parse(req->args[0], strlen(req->args[0]),
										  &frame->tenant);
	else if (req->has_tenant)
	{
		frame->has_tenant = true;
		frame->tenant = req->tenant;
	}
	else if (subject != NULL && subject->has_tenant)
	{
		frame->has_tenant = true;
		frame->tenant = subject->tenant;
	}
}

/*
 * The actor.  Without a credential that is the account that the request was
 * about, once it has succeeded; until then only its name was claimed.
 */
static void
set_actor(EaRequest *req, EaAuditFrame *frame)
{
	const EaPrincipal *subject = subject_of(req);

	if (req->principal != NULL || !has_failed(req))
		frame->actor = subject;
	else if (subject != NULL)
		frame->username = subject->username;
}

/* Note the request itself, and write. */
static void
write_event(EaRequest *req, const Event *event, EaAuditFrame *frame,
			const char *detail)
{
	const char *type = event->target_type;
	const char *id = target_id(req, event);
	EaAuditRecord *record;

	if (type == NULL && req->entity != NULL)
		type = req->entity->type;
	record = ea_audit_note(req, event->action, type, NULL);
	if (req->audit->action != NULL)
		record->action = req->audit->action;
	record->target_id = id;
	record->detail = detail;
	if (detail == NULL)
	{
		record->changes = req->audit->own.changes;
		record->detail = req->audit->own.detail;
	}
	set_tenant(req, frame, id, type);
	ea_audit_write(req, frame);
}

static const char *
outcome_of(EaRequest *req)
{
	if (!has_failed(req))
		return "SUCCESS";
	return req->status == 403 || req->status == 429 ? "DENIED" : "FAILURE";
}

/* The code of the first fault: the rest comes from the caller. */
static const char *
detail_of(EaRequest *req)
{
	const char *word;

	if (req->nproblems == 0)
		return req->route == NULL || req->route->action != NULL
			? NULL : req->route->pattern;
	word = ea_errors_word(req->problems[0].code);
	return req->writing.operation == NULL ? word
		: psprintf("%s at %s", word, req->writing.operation);
}

/* Written from a standby or in a read-only transaction there are none. */
static bool
can_write(EaRequest *req)
{
	return req->route != NULL && req->catalog != NULL && !XactReadOnly;
}

/* A request from nobody that was not even understood is no event. */
static bool
is_noise(EaRequest *req)
{
	if (req->nproblems > 0 &&
		req->problems[0].code == EA_ERR_INVITE_INVALID)
		return false;
	switch (req->status)
	{
		case 400:
		case 405:
		case 406:
		case 413:
		case 414:
		case 415:
		case 431:
			return true;
	}
	return false;
}

/* Further subjects of the request, in the tenants of these accounts. */
static void
write_others(EaRequest *req)
{
	Event		event = event_of(req->route);
	ListCell   *cell;

	req->audit->own.changes = NULL;
	foreach(cell, req->audit->others)
	{
		EaAuditFrame frame = {outcome_of(req)};

		req->audit->subject = lfirst(cell);
		set_actor(req, &frame);
		write_event(req, &event, &frame, detail_of(req));
	}
}

void
ea_audit_keep(EaRequest *req)
{
	EaAuditFrame frame = {outcome_of(req)};
	const EaPrincipal *subject;
	Event		event;

	if (!can_write(req) || req->method == EA_GET)
		return;
	subject = subject_of(req);
	set_actor(req, &frame);
	if (is_entity_request(req))
	{
		if (req->audit == NULL || req->audit->n == 0)
			return;
		set_tenant(req, &frame, NULL, NULL);
		ea_audit_write(req, &frame);
		return;
	}

	/* to end a session that nobody has is no event */
	if (!req->catalog->audit_identity ||
		(req->route->authority == EA_ANYBODY && is_noise(req)) ||
		(subject == NULL && (req->route->flags & EA_ROUTE_OF_ACCOUNT)))
		return;
	event = event_of(req->route);
	write_event(req, &event, &frame, detail_of(req));
	write_others(req);
}

void
ea_audit_refuse(EaRequest *req)
{
	EaAuditFrame frame = {outcome_of(req)};
	Event		event;
	bool		unknown = false;

	if (!can_write(req) || req->nproblems == 0)
		return;
	if (req->audit != NULL)
		req->audit->n = 0;
	event = event_of(req->route);
	if (req->route->authority == EA_ANYBODY)
	{
		if (is_noise(req) || req->method == EA_GET)
			return;
	}
	else if (req->principal == NULL)
	{
		if (req->problems[0].code != EA_ERR_INVALID_CREDENTIAL)
			return;
		event = authentication;
		unknown = true;
	}
	else if (req->method == EA_GET)
	{
		if (req->status != 403)
			return;
		event = reading;
	}
	set_actor(req, &frame);
	if (!unknown && is_entity_request(req)
		? req->catalog->audit_entities : req->catalog->audit_identity)
		write_event(req, &event, &frame, detail_of(req));
}
