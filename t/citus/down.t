# A node is away: its tenants get 503, on whatever node they ask, and the others
# all that they ask for; readiness of the others names it, and they go on.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 2) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');
my %item = (type => 'items', attributes => { name => 'x', rank => 1 });

sub ask
{
	my ($shim, $tenant, $method, $body) = @_;
	return $shim->http($method => '/api/v1/items', { token => $tenant->{user}, $body ? (json => { data => $body }) : () });
}

sub statuses { my ($method, $body) = @_; return join ' ', map { my $shim = $_; map { ask($shim, $_, $method, $body)->{status} } @tenants } @_[ 2 .. $#_ ] }

is(statuses(POST => \%item, @shims), '201 201 201 201 201 201 201 201 201', 'all are served by all');

for my $away (1, 2, 0)
{
	subtest "node $away is away" => sub {
		my @others = @shims[ grep { $_ != $away } 0 .. 2 ];
		my $expected = sub { my ($good) = @_; join ' ', (map { $_->{node} == $away ? 503 : $good } @tenants) x @others };

		$cluster->node($away)->stop('immediate');

		# the first may find a connection that broke
		statuses(GET => undef, @others) for 1, 2;
		my $started = time;
		is(statuses(GET => undef, @others), $expected->(200), 'its tenants are refused, the others read');
		is(statuses(POST => \%item, @others), $expected->(201), 'and write');
		cmp_ok(time - $started, '<', 20, 'soon');
		my ($mine) = grep { $_->{node} == $away } @tenants;
		my $answer = ask($others[0], $mine, 'GET');
		is($answer->{json}{errors}[0]{code}, 'UNAVAILABLE', 'it is said that it is for now');
		unlike($answer->{body}, qr/\Q@{[$cluster->node($away)->host]}\E|shard|Citus|connection/i, 'and not which node');
		for my $shim (@others)
		{
			my $ready = $shim->http(GET => '/actuator/health/readiness');

			is($ready->{status}, 200, 'another node is ready, as most tenants are served') or diag $ready->{body};
			my $name = $cluster->node($away)->host;
			ok(EntityApi::Test::wait_until(30, sub { EntityApi::Test::slurp($shim->err) =~ /\Q$name\E/ }), 'its log names the node');
		}
		$cluster->node($away)->start;
		ok(EntityApi::Test::wait_until(60, sub { statuses(GET => undef, @shims) !~ /503/ }), 'back, it is served again');
		is(statuses(POST => \%item, @shims), '201 201 201 201 201 201 201 201 201', 'and written');
	};
}

done_testing;
