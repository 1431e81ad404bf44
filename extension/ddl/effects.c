#include "postgres.h"

#include "access/table.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/rel.h"

#include "ddl/effects.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"

#define BUILDS "builds an index"
#define READS "reads all rows"
#define MOVES "moves rows to other nodes, or back"
#define REWRITES "rewrites the table"
#define WRITES "writes rows"

/*
 * The beginnings of statements, the words right after the name that follows,
 * and their ends; the first that fits counts.  Nothing is looked for anywhere
 * else, as literals may say anything.  ALTER TABLE comes without a lock weaker
 * than the strongest unless it is named here; a new foreign key only keeps
 * writers away.
 */
static const struct
{
	const char *begin;
	const char *then;
	const char *end;
	LOCKMODE	lock;
	const char *effect;
}			effects[] =
{
	{"CREATE INDEX CONCURRENTLY", "", "", ShareUpdateExclusiveLock, BUILDS},
	{"CREATE UNIQUE INDEX CONCURRENTLY", "", "", ShareUpdateExclusiveLock,
	BUILDS},
	{"CREATE INDEX", "", "", ShareLock, BUILDS},
	{"CREATE UNIQUE INDEX", "", "", ShareLock, BUILDS},
	{"SELECT create_", "", "", AccessExclusiveLock, MOVES},
	{"SELECT undistribute_table(", "", "", AccessExclusiveLock, MOVES},
	{"UPDATE ", "", "", RowExclusiveLock, WRITES},
	{"WITH ", "", "", RowExclusiveLock, WRITES},
	{"INSERT ", "", "", RowExclusiveLock, WRITES},
	{"LOCK TABLE ", "", "", NoLock, NULL},
	{"GRANT", "", "", NoLock, NULL},
	{"REVOKE", "", "", NoLock, NULL},
	{"CREATE SCHEMA", "", "", NoLock, NULL},
	{"COMMENT", "", "", NoLock, NULL},
	{"VALIDATE CONSTRAINT", "", "", ShareUpdateExclusiveLock, READS},
	{"ADD CONSTRAINT ", " FOREIGN KEY (", " NOT VALID",
	ShareRowExclusiveLock, NULL},
	{"ADD CONSTRAINT ", " FOREIGN KEY (", "", ShareRowExclusiveLock, READS},
	{"ADD CONSTRAINT ", "", " NOT VALID", AccessExclusiveLock, NULL},
	{"ADD CONSTRAINT ", " UNIQUE USING INDEX ", "", AccessExclusiveLock,
	NULL},
	{"ADD CONSTRAINT ", " UNIQUE (", "", AccessExclusiveLock, BUILDS},
	{"ADD CONSTRAINT ", " PRIMARY KEY (", "", AccessExclusiveLock, BUILDS},
	{"ADD CONSTRAINT ", "", "", AccessExclusiveLock, READS},
	{"ALTER COLUMN ", " SET NOT NULL", "", AccessExclusiveLock, READS},
	{"", "", "", AccessExclusiveLock, NULL}
};

static bool
begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool
ends_with(const char *text, const char *suffix)
{
	size_t		len = strlen(text);

	return len >= strlen(suffix) &&
		strcmp(text + len - strlen(suffix), suffix) == 0;
}

/* Behind a name, which may be quoted. */
static const char *
after_name(const char *at)
{
	bool		quoted = false;

	for (; *at != '\0' && (quoted || *at != ' '); at++)
	{
		CHECK_FOR_INTERRUPTS();
		if (*at == '"')
			quoted = !quoted;
	}
	return at;
}

static bool
fits_effect(int i, const char *what)
{
	if (!begins_with(what, effects[i].begin))
		return false;
	return begins_with(after_name(what + strlen(effects[i].begin)),
					   effects[i].then) && ends_with(what, effects[i].end);
}

/* The text after ALTER TABLE and the table's name. */
static const char *
action_of(const EaDdlStatement *statement)
{
	static const char alter[] = "ALTER TABLE ";
	const char *sql = statement->sql;
	const EaDdlTable *tables[] = {statement->table, statement->stored};

	if (!begins_with(sql, alter))
		return sql;
	sql += strlen(alter);
	for (int i = 0; i < lengthof(tables); i++)
	{
		if (tables[i] != NULL && begins_with(sql, tables[i]->qualified))
			return sql + strlen(tables[i]->qualified) + 1;
	}
	return sql;
}

static void
classify_statement(EaDdlStatement *statement)
{
	const char *what = action_of(statement);
	int			i = 0;

	while (!fits_effect(i, what))
		i++;
	statement->lock = effects[i].lock;
	statement->effect = statement->rewrites ? REWRITES : effects[i].effect;

	/* after a check that has been validated there is nothing left to read */
	if (statement->deferred && statement->lock == AccessExclusiveLock)
		statement->effect = NULL;
}

/* Rows, by what PostgreSQL knows without looking. */
static double
estimate_rows(const EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	Relation	relation = OidIsValid(relid) ?
		try_table_open(relid, AccessShareLock) : NULL;
	BlockNumber pages;
	double		tuples;
	double		visible;

	if (relation == NULL)
		return -1;
	if (table->distributed)
	{
		/* here there are none */
		table_close(relation, NoLock);
		return ea_ddl_count(table->qualified, "true");
	}
	estimate_rel_size(relation, NULL, &pages, &tuples, &visible);
	table_close(relation, NoLock);
	return tuples;
}

void
ea_ddl_note_effects(EaDdlPlan *plan, List *statements)
{
	ListCell   *lc;

	foreach(lc, statements)
	{
		EaDdlStatement *statement = lfirst(lc);
		const EaDdlTable *to = statement->table;
		EaDdlTable *stored = to == NULL ? NULL :
			ea_names_map_get(plan->from->by_key, to->key);

		statement->rows = -1;
		if (stored != NULL && stored->other != NULL)
			statement->stored = stored->was;
		else if (to != NULL && to->existing)
			statement->stored = to;
		else if (!begins_with(statement->sql, "DROP "))
			continue;			/* nobody else knows the table */
		classify_statement(statement);
		if (statement->effect != NULL && (stored || statement->stored))
			statement->rows = estimate_rows(statement->stored ?
											statement->stored : stored->was);
	}
}

const char *
ea_ddl_lock_name(LOCKMODE lock)
{
	static const char *const names[] = {
		NULL, "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE",
		"SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE",
		"EXCLUSIVE", "ACCESS EXCLUSIVE"
	};

	Assert(lock < lengthof(names));
	return names[lock];
}
