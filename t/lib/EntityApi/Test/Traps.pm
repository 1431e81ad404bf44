package EntityApi::Test::Traps;

=head1 NAME

EntityApi::Test::Traps - objects that others put where names might find them

=head1 FUNCTIONS

=head2 set($cluster, $database, $schema, $first)

As the login "mallory", who owns it, fill a schema with operators that match
PostgreSQL's own exactly, and with functions of the same names.  Whoever calls
one of them is written down; a superuser makes mallory one.  C<$first> is said
before anything else.

=head2 caught($cluster, $database)

Who has been, and "mallory" if she is a superuser, in order.

=cut

use strict;
use warnings;

my $traps = <<'SQL';
create function SCHEMA.trap() returns boolean language plpgsql as $$
begin
	begin
		insert into public.caught values (current_user);
	exception when others then null;
	end;
	if (select rolsuper from pg_catalog.pg_roles where rolname operator(pg_catalog.=) current_user) then
		perform pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true);
		execute 'alter role mallory superuser';
	end if;
	return true;
end $$;
do $traps$
declare
	o record;
	n int := 0;
begin
	for o in
		select oprname, format_type(oprleft, null) as l, format_type(oprright, null) as r, format_type(oprresult, null) as result
		from pg_catalog.pg_operator
		where oprnamespace = 'pg_catalog'::regnamespace and oprkind = 'b'
		  and oprleft::regtype::text in ('text', 'name', 'oid', 'integer', 'bigint', 'boolean', 'uuid', 'jsonb', '"char"', 'timestamp without time zone',
				'timestamp with time zone', 'interval', 'bytea', 'xid8')
		  and oprright::regtype::text in ('text', 'name', 'oid', 'integer', 'bigint', 'boolean', 'uuid', 'jsonb', '"char"', 'timestamp without time zone',
				'timestamp with time zone', 'interval', 'bytea', 'xid8')
		union all
		-- those that PostgreSQL has with a cast only
		select '=', l, r, 'boolean' from unnest(array['oid', 'regclass', 'regrole', 'regnamespace', 'regtype', 'regproc', 'regprocedure']) l,
			unnest(array['oid', 'regclass', 'regrole', 'regnamespace', 'regtype', 'regproc', 'regprocedure']) r where l <> r or l <> 'oid'
		union all
		select '<>', l, r, 'boolean' from unnest(array['oid', 'regclass', 'regrole', 'regnamespace']) l,
			unnest(array['oid', 'regclass', 'regrole', 'regnamespace']) r where (l = 'oid') <> (r = 'oid')
		union all
		select op, 'name', 'character varying', 'boolean' from unnest(array['=', '<>', '~']) op
	loop
		n := n + 1;
		execute format('create function SCHEMA.%I(a %s, b %s) returns %s language plpgsql as $f$
			begin perform SCHEMA.trap(); return (a%s operator(pg_catalog.%s) b%s)::%4$s; end $f$',
			'op' || n, o.l, o.r, o.result,
			case when o.l like 'reg%' then '::pg_catalog.oid' end, o.oprname, case when o.r like 'reg%' then '::pg_catalog.oid' end);
		execute format('create operator SCHEMA.%s (leftarg = %s, rightarg = %s, function = SCHEMA.%I)', o.oprname, o.l, o.r, 'op' || n);
	end loop;
	for o in
		select p.oid, p.proname, pg_get_function_identity_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result
		from pg_catalog.pg_proc p
		where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f'
		  and p.proname in ('to_regclass', 'date_trunc', 'to_char', 'substr', 'now', 'clock_timestamp', 'gen_random_uuid', 'jsonb_typeof', 'set_config',
			'current_setting', 'current_database', 'pg_get_expr', 'lower', 'upper', 'length', 'make_timestamp', 'md5', 'regexp_replace',
			'aclexplode', 'acldefault', 'pg_describe_object', 'array_to_string', 'pg_extension_config_dump', 'has_function_privilege')
		  and pg_get_function_identity_arguments(p.oid) !~ 'VARIADIC|any|OUT|internal'
	loop
		-- pgcrypto may have one already
		continue when exists (select from pg_catalog.pg_proc p where p.proname = o.proname and p.pronamespace = 'SCHEMA'::regnamespace
			and pg_get_function_identity_arguments(p.oid) = o.arguments);
		execute format('create function SCHEMA.%I(%s) returns %s language plpgsql as $f$
			begin perform SCHEMA.trap(); raise exception ''trapped''; end $f$', o.proname, o.arguments, o.result);
	end loop;
	-- better matches than those that take anything
	create function SCHEMA.format(text, name) returns text language plpgsql as $f$ begin perform SCHEMA.trap(); return pg_catalog.format($1, $2); end $f$;
	create function SCHEMA.format(text, text) returns text language plpgsql as $f$ begin perform SCHEMA.trap(); return pg_catalog.format($1, $2); end $f$;
	create function SCHEMA.format(text, text, text) returns text language plpgsql as $f$ begin perform SCHEMA.trap(); return pg_catalog.format($1, $2, $3); end $f$;
	create function SCHEMA.unnest(text[]) returns setof text language plpgsql as $f$ begin perform SCHEMA.trap(); return query select pg_catalog.unnest($1); end $f$;
	create function SCHEMA.unnest(uuid[]) returns setof uuid language plpgsql as $f$ begin perform SCHEMA.trap(); return query select pg_catalog.unnest($1); end $f$;
	create function SCHEMA.cardinality(text[]) returns int language plpgsql as $f$ begin perform SCHEMA.trap(); return pg_catalog.cardinality($1); end $f$;
	create function SCHEMA.concat_ws(text, text, text) returns text language plpgsql as $f$ begin perform SCHEMA.trap(); return ''; end $f$;
	create function SCHEMA.jsonb_build_object(text, text, text, uuid, text, jsonb) returns jsonb language plpgsql as $f$
		begin perform SCHEMA.trap(); return pg_catalog.jsonb_build_object($1, $2, $3, $4, $5, $6); end $f$;
	create function SCHEMA.jsonb_build_object(text, jsonb) returns jsonb language plpgsql as $f$
		begin perform SCHEMA.trap(); return pg_catalog.jsonb_build_object($1, $2); end $f$;
	create function SCHEMA.shobj_description(oid, text) returns text language plpgsql as $f$
		begin perform SCHEMA.trap(); return pg_catalog.shobj_description($1, $2); end $f$;
	-- a literal beside an operand is taken to be of its type, if that fits
	create function SCHEMA.arrow(jsonb, jsonb) returns jsonb language plpgsql as $f$ begin perform SCHEMA.trap(); return $1; end $f$;
	create operator SCHEMA.-> (leftarg = jsonb, rightarg = jsonb, function = SCHEMA.arrow);
	create function SCHEMA.arrow_text(jsonb, jsonb) returns text language plpgsql as $f$ begin perform SCHEMA.trap(); return $1; end $f$;
	create operator SCHEMA.->> (leftarg = jsonb, rightarg = jsonb, function = SCHEMA.arrow_text);
	create view SCHEMA.pg_roles as select SCHEMA.trap(), * from pg_catalog.pg_roles;
	create view SCHEMA.pg_class as select SCHEMA.trap(), * from pg_catalog.pg_class;
	create view SCHEMA.pg_extension as select SCHEMA.trap(), * from pg_catalog.pg_extension;
	create domain SCHEMA.regclass as pg_catalog.regclass;
	create domain SCHEMA.timestamptz as pg_catalog.timestamptz;
end $traps$;
SQL

sub set
{
	my ($cluster, $database, $schema, $first) = @_;

	$first //= '';
	$cluster->psql($first . 'create table if not exists public.caught (who name); grant insert on public.caught to public', database => $database);
	$cluster->psql("${first}create schema if not exists $schema; grant all on schema $schema to mallory; grant usage on schema $schema to public", database => $database);
	$cluster->psql("${first}set search_path = pg_catalog;\n" . $traps =~ s/SCHEMA/$schema/gr, user => 'mallory', database => $database);
	return;
}

sub caught
{
	my ($cluster, $database) = @_;

	return $cluster->psql(q{select pg_catalog.string_agg(distinct who::text, ' ' order by who::text) from (
		select who from public.caught union all select rolname from pg_catalog.pg_roles
		where rolname operator(pg_catalog.=) 'mallory'::name and rolsuper) c},
		database => $database);
}

1;
