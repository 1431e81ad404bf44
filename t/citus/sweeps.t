# What has ended goes on all nodes, and is counted once: sessions, what was
# deleted softly, and tenants, for whose last rows each node is waited for.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
open my $file, '>', "$folder/item.yaml" or die "item.yaml: $!\n";
print $file <<'YAML';
apiVersion: entityapi/v1
kind: Service
metadata: {name: s}
spec: {schema: app}
---
apiVersion: entityapi/v1
kind: Roles
metadata: {name: r}
spec: {roles: {Editor: {}}}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Item}
spec:
  softDelete: true
  purgeAfterDays: 30
  fields:
    name: {type: string}
    tags: {type: ref, target: Tag, relation: ManyToMany}
  permissions: {Editor: [create, read, update, delete]}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Tag}
spec:
  fields: {word: {type: string}}
  permissions: {Editor: [create, read, update, delete]}
YAML
close $file;

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply("$folder/item.yaml");
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 2, sweep_interval_ms => 0) } 0 .. 2;
my $root = $shims[0]->superadmin;
my @tenants = $cluster->place($shims[0], 'Editor');

sub made
{
	my ($tenant, $type, %data) = @_;
	return $shims[ $tenant->{node} ]->must(201, POST => "/api/v1/$type", { token => $tenant->{user}, json => { data => { type => $type, %data } } })->{data}{id};
}

sub sweep { return $cluster->psql('select entityapi.sweep()') }

# Until nothing is done any more: a step does nothing, either, while a node has
# somebody else's transaction for a moment.
sub sweep_all
{
	my ($sum, $idle) = (0, 0);

	for (1 .. 200)
	{
		my $n = sweep();

		$sum += $n;
		$idle = $n ? 0 : $idle + 1;
		last if $idle == 3;
	}
	return $sum;
}

sub everywhere { my ($sql) = @_; my @counts = $cluster->on_all($sql); return join ' ', @counts }

for my $tenant (@tenants)
{
	my $tag = made($tenant, 'tags', attributes => { word => 'x' });

	$tenant->{items} = [ map { made($tenant, 'items', attributes => { name => "i$_" }, relationships => { tags => { data => [ { type => 'tags', id => $tag } ] } }) } 1 .. 4 ];
}
sweep_all();

subtest 'sessions' => sub {
	my @users = map { my $n = $_; map { $shims[$n]->user($tenants[$n]{id}, "ends$n$_", ['Editor']) } 1 .. 2 } 0 .. 2;
	my $ids = join ', ', map { "'$_->{id}'" } @users;
	my $count = "select count(*) from entityapi.session where account_id in ($ids)";

	sweep_all();
	is(everywhere($count), '6 6 6', 'on each node');
	$cluster->psql("update entityapi.session set expires_at = '2020-01-01' where account_id in ($ids)");
	my $tokens = $cluster->psql("select count(*) from entityapi.refresh_token t join entityapi.session s on s.id = t.session_id where s.account_id in ($ids)");
	is(sweep_all(), 6, 'counted once, not for each node');
	is(everywhere($count), '0 0 0', 'gone from each node');
	is($shims[1]->http(GET => '/api/v1/items', { token => $users[0] })->{status}, 401, 'and no longer let in');
};

subtest 'what was deleted softly' => sub {
	for my $tenant (@tenants)
	{
		$shims[ ($tenant->{node} + 1) % 3 ]->must(204, DELETE => "/api/v1/items/$_", { token => $tenant->{user} }) for @{ $tenant->{items} }[ 0, 1 ];
	}
	is(sweep_all(), 0, 'not before it is due');
	$cluster->psql(q{update app.item set deleted_at = '2020-01-01' where deleted_at is not null});
	is(sweep_all(), 6, 'then of all tenants, wherever they are');
	is($cluster->psql('select count(*), count(distinct tenant_id) from app.item'), '6|3', 'the others stay');
	is($cluster->psql('select count(*) from app.item_tags'), 6, 'with their links');
	is($cluster->psql(q{select count(*), count(distinct tenant_id) from entityapi.audit where action = 'ENTITY_PURGE'}), '6|3', 'each has its record');
};

# A session of another node, in the midst of a transaction
sub begin_on
{
	my ($node, $name, $sql) = @_;

	open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/$name$node", '-d', $cluster->node($node)->conninfo or die "psql: $!\n";
	$psql->autoflush(1);
	print $psql "$sql; select 'so far';\n";
	EntityApi::Test::wait_until(20, sub { -e "$folder/$name$node" && EntityApi::Test::slurp("$folder/$name$node") =~ /so far/ }) or die "$name does not begin\n";
	return $psql;
}

# Transactions of another node hold the end up: one that has not seen the
# deletion, and one that has written, and is between two statements.
for my $tenant (@tenants)
{
	subtest "a tenant of node $tenant->{node}" => sub {
		my $away = ($tenant->{node} + 1) % 3;
		my $left = "select (select count(*) from app.item where tenant_id = '$tenant->{id}') + (select count(*) from app.tag where tenant_id = '$tenant->{id}')
			+ (select count(*) from app.item_tags where tenant_id = '$tenant->{id}') + (select count(*) from entityapi.account where tenant_id = '$tenant->{id}')";
		my $there = "select count(*) from entityapi.tenant where id = '$tenant->{id}'";

		isnt($cluster->psql($left), 0, 'has rows');
		my $old = begin_on($away, 'old', "begin isolation level repeatable read; select count(*) from app.item where tenant_id = '$tenant->{id}'");
		my $late = begin_on($away, 'late', "begin; insert into app.tag (tenant_id, id, word, created_at, updated_at) values ('$tenant->{id}', gen_random_uuid(), 'late', now(), now())");

		$shims[$away]->must(204, DELETE => "/manage/tenants/$tenant->{id}", { token => $root });
		is($shims[$_]->http(GET => '/api/v1/items', { token => $tenant->{user} })->{status}, 401, "node $_ lets nobody in") for 0 .. 2;
		sweep() for 1 .. 3;
		is(everywhere($there), '1 1 1', 'it is not over while a transaction of before goes on');
		print $old "commit;\n";
		close $old;
		sweep() for 1 .. 3;
		is(everywhere($there), '1 1 1', 'nor while another has written and says nothing');
		print $late "commit;\n";
		close $late;
		sweep_all();
		is($cluster->psql($left), 0, 'then its rows are gone');
		is(everywhere($there), '0 0 0', 'and it, from each node');
		is($cluster->psql("select count(*) from entityapi.audit where action = 'TENANT_ERASED' and target_id = '$tenant->{id}'"), 1, 'with one record of it');
	};
}
is(sweep_all(), 0, 'nothing is left to do');

done_testing;
