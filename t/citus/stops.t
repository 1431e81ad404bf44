# Immediate stops of a node while tenants of all nodes are written to, on all
# nodes: what was acknowledged is there, once, and each row has its records and
# each record its row.  ENTITYAPI_CRASH_RUNS asks for more than six.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/citus";

use Test::More;
use Time::HiRes qw(sleep);

use EntityApi::Test;
use Load;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, conf => ['entityapi.access_token_ttl = 86400']);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 3) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');
my $folder = EntityApi::Test::folder();
my (%done, %refused);

is(scalar @tenants, 3, 'there is a tenant on each node');
mkdir "$folder/$_->{node}" for @tenants;

# All nodes answer for all tenants again.
sub all_serve
{
	return EntityApi::Test::wait_until(60, sub {
			!grep { my $shim = $_; grep { $shim->http(GET => '/api/v1/items?page[size]=1', { token => $_->{user} })->{status} != 200 } @tenants } @shims });
}

for my $run (1 .. $ENV{ENTITYAPI_CRASH_RUNS} || 6)
{
	my $stopped = ($run - 1) % 3;

	subtest "stop $run, of node $stopped" => sub {
		my $since = $cluster->psql('select clock_timestamp()');
		my @loads = map {
			my $tenant = $_;
			[ map { Load->begin(folder => "$folder/$tenant->{node}", name => "run$run-$tenant->{node}-$_", token => $tenant->{user}{accessToken}, refused => 1,
				shims => [ @shims[ ($tenant->{node} + $_) % 3, ($tenant->{node} + $_ + 1) % 3 ] ]) } 0, 1 ]
		} @tenants;

		# in the midst of it, and until its own have found that it is away
		sleep 0.7 + rand 0.6;
		EntityApi::Test::wait_until(60, sub { !grep { $_->done < 6 } map { @$_ } @loads });
		$cluster->node($stopped)->stop('immediate');
		my ($own) = map { $loads[$_] } grep { $tenants[$_]{node} == $stopped } 0 .. 2;
		EntityApi::Test::wait_until(60, sub { grep { $_->refused } @$own });
		$cluster->node($stopped)->start;
		ok(all_serve(), 'all serve again');
		sleep 0.5;

		# what was prepared on the others when it stopped is ended by its own
		$_->psql('select recover_prepared_transactions()') for $cluster->nodes;
		for my $tenant (@tenants)
		{
			my $sum = Load::end(@{ shift @loads });

			is(join("\n", @{ $sum->{faults} }), '', "tenant of node $tenant->{node}: nothing but 503 is refused, nothing is stale");
			is(join("\n", Load->compare($cluster, $tenant->{id}, $sum, $since)), '', 'nothing is lost, twice or without its record');
			$done{ $tenant->{node} } += $sum->{done};
			$refused{ $tenant->{node} == $stopped ? 'its own' : 'others' } += $sum->{refused};
		}
	};
}
cmp_ok($done{$_}, '>', 60, "much was written on node $_") for 0 .. 2;
cmp_ok($refused{'its own'} // 0, '>', 0, 'what was stopped was asked');
note join ', ', map { "node $_: $done{$_}" } sort keys %done;
is(join(' ', $cluster->on_all('select count(*) from pg_prepared_xacts')), '0 0 0', 'nothing is left prepared');
unlike(EntityApi::Test::slurp($_->log), qr/PANIC|TRAP:|signal 11|signal 6\b|invalid page/, 'and none met worse') for $cluster->nodes;

done_testing;
