# A shim that knows all nodes asks the one that has the tenant, wherever that
# goes, and another one where a node is away.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @nodes = $cluster->nodes;
my $shim = EntityApi::Test->shim($cluster, node => 0, pool_size => 2, sweep_interval_ms => 0,
	nodes => join ';', map { $_->conninfo('entityapi_shim') } @nodes[ 1, 2 ]);
my @tenants = $cluster->place($shim, 'Editor');

sub ask { my ($tenant, $method, @json) = @_; return $shim->http($method // 'GET', '/api/v1/items', { token => $tenant->{user}, @json }) }

# The nodes that are asked meanwhile
sub asked
{
	my ($work) = @_;
	my $last = q{select coalesce(max(query_start)::text, '') from pg_stat_activity where application_name = 'entityapi-shim'};
	my @before = $cluster->on_all($last);

	$work->();
	my @after = $cluster->on_all($last);
	return join ' ', grep { $before[$_] ne $after[$_] } 0 .. $#after;
}

subtest 'a tenant is asked for at home' => sub {
	for my $tenant (@tenants)
	{
		ask($tenant) for 1 .. 4;
		is(asked(sub { is(ask($tenant)->{status}, 200, 'read') for 1 .. 4 }), $tenant->{node}, "on node $tenant->{node} alone");
		is(asked(sub { is(ask($tenant, POST => json => { data => { type => 'items', attributes => { name => 'x', rank => 1 } } })->{status}, 201, 'written') }),
			$tenant->{node}, 'writing, too');
	}
};

subtest 'a tenant that has moved' => sub {
	my ($tenant) = grep { $_->{node} == 1 } @tenants;

	is($cluster->move($tenant->{id}, 2, 'block_writes')->{err}, '', 'moved');
	is(ask($tenant)->{json}{meta}{pagination}{totalRecords}, 1, 'is read, once more from where it was');
	is(asked(sub { is(scalar @{ ask($tenant)->{json}{data} }, 1, 'all of it') for 1 .. 3 }), 2, 'and then at its new home');
};

subtest 'the node of the setting "database" is away' => sub {
	my ($tenant) = grep { $_->{node} == 2 } @tenants;

	$nodes[0]->stop('immediate');
	is(ask($tenant)->{status}, 200, 'others are read') for 1 .. 4;
	is(ask($tenant, POST => json => { data => { type => 'items', attributes => { name => 'y', rank => 1 } } })->{status}, 201, 'and written');
	my $health = $shim->http(GET => '/actuator/health');
	is($health->{status}, 200, 'the service is healthy');
	is($health->{json}{components}{nodes}{status}, 'DOWN', 'but for a node');
	is(scalar @{ $health->{json}{components}{nodes}{down} }, 1, 'which is named');
	$nodes[0]->start;
};

done_testing;
