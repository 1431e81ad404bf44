# A version that was released, updated on all nodes and distributed then; and
# DROP EXTENSION, which goes where nothing is distributed, and is refused in
# words where something is.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my ($current) = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/entityapi.control') =~ /default_version = '(.*)'/;
my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
EntityApi::Test::Released::install($cluster)
  or plan skip_all => 'released versions are installed beside what make test makes only';
my @declared = map { sprintf q{select entityapi.apply_manifest('[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "%s"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "r"}, "spec": {"roles": {"Clerk": null}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Item"}, "spec": {"fields": {"name": {"type": "string"}}, "permissions": {"Clerk": ["read", "create"]}}}]')}, $_ } qw(none citus);
my $versions = q{select coalesce((select extversion from pg_extension where extname = 'entityapi'), 'none')};
my $left = q{select string_agg(n, ' ') from (select 'guard' from pg_event_trigger where evtname ~ 'entityapi' 
	union all select c.relname from pg_class c where relnamespace::regnamespace::text = 'entityapi'
	union all select 'placed ' || logicalrelid from pg_dist_partition where logicalrelid::regclass::text ~ 'entityapi') l (n)};

for my $version (EntityApi::Test::Released::versions())
{
	my @database = (database => "from_$version");
	my $psql = sub { my ($sql) = @_; return $cluster->psql("set client_min_messages = error; $sql", @database) };

	for my $node ($cluster->nodes)
	{
		$node->psql(qq{set citus.enable_create_database_propagation = off; create database "from_$version"}, database => 'postgres');
		$node->psql('set client_min_messages = error; create extension citus', @database);
	}
	$cluster->join_all("from_$version");

	subtest "from $version" => sub {
		$psql->("create extension entityapi version '$version' cascade");
		is(join(' ', $cluster->on_all($versions, @database)), "$version $version $version", 'installed, on each node');
		$psql->(q{insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'A', 'a', 'ACTIVE', '{}', now());
			select entityapi.extend_audit('2026-01-15', 1);
			insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), '2026-01-20', 'OLD', 'SUCCESS');
			insert into entityapi.audit (id, at, action, outcome, tenant_id) values (gen_random_uuid(), '2026-01-20', 'OLD', 'SUCCESS', '01980000-0000-7000-8000-000000000001')});
		like($cluster->try_psql('set client_min_messages = error; begin; select create_reference_table($$entityapi.common_password$$); alter extension entityapi update', @database)->{err} // '',
			qr/ERROR:  Citus has tables of the extension, whose parts an update would leave as they are: entityapi\.common_password\nHINT:  Apply "distribution: none" first/, 'what Citus has is not updated');
		$psql->('alter extension entityapi update');
		is(join(' ', $cluster->on_all($versions, @database)), "$current $current $current", 'updated, on each node');
		$psql->($declared[0]);
		$psql->(q{insert into app.item (tenant_id, id, name, created_at, updated_at) select id, gen_random_uuid(), 'x' || i, now(), now() from entityapi.tenant, generate_series(1, 10) i});
		my $done = $cluster->try_psql("set client_min_messages = error; $declared[1]", @database);
		is($done->{err} // '', '', 'distributed then');
		is($psql->('select message from entityapi.list_differences()'), '', 'soundly');
		is(join(' ', $cluster->on_all('select count(*) from app.item', @database)), '10 10 10', 'with its rows');
		is(join(' ', $cluster->on_all(q{select count(*) || '.' || count(distinct tenant_id) from entityapi.audit where action = 'OLD'}, @database)), '2.2 2.2 2.2', 'and its records');
		is(join(' ', $cluster->on_all('select count(*) from entityapi.tenant', @database)), '1 1 1', 'and what each node has');
		is(join(' ', $cluster->on_all(q{select count(*) from pg_event_trigger where evtname = 'entityapi_await_replication'}, @database)), '1 1 1', 'each guards moves');
	};

	subtest "dropped, after $version" => sub {
		for my $how ('drop extension entityapi', 'drop extension if exists "entityapi" cascade')
		{
			like($cluster->try_psql($how, @database)->{err}, qr/ERROR:  Citus has the tables of the service\nHINT:  Apply "distribution: none" first/, "refused: $how");
			like($cluster->node($_)->try_psql($how, @database)->{err}, qr/ERROR:  (?:operation is not allowed on this node|Citus has the tables of the service)/, "on node $_, too") for 1, 2;
		}
		is(join(' ', $cluster->on_all($versions, @database)), "$current $current $current", 'it is there');
		my $done = $cluster->try_psql("set client_min_messages = error; $declared[0]", @database);
		is($done->{err} // '', '', 'brought back');
		$psql->('drop schema app cascade');
		$psql->('drop extension entityapi');
		is(join(' ', $cluster->on_all($versions, @database)), 'none none none', 'it goes, on each node');
		is(join('|', map { $_ // '' } $cluster->on_all($left, @database)), '||', 'and leaves nothing');
		$psql->("create extension entityapi cascade");
		$psql->('set citus.enable_ddl_propagation = off; drop schema if exists app cascade');
		$psql->($declared[1]);
		is(join(' ', $cluster->on_all('select count(*) from app.item', @database)), '0 0 0', 'made again, it is distributed again');
	};
}

done_testing;
