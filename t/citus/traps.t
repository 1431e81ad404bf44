# What Citus sends to other nodes names functions of PostgreSQL without their
# schema.  Whoever can put others into a path that is searched there, be it in
# "public" or in a schema of a role's own name, catches neither the service nor
# the superuser for whom it works.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Traps;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
my $manifest = <<'YAML';
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
  purgeAfterDays: 1
  fields:
    name: {type: string, required: true}
    code: {type: string, unique: true}
    kind: {type: string, enum: [a, b]}
    amount: {type: integer, minimum: 0}
    price: {type: decimal, precision: 10, scale: 2}
    parent: {type: ref, target: Item, relation: ManyToOne, onDelete: cascade}
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

sub write_down
{
	my ($text) = @_;

	open my $file, '>', "$folder/item.yaml" or die "item.yaml: $!\n";
	print $file $text;
	close $file;
	return "$folder/item.yaml";
}

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(write_down($manifest));
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1, sweep_interval_ms => 0) } 0 .. 2;
my $root = $shims[0]->superadmin;
my @tenants = $cluster->place($shims[0], 'Editor');
my ($tenant) = grep { $_->{node} == 1 } @tenants;

$cluster->psql('set client_min_messages = error; create role mallory login; create role bi login in role entityapi_reader');
for my $node ($cluster->nodes)
{
	my $alone = 'set client_min_messages = error; set citus.enable_ddl_propagation = off;';

	EntityApi::Test::Traps::set($node, 'entityapi', $_, $alone) for qw(public postgres entityapi_owner);

	# what Citus calls itself, with numbers that are smaller than its own take
	$node->psql("$alone set search_path = pg_catalog;" . <<~"SQL", user => 'mallory') for qw(postgres entityapi_owner);
		create function $_.assign_distributed_transaction_id(int, int, timestamptz) returns void language plpgsql as
			'begin perform $_.trap(); perform pg_catalog.assign_distributed_transaction_id(\$1, \$2::bigint, \$3); end';
		create function $_.worker_apply_shard_ddl_command(int, text, text) returns void language plpgsql as
			'begin perform $_.trap(); perform pg_catalog.worker_apply_shard_ddl_command(\$1::bigint, \$2, \$3); end';
		create function $_.worker_apply_shard_ddl_command(int, text) returns void language plpgsql as
			'begin perform $_.trap(); perform pg_catalog.worker_apply_shard_ddl_command(\$1::bigint, \$2); end';
		SQL
}

sub caught { return join ' ', map { EntityApi::Test::Traps::caught($_, 'entityapi') // '' } $cluster->nodes }
sub free { my ($after) = @_; return is(caught(), '  ', "nobody is caught by $after") }

for my $i (0 .. 2)
{
	my $shim = $shims[$i];
	my $ask = sub { my ($method, $target, $data) = @_; return $shim->http($method => "/api/v1$target", { token => $tenant->{user}, $data ? (json => { data => $data }) : () }) };
	my $made = sub { my ($type, $attributes, %more) = @_; return $ask->(POST => "/$type", { type => $type, attributes => $attributes, %more })->{json}{data}{id} };
	my @tags = map { { type => 'tags', id => $made->(tags => { word => "w$_" }) } } 1 .. 2;
	my $first = $made->(items => { name => "n$i", code => "c$i", kind => 'a', amount => 4, price => '1.50' });

	$made->(items => { name => 'child' }, relationships => { parent => { data => { type => 'items', id => $first } }, tags => { data => \@tags } });
	is($ask->($_->[0] => "/items/$first/relationships/tags", $_->[1])->{status}, 204, "node $i: links, $_->[0]")
	  for [ POST => \@tags ], [ PATCH => [ $tags[0] ] ], [ DELETE => [ $tags[0] ] ];
	is($ask->(GET => "/items?$_")->{status}, 200, "node $i: $_")
	  for 'filter=name==n*;code=in=(c0,c1,c2);amount=gt=1;price=lt=9.5&sort=-code,price&include=tags,parent', 'filter=tags.word==w1,tags.word=ilike=W*', 'page[size]=1&sort=name';
	is($ask->(PATCH => "/items/$first", { type => 'items', id => $first, attributes => { amount => 5 } })->{status}, 200, "node $i: changed");
	is($shim->http(GET => $_, { token => $root })->{status}, 200, "node $i: $_") for "/manage/tenants/$tenant->{id}/users?filter=roles==Editor", '/manage/audit?filter=action==ENTITY_CREATE';
	is($ask->(DELETE => "/items/$first")->{status}, 204, "node $i: deleted");
	free("requests on node $i");
}

# By the superuser, and by what he calls
$cluster->psql(q{update app.item set deleted_at = '2020-01-01' where deleted_at is not null});
$cluster->psql('select entityapi.sweep()') for 1 .. 3;
free('sweeping');
$cluster->apply(write_down($manifest =~ s/amount: \{type: integer, minimum: 0\}/number: {type: integer, minimum: 1, renamedFrom: amount}\n    more: {type: string}/r));
free('apply');
$shims[0]->must(204, DELETE => "/manage/tenants/$tenants[2]{id}", { token => $root });
$cluster->psql('select entityapi.sweep()') for 1 .. 12;
free('the end of a tenant');
$shims[0]->user($tenant->{id}, 'bi', ['Editor']);
$cluster->psql(q{set client_min_messages = error; select entityapi.map_role('bi', 'bi')});
free('map_role');
$cluster->psql(q{set client_min_messages = error; select entityapi.extend_audit(now() + interval '9 months', 1)});
$cluster->psql(q{select entityapi.purge_audit('2021-01-01')});
free('the months of the log');
$cluster->psql('select entityapi.rotate_signing_key()');
free('a new key');
$cluster->apply(write_down($manifest =~ s/schema: app/schema: app, distribution: none/r =~ s/amount:/number:/r), '--allow-data-loss', 'Item.more');
free('the way back');

done_testing;
