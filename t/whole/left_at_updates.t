# What a member of entityapi_owner could leave on the extension's tables while
# that role owned them does not outlast an update: neither on what is somewhere
# else by then, nor by what lies between a table of his and one of these.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

my $cluster = EntityApi::Test->cluster;
my @released = EntityApi::Test::Released::before('1.2');
my $n = 0;

plan skip_all => 'released versions can be installed in a private place only' if !EntityApi::Test::Released::install($cluster);

$cluster->psql('create role deployer login; grant entityapi_owner to deployer; create role bi login in role entityapi_reader');

sub database
{
	my ($version) = @_;
	my $database = 'left_' . ++$n;

	$cluster->psql("create database $database", database => 'postgres');
	$cluster->psql("create extension pgcrypto; create extension entityapi version '$version'", database => $database);
	$cluster->psql('create schema deployed', user => 'deployer', database => $database);
	return $database;
}

sub superusers { return $cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper}) }

# Whatever runs it as a superuser makes the deployer one.
my $rises = <<'SQL';
create function deployed.rises() returns trigger language plpgsql as $$ begin
	if (select rolsuper from pg_roles where rolname = current_user) then alter role deployer superuser; end if;
	return null;
end $$;
SQL

# What the deployer does first, and what the update says
my @left = (
	[ 'a month in another schema' => q{select entityapi.extend_audit(now(), 0);
		do $$ begin execute 'alter table entityapi.audit_' || to_char(now() at time zone 'UTC', 'YYYY_MM') || ' set schema deployed'; end $$},
		qr/table deployed\.audit_\d{4}_\d\d/ ],
	[ 'a partition of another name' => q{create table deployed.part (like entityapi.audit_default);
		alter table entityapi.audit attach partition deployed.part for values from ('2030-01-01') to ('2030-02-01')}, qr/table deployed\.part/ ],
	[ 'a function in another schema' => 'alter function entityapi.announce_keys() set schema deployed;
		create trigger t before insert on entityapi.mapped_role for each statement execute function deployed.announce_keys()', qr/function deployed\.announce_keys\(\)/ ],
	[ 'a table in another schema' => 'alter table entityapi.invite set schema deployed', qr/table deployed\.invite/ ],
	[ 'a foreign key to ours' => 'create table deployed.x (role text references entityapi.mapped_role on delete cascade)',
		qr/constraint x_role_fkey on table deployed\.x/ ],
	[ 'a foreign key of ours' => q{create table deployed.y (role text primary key); alter table entityapi.mapped_role add constraint fk foreign key (role) references deployed.y},
		qr/constraint fk on table entityapi\.mapped_role/ ],
	[ 'a cast of a type' => <<~'SQL', qr/table entityapi\.tenant/ ],
		create type deployed.status as enum ('ACTIVE', 'SUSPENDED', 'DELETED');
		create function deployed.as_text(deployed.status) returns text language plpgsql immutable as $$ begin
			if (select rolsuper from pg_roles where rolname = current_user) then alter role deployer superuser; end if;
			return pg_catalog.enum_out($1)::text;
		end $$;
		create cast (deployed.status as text) with function deployed.as_text as implicit;
		alter table entityapi.tenant drop constraint tenant_status_check;
		alter table entityapi.tenant add constraint tenant_status_check check (slug <> 'x');
		insert into entityapi.tenant (id, name, slug, status, attributes, created_at) values ('01980000-0000-7000-8000-000000000001', 'a', 'a', 'ACTIVE', '{}', now());
		do $$ begin
			if exists (select from pg_constraint where conname = 'tenant_check') then
				alter table entityapi.tenant drop constraint tenant_check;
				drop index entityapi.tenant_deleted_at;
			end if;
		end $$;
		alter table entityapi.tenant alter status type deployed.status using status::deployed.status;
		SQL
);

for my $version (@released)
{
	subtest "an update from $version" => sub {
		for (@left)
		{
			my ($name, $sql, $expected) = @$_;
			my $database = database($version);

			$cluster->psql($rises, user => 'deployer', database => $database);
			$cluster->psql($sql, user => 'deployer', database => $database);
			my $said = $cluster->try_psql('alter extension entityapi update', database => $database)->{err};
			like($said, qr/no part of it: .*$expected/, "$name is refused");
			is(superusers(), 'postgres', 'and nobody has risen');
			$cluster->psql('alter role deployer nosuperuser');
			$cluster->psql("drop database $database", database => 'postgres');
		}
	};

	subtest "rights, at an update from $version" => sub {
		my $database = database($version);
		my $as_deployer = sub { return $cluster->try_psql($_[0], user => 'deployer', database => $database)->{err} };

		$as_deployer->("$rises; grant references (role), select (role) on entityapi.mapped_role to deployer; grant references (id) on entityapi.account to public;
			grant references, trigger, truncate on entityapi.tenant to deployer, bi; grant select on entityapi.tenant to bi");
		$cluster->psql(q{alter extension entityapi update; select entityapi.create_superadmin('root', 'first pass phrase'); select entityapi.map_role('bi', 'root')}, database => $database);
		for my $table ('mapped_role (role)', 'account (id)', 'tenant (id)')
		{
			my ($column) = $table =~ /\((\w+)\)/;

			like($as_deployer->("create table deployed.x$column (a text); drop table deployed.x$column; create table deployed.x (a text, constraint x foreign key (a) references entityapi.$table on delete cascade)"),
				qr/permission denied/, "no foreign key to $table");
		}
		$as_deployer->(q{create constraint trigger t after delete on deployed.x deferrable initially deferred for each row execute function deployed.rises(); insert into deployed.x values ('bi')});
		$cluster->psql(q{select entityapi.map_role('bi', null)}, database => $database);
		is(superusers(), 'postgres', 'nobody has risen');
		is($cluster->psql(q{select has_table_privilege('bi', 'entityapi.tenant', 'select'), has_column_privilege('deployer', 'entityapi.mapped_role', 'role', 'select')}, database => $database),
			't|t', 'what an operator gave to be read stays');
		is($cluster->psql(q{select count(*) from pg_attribute a, aclexplode(a.attacl) r where a.attrelid = any (array(select oid from pg_class where relnamespace = 'entityapi'::regnamespace))
			and r.privilege_type <> 'SELECT'}, database => $database), 0, 'and nothing else on a column');
		$cluster->psql('alter role deployer nosuperuser');
	};
}

# A superuser may let somebody refer to the extension's tables: even so nothing
# of that is put off until he commits.
subtest 'functions that superusers call' => sub {
	$cluster->psql(<<~"SQL");
		create schema deployed authorization deployer;
		grant references on entityapi.mapped_role, entityapi.login_origin, entityapi.account to deployer;
		select entityapi.create_superadmin('root', 'first pass phrase'), entityapi.map_role('bi', 'root');
		insert into entityapi.login_origin select '\\x01', id, '2000-01-01', 0 from entityapi.account;
		set role deployer;
		$rises
		create table deployed.roles (role text references entityapi.mapped_role on delete cascade);
		create table deployed.origins (hash bytea references entityapi.login_origin on delete cascade);
		create constraint trigger t after delete on deployed.roles deferrable initially deferred for each row execute function deployed.rises();
		create constraint trigger t after delete on deployed.origins deferrable initially deferred for each row execute function deployed.rises();
		insert into deployed.roles values ('bi');
		insert into deployed.origins values ('\\x01');
		SQL
	for my $call ('map_role(\'bi\', null)', 'sweep()')
	{
		my $said = $cluster->try_psql("select entityapi.$call")->{err};

		is(superusers(), 'postgres', "$call: nobody has risen") or $cluster->psql('alter role deployer nosuperuser');
	}
};

done_testing();
