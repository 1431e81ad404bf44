# Nodes let each other in by passwords: the roles that log in between them get
# one, and each node knows them.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
my @nodes = $cluster->nodes;
my $document = q([{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "citus"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Clerk": {}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Item"}, "spec": {"fields": {"name": {"type": "string"}}, "permissions": {"Clerk": ["create", "read"]}}}]);
my $apply = sub { return $cluster->try_psql("set client_min_messages = error; select count(*) from entityapi.apply_manifest('$document')") };

# The password of a role, on each node, and what the others use
sub give_password
{
	my ($role) = @_;

	$cluster->psql("set client_min_messages = error; set password_encryption = 'scram-sha-256'; alter role $role password 'known to nodes, $role'");
	$_->psql("insert into pg_dist_authinfo values (0, '$role', \$\$password='known to nodes, $role'\$\$)") for @nodes;
	return;
}

$cluster->psql('create role analyst login in role entityapi_reader');
for my $node (@nodes)
{
	my $done = EntityApi::Test::run([ 'sh', '-c', q{cd "$1" && { echo 'local all entityapi_owner,entityapi_reader,analyst scram-sha-256'; cat pg_hba.conf; } >new && mv new pg_hba.conf},
			'-', $node->data ], service => 1);
	die $done->{err} if $done->{status} != 0;
	$node->psql('select pg_reload_conf()');
}
ok(EntityApi::Test::wait_until(60, sub { !grep { $_->psql(q{select count(*) from pg_hba_file_rules where auth_method = 'scram-sha-256'}) ne '1'
				|| $_->try_psql('select 1', user => 'analyst')->{err} !~ /password/ } @nodes }), 'who has none is not let in');

like($apply->()->{err}, qr/connection to the remote node entityapi_owner.*no password supplied/s, 'the owner has none, and apply says so');
give_password($_) for qw(entityapi_owner entityapi_reader);
is($apply->()->{err}, '', 'with passwords it goes on');

my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Clerk');
for my $shim (@shims)
{
	is(join(' ', map { $shim->http(POST => '/api/v1/items', { token => $_->{user}, json => { data => { type => 'items', attributes => { name => 'x' } } } })->{status} } @tenants),
		'201 201 201', 'each node writes to all');
}

my $count = 'set client_min_messages = error; set session authorization analyst; select count(*) from app.item';
$cluster->psql("set client_min_messages = error; select entityapi.map_role('analyst', (select username from entityapi.account where id = '$tenants[1]{user}{id}'))");
like($nodes[0]->try_psql($count)->{err}, qr/no password supplied/, 'a reader that is mapped has none yet');
give_password('analyst');
is(join(' ', map { $_->psql($count) } @nodes), '3 3 3', 'with one it reads on each node');

done_testing;
