# CREATE EXTENSION and ALTER EXTENSION UPDATE run as superuser, in a database
# where others may have prepared something: nothing of theirs runs, and nothing
# of theirs is taken over.  The forms are those of CVE-2018-1058 (names and
# operators that a search path finds) and CVE-2022-2625 (objects that were there
# before).

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;
use EntityApi::Test::Traps;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
# Since 1.2 the schema and all in it is the installer's, and nobody else's trap.
my @released = EntityApi::Test::Released::before('1.2');
my $old = EntityApi::Test::Released::install($cluster);
my $n = 0;

$cluster->psql('create role mallory login; create role deployer login; grant entityapi_owner to deployer');

# A database where mallory may make schemas; $version of the extension, if any.
sub database
{
	my ($version) = @_;
	my $database = 'hostile_' . ++$n;

	$cluster->psql("create database $database; grant create on database $database to mallory", database => 'postgres');
	$cluster->psql('alter role mallory nosuperuser; alter role deployer nosuperuser');
	$cluster->psql('create extension pgcrypto' . (defined $version ? "; create extension entityapi version '$version'" : ''),
		database => $database) if defined $version;
	return $database;
}

sub superusers
{
	return $cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper});
}

# What was done as $user before is refused by what the superuser does now.
sub refused
{
	my ($name, $database, $sql, $expected) = @_;
	my $done = $cluster->try_psql($sql, database => $database);

	like($done->{err}, $expected, $name);
	is(superusers(), 'postgres', 'and nobody has risen');
	return;
}

# By an operator that fits better than PostgreSQL's own, as it was found
my $operator = <<'SQL';
create function entityapi.eq(a oid, b regnamespace) returns boolean language plpgsql as $$
begin
	if (select rolsuper from pg_roles where rolname = current_user) then
		execute format('alter role %I superuser', (select pg_get_userbyid(proowner) from pg_proc where proname = 'eq'));
	end if;
	return a operator(pg_catalog.=) b::oid;
end $$;
create operator entityapi.= (leftarg = oid, rightarg = regnamespace, function = entityapi.eq);
SQL

my $install = 'create extension entityapi cascade';
my $update = 'alter extension entityapi update';

subtest 'a schema of another' => sub {
	my $database = database();

	$cluster->psql("create schema entityapi; grant usage on schema entityapi to public; $operator", user => 'mallory', database => $database);
	refused('is refused', $database, $install, qr/schema entityapi belongs to mallory/);
	$cluster->psql('drop schema entityapi cascade; create schema entityapi', user => 'mallory', database => $database);
	refused('an empty one, too', $database, $install, qr/schema entityapi belongs to mallory/);
	return if !$old;

	# so that this test can fail: what was installed before
	$cluster->psql($operator, user => 'mallory', database => $database);
	$cluster->psql('create extension pgcrypto', database => $database);
	$cluster->try_psql("create extension entityapi version '$released[-1]'", database => $database);
	is(superusers(), 'mallory postgres', 'the released script made her a superuser');
};

# One line each: as anybody who may make objects in the schema
my @objects = (
	[ operator => $operator, qr/function entityapi\.eq\(oid,regnamespace\), operator entityapi\.=\(oid,regnamespace\)/ ],
	[ function => q{create function entityapi.handle(message bytea) returns bytea language sql as 'select $1'}, qr/function entityapi\.handle\(bytea\)/ ],
	[ aggregate => 'create aggregate entityapi.most(int) (sfunc = int4larger, stype = int)', qr/function entityapi\.most\(integer\)/ ],
	[ table => 'create table entityapi.tenant (id uuid)', qr/table entityapi\.tenant/ ],
	[ 'partitioned table' => 'create table entityapi.audit (at timestamptz) partition by range (at)', qr/table entityapi\.audit/ ],
	[ 'a month of it' => "create table entityapi.audit (at timestamptz) partition by range (at);
		create table entityapi.audit_2026_01 partition of entityapi.audit for values from ('2026-01-01') to ('2026-02-01')",
		qr/table entityapi\.audit, table entityapi\.audit_2026_01/ ],
	[ view => 'create view entityapi.pending_steps as select 1 as step', qr/view entityapi\.pending_steps/ ],
	[ 'materialized view' => 'create materialized view entityapi.x as select 1 as step', qr/materialized view entityapi\.x/ ],
	[ sequence => 'create sequence entityapi.s', qr/sequence entityapi\.s/ ],
	[ type => "create type entityapi.mood as enum ('bad')", qr/type entityapi\.mood/ ],
	[ domain => 'create domain entityapi.uuid as text', qr/type entityapi\.uuid/ ],
	[ collation => 'create collation entityapi."C" from pg_catalog."C"', qr/collation entityapi\."C"/ ],
	[ conversion => q{create conversion entityapi.c for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8}, qr/conversion entityapi\.c/ ],
	[ 'text search' => 'create text search configuration entityapi.ts (copy = pg_catalog.simple)', qr/text search configuration entityapi\.ts/ ],
	[ dictionary => 'create text search dictionary entityapi.d (template = simple)', qr/text search dictionary entityapi\.d/ ],
	[ statistics => 'create table public.t (a int, b int); create statistics entityapi.st on a, b from public.t', qr/statistics object entityapi\.st/ ],
);

subtest 'what is in the schema before: at the installation' => sub {
	my $database = database();

	for (@objects)
	{
		my ($name, $sql, $expected) = @$_;

		$cluster->psql('drop schema if exists entityapi cascade; drop table if exists public.t; create schema entityapi; grant all on schema entityapi, public to mallory',
			database => $database);
		$cluster->psql($sql, user => 'mallory', database => $database);
		refused("$name is refused", $database, $install, qr/holds what is no part of the extension: .*$expected/);
	}
	$cluster->psql('drop schema entityapi cascade; create schema entityapi; grant all on schema entityapi to mallory', database => $database);
	$cluster->psql($install, database => $database);
	is($cluster->psql(q{select has_schema_privilege('mallory', 'entityapi', 'create')}, database => $database), 'f', 'an empty one is taken, from those with rights on it');
};

subtest 'roles' => sub {
	my $database = database();

	for my $role (qw(entityapi_owner entityapi_client entityapi_reader))
	{
		for my $attribute (qw(login superuser bypassrls createrole createdb replication))
		{
			$cluster->psql("alter role $role $attribute");
			like($cluster->try_psql($install, database => $database)->{err}, qr/role $role is there already, with \U$attribute/, "$role, $attribute");
			$cluster->psql("alter role $role no$attribute");
		}
	}
	like($cluster->try_psql($install, database => $database)->{err}, qr/WARNING:  these roles have the rights of entityapi_owner in this database, too: deployer/,
		'who else is told');
	is($cluster->psql(q{select count(*) from pg_extension where extname = 'entityapi'}, database => $database), 1, 'and it is installed');
};

# Everything a search path may lead to: the schema of the other extension, that
# of the superuser's name, which comes first, and one that he set
subtest 'traps on the way: at the installation' => sub {
	my $database = database();

	$cluster->psql('create extension pgcrypto schema public', database => $database);
	EntityApi::Test::Traps::set($cluster, $database, $_) for qw(public postgres);
	$cluster->psql("set search_path = postgres, public, pg_catalog; create extension entityapi", database => $database);
	is(EntityApi::Test::Traps::caught($cluster, $database), '', 'nobody is caught');
	return if !$old;

	my $before = database();
	$cluster->psql('create extension pgcrypto schema public', database => $before);
	EntityApi::Test::Traps::set($cluster, $before, $_) for qw(public postgres);
	$cluster->try_psql("create extension entityapi version '$released[-1]'", database => $before);
	is(superusers(), 'mallory postgres', 'with the released script she was a superuser');
	$cluster->psql('alter role mallory nosuperuser');
};

# The forms that a member of entityapi_owner had while that role owned all
my @hanging = (
	[ trigger => 'create function deployed.f() returns trigger language plpgsql as $$ begin return null; end $$;
		create trigger t after update on entityapi.mapped_role for each statement execute function deployed.f()', qr/trigger t on table entityapi\.mapped_role/ ],
	[ 'our trigger, with a condition' => q{create trigger t before insert on entityapi.signing_key for each row when (query_to_xml('select 1', true, true, '') is null)
		execute function entityapi.announce_keys()}, qr/trigger t on table entityapi\.signing_key/ ],
	[ rule => 'create rule r as on insert to entityapi.tenant do also select 1', qr/rule r on table entityapi\.tenant/ ],
	[ policy => 'create policy p on entityapi.account using (true)', qr/policy p on table entityapi\.account/ ],
	[ default => q{alter table entityapi.tenant alter column name set default query_to_xml('select 1', true, true, '')::text}, qr/default value for column name of table entityapi\.tenant/ ],
	[ 'a function in a constraint' => q{alter table entityapi.tenant add constraint x check ("substring"(name, 1, 1) <> '')}, qr/constraint x on table entityapi\.tenant/ ],
	[ 'an index expression' => 'create index x on entityapi.tenant (lower(name))', qr/index entityapi\.x/ ],
	[ 'an operator' => 'create function deployed.g(a text, b text) returns boolean language sql immutable as $$ select true $$;
		create operator deployed.=== (leftarg = text, rightarg = text, function = deployed.g);
		alter table entityapi.tenant add constraint x check (name operator(deployed.===) name)', qr/constraint x on table entityapi\.tenant/ ],
	[ 'a type' => 'create domain deployed.d as text; alter table entityapi.tenant add column more deployed.d', qr/table entityapi\.tenant/ ],
	[ 'a child' => 'create table deployed.child () inherits (entityapi.account)', qr/table deployed\.child/ ],
	[ 'statistics' => 'create statistics deployed.s on (lower(name)) from entityapi.tenant', qr/statistics object deployed\.s/ ],
	[ 'a trigger of a month' => q{select entityapi.extend_audit('2026-01-15', 0);
		create function deployed.f() returns trigger language plpgsql as $$ begin return new; end $$;
		create trigger t before insert on entityapi.audit_2026_01 for each row execute function deployed.f()}, qr/trigger t on table entityapi\.audit_2026_01/ ],
);

for my $version ($old ? @released : ())
{
	subtest "what is in the schema before: at the update from $version" => sub {
		my $database = database($version);
		my $as_deployer = sub { $cluster->psql($_[0], user => 'deployer', database => $database) };

		$cluster->psql('grant create on schema public to deployer', database => $database);
		for (@objects)
		{
			my ($name, $sql, $expected) = @$_;

			next if $sql =~ /entityapi\.(?:tenant|audit|handle|pending_steps)\b/;
			$as_deployer->("begin; $sql; commit");
			refused("$name is refused", $database, $update, qr/holds what is no part of the extension: .*$expected/);
			$cluster->psql('drop table if exists public.t; do $$ declare s text; begin
				for s in select (pg_identify_object(d.classid, d.objid, 0)).type || \' \' || (pg_identify_object(d.classid, d.objid, 0)).identity
					from pg_depend d where d.refclassid = \'pg_namespace\'::regclass and d.refobjid = \'entityapi\'::regnamespace and d.deptype = \'n\'
					and d.classid <> \'pg_extension\'::regclass and not exists (select from pg_depend m where m.classid = d.classid and m.objid = d.objid and m.deptype = \'e\')
					order by d.classid = \'pg_proc\'::regclass loop
					execute \'drop \' || regexp_replace(s, \'statistics object\', \'statistics\') || \' cascade\';
				end loop; end $$', database => $database);
		}

		# what an own function of the schema was replaced by does not stay
		$as_deployer->('create or replace function entityapi.create_superadmin(username text, password text) returns uuid language plpgsql as
			$$ begin execute \'alter role deployer superuser\'; return gen_random_uuid(); end $$');
		for (@hanging)
		{
			my ($name, $sql, $expected) = @$_;

			$as_deployer->('create schema deployed');
			$as_deployer->($sql);
			refused("$name is refused", $database, $update, qr/have what is no part of it: .*$expected/);
			$as_deployer->('drop schema deployed cascade; drop trigger if exists t on entityapi.mapped_role; drop trigger if exists t on entityapi.signing_key;
				drop rule if exists r on entityapi.tenant; drop policy if exists p on entityapi.account; alter table entityapi.tenant alter column name drop default;
				alter table entityapi.tenant drop constraint if exists x; drop index if exists entityapi.x; alter table entityapi.tenant drop column if exists more');
		}

		EntityApi::Test::Traps::set($cluster, $database, $_) for qw(public postgres);
		$cluster->psql("set search_path = postgres, public, pg_catalog; $update", database => $database);
		is(EntityApi::Test::Traps::caught($cluster, $database), '', 'traps on the way catch nobody');
		$cluster->psql(q{select entityapi.create_superadmin('root', 'first pass phrase')}, database => $database);
		is(superusers(), 'postgres', 'a function that was replaced is ours again');
		is($cluster->psql(q{select string_agg(c.relname, ' ') from pg_class c where c.relnamespace = 'entityapi'::regnamespace and c.relowner <> 'postgres'::regrole},
			database => $database), '', 'all tables are the installer\'s, months of the log as well');
	};
}

done_testing();
