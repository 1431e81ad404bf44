# What the extension leaves as it was: everybody's rights on the database and on
# what PostgreSQL brings, and so the locks and temporary tables of applications
# beside it, before and after it is installed, updated and dropped.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my @released = EntityApi::Test::Released::install($cluster) ? EntityApi::Test::Released::versions() : ();

$cluster->psql('create role rails login; create role hardened login');

# Tools that change an application's tables take a lock before, and some make a
# table of their own.
my $work = <<~'SQL';
	select pg_try_advisory_lock(4886718345), pg_advisory_unlock(4886718345);
	select pg_advisory_lock(72707369), pg_advisory_unlock_all();
	select pg_advisory_lock(1, 2), pg_advisory_unlock(1, 2), pg_try_advisory_lock_shared(3), pg_advisory_unlock_shared(3);
	begin;
	select pg_advisory_xact_lock(4), pg_try_advisory_xact_lock(5, 6), pg_advisory_xact_lock_shared(7), pg_try_advisory_xact_lock_shared(8, 9);
	create temp table flyway (version text);
	insert into flyway values ('1');
	select * from flyway;
	select 1 as a into temp other;
	create temp sequence s;
	create temp view v as select * from flyway;
	commit;
	select * from v;
	SQL

# All that PUBLIC may, but for what the extension brought
my $rights = <<~'SQL';
	select string_agg(x, E'\n' order by x) from (
		select 'database ' || a.privilege_type from pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
		where d.datname = current_database() and a.grantee = 0
		union all
		select 'schema ' || n.nspname || ' ' || a.privilege_type from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a where a.grantee = 0
		union all
		select p.oid::regprocedure || ' ' || a.privilege_type from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
		where a.grantee = 0 and p.pronamespace = 'pg_catalog'::regnamespace
		union all
		select c.oid::regclass || ' ' || a.privilege_type from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
		where a.grantee = 0 and c.relnamespace in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) and c.relkind in ('r', 'v')
		union all
		select t.oid::regtype || ' ' || a.privilege_type from pg_type t, aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a
		where a.grantee = 0 and t.typnamespace = 'pg_catalog'::regnamespace and t.typrelid = 0 and t.typelem = 0
		union all
		select l.lanname || ' ' || a.privilege_type from pg_language l, aclexplode(coalesce(l.lanacl, acldefault('l', l.lanowner))) a where a.grantee = 0) r (x)
	SQL

sub try_as { my ($user, $database) = @_; return $cluster->try_psql($work, user => $user, database => $database) }

sub check
{
	my ($database, $before, $what) = @_;

	is($cluster->psql($rights, database => $database), $before, "$what: PUBLIC has what it had");
	my $done = try_as('rails', $database);
	is($done->{err} =~ s/WARNING.*\n//gr, '', "$what: an application takes its locks and makes its tables");
	return $done->{out};
}

for my $version ('', @released)
{
	subtest $version ? "from $version" : 'installed' => sub {
		my $database = "beside$version";
		my $psql = sub { $cluster->psql($_[0], database => $database) };

		$cluster->psql(qq{create database "$database"}, database => 'postgres');
		my $before = $psql->($rights);
		my $out = check($database, $before, 'before');

		like($before, qr/^database TEMPORARY$/m, 'a temporary table is among the rights');
		$psql->('create extension pgcrypto; create extension entityapi' . ($version && " version '$version'"));
		is(check($database, $before, 'with the extension'), $out, 'the same comes of it');
		if ($version)
		{
			$psql->('alter extension entityapi update');
			is(check($database, $before, 'updated'), $out, 'the same comes of it');
		}
		is($psql->(q{select count(*) from pg_init_privs where privtype = 'e' and objoid in (select oid from pg_proc where proname ~ 'advisory')}), 0, 'no trace');
		$psql->('drop extension entityapi');
		check($database, $before, 'without it');
	};
}

# What an operator took is not given back
subtest 'taken by an operator' => sub {
	for my $version ('', @released)
	{
		my $database = "hardened$version";
		my $psql = sub { $cluster->psql($_[0], database => $database) };

		$cluster->psql(qq{create database "$database"}, database => 'postgres');
		$psql->(qq{revoke temporary on database "$database" from public; revoke execute on function pg_advisory_lock(bigint) from public});
		my $before = $psql->($rights);
		$psql->('create extension pgcrypto; create extension entityapi' . ($version && " version '$version'"));
		$psql->('alter extension entityapi update') if $version;
		is($psql->($rights), $before, $version ? "updated from $version" : 'installed');
		like(try_as('hardened', $database)->{err}, qr/permission denied for function pg_advisory_lock/, 'it stays so');
	}
};

done_testing();
