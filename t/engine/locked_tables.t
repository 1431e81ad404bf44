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
use JSON::PP ();
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

# By where the tenant's rows are: on the node that is asked, or on another one
my %tenants;
if ($distributed)
{
	my ($here, $there) = map { $_->{user} } $cluster->place($shim, 'Accountant');
	%tenants = ('at home' => $here, 'from elsewhere' => $there);
}
else
{
	%tenants = (alone => $shim->user($shim->tenant('acme')->{id}, 'bob', ['Accountant']));
}
my $ann = $tenants{alone} // $tenants{'at home'};

sub bytes
{
	my ($token, $method, $target, $document) = @_;
	my $body = $document ? JSON::PP->new->canonical->encode($document) : '';

	return "$method $target HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer $token->{accessToken}\r\n"
	  . ($document ? "Content-Type: application/vnd.api+json\r\nContent-Length: " . length($body) . "\r\n" : '') . "\r\n$body";
}

my $created = { data => { type => 'customers', attributes => { name => 'Held' } } };

# What they wait for, by place
sub waiting
{
	return map { $_->psql("select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
		where not granted and locktype = 'relation' and application_name = 'entityapi-shim'") } @places;
}

sub is_locked
{
	my ($place, $table, $mode) = @_;
	return $place->psql("select count(*) from pg_locks where granted and relation = '$table'::regclass and mode = '$mode'") > 0;
}

# All that is waited for, and who has it
sub tell_locks
{
	for my $i (0 .. $#places)
	{
		diag "place $i\n", $places[$i]->psql(q{select pid, application_name, state, wait_event_type, wait_event, locktype, relation::regclass, mode, granted,
			left(regexp_replace(query, '\s+', ' ', 'g'), 100) from pg_locks join pg_stat_activity using (pid)
			where not granted or relation in (select relation from pg_locks where not granted) order by granted, pid});
	}
	return;
}

# While somebody has the table for itself, at each place where that counts
sub holding
{
	my ($table, $mode, $work) = @_;
	my $lock = join '', map { ucfirst } split(/ /, $mode), 'lock';
	my @held = $mode eq 'access exclusive' ? @places : $cluster->nodes;
	my $session = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
		in => "begin;\nlock table $table in $mode mode;\nselect pg_sleep(3000);\n");

	EntityApi::Test::wait_until(60, sub { is_locked($cluster, $table, $lock) }) or die "nothing is locked\n";
	$cluster->psql('checkpoint');
	EntityApi::Test::wait_until(60, sub { !grep { !is_locked($_, $table, $lock) } @held }) or die "it is not locked everywhere\n";
	$work->();
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'select pg_sleep(3000)%'");
	waitpid $session, 0;
	return;
}

sub crowd
{
	my ($request) = @_;

	return map {
		my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

		$socket->autoflush(1);
		print $socket $request;
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
	my $come = EntityApi::Test::wait_until(60, sub {
			for my $socket ($all->can_read(0))
			{
				my $text = do { local $/; readline $socket } // '';

				$all->remove($socket);
				$status{ $text =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
			}
			return $all->count <= $left;
		});

	ok($come, 'answers come') or tell_locks();
	return (\%status, $all->handles);
}

sub others
{
	my ($token) = @_;
	my %status;

	for (1 .. 20)
	{
		my $answered = eval {
			$status{ $shim->http(GET => '/api/v1/tags', { token => $token })->{status} }++;
			$status{ $shim->http(POST => '/auth/login', { json => { username => $token->{username}, password => $token->{password} } })->{status} }++;
		};
		return { %status, none => $@ } if !$answered;
	}
	return \%status;
}

# Sessions that have asked for the table before, or new ones
sub stops_its_own
{
	my ($new, $table, $mode, $token, @request) = @_;
	my $request = bytes($token, @request);
	my $good = $request[0] eq 'GET' ? 200 : 201;
	my $asked = (POOL / 4) * (1 + @standbys);
	my @crowd;

	like($shim->raw($request), qr{^HTTP/1\.1 $good }, 'it is free');
	ok(EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/api/v1/tags', { token => $token })->{status} == 200 }), 'others are read');
	holding($table, $mode, sub {
			$_->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'entityapi-shim'") for $new ? @places : ();
			@crowd = crowd($request);
			ok(EntityApi::Test::wait_until(60, sub { grep { $_ > 0 } waiting() }), 'some wait');
			is_deeply(others($token), { 200 => 40 }, 'others are served') or tell_locks();
			my @waiting = waiting();
			(my $status, @crowd) = answers($asked, @crowd);

			is_deeply([ grep { $_ > POOL / 4 } @waiting ], [], 'a quarter of the pool waits at each place') or diag("@waiting"), tell_locks();
			is_deeply([ grep { $_ ne '503' } keys %$status ], [], 'all others are refused') or diag explain $status;
		});
	my ($status) = answers(0, @crowd);
	is_deeply([ grep { $_ !~ /^(?:$good|503)$/ } keys %$status ], [], 'who waited is answered') or diag explain $status;
	like($shim->raw($request), qr{^HTTP/1\.1 $good }, 'and so is who comes later');
	return;
}

for my $new (0, 1)
{
	my $sessions = $new ? 'by new sessions' : 'by known sessions';

	subtest "a table that tenants share, $sessions" => sub { stops_its_own($new, 'app.country', 'access exclusive', $ann, GET => '/api/v1/countries') };
	subtest "a tenant's table, $_, $sessions" => sub { stops_its_own($new, 'app.customer', 'access exclusive', $tenants{$_}, GET => '/api/v1/customers') }
	  for sort keys %tenants;
}
subtest "a table that is locked for those who write, $_" => sub { stops_its_own(0, 'app.customer', 'share', $tenants{$_}, POST => '/api/v1/customers', $created) }
  for sort keys %tenants;

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
	GET => [ 4, qq{wrk.headers["Authorization"] = "Bearer $ann->{accessToken}"}, '/api/v1/tags' ],
	login => [ 4, qq{wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"
		wrk.body = '{"username":"$ann->{username}","password":"$ann->{password}"}'}, '/auth/login' ]);

subtest 'throughput of others' => sub {
	plan skip_all => 'ENTITYAPI_THROUGHPUT is not set' if !$seconds;
	for my $what (sort keys %load)
	{
		my ($calm, $held) = (0, 0);

		for (1 .. 5)
		{
			$calm += wrk(@{ $load{$what} });
			holding('app.customer', 'access exclusive', sub {
					my @crowd = crowd(bytes($ann, GET => '/api/v1/customers'));

					EntityApi::Test::wait_until(60, sub { grep { $_ > 0 } waiting() }) or die "nobody waits\n";
					$held += wrk(@{ $load{$what} });
				});
		}
		diag sprintf '%s: %.0f a second, %.0f with a table locked: %.2f', $what, $calm / 5, $held / 5, $held / $calm;
		cmp_ok($held, '>=', 0.8 * $calm, $what);
	}
};

done_testing;
