# Thousands of connections, that ask or are silent, and what they cost.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use IO::Poll qw(POLLIN);
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);

use constant CONNECTIONS => 3000;

# A perl has no setrlimit(): a shell has.
if (!$ENV{MANY_CONNECTIONS})
{
	local $ENV{MANY_CONNECTIONS} = 1;
	exec 'sh', '-c', 'ulimit -n $(ulimit -H -n); exec "$@"', '-', $^X, $0;
}
my $files = `sh -c 'ulimit -n'`;
plan skip_all => "the limit of open files is $files"
  if $files =~ /^\d+$/ && $files < 2 * CONNECTIONS;

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;
my $ask = "GET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n";

sub connected
{
	my ($shim) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
	  or die "cannot connect: $@\n";

	$socket->autoflush(1);
	return $socket;
}

# The status of each one's answer, a whole one; "closed" and "none" beside.
sub answers
{
	my (@sockets) = @_;
	my $poll = IO::Poll->new;
	my $end = time + 60;
	my %text = map { fileno $_ => '' } @sockets;
	my $left = @sockets;
	my %count;

	$poll->mask($_ => POLLIN) for @sockets;
	while ($left > 0 && time < $end)
	{
		$poll->poll(1);
		for my $socket ($poll->handles(POLLIN | IO::Poll::POLLHUP() | IO::Poll::POLLERR()))
		{
			my $file = fileno $socket;
			my $got = sysread $socket, $text{$file}, 65536, length $text{$file};

			next if $got && $text{$file} !~ /\r\n\r\n/;
			$poll->remove($socket);
			$left--;
			$count{ $got && $text{$file} =~ /^HTTP\/1.1 (\d+)/ ? $1 : 'closed' }++;
		}
	}
	$count{none} = $left if $left;
	return \%count;
}

sub status_of
{
	my ($shim, $name) = @_;
	my ($value) = EntityApi::Test::slurp('/proc/' . $shim->pid . '/status') =~ /^$name:\s+(\d+)/m;

	return $value;
}

my $shim = EntityApi::Test->shim($cluster, pool_size => 4, keep_alive => 'yes', pool_wait_ms => 60_000,
	keep_alive_timeout_ms => 600_000, request_timeout_ms => 600_000, access_log => 'false');

is_deeply(answers(map { print { $_ } $ask; $_ } map { connected($shim) } 1 .. 32), { 204 => 32 }, 'a few');
my $memory = status_of($shim, 'VmRSS');
my @all = map { connected($shim) } 1 .. CONNECTIONS;
print { $_ } $ask for @all;
is_deeply(answers(@all), { 204 => CONNECTIONS }, 'all ask, none is cut nor told to go');
print { $_ } $ask for @all;
is_deeply(answers(@all), { 204 => CONNECTIONS }, 'all at once, once more');
cmp_ok(status_of($shim, 'Threads'), '<', 64, 'threads are begun as they are needed');

# what a sanitizer keeps to itself says nothing
cmp_ok(status_of($shim, 'VmRSS') - $memory, '<', 16 * CONNECTIONS, 'less than 16 kB each') if !$ENV{SANITIZER};

my $busy = connected($shim);
for (1 .. 20)
{
	print $busy $ask;
	is_deeply(answers($busy), { 204 => 1 }, 'one that asks while the others are silent');
}
print { $all[$_] } $ask for 0, 1499, 2999;
is_deeply(answers(@all[ 0, 1499, 2999 ]), { 204 => 3 }, 'who was silent goes on');
is($shim->stop, 0, 'ends with 0');
close $_ for @all, $busy;

# One who is slow to ask, on a busy machine, may find them all refused already.
subtest 'health beside thousands that are refused' => sub {
	my $shim = EntityApi::Test->shim($cluster, pool_size => 1, pool_writes => 0, keep_alive => 'yes',
		pool_wait_ms => 300, keep_alive_timeout_ms => 600_000, request_timeout_ms => 600_000);
	my @many = map { connected($shim) } 1 .. CONNECTIONS;
	my ($busy, $health) = map { connected($shim) } 1 .. 2;
	my ($after, $most, $n) = (0, 0, 0);

	EntityApi::Test::wait_until(120, sub {
		my $poll = IO::Poll->new;
		my $first = $n++ % 2 ? 0 : 1000;

		# it sees them all at once, and has the database again before they have waited for too long
		kill STOP => $shim->pid;
		print $busy "GET /sleep/0.25 HTTP/1.1\r\nHost: a\r\n\r\n";
		print { $_ } $ask for @many;
		kill CONT => $shim->pid;
		$poll->mask($_ => POLLIN) for @many[ $first .. $first + 9 ];
		$poll->poll(10);
		print $health "GET /actuator/health HTTP/1.1\r\nHost: a\r\nX-Request-Id: health-$n\r\n\r\n";
		my $count = answers(@many, $busy, $health);

		is($count->{none} // 0, 0, 'all are answered') if $count->{none} || $n == 1;
		$most = $count->{503} if ($count->{503} // 0) > $most;
		$shim->logged(qr/"health-$n"/);
		sleep 0.3;
		my ($rest) = EntityApi::Test::slurp($shim->log) =~ /"health-$n"(.*)/s;
		$after = () = $rest =~ /"status":503/g;
		return $most > CONNECTIONS / 4 && $after > CONNECTIONS / 8;
	});
	cmp_ok($most, '>', CONNECTIONS / 4, 'many are refused');
	cmp_ok($after, '>', CONNECTIONS / 8, 'it is answered while they are being refused');
	is($shim->stop, 0, 'ends with 0');
};

# So many addresses to which FNV-1a, which any client can compute, gives one
# place of 1024
sub of_one_place
{
	my ($count) = @_;
	my @found;

	for (my $n = 1; @found < $count; $n++)
	{
		my @bytes = (127, $n >> 8, $n & 255);
		my $before = 2166136261;

		$before = (($before ^ $_) * 16777619) & 0xffffffff for @bytes;
		for my $last (0 .. 255)
		{
			my $hash = (($before ^ $last) * 16777619) & 0xffffffff;

			push @found, join '.', @bytes, $last if (($hash ^ $hash >> 16) & 1023) == 0;
		}
	}
	return @found;
}

subtest 'addresses that are chosen' => sub {
	my $shim = EntityApi::Test->shim($cluster, pool_size => 2, max_connections_per_address => 100_000, keep_alive => 'yes',
		keep_alive_timeout_ms => 600_000);
	my @threads = sort { $a <=> $b } map { m{/(\d+)$} } glob '/proc/' . $shim->pid . '/task/*';
	my $times = '/proc/' . $shim->pid . "/task/$threads[1]/schedstat";

	plan skip_all => 'nothing tells how long a thread is at work' if !-e $times;
	my $from = sub {
		return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, LocalAddr => $_[0], Timeout => 60)
		  // die "cannot connect: $@\n";
	};
	my @addresses = of_one_place(CONNECTIONS);
	my @there = map { $from->($_) } @addresses;

	# how long the loop is at work for some more from there: the first of three numbers
	no warnings 'numeric';
	my $cost = sub {
		my ($address) = @_;
		my $before = EntityApi::Test::slurp($times) + 0;

		for (1 .. 200)
		{
			my $client = $from->($address);
			print $client "GET / HTTP/1.1\r\n\r\n";
			sysread $client, my $answer, 65536;
		}
		return EntityApi::Test::slurp($times) - $before;
	};
	my $ratio;
	ok(EntityApi::Test::wait_until(60, sub { $ratio = $cost->($addresses[0]) / $cost->('127.0.0.1'); $ratio < 1.3 }),
		'cost no more than any others') or diag $ratio;
	$shim->stop;
};

subtest 'more than there may be' => sub {
	my $shim = EntityApi::Test->shim($cluster, pool_size => 2, connections => 20, keep_alive => 'yes',
		keep_alive_timeout_ms => 600_000, pool_wait_ms => 60_000, statement_timeout_ms => 60_000,
		drain_timeout_ms => 60_000);

	# they work: each is in the middle of a request, or waits for the database
	$cluster->hold;
	my @working = map { connected($shim) } 1 .. 19;
	print { $_ } "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n" for @working;
	$cluster->at_work(2);
	my @late = map { connected($shim) } 1 .. 30;
	print { $_ } $ask for @late;
	sleep 1.5;
	$cluster->release;
	is_deeply(answers(@working), { 200 => 19 }, 'those that work are not cut');
	is_deeply(answers(@late), { 204 => 30 }, 'the others come in for those that are silent');
	is($shim->stop, 0, 'ends with 0');
};

subtest 'hundreds that wait for the database' => sub {
	my $large = EntityApi::Test::StandIn->cluster(connections => 160);
	my $shim = EntityApi::Test->shim($large, pool_size => 140, pool_wait_ms => 60_000, statement_timeout_ms => 60_000,
		drain_timeout_ms => 60_000);

	$large->hold;
	my @working = map { connected($shim) } 1 .. 400;
	print { $_ } "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n" for @working;
	$large->at_work(140);
	my @late = map { connected($shim) } 1 .. 100;
	print { $_ } $ask for @late;
	is($shim->http(GET => '/actuator/health/liveness')->{status}, 200, 'health is told meanwhile');
	$large->release;
	is_deeply(answers(@working), { 200 => 400 }, 'all that wait are answered');
	is_deeply(answers(@late), { 204 => 100 }, 'and those who came last');
	is($shim->stop, 0, 'ends with 0');
};

subtest 'a limit of open files that is too low' => sub {
	my $shim = EntityApi::Test->shim($cluster, connections => 1_000_000);

	plan skip_all => 'there is none' if $files !~ /^\d+$/ || $files > 1_000_000;
	ok($shim->said(qr/"level":"warning","event":"start","message":"the limit of open files is \d+: \d+ connections of clients instead of 1000000"/),
		'the log says so');
	is($shim->http(GET => '/x')->{status}, 200, 'it serves');
};

done_testing;
