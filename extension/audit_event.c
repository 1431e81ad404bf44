/*-------------------------------------------------------------------------
 *
 * audit_event.c
 *	  A request as an event of the audit log: its action, target, outcome.
 *
 * What a request did to entities is noted by those who do it.  Everything
 * else follows from its route: one table names the action, and where its
 * target is found.
 *
 * extension/audit_event.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "audit.h"
#include "catalog.h"
#include "route.h"
#include "uuid.h"

/* Where the id of the target is found, unless in that argument of the path */
#define AT_SUBJECT	(-1)		/* the account that the request is about */
#define AT_LOCATION	(-2)		/* the last segment of the Location header */
#define AT_NOWHERE	(-3)

typedef struct Event
{
	EaMethod	method;
	const char *pattern;		/* names in braces do not matter */
	const char *action;
	const char *target_type;	/* NULL: that of the entity in the path */
	int			target;			/* argument of the path, or AT_* */
} Event;

#define TENANT "/manage/tenants/{id}"
#define RELATIONSHIP \
	"/api/v{n}/{entities}/{id}/relationships/{relationship}"

static const Event events[] = {
	{EA_POST, "/auth/login", "LOGIN", "user", AT_SUBJECT},
	{EA_POST, "/auth/refresh", "TOKEN_REFRESH", "user", AT_SUBJECT},
	{EA_POST, "/auth/logout", "LOGOUT", "user", AT_SUBJECT},
	{EA_POST, "/auth/token", "TOKEN_ISSUED", "service-account", AT_SUBJECT},
	{EA_POST, "/auth/accept-invite", "INVITE_ACCEPTED", "user", AT_SUBJECT},
	{EA_PATCH, "/auth/me", "PROFILE_UPDATED", "user", AT_SUBJECT},
	{EA_POST, "/auth/change-password", "PASSWORD_CHANGED", "user",
	AT_SUBJECT},
	{EA_POST, "/auth/me/api-keys", "API_KEY_CREATED", "personal-api-key",
	AT_LOCATION},
	{EA_POST, "/auth/me/api-keys/{keyId}/disable", "API_KEY_DISABLED",
	"personal-api-key", 0},

	{EA_POST, "/manage/tenants", "TENANT_CREATED", "tenant", AT_LOCATION},
	{EA_PATCH, TENANT, "TENANT_UPDATED", "tenant", 0},
	{EA_DELETE, TENANT, "TENANT_DELETED", "tenant", 0},
	{EA_POST, TENANT "/users", EA_AUDIT_USER_CREATED, "user", AT_LOCATION},
	{EA_PATCH, TENANT "/users/{uid}", "USER_UPDATED", "user", 1},
	{EA_DELETE, TENANT "/users/{uid}", "USER_DELETED", "user", 1},
	{EA_PUT, TENANT "/users/{uid}/roles", "ROLES_CHANGED", "user", 1},
	{EA_POST, TENANT "/tenant-admins/{uid}", EA_AUDIT_TENANT_ADMIN_GRANTED,
	"user", 1},
	{EA_DELETE, TENANT "/tenant-admins/{uid}", "TENANT_ADMIN_REVOKED", "user",
	1},
	{EA_POST, TENANT "/invites", "INVITE_CREATED", "invite", AT_LOCATION},
	{EA_DELETE, TENANT "/invites/{inviteId}", "INVITE_DELETED", "invite", 1},
	{EA_POST, TENANT "/service-accounts", "SERVICE_ACCOUNT_CREATED",
	"service-account", AT_LOCATION},
	{EA_POST, TENANT "/service-accounts/{accountId}/disable",
	"SERVICE_ACCOUNT_DISABLED", "service-account", 1},
	{EA_POST, TENANT "/service-accounts/{accountId}/rotate-secret",
	"SERVICE_ACCOUNT_SECRET_ROTATED", "service-account", 1},
	{EA_POST, TENANT "/personal-api-keys/{keyId}/revoke", "API_KEY_REVOKED",
	"personal-api-key", 1},
	{EA_PUT, TENANT "/settings/personal-api-keys", "API_KEY_SETTINGS_CHANGED",
	"tenant", 0},
	{EA_PUT, "/manage/settings/personal-api-keys", "API_KEY_SETTINGS_CHANGED",
	"settings", AT_NOWHERE},

	{EA_POST, "/api/v{n}/operations", "OPERATIONS", NULL, AT_NOWHERE},
	{EA_POST, "/api/v{n}/{entities}", EA_AUDIT_ENTITY_CREATE, NULL,
	AT_NOWHERE},
	{EA_PATCH, "/api/v{n}/{entities}/{id}", EA_AUDIT_ENTITY_UPDATE, NULL, 2},
	{EA_DELETE, "/api/v{n}/{entities}/{id}", EA_AUDIT_ENTITY_DELETE, NULL, 2},
	{EA_POST, RELATIONSHIP, EA_AUDIT_RELATIONSHIP_ADD, NULL, 2},
	{EA_PATCH, RELATIONSHIP, EA_AUDIT_RELATIONSHIP_REPLACE, NULL, 2},
	{EA_DELETE, RELATIONSHIP, EA_AUDIT_RELATIONSHIP_REMOVE, NULL, 2}
};

/* No request that changes something goes without a name. */
static const Event unnamed = {0, "", "REQUEST", NULL, AT_NOWHERE};

/* Reading; of interest only when it is denied. */
static const Event reading = {
	EA_GET, "", EA_AUDIT_ACCESS_DENIED, NULL, AT_NOWHERE
};

/* A credential that was not believed, whatever it was sent for. */
static const Event authentication = {
	0, "", EA_AUDIT_AUTHENTICATION, NULL, AT_NOWHERE
};

/* Equal but for the names in braces. */
static bool
same_pattern(const char *a, const char *b)
{
	for (; *a != '\0' && *a == *b; a++, b++)
	{
		if (*a != '{')
			continue;
		a += strcspn(a, "}");
		b += strcspn(b, "}");
	}
	return *a == *b;
}

static const Event *
find_event(const EaRoute *route)
{
	for (int i = 0; i < lengthof(events); i++)
	{
		if (events[i].method == route->method &&
			same_pattern(events[i].pattern, route->pattern))
			return &events[i];
	}
	return &unnamed;
}

static bool
is_entity_request(EaRequest *req)
{
	return strncmp(req->route->pattern, "/api/", 5) == 0;
}

static const EaPrincipal *
subject_of(EaRequest *req)
{
	if (req->principal != NULL)
		return req->principal;
	return req->audit == NULL ? NULL : req->audit->subject;
}

/* An argument of the path, if it is what it should be. */
static const char *
uuid_argument(EaRequest *req, int index)
{
	pg_uuid_t	id;

	if (index >= req->nargs ||
		!ea_uuid_parse(req->args[index], strlen(req->args[index]), &id))
		return NULL;
	return ea_uuid_text(&id);
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
		case AT_SUBJECT:
			return subject == NULL ? NULL : subject->user_id;
		case AT_LOCATION:
			for (int i = 0; i < req->nanswer && !has_failed(req); i++)
			{
				if (strcmp(req->answer[i].name, "location") == 0)
					location = req->answer[i].value;
			}
			location = location == NULL ? NULL : strrchr(location, '/');
			return location == NULL ? NULL : location + 1;
		case AT_NOWHERE:
			return NULL;
		default:
			return uuid_argument(req, event->target);
	}
}

/*
 * The tenant that a request acts in, or tried to: for management that of the
 * path.  Whoever was denied authority over a tenant has not acted there, and
 * its administrators do not hear of him.
 */
static void
set_tenant(EaRequest *req, EaAuditFrame *frame, const char *id,
		   const char *type)
{
	const EaPrincipal *subject = subject_of(req);
	bool		denied = strcmp(frame->outcome, "DENIED") == 0;

	if (!denied && id != NULL && type != NULL && strcmp(type, "tenant") == 0)
		frame->has_tenant = ea_uuid_parse(id, strlen(id), &frame->tenant);
	else if (!denied &&
			 strncmp(req->route->pattern, "/manage/tenants/{", 17) == 0 &&
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
 * Who asked.  Without a credential that is the account it was about, once the
 * request has succeeded; until then only its name was claimed.
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

/* The code of the first fault: the rest is what the caller sent. */
static const char *
detail_of(EaRequest *req)
{
	const char *word;

	if (req->nproblems == 0)
		return req->route == NULL || find_event(req->route) != &unnamed
			? NULL : req->route->pattern;
	word = ea_errors_word(req->problems[0].code);
	return req->operation == NULL ? word
		: psprintf("%s at %s", word, req->operation);
}

/* Written from a standby or in a read-only transaction there are none. */
static bool
can_write(EaRequest *req)
{
	return req->route != NULL && req->catalog != NULL && !XactReadOnly;
}

/* What came from nobody and was not even understood is no event. */
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

/* What the request was about besides, in the tenants of these accounts. */
static void
write_others(EaRequest *req)
{
	ListCell   *cell;

	req->audit->own.changes = NULL;
	foreach(cell, req->audit->others)
	{
		EaAuditFrame frame = {outcome_of(req)};

		req->audit->subject = lfirst(cell);
		set_actor(req, &frame);
		write_event(req, find_event(req->route), &frame, detail_of(req));
	}
}

void
ea_audit_keep(EaRequest *req)
{
	EaAuditFrame frame = {outcome_of(req)};
	const EaPrincipal *subject;

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
		(subject == NULL &&
		 strcmp(find_event(req->route)->action, "LOGOUT") == 0))
		return;
	write_event(req, find_event(req->route), &frame, detail_of(req));
	write_others(req);
}

void
ea_audit_refuse(EaRequest *req)
{
	EaAuditFrame frame = {outcome_of(req)};
	const Event *event;

	if (!can_write(req) || req->nproblems == 0)
		return;
	if (req->audit != NULL)
		req->audit->n = 0;
	event = find_event(req->route);
	if (req->route->authority == EA_ANYBODY)
	{
		if (is_noise(req) || req->method == EA_GET)
			return;
	}
	else if (req->principal == NULL)
	{
		if (req->problems[0].code != EA_ERR_INVALID_CREDENTIAL)
			return;
		event = &authentication;
	}
	else if (req->method == EA_GET)
	{
		if (req->status != 403)
			return;
		event = &reading;
	}
	set_actor(req, &frame);
	if (event != &authentication && is_entity_request(req)
		? req->catalog->audit_entities : req->catalog->audit_identity)
		write_event(req, event, &frame, detail_of(req));
}
