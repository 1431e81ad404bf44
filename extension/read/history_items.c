/*
 * The caller sees the members that it may read now, and of their targets those
 * that it may read now.  An actor in another tenant, where a record is about
 * rows that all tenants share, is that tenant's affair.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "authz/authz.h"
#include "authz/policy_sql.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "read/history_items.h"
#include "request/limits.h"

/* The parameter that makes the answer smaller. */
#define PAGE "page[size]"

/* A value is read as a tree, as what it is, and as text. */
#define COPIES_OF_VALUE 3

/* Resources of one kind that are referred to. */
typedef struct Targets
{
	EaRequest  *req;
	MemoryContext kept;			/* the list of ids lies there */
	EaEntity   *entity;
	bool		shown;			/* the caller may read the kind at all */
	bool		asks;			/* which of them, policies have a say in */
	EaIds		wanted;
	EaIds		seen;			/* sorted */
} Targets;

typedef struct Writer
{
	StringInfo	out;
	EaRequest  *req;
	EaPast	   *past;
	bool		reads;			/* the entity, by its roles */
	List	   *targets;		/* of Targets *, in kept */
	MemoryContext kept;
	MemoryContext mcxt;			/* for one record at a time */
} Writer;

/* -------- targets -------- */

static Targets *
targets_of(Writer *w, EaField *field, int member)
{
	EaEntity   *entity = ea_catalog_target(field, member);
	MemoryContext old;
	Targets    *targets;
	ListCell   *lc;

	foreach(lc, w->targets)
	{
		targets = lfirst(lc);
		if (targets->entity == entity)
			return targets;
	}
	old = MemoryContextSwitchTo(w->kept);
	targets = palloc0(sizeof(Targets));
	targets->req = w->req;
	targets->kept = w->kept;
	targets->entity = entity;
	targets->wanted.key = targets->seen.key = &entity->key;
	targets->shown = ea_catalog_shows(entity, w->req->version) &&
		ea_authz_allows(w->req, entity, EA_OP_READ);
	targets->asks = targets->shown &&
		(ea_catalog_may_move(entity) ||
		 ea_policy_sql_judge(w->req, entity, EA_OP_READ, NULL) !=
		 EA_VERDICT_YES);
	w->targets = lappend(w->targets, targets);
	MemoryContextSwitchTo(old);
	return targets;
}

static bool
shows_target(const Targets *targets, const EaId *id)
{
	return targets->shown &&
		(!targets->asks || ea_id_is_among(id, &targets->seen));
}

/* Call fn for each id of a list, as the log has it. */
static void
each_id(Targets *targets, const char *json,
		void (*fn) (void *arg, const EaId *id), void *arg)
{
	EaJsonFault fault;
	EaJson	   *list = ea_jsonread_parse(json, strlen(json),
										 EA_JSON_MAX_DEPTH, &fault);
	EaId		id;

	for (EaJson *item = list ? list->first : NULL; item; item = item->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (item->kind == EA_JSON_STRING &&
			ea_id_parse(targets->req, &targets->entity->key, item->text,
						item->len, &id))
			fn(arg, &id);
	}
}

static void
want_id(void *arg, const EaId *id)
{
	Targets    *targets = arg;
	MemoryContext old = MemoryContextSwitchTo(targets->kept);

	ea_limits_keep(targets->req, 2 * sizeof(EaId), PAGE);
	*EA_GROW(&targets->wanted) = *id;
	MemoryContextSwitchTo(old);
}

static void
want_targets(Writer *w, const EaLogRecord *record, const EaLogChange *change,
			 const char *json)
{
	EaField    *field = change->field;
	Targets    *targets;
	EaPastValue value;

	if (ea_catalog_is_to_many(field))
	{
		targets = targets_of(w, field, 0);
		each_id(targets, json, want_id, targets);
		return;
	}
	ea_past_values_read(w->req, w->past->names, field, record->revision, json,
						&value);
	if (value.known && !value.isnull)
		want_id(targets_of(w, field, value.member), &value.id);
}

/* Deleted ones are shown as others are: they were there in the past. */
static void
look_for(Writer *w, Targets *targets)
{
	EaEntity   *entity = targets->entity;
	EaSqlBuf	b;
	int			alias;

	if (!targets->asks || targets->wanted.n == 0)
		return;
	ea_sqlbuf_init(&b, w->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_among(&b, alias, entity->id_column, "= ANY", &targets->wanted);
	ea_sqlbuf_run_ids(&b, EA_EXEC_READ, &targets->seen);
	ea_id_sort(&targets->seen);
}

/* -------- members -------- */

static bool
is_shown(Writer *w, EaField *field)
{
	return w->reads && ea_authz_readable(w->req, field);
}

typedef struct IdWriter
{
	StringInfo	out;
	Targets    *targets;
} IdWriter;

static void
write_id(void *arg, const EaId *id)
{
	IdWriter   *ids = arg;

	if (!shows_target(ids->targets, id))
		return;
	ea_jsonwrite_comma(ids->out);
	ea_id_write(ids->out, &ids->targets->entity->key, id);
}

static void
write_list(Writer *w, EaField *field, const char *json)
{
	IdWriter	ids = {w->out, targets_of(w, field, 0)};

	if (strcmp(json, "null") == 0)
	{
		ea_jsonwrite_lit(w->out, "null");
		return;
	}
	appendStringInfoCharMacro(w->out, '[');
	each_id(ids.targets, json, write_id, &ids);
	appendStringInfoCharMacro(w->out, ']');
}

static void
write_value(Writer *w, EaField *field, int revision, const char *json)
{
	EaPastValue value;

	if (ea_catalog_is_to_many(field))
	{
		write_list(w, field, json);
		return;
	}
	ea_limits_keep(w->req, COPIES_OF_VALUE * strlen(json), PAGE);
	ea_past_values_read(w->req, w->past->names, field, revision, json, &value);
	if (field->kind == EA_ATTRIBUTE ||
		(value.known && !value.isnull &&
		 shows_target(targets_of(w, field, value.member),
					  &value.id)))
		ea_past_values_write(w->out, field, &value, json, strlen(json));
	else
		ea_jsonwrite_lit(w->out, "null");
}

/*
 * A relationship between targets that the caller may not read is left out: it
 * would tell that there is something.
 */
static void
write_change(Writer *w, const EaLogRecord *record, const EaLogChange *change)
{
	StringInfo	out = w->out;
	EaField    *field = change->field;
	int			start = out->len;
	int			from;
	int			end;
	int			to;

	ea_jsonwrite_key(out, field->name);
	ea_jsonwrite_lit(out, "{\"from\":");
	from = out->len;
	write_value(w, field, record->revision, change->from);
	end = out->len;
	ea_jsonwrite_lit(out, ",\"to\":");
	to = out->len;
	write_value(w, field, record->revision, change->to);
	if (field->kind != EA_ATTRIBUTE &&
		ea_past_values_alike(pnstrdup(out->data + from, end - from),
							 pnstrdup(out->data + to, out->len - to)))
	{
		out->len = start;
		out->data[start] = '\0';
	}
	else
		appendStringInfoCharMacro(out, '}');
}

static void
write_changes(Writer *w, const EaLogRecord *record, const EaLogDetail *detail)
{
	for (int i = 0; i < detail->nchanges; i++)
	{
		if (is_shown(w, detail->changes[i].field))
			write_change(w, record, &detail->changes[i]);
	}
}

/* -------- items -------- */

static bool
tells_actor(const EaRequest *req, const EaLogDetail *detail)
{
	return req->principal->super_admin ||
		(detail->has_tenant && req->has_tenant &&
		 ea_uuid_equal(&detail->tenant, &req->tenant));
}

static void
write_item(Writer *w, const EaLogRecord *record)
{
	StringInfo	out = w->out;
	EaLogDetail detail;
	int			start = out->len;

	ea_limits_answer(w->req, out->len, PAGE);
	ea_resource_log_detail(w->past->log, record, &detail);
	ea_jsonfmt_put(out, "%,{'type':'changes','id':%u,'attributes':"
				   "{'at':%t,'action':%q,'actor':", &record->id, record->at,
				   detail.action);
	if (tells_actor(w->req, &detail) &&
		(detail.actor_id != NULL || detail.actor_username != NULL))
		ea_jsonfmt_put(out, "{'id':%q,'kind':%q,'username':%q}",
					   detail.actor_id, detail.actor_kind,
					   detail.actor_username);
	else
		ea_jsonwrite_lit(out, "null");
	ea_jsonwrite_lit(out, ",\"changes\":{");
	write_changes(w, record, &detail);
	ea_jsonwrite_lit(out, "},\"version\":");
	if (record->has_version)
		ea_text_number(out, record->version);
	else
		ea_jsonwrite_lit(out, "null");
	ea_jsonwrite_lit(out, "}}");
	ea_limits_keep(w->req, out->len - start, PAGE);
}

/*
 * The targets before and after the changes, as far as the caller may read
 * them.
 */
static void
want_of_record(Writer *w, const EaLogRecord *record)
{
	EaLogDetail detail;

	ea_resource_log_detail(w->past->log, record, &detail);
	for (int i = 0; i < detail.nchanges; i++)
	{
		const EaLogChange *change = &detail.changes[i];

		if (change->field->kind == EA_ATTRIBUTE ||
			!is_shown(w, change->field))
			continue;
		want_targets(w, record, change, change->from);
		want_targets(w, record, change, change->to);
	}
}

static bool
has_relationships(const EaEntity *entity)
{
	for (int i = 0; i < entity->nfields; i++)
	{
		if (entity->fields[i].kind != EA_ATTRIBUTE)
			return true;
	}
	return false;
}

/* Call fn for each record; what it allocates is freed between them. */
static void
each_record(Writer *w, const EaLogRecord *const *records, int n,
			void (*fn) (Writer *w, const EaLogRecord *record))
{
	MemoryContext old = MemoryContextSwitchTo(w->mcxt);

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fn(w, records[i]);
		MemoryContextReset(w->mcxt);
	}
	MemoryContextSwitchTo(old);
}

void
ea_history_items(StringInfo out, EaRequest *req, EaPast *past,
				 const EaLogRecord *const *records, int n)
{
	Writer		w = {out, req, past};
	ListCell   *lc;

	w.reads = ea_authz_allows(req, past->entity, EA_OP_READ);
	w.kept = CurrentMemoryContext;
	w.mcxt = AllocSetContextCreate(CurrentMemoryContext,
								   "entityapi item of a history",
								   ALLOCSET_DEFAULT_SIZES);
	if (has_relationships(past->entity))
		each_record(&w, records, n, want_of_record);
	foreach(lc, w.targets)
		look_for(&w, lfirst(lc));
	each_record(&w, records, n, write_item);
	MemoryContextDelete(w.mcxt);
}
