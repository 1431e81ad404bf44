# A schema on another node that is somebody else's could have tables of theirs
# in the place of parts, where no request of this node looks at them: so it is
# told of before anything is there.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
open my $file, '>', "$folder/thing.yaml" or die "thing.yaml: $!\n";
print $file <<'YAML';
apiVersion: entityapi/v1
kind: Service
metadata: {name: s}
spec: {schema: shop}
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
  fields: {name: {type: text}}
  permissions: {Editor: [create, read, update, delete]}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Thing}
spec:
  table: legacy.thing
  columns: {createdAt: created}
  fields: {name: {type: text}}
  permissions: {Editor: [create, read, update, delete]}
YAML
close $file;

my $cluster = EntityApi::Test->cluster(nodes => 3);
my $alone = 'set client_min_messages = error; set citus.enable_ddl_propagation = off;';
my $node = $cluster->node(1);

# Schemas from before there was a cluster
$cluster->psql("$alone create schema $_ authorization entityapi_owner; grant usage on schema $_ to entityapi_reader") for qw(shop legacy);
$cluster->psql(<<~'SQL');
	set client_min_messages = error;
	create role mallory login;
	SQL
$cluster->psql("$alone set role entityapi_owner; create table legacy.thing (tenant_id uuid not null, id uuid not null, name text, created timestamptz, primary key (tenant_id, id))");

subtest 'a schema of hers on another node' => sub {
	$node->psql("$alone create schema $_ authorization mallory") for qw(shop legacy);
	my $done = $cluster->try_apply("$folder/thing.yaml");
	like($done->{err}, qr{/spec/distribution: on the node \S+ the schema "$_" belongs to mallory, who could put other tables in the place of the service's \(ALTER SCHEMA $_ OWNER TO entityapi_owner, there}, "$_ is told of") for qw(shop legacy);
	$node->psql("$alone alter schema $_ owner to entityapi_owner") for qw(shop legacy);
};

$cluster->apply("$folder/thing.yaml");
is(join(' ', $cluster->on_all(q{select count(*) from pg_namespace where nspname in ('shop', 'legacy') and nspowner = 'entityapi_owner'::regrole})), '2 2 2', 'given to the owner they are taken');

done_testing;
