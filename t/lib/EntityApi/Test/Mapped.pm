# EntityApi::Test::Mapped: the tables of a cluster become tables that others
# made, with names of their own, and its entities are declared anew on them.
#
# With ENTITYAPI_TEST_MAPPED in the environment this follows every apply of the
# test library, so that any test can be run over existing tables.

package EntityApi::Test::Mapped;

use strict;
use warnings;

my $take_over = <<'SQL';
do $$
declare
	documents jsonb := entityapi.export_manifest();
	entity record;
	field jsonb;
	member jsonb;
	columns jsonb;
	col name;
	wanted jsonb;
	document jsonb;
	old text := 'Old "Data"';
	renamed text;
	selected text;
	views text := '';
begin
	if exists (select from pg_namespace where nspname = old) then
		return;
	end if;
	execute format('create schema %I authorization entityapi_owner', old);
	execute format('grant usage on schema %I to entityapi_reader', old);

	-- nothing the service made of itself stays
	for entity in select polrelid::regclass as relation, polname from pg_policy loop
		execute format('drop policy %I on %s', entity.polname, entity.relation);
	end loop;
	for entity in
		select definition::jsonb as definition,
			format('%I.%I', definition::jsonb ->> 'schema', definition::jsonb ->> 'table')::regclass as relation
		from entityapi.entity loop
		execute format('alter table %s disable row level security', entity.relation);
		execute format('revoke all on %s from entityapi_reader', entity.relation);
		columns := '{}';
		selected := null;
		for field in select value from jsonb_array_elements(entity.definition -> 'fields') loop
			if field ->> 'kind' = 'attribute' then
				columns := columns || jsonb_build_object(field ->> 'name', field ->> 'column');
			elsif field ->> 'kind' in ('toOne', 'oneOf') then
				for member in select value from jsonb_array_elements(field -> 'members') loop
					columns := columns || jsonb_build_object(
						field ->> 'name' || case field ->> 'kind' when 'oneOf' then '.' || (member ->> 'entity') else '' end,
						member ->> 'column');
				end loop;
			end if;
		end loop;
		columns := columns || '{"id": "id", "createdAt": "created_at", "updatedAt": "updated_at"}';
		if (entity.definition ->> 'tenantScoped')::boolean then
			columns := columns || '{"tenantId": "tenant_id"}';
		end if;
		if (entity.definition ->> 'optimisticLocking')::boolean then
			columns := columns || '{"version": "version"}';
		end if;
		if (entity.definition ->> 'softDelete')::boolean then
			columns := columns || '{"deletedAt": "deleted_at", "deletionId": "deletion_id"}';
		end if;

		-- each is called otherwise, and none as it could stand in SQL
		for col in select attname from pg_attribute where attrelid = entity.relation and attnum > 0 and not attisdropped loop
			selected := concat_ws(', ', selected, format('%I as %I', left(reverse(col) || '" Select ' || upper(col), 60), col));
			renamed := left(reverse(col) || '" Select ' || upper(col), 60);
			execute format('alter table %s rename column %I to %I', entity.relation, col, renamed);
			select jsonb_object_agg(c.key, case c.value when to_jsonb(col::text) then to_jsonb(renamed) else c.value end)
			into columns from jsonb_each(columns) c;
		end loop;
		renamed := left('My.Table ' || (entity.definition ->> 'name'), 60);
		execute format('alter table %s rename to %I', entity.relation, renamed);
		execute format('alter table %s set schema %I', entity.relation, old);
		views := views || format('create view %I.%I as select %s from %I.%I;', entity.definition ->> 'schema',
			entity.definition ->> 'table', selected, old, renamed);
		select jsonb_agg(case when d ->> 'kind' = 'Entity' and d #>> '{metadata,name}' = entity.definition ->> 'name'
			then jsonb_set(jsonb_set(d, '{spec,table}', to_jsonb(format('%I.%I', old, renamed))), '{spec,columns}', columns)
			else d end)
		into documents from jsonb_array_elements(documents) d;
	end loop;
	for entity in
		select c.oid::regclass as relation from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = coalesce(jsonb_path_query_first(documents, '$[*] ? (@.kind == "Service").spec.schema') #>> '{}', 'app')
			and c.relkind = 'r' loop
		execute format('drop table %s', entity.relation);
	end loop;
	delete from entityapi.entity;
	perform entityapi.apply_manifest(documents);

	-- tests look at the tables as they were made
	execute views;
end
$$;
SQL

# What the service made is not its own any more.
sub take_over
{
	my ($cluster) = @_;

	$cluster->psql($take_over);
	return;
}

1;
