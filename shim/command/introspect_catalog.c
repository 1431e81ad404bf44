/*
 * A statement for each kind of thing, of all tables at once: they are sorted
 * as the tables are, or lie one after the other by their table's oid, so that
 * the time grows with what is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_catalog.h"

/* Tables that are looked at; those of extensions are no application's. */
#define SHOWN \
	"pg_class c join pg_namespace n on n.oid = c.relnamespace" \
	" where c.relkind in ('r', 'p', 'v', 'm', 'f')" \
	" and not c.relispartition and left(n.nspname, 3) <> 'pg_'" \
	" and n.nspname not in ('information_schema', 'entityapi')" \
	" and not exists (select from pg_depend e" \
	" where e.classid = 'pg_class'::regclass and e.objid = c.oid" \
	" and e.deptype = 'e')"

static const char tables_sql[] =
"select c.oid, n.nspname, c.relname, c.relkind, c.relpersistence <> 'u',"
" exists (select from pg_inherits i where c.oid = i.inhrelid"
" or c.relkind <> 'p' and c.oid = i.inhparent),"
" exists (select from pg_rewrite w where w.ev_class = c.oid"
" and w.rulename <> '_RETURN'), c.relrowsecurity,"
" c.relforcerowsecurity,"
" pg_get_userbyid(c.relowner),"
" coalesce((select r.rolsuper from pg_roles r where r.oid = c.relowner),"
" false), (select d.description from pg_description d"
" where d.classoid = 'pg_class'::regclass and d.objoid = c.oid"
" and d.objsubid = 0),"
" (select string_agg(format('%I.%I', sn.nspname, s.relname), ', '"
" order by s.relname) from pg_depend o join pg_class s on s.oid = o.objid"
" join pg_namespace sn on sn.oid = s.relnamespace"
" where o.classid = 'pg_class'::regclass and o.deptype = 'a'"
" and o.refclassid = 'pg_class'::regclass and o.refobjid = c.oid"
" and s.relkind = 'S'), format('%I.%I', n.nspname, c.relname),"
" quote_ident(n.nspname) from " SHOWN " order by n.nspname, c.relname";

/* A domain, and what stands at its end */
static const char columns_sql[] =
"with recursive step (domain, base, modifier, n) as ("
"select oid, typbasetype, typtypmod, 1 from pg_type where typtype = 'd'"
" union all select s.domain, t.typbasetype,"
" case when s.modifier >= 0 then s.modifier else t.typtypmod end, n + 1"
" from step s join pg_type t on t.oid = s.base and t.typtype = 'd'),"
" below as (select distinct on (domain) domain, base, modifier"
" from step order by domain, n desc)"
" select a.attrelid, a.attnum, a.attname,"
" format_type(a.atttypid, a.atttypmod), t.typname, tn.nspname,"
" case when b.base is null or a.atttypmod >= 0 then a.atttypmod"
" else b.modifier end, case when t.typtype = 'e' and b.base is not null"
" then 'E' else t.typtype end, t.typcategory = 'A', a.attndims,"
" a.attnotnull, a.atthasdef and a.attgenerated = '' or a.attidentity <> '',"
" a.attgenerated <> '' or a.attidentity = 'a',"
" coalesce((select not l.collisdeterministic from pg_collation l"
" where l.oid = a.attcollation), false), d.description, quote_ident(a.attname)"
" from pg_attribute a left join below b on b.domain = a.atttypid"
" join pg_type t on t.oid = coalesce(b.base, a.atttypid)"
" join pg_namespace tn on tn.oid = t.typnamespace"
" left join pg_description d on d.classoid = 'pg_class'::regclass"
" and d.objoid = a.attrelid and d.objsubid = a.attnum"
" where a.attrelid in (select c.oid from " SHOWN ")"
" and a.attnum > 0 and not a.attisdropped"
" order by a.attrelid, a.attnum";

static const char keys_sql[] =
"select i.indrelid, x.relname, i.indisprimary, i.indimmediate,"
" i.indnkeyatts, i.indkey from pg_index i"
" join pg_class x on x.oid = i.indexrelid"
" where i.indrelid in (select c.oid from " SHOWN ")"
" and i.indisunique and i.indisvalid and i.indpred is null"
" and i.indexprs is null and i.indnkeyatts <= $1::int4"
" order by i.indrelid, i.indisprimary desc, i.indnkeyatts, x.relname";

static const char uniques_sql[] =
"select i.indrelid, x.relname, (select string_agg(k.number::text, ' '"
" order by k.n) from unnest(i.indkey::int2[]) with ordinality k (number, n)"
" where k.n <= i.indnkeyatts) from pg_index i"
" join pg_class x on x.oid = i.indexrelid"
" where i.indrelid in (select c.oid from " SHOWN ")"
" and (i.indisunique or i.indisexclusion) order by i.indrelid, x.relname";

static const char references_sql[] =
"select f.conrelid, f.confrelid, f.conname, f.confdeltype, f.convalidated,"
" array_length(f.conkey, 1), array_to_string(f.conkey, ' '),"
" array_to_string(f.confkey, ' ') from pg_constraint f"
" where f.contype = 'f' and f.conparentid = 0"
" and f.conrelid in (select c.oid from " SHOWN ")"
" and f.confrelid in (select c.oid from " SHOWN ")"
" order by f.conrelid, f.conname";

static const char role_sql[] =
"select quote_ident($1), r.oid is not null, coalesce(r.rolsuper, false)"
" from (select) o left join pg_roles r on r.rolname = $1";

static const char rights_sql[] =
"select c.oid, has_schema_privilege(r.oid, c.relnamespace, 'usage'),"
" has_table_privilege(r.oid, c.oid, 'select') from pg_roles r, " SHOWN
" and r.rolname = $1 order by n.nspname, c.relname";

/* As PostgreSQL takes them: of the role before that of the database. */
static const char settings_sql[] =
"select s.name, s.value from (select lower(split_part(e, '=', 1)),"
" substr(e, strpos(e, '=') + 1),"
" 2 * (d.setrole <> 0)::int + (d.setdatabase <> 0)::int"
" from pg_db_role_setting d, unnest(d.setconfig) e"
" where d.setdatabase in (0, (select oid from pg_database"
" where datname = current_database()))"
" and d.setrole in (0, coalesce((select oid from pg_roles"
" where rolname = $1), 0))"
" union all select 'timezone', setting, -1 from pg_settings"
" where name = 'TimeZone' and source in ('default', 'configuration file',"
" 'command line', 'environment variable')) s (name, value, rank)"
" where s.name in ('timezone', 'search_path') order by s.rank desc";

/* Of the path of the role, whose functions the code of tables may call */
static const char schemas_sql[] =
"select nspname from pg_namespace where nspname !~ '^pg_'"
" and nspname <> 'information_schema'";

/* -------- results -------- */

/* The rows, which stay until the catalog goes; NULL after a line on stderr. */
static PGresult *
ask(struct introspect_catalog *catalog, PGconn *connection, const char *sql,
	const char *parameter)
{
	const char *values[1] = {parameter};
	PGresult   *result = PQexecParams(connection, sql, parameter ? 1 : 0,
									  NULL, values, NULL, NULL, 0);

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "entityapi-shim introspect: %s",
				PQerrorMessage(connection));
		PQclear(result);
		return NULL;
	}
	catalog->results[catalog->result_count++] = result;
	return result;
}

static const char *
text_or_null(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? NULL :
		PQgetvalue(result, row, column);
}

static bool
truth(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

static int
number(const PGresult *result, int row, int column)
{
	return atoi(PQgetvalue(result, row, column));
}

static unsigned
oid(const PGresult *result, int row, int column)
{
	return strtoul(PQgetvalue(result, row, column), NULL, 10);
}

/* -------- tables -------- */

static enum introspect_kind
kind_of(char relkind)
{
	switch (relkind)
	{
		case 'p':
			return KIND_PARTITIONED;
		case 'v':
			return KIND_VIEW;
		case 'm':
			return KIND_MATERIALIZED;
		case 'f':
			return KIND_FOREIGN;
		default:
			return KIND_TABLE;
	}
}

static bool
read_tables(struct introspect_catalog *catalog, PGconn *connection)
{
	PGresult   *result = ask(catalog, connection, tables_sql, NULL);

	if (result == NULL)
		return false;
	catalog->table_count = PQntuples(result);
	catalog->tables = memory_array(catalog->memory, catalog->table_count,
								   sizeof(struct introspect_table));
	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];

		table->oid = oid(result, i, 0);
		table->schema = PQgetvalue(result, i, 1);
		table->name = PQgetvalue(result, i, 2);
		table->kind = kind_of(PQgetvalue(result, i, 3)[0]);
		table->is_logged = truth(result, i, 4);
		table->is_inherited = truth(result, i, 5);
		table->has_rules = truth(result, i, 6);
		table->has_row_security = truth(result, i, 7);
		table->forces_row_security = truth(result, i, 8);
		table->owner = PQgetvalue(result, i, 9);
		table->owner_is_superuser = truth(result, i, 10);
		table->comment = text_or_null(result, i, 11);
		table->sequences = text_or_null(result, i, 12);
		table->sql = PQgetvalue(result, i, 13);
		table->sql_schema = PQgetvalue(result, i, 14);
		table->tenant = -1;
	}
	return true;
}

static int
compare_oids(const void *a, const void *b)
{
	unsigned	one = (*(struct introspect_table *const *) a)->oid;
	unsigned	other = (*(struct introspect_table *const *) b)->oid;

	return one < other ? -1 : one > other;
}

/* Tables by their oids */
struct directory
{
	struct introspect_table **tables;
	size_t		count;
};

static struct directory
sort_tables(struct introspect_catalog *catalog)
{
	struct directory directory;

	directory.count = catalog->table_count;
	directory.tables = memory_array(catalog->memory, directory.count,
									sizeof(*directory.tables));
	for (size_t i = 0; i < directory.count; i++)
		directory.tables[i] = &catalog->tables[i];
	qsort(directory.tables, directory.count, sizeof(*directory.tables),
		  compare_oids);
	return directory;
}

/* NULL: of no table that is shown */
static struct introspect_table *
find_table(const struct directory *directory, unsigned wanted)
{
	struct introspect_table key = {.oid = wanted};
	struct introspect_table *at = &key;
	struct introspect_table **found = bsearch(&at, directory->tables,
											  directory->count,
											  sizeof(*directory->tables),
											  compare_oids);

	return found ? *found : NULL;
}

/* How many rows from here on are of the same table? */
static int
rows_of_table(const PGresult *result, int row)
{
	const char *first = PQgetvalue(result, row, 0);
	int			next = row + 1;

	while (next < PQntuples(result) &&
		   strcmp(PQgetvalue(result, next, 0), first) == 0)
		next++;
	return next - row;
}

/* -------- what tables have -------- */

static void
read_column(struct introspect_column *column, const PGresult *result, int row)
{
	column->number = number(result, row, 1);
	column->name = PQgetvalue(result, row, 2);
	column->type = PQgetvalue(result, row, 3);
	column->base = PQgetvalue(result, row, 4);
	column->base_schema = PQgetvalue(result, row, 5);
	column->modifier = number(result, row, 6);
	column->kind = PQgetvalue(result, row, 7)[0];
	column->is_array = truth(result, row, 8);
	column->dimensions = number(result, row, 9);
	column->not_null = truth(result, row, 10);
	column->has_default = truth(result, row, 11);
	column->is_generated = truth(result, row, 12);
	column->is_collated = truth(result, row, 13);
	column->comment = text_or_null(result, row, 14);
	column->sql = PQgetvalue(result, row, 15);
}

static bool
read_columns(struct introspect_catalog *catalog, PGconn *connection,
			 const struct directory *directory)
{
	PGresult   *result = ask(catalog, connection, columns_sql, NULL);
	int			count;

	for (int row = 0; result && row < PQntuples(result); row += count)
	{
		struct introspect_table *table = find_table(directory,
													oid(result, row, 0));

		count = rows_of_table(result, row);
		if (table == NULL)
			continue;
		table->column_count = count;
		table->columns = memory_array(catalog->memory, count,
									  sizeof(struct introspect_column));
		for (int i = 0; i < count; i++)
			read_column(&table->columns[i], result, row + i);
	}
	return result != NULL;
}

/*
 * Places of columns by their numbers, which are separated by blanks; false
 * when one is no column that is shown.
 */
static bool
find_columns(const struct introspect_table *table, const char *numbers,
			 int count, int *places)
{
	char	   *at = (char *) numbers;

	for (int i = 0; i < count; i++)
	{
		int			wanted = strtol(at, &at, 10);
		int			place = 0;

		while (place < table->column_count &&
			   table->columns[place].number != wanted)
			place++;
		if (place == table->column_count)
			return false;
		places[i] = place;
	}
	return true;
}

static bool
read_keys(struct introspect_catalog *catalog, PGconn *connection,
		  const struct directory *directory)
{
	char		most[16];
	PGresult   *result;
	int			count;

	snprintf(most, sizeof(most), "%d", MOST_PARTS);
	result = ask(catalog, connection, keys_sql, most);
	for (int row = 0; result && row < PQntuples(result); row += count)
	{
		struct introspect_table *table = find_table(directory,
													oid(result, row, 0));

		count = rows_of_table(result, row);
		if (table == NULL)
			continue;
		table->keys = memory_array(catalog->memory, count,
								   sizeof(struct introspect_key));
		for (int i = row; i < row + count; i++)
		{
			struct introspect_key *key = &table->keys[table->key_count];

			key->name = PQgetvalue(result, i, 1);
			key->is_primary = truth(result, i, 2);
			key->is_immediate = truth(result, i, 3);
			key->count = number(result, i, 4);
			if (find_columns(table, PQgetvalue(result, i, 5), key->count,
							 key->columns))
				table->key_count++;
		}
	}
	return result != NULL;
}

static bool
read_uniques(struct introspect_catalog *catalog, PGconn *connection,
			 const struct directory *directory)
{
	PGresult   *result = ask(catalog, connection, uniques_sql, NULL);
	int			count;

	for (int row = 0; result && row < PQntuples(result); row += count)
	{
		struct introspect_table *table = find_table(directory,
													oid(result, row, 0));

		count = rows_of_table(result, row);
		if (table == NULL)
			continue;
		table->uniques = memory_array(catalog->memory, count,
									  sizeof(struct introspect_unique));
		for (int i = row; i < row + count; i++)
		{
			struct introspect_unique *unique =
				&table->uniques[table->unique_count++];

			unique->name = PQgetvalue(result, i, 1);
			unique->numbers = PQgetvalue(result, i, 2);
		}
	}
	return result != NULL;
}

/* Keys of more columns than an id may have are none here. */
static bool
read_reference(struct introspect_reference *reference,
			   const PGresult *result, int row)
{
	reference->count = number(result, row, 5);
	if (reference->count > MOST_PARTS || reference->target == NULL)
		return false;
	reference->name = PQgetvalue(result, row, 2);
	reference->on_delete = PQgetvalue(result, row, 3)[0];
	reference->is_valid = truth(result, row, 4);
	return find_columns(reference->table, PQgetvalue(result, row, 6),
						reference->count, reference->from) &&
		find_columns(reference->target, PQgetvalue(result, row, 7),
					 reference->count, reference->to);
}

/* Each table learns who refers to it, in the order of these. */
static void
list_referrers(struct introspect_catalog *catalog)
{
	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 0; i < catalog->table_count; i++)
		{
			struct introspect_table *table = &catalog->tables[i];

			for (int k = 0; k < table->reference_count; k++)
			{
				struct introspect_table *target = table->references[k].target;

				if (pass == 1)
					target->referrers[target->referrer_count] =
						&table->references[k];
				target->referrer_count++;
			}
		}
		for (int i = 0; pass == 0 && i < catalog->table_count; i++)
		{
			struct introspect_table *table = &catalog->tables[i];

			table->referrers = memory_array(catalog->memory,
											table->referrer_count,
											sizeof(*table->referrers));
			table->referrer_count = 0;
		}
	}
}

static bool
read_references(struct introspect_catalog *catalog, PGconn *connection,
				const struct directory *directory)
{
	PGresult   *result = ask(catalog, connection, references_sql, NULL);
	int			count;

	for (int row = 0; result && row < PQntuples(result); row += count)
	{
		struct introspect_table *table = find_table(directory,
													oid(result, row, 0));

		count = rows_of_table(result, row);
		if (table == NULL)
			continue;
		table->references = memory_array(catalog->memory, count,
										 sizeof(*table->references));
		for (int i = row; i < row + count; i++)
		{
			struct introspect_reference *reference =
				&table->references[table->reference_count];

			reference->table = table;
			reference->target = find_table(directory, oid(result, i, 1));
			if (read_reference(reference, result, i))
				table->reference_count++;
			else
				memset(reference, 0, sizeof(*reference));
		}
	}
	if (result != NULL)
		list_referrers(catalog);
	return result != NULL;
}

bool
introspect_catalog_read(struct introspect_catalog *catalog,
						PGconn *connection)
{
	struct directory directory;

	if (!read_tables(catalog, connection))
		return false;
	directory = sort_tables(catalog);
	return read_columns(catalog, connection, &directory) &&
		read_keys(catalog, connection, &directory) &&
		read_uniques(catalog, connection, &directory) &&
		read_references(catalog, connection, &directory);
}

/* -------- the role -------- */

bool
introspect_catalog_read_role(struct introspect_catalog *catalog,
							 PGconn *connection, const char *role)
{
	PGresult   *found = ask(catalog, connection, role_sql, role);
	PGresult   *rights = found ? ask(catalog, connection, rights_sql, role) :
		NULL;
	PGresult   *settings = rights ? ask(catalog, connection, settings_sql,
										role) : NULL;

	catalog->schemas = settings ? ask(catalog, connection, schemas_sql, NULL) :
		NULL;
	if (catalog->schemas == NULL)
		return false;
	catalog->role = role;
	catalog->sql_role = PQgetvalue(found, 0, 0);
	catalog->role_is_there = truth(found, 0, 1);
	catalog->role_is_superuser = truth(found, 0, 2);
	for (int i = 0; i < PQntuples(rights) && i < catalog->table_count; i++)
	{
		catalog->tables[i].may_use_schema = truth(rights, i, 1);
		catalog->tables[i].may_select = truth(rights, i, 2);
	}
	for (int i = 0; i < PQntuples(settings); i++)
	{
		const char **setting =
			strcmp(PQgetvalue(settings, i, 0), "timezone") == 0 ?
			&catalog->time_zone : &catalog->search_path;

		if (*setting == NULL)
			*setting = PQgetvalue(settings, i, 1);
	}
	return true;
}

void
introspect_catalog_free(struct introspect_catalog *catalog)
{
	while (catalog->result_count > 0)
		PQclear(catalog->results[--catalog->result_count]);
}
