# One table is locked by others while more requests ask for it than the pool has
# sessions: other tables and logins notice nothing, where a standby is read from
# and on all nodes of a cluster, too.
#
# ENTITYAPI_THROUGHPUT measures, for so many seconds each, what others get with
# and without the lock, by wrk; without it nothing is measured.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Test::More;

use EntityApi::Test;

use constant { POOL => 8, BESIDE => 100 };

my $seconds = $ENV{ENTITYAPI_THROUGHPUT} // 0;
my $cluster = EntityApi::Test->cluster;
my $distributed = $ENV{ENTITYAPI_TEST_CITUS};
$cluster->apply('examples/billing');
my @standbys = $distributed ? () : (EntityApi::Test->standby($cluster, 'near'));
my @places = ($cluster->nodes, @standbys);
my $shim = EntityApi::Test->shim($cluster, pool_size => POOL, pool_wait_ms => 60000, statement_timeout_ms => 600000,
	map { (replicas => $_->conninfo('entityapi_shim'), replica_staleness => 'allowed', replica_max_lag_ms => 60000, read_your_writes_ms => 60000) } @standbys);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Accountant']);
my $bob = $shim->user($tenant->{id}, 'bob', ['Accountant']);
my $customer = $shim->must(201, POST => '/api/v1/customers',
	{ token => $ann, json => { data => { type => 'customers', attributes => { name => 'Held' } } } })->{data}{id};

# What they wait for, by place
sub waiting
{
	return map { $_->psql("select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
		where not granted and locktype = 'relation' and application_name = 'entityapi-shim'") } @places;
}

sub is_locked
{
	my ($place) = @_;
	return $place->psql("select count(*) from pg_locks where granted and relation = 'app.customer'::regclass and mode = 'AccessExclusiveLock'") > 0;
}

# While somebody has the table for itself, at each place that reads it
sub holding
{
	my ($work) = @_;
	my $session = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
		in => "begin;\nlock table app.customer in access exclusive mode;\nselect pg_sleep(3000);\n");

	EntityApi::Test::wait_until(60, sub { is_locked($cluster) }) or die "nothing is locked\n";
	$cluster->psql('checkpoint');
	EntityApi::Test::wait_until(60, sub { !grep { !is_locked($_) } @standbys }) or die "no standby has locked it\n";
	$work->();
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'select pg_sleep(3000)%'");
	waitpid $session, 0;
	return;
}

sub crowd
{
	return map {
		my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

		$socket->autoflush(1);
		print $socket "GET /api/v1/customers HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer $bob->{accessToken}\r\n\r\n";
		$socket;
	} 1 .. POOL + BESIDE;
}

# How often each status came, until no more than so many of a crowd wait; these
# are given back, too.
sub answers
{
	my ($left, @crowd) = @_;
	my $all = IO::Select->new(@crowd);
	my %status;

	while ($all->count > $left)
	{
		for my $socket ($all->can_read(1))
		{
			my $text = do { local $/; readline $socket } // '';

			$all->remove($socket);
			$status{ $text =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
		}
	}
	return (\%status, $all->handles);
}

sub others
{
	my %status;

	for (1 .. 20)
	{
		$status{ $shim->http(GET => '/api/v1/tags', { token => $bob })->{status} }++;
		$status{ $shim->http(POST => '/auth/login', { json => { username => 'ann', password => $ann->{password} } })->{status} }++;
	}
	return \%status;
}

subtest 'all at once' => sub {
	my @crowd;

	ok(EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/api/v1/tags', { token => $bob })->{status} == 200 }), 'it is read');
	holding(sub {
			@crowd = crowd();
			ok(EntityApi::Test::wait_until(60, sub { grep { $_ > 0 } waiting() }), 'some wait');
			is_deeply(others(), { 200 => 40 }, 'others are served');
			my @waiting = waiting();
			my $most = (POOL / 4) * @places;
			(my $status, @crowd) = answers($most, @crowd);

			is_deeply([ grep { $_ > POOL / 4 } @waiting ], [], 'a quarter of the pool waits at each place') or diag "@waiting";
			is_deeply([ grep { $_ ne '503' } keys %$status ], [], 'all others are refused') or diag explain $status;
		});
	my ($status) = answers(0, @crowd);
	is_deeply([ grep { $_ !~ /^(?:200|503)$/ } keys %$status ], [], 'who waited is answered') or diag explain $status;
	is($shim->http(GET => "/api/v1/customers/$customer", { token => $bob })->{status}, 200, 'and so is who comes later');
};

sub wrk
{
	my ($connections, $script, $target) = @_;
	my $file = EntityApi::Test::folder() . '/wrk.lua';

	open my $out, '>', $file or die "$file: $!\n";
	print $out "$script\n";
	close $out;
	my $said = qx{wrk -t1 -c$connections -d${seconds}s -s $file http://127.0.0.1:@{[ $shim->port ]}$target};
	die "wrk: $said\n" if $said =~ /Non-2xx|Socket errors/ || $said !~ m{Requests/sec:\s+([\d.]+)};
	return $1;
}

my %load = (
	GET => [ 4, qq{wrk.headers["Authorization"] = "Bearer $bob->{accessToken}"}, '/api/v1/tags' ],
	login => [ 4, qq{wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"
		wrk.body = '{"username":"ann","password":"$ann->{password}"}'}, '/auth/login' ]);

subtest 'throughput of others' => sub {
	plan skip_all => 'ENTITYAPI_THROUGHPUT is not set' if !$seconds;
	for my $what (sort keys %load)
	{
		my ($calm, $held) = (0, 0);

		for (1 .. 5)
		{
			$calm += wrk(@{ $load{$what} });
			holding(sub {
					my @crowd = crowd();

					EntityApi::Test::wait_until(60, sub { grep { $_ > 0 } waiting() }) or die "nobody waits\n";
					$held += wrk(@{ $load{$what} });
				});
		}
		diag sprintf '%s: %.0f a second, %.0f with a table locked: %.2f', $what, $calm / 5, $held / 5, $held / $calm;
		cmp_ok($held, '>=', 0.8 * $calm, $what);
	}
};

done_testing;
