package EntityApi::Test::Catalog;

=head1 NAME

EntityApi::Test::Catalog - what an installed extension consists of, as text

=head1 FUNCTIONS

=head2 snapshot($cluster, $database)

One line for each thing that makes up the extension and the schema "entityapi",
in order: members, relations with their columns, constraints, indexes, triggers
and policies, functions, rights, comments, what dumps take along.  Two databases
with the same lines cannot be told apart.

=cut

use strict;
use warnings;

my $sql = <<'SQL';
set search_path = pg_catalog;
set timezone = 'UTC';

create function pg_temp.rights(acl aclitem[]) returns text language sql as $$
	select coalesce(string_agg(
		concat(case grantee when 0 then 'PUBLIC' else grantee::regrole::text end, '=', privilege_type,
			case when is_grantable then '*' end, '/', grantor::regrole), ' '
		order by case grantee when 0 then 'PUBLIC' else grantee::regrole::text end, privilege_type, grantor::regrole::text), '')
	from aclexplode(acl)
$$;

with relations as (
	select c.*, c.oid::regclass::text as name from pg_class c
	where c.relnamespace = 'entityapi'::regnamespace
), functions as (
	select p.*, p.oid::regprocedure::text as name from pg_proc p
	where p.pronamespace = 'entityapi'::regnamespace
), lines as (
	select 'extension ' || extname || ' ' || extversion || ' ' || extowner::regrole || ' ' || extnamespace::regnamespace || ' ' || extrelocatable
	from pg_extension where extname = 'entityapi'
	union all
	select 'member ' || pg_describe_object(d.classid, d.objid, d.objsubid)
	from pg_depend d join pg_extension e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
	where e.extname = 'entityapi' and d.deptype = 'e'
	union all
	select 'dumped ' || config::regclass || ' ' || condition
	from pg_extension, unnest(extconfig, extcondition) u (config, condition) where extname = 'entityapi'
	union all
	select 'schema ' || nspname || ' ' || nspowner::regrole || ' ' || pg_temp.rights(nspacl)
	from pg_namespace where nspname = 'entityapi'
	union all
	select 'database ' || pg_temp.rights(array(select a from unnest(datacl) a where a::text like 'entityapi_%'))
	from pg_database where datname = current_database()
	union all
	select concat_ws(' ', 'relation', name, relkind, relpersistence, relowner::regrole, relrowsecurity, relforcerowsecurity,
		reloptions::text, relreplident, pg_get_expr(relpartbound, oid), pg_temp.rights(relacl), obj_description(oid, 'pg_class'))
	from relations
	union all
	select concat_ws(' ', 'column', r.name, row_number() over (partition by r.oid order by a.attnum), a.attname,
		format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attcollation::regcollation,
		a.attstorage, pg_get_expr(d.adbin, d.adrelid), pg_temp.rights(a.attacl), col_description(r.oid, a.attnum))
	from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
	left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
	union all
	select concat_ws(' ', 'constraint', r.name, c.conname, c.contype, c.convalidated, pg_get_constraintdef(c.oid), obj_description(c.oid, 'pg_constraint'))
	from relations r join pg_constraint c on c.conrelid = r.oid
	union all
	select concat_ws(' ', 'index', r.name, pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisclustered, i.indisreplident)
	from relations r join pg_index i on i.indrelid = r.oid
	union all
	select concat_ws(' ', 'trigger', r.name, pg_get_triggerdef(t.oid), t.tgenabled)
	from relations r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
	union all
	select concat_ws(' ', 'policy', r.name, p.polname, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
	from relations r join pg_policy p on p.polrelid = r.oid
	union all
	select concat_ws(' ', 'parent', r.name, i.inhparent::regclass)
	from relations r join pg_inherits i on i.inhrelid = r.oid
	union all
	select concat_ws(' ', 'function', name, proowner::regrole, pg_temp.rights(proacl), obj_description(oid, 'pg_proc'), pg_get_functiondef(oid))
	from functions where prokind <> 'a'
	union all
	select concat_ws(' ', 'type', t.oid::regtype, t.typtype, t.typowner::regrole, pg_temp.rights(t.typacl))
	from pg_type t where t.typnamespace = 'entityapi'::regnamespace and t.typrelid = 0 and t.typelem = 0
	union all
	select concat_ws(' ', 'initial', pg_describe_object(i.classoid, i.objoid, i.objsubid), i.privtype, pg_temp.rights(i.initprivs))
	from pg_init_privs i join pg_depend d on d.classid = i.classoid and d.objid = i.objoid and d.deptype = 'e'
	join pg_extension e on e.oid = d.refobjid and e.extname = 'entityapi'
	union all
	select 'password ' || password from entityapi.common_password where built_in
)
select regexp_replace(line, E'\n', '\\n', 'g') from lines l (line) order by line collate "C";
SQL

sub snapshot
{
	my ($cluster, $database) = @_;

	return [ split /\n/, $cluster->psql($sql, database => $database // 'entityapi') ];
}

=head2 difference($before, $after)

Two snapshots: the lines that only one of them has, with C<-> or C<+> in front.

=cut

sub difference
{
	my ($before, $after) = @_;
	my %before = map { $_ => 1 } @$before;
	my %after = map { $_ => 1 } @$after;

	return (map { "- $_" } grep { !$after{$_} } @$before), (map { "+ $_" } grep { !$before{$_} } @$after);
}

1;
