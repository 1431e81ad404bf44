/*
 * The relation cache's invalidation messages carry the change: they are
 * transactional, reach every backend and hot standbys, and cost nothing while
 * nothing changes.  A server process has few places for callbacks and none can
 * be given back, so there is exactly one.
 *
 * They do not reach other nodes: see cluster/undecided.c.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "engine/held.h"
#include "engine/invalidate.h"

static const char *const watched_names[] = {"entity", "signing_key"};

#define WATCHED_ENTITY 0
#define WATCHED_KEYS 1

static Oid	watched[lengthof(watched_names)];
static uint64 generation = 1;
static uint64 messages = 0;

/* Runs at odd moments: must not look at any catalog. */
static void
relation_changed(Datum arg, Oid relid)
{
	messages++;
	ea_held_relation_changed(relid);
	if (relid == InvalidOid)
	{
		generation++;
		return;
	}
	for (int i = 0; i < lengthof(watched); i++)
	{
		if (watched[i] == relid)
			generation++;
	}
}

void
ea_invalidate_init(void)
{
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
}

uint64
ea_invalidate_generation(void)
{
	return generation;
}

void
ea_invalidate_all(void)
{
	generation++;
}

uint64
ea_invalidate_messages(void)
{
	AcceptInvalidationMessages();
	return messages;
}

static Oid
relation_oid(const char *name)
{
	Oid			schema = get_namespace_oid("entityapi", true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

void
ea_invalidate_watch(void)
{
	for (int i = 0; i < lengthof(watched); i++)
		watched[i] = relation_oid(watched_names[i]);
}

/* -------- announcing -------- */

static void
announce_table(int table)
{
	Oid			relid = relation_oid(watched_names[table]);

	if (OidIsValid(relid))
		CacheInvalidateRelcacheByRelid(relid);
}

void
ea_invalidate_catalog(void)
{
	announce_table(WATCHED_ENTITY);
}

void
ea_invalidate_keys(void)
{
	announce_table(WATCHED_KEYS);
}
