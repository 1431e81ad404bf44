# Slow clients, many clients, and what they must not do to others.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use Errno ();
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;
use Time::HiRes qw(time sleep);

my $cluster = EntityApi::Test::StandIn->cluster;
my $host = "Host: a\r\n";
my $get = "GET /x HTTP/1.1\r\n$host";


local $SIG{PIPE} = 'IGNORE';

sub connected
{
	my ($shim, $bytes) = @_;
	my $socket = IO::Socket::INET->new(
		PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
	  or die "cannot connect: $@\n";

	$socket->autoflush(1);
	print $socket $bytes if defined $bytes;
	return $socket;
}

# All that comes within the time.
sub answer_of
{
	my ($socket, $seconds) = @_;
	my $end = time + $seconds;
	my $answer = '';

	while ((my $left = $end - time) > 0)
	{
		my $ready = '';

		vec($ready, fileno($socket), 1) = 1;
		last unless select $ready, undef, undef, $left;
		last unless sysread $socket, $answer, 65536, length $answer;
	}
	return $answer;
}

# The first whole answer, on a connection that stays
sub first_of
{
	my ($socket) = @_;
	my $answer = '';

	EntityApi::Test::wait_until(60, sub {
			my $ready = '';

			vec($ready, fileno($socket), 1) = 1;
			return 0 unless select $ready, undef, undef, 1;
			return 1 unless sysread $socket, $answer, 65536, length $answer;
			my ($length) = $answer =~ /^Content-Length: (\d+)\r$/mi;
			return $answer =~ /\r\n\r\n(.*)/s && length $1 >= ($length // 0);
		});
	return $answer;
}

# Sends one byte more on each of them.
sub drip
{
	$_->blocking(0), syswrite $_, 'a' for @_;
	return;
}

# The requests of a healthy client that go wrong, with something done in between.
sub failures
{
	my ($shim, $seconds, $meanwhile) = @_;
	my $end = time + $seconds;
	my $failed = 0;
	my $count = 0;

	while (time < $end || $count < 20)
	{
		my $answer = $shim->raw("${get}Connection: close\r\n\r\n", timeout => 60);

		$count++;
		$failed++ if $answer !~ /^HTTP\/1.1 200 /;
		$meanwhile->();
		sleep 0.02;
	}
	return $failed;
}

# Those of them that have not been answered, nor left behind
sub waiting
{
	return grep {
		my $ready = '';

		vec($ready, fileno($_), 1) = 1;
		!select $ready, undef, undef, 0;
	} @_;
}

sub statuses
{
	return map { /^HTTP\/1.1 (\d+) / ? $1 : 'none' } @_;
}

subtest '500 idle and 50 dripping clients' => sub {
	my $shim = EntityApi::Test->shim($cluster, pool_size => 4, keep_alive => 'yes');
	my @idle = map { connected($shim) } 1 .. 250;
	my @kept = map { connected($shim, "$get\r\n") } 1 .. 250;
	my @heads = map { connected($shim, "${get}X-A: ") } 1 .. 25;
	my @bodies = map { connected($shim, "POST /x HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n") } 1 .. 25;
	my $failed = failures($shim, 2, sub { drip(@heads, @bodies) });

	is($failed, 0, 'a healthy client is answered');
	close $_ for @idle, @kept, @heads, @bodies;
	is($shim->stop, 0, 'ends with 0');
};

subtest 'a thousand requests in one go' => sub {
	my $shim = EntityApi::Test->shim($cluster, keep_alive => 'yes');
	my $answer = $shim->raw("${get}\r\n" x 999 . "${get}Connection: close\r\n\r\n");

	is(scalar(() = $answer =~ /HTTP\/1.1 200 /g), 1000, 'are all answered');
};

subtest 'heads and bodies that drip' => sub {
	my $shim = EntityApi::Test->shim($cluster, request_timeout_ms => 800, body_timeout_ms => 1200, keep_alive => 'yes');
	my %slow = (
		head => connected($shim, "${get}X-A: "),
		body => connected($shim, "POST /x HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n"),
		chunk => connected($shim, "POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nffff\r\n"));
	my $calls = $cluster->calls;
	my $started = time;
	my %cut;

	# for ever, if a byte more were time more
	while (keys %cut < keys %slow && time < $started + 60)
	{
		for my $name (grep { !$cut{$_} } keys %slow)
		{
			drip($slow{$name});
			my $answer = answer_of($slow{$name}, 0.05);
			next if $answer eq '';
			$cut{$name} = 1;
			$answer .= answer_of($slow{$name}, 60);
			like($answer, qr/^HTTP\/1.1 408 .*"REQUEST_TIMEOUT"/s, "$name: 408");
			like($answer, qr/^Connection: close\r$/m, 'and closed');
		}
	}
	is(scalar keys %cut, 3, 'all are cut');
	is($cluster->calls, $calls, 'nothing of them was executed');
	is((statuses(answer_of(connected($shim, "${get}X-A: "), 60)))[0], 408, 'silence in a head');
	is((statuses(answer_of(connected($shim, "\r\nGET / HT"), 60)))[0], 408, 'silence in its first line');
	is((statuses(answer_of(connected($shim, 'G'), 60)))[0], 408, 'silence after its first byte');
	is(first_of(connected($shim, $_)), '', 'no request, no answer') for "\r\n", "\r\n\r";
	$shim->stop('KILL');
};

subtest 'more that is not whole than there may be' => sub {
	my $shim = EntityApi::Test->shim($cluster, max_unfinished => 1 << 20, max_body => 4096, max_body_auth => 4096,
		body_timeout_ms => 600_000, request_timeout_ms => 600_000, keep_alive => 'yes');
	my $part = "POST /x HTTP/1.1\r\n${host}Content-Length: 4096\r\n\r\n" . 'x' x 4095;
	my @clients = map { connected($shim, $part) } 1 .. 400;

	like(first_of($clients[0]), qr/^HTTP\/1.1 408 .*"REQUEST_TIMEOUT"/s, 'who has been at it for longest goes');
	print { $clients[-1] } 'x';
	like(first_of($clients[-1]), qr/^HTTP\/1.1 200 /, 'who came last does not');
	$shim->stop('KILL');
};

subtest 'newcomers beside as many that drip as there may be' => sub {
	my $shim = EntityApi::Test->shim($cluster, connections => 20, body_timeout_ms => 600_000,
		request_timeout_ms => 600_000, keep_alive => 'yes');
	my @slow = ((map { connected($shim, "${get}X-A: ") } 1 .. 2),
		map { connected($shim, "POST /x HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n") } 1 .. 18);
	my $new = connected($shim, "${get}Connection: close\r\n\r\n");
	my $answer = '';

	for (my $end = time + 60; $answer eq '' && time < $end;)
	{
		drip(@slow);
		$answer = answer_of($new, 0.2);
	}
	like($answer, qr/^HTTP\/1.1 200 /, 'one comes in');
	is_deeply([ statuses(map { answer_of($_, 1) } @slow[ 0, 1 ]) ], [ (408) x 2 ], 'heads go first');
	ok(waiting(@slow) >= 12, 'and not all go');
	$shim->stop('KILL');
};

subtest 'each by its own deadline' => sub {
	my $shim = EntityApi::Test->shim($cluster, body_timeout_ms => 500, request_timeout_ms => 600_000);
	my $head = connected($shim, "${get}X-A: ");
	my $body = connected($shim, "POST /x HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n");

	like(answer_of($body, 60), qr/^HTTP\/1.1 408 /, 'a body is cut');
	is(scalar waiting($head), 1, 'a head, which came before it, is not');
	$shim->stop('KILL');
};

my $shim = EntityApi::Test->shim($cluster, pool_size => 2, write_timeout_ms => 1000, keep_alive => 'yes');

subtest 'a body in pieces that come in time' => sub {
	my $body = 'x' x 200_000;
	my $socket = connected($shim, "POST /x HTTP/1.1\r\n${host}Connection: close\r\nContent-Length: 200000\r\n\r\n");

	for my $piece (0 .. 3)
	{
		print $socket substr $body, $piece * 50_000, 50_000;
		sleep 0.1;
	}
	my $answer = answer_of($socket, 60);
	like($answer, qr/^HTTP\/1.1 200 /, 'is taken');
	like($answer, qr/"body": "eHh4/, 'as it is');
};

subtest 'a client that does not take its answer' => sub {
	my $socket = IO::Socket::INET->new(Proto => 'tcp');
	setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 4096;
	connect $socket, Socket::pack_sockaddr_in($shim->port, Socket::inet_aton('127.0.0.1'));
	$socket->autoflush(1);
	print $socket "GET /big/20000000 HTTP/1.1\r\n$host\r\n";
	my $line;

	# It takes a little, now and then, and would go on for an hour.
	EntityApi::Test::wait_until(60, sub {
			sysread $socket, my $some, 4096;
			($line) = EntityApi::Test::slurp($shim->log) =~ /^(.*"bytes":20000000.*)$/m;
		});
	ok($line, 'is cut off');
};

subtest 'a wait that is bounded by time, not by number' => sub {
	my $slow = "GET /hold HTTP/1.1\r\n${host}Connection: close\r\n\r\n";
	my $ask = "${get}Connection: close\r\n\r\n";
	my $shim = EntityApi::Test->shim($cluster, pool_size => 2, reloaded => { pool_wait_ms => 60_000 });

	my $before = $cluster->calls;
	$cluster->hold;
	my @busy = map { connected($shim, $slow) } 1 .. 2;
	$cluster->at_work(2);

	# a call is at work a moment before it is counted
	EntityApi::Test::wait_until(60, sub { $cluster->calls >= $before + 2 }) or fail('both are at work');
	$shim->reload(pool_wait_ms => 1000);
	my $calls = $cluster->calls;
	my @waiting = map { connected($shim, $ask) } 1 .. 40;
	my @answers = map { answer_of($_, 60) } @waiting;
	is_deeply([ statuses(@answers) ], [ (503) x 40 ], 'who waits too long is told so');
	is(scalar(grep { /^Retry-After: 1\r$/m } @answers), 40, 'with Retry-After');
	is($cluster->calls, $calls, 'nothing of it was executed');
	is(scalar waiting(@busy), 2, 'not when somebody else has done');
	$cluster->release;
	is_deeply([ statuses(map { answer_of($_, 60) } @busy) ], [ 200, 200 ],
		'those before them are answered');
	$shim->reload(pool_wait_ms => 60_000);
	is_deeply([ statuses(map { answer_of($_, 60) } map { connected($shim, $ask) } 1 .. 5) ], [ (200) x 5 ], 'and on it goes');
};

# A machine that was booted a moment ago: its clock is not as late as the
# settings are long.
my @young = (qw(unshare -T --monotonic), 3 - int EntityApi::Test::slurp('/proc/uptime') =~ s/\..*//sr);
my $has_young = EntityApi::Test::run([ @young, 'true' ])->{status} == 0;

for my $machine ([ 'connections of one address' ], [ 'on a machine that was just booted', within => \@young ])
{
	my ($name, @options) = @$machine;

	subtest $name => sub {
		plan skip_all => 'clocks of their own are for root' if @options && !$has_young;
		connections_of_one_address(@options);
	};
}

sub connections_of_one_address
{
	my @options = (keep_alive => 'yes', keep_alive_timeout_ms => 600_000, @_);
	my $limited = EntityApi::Test->shim($cluster, max_connections_per_address => 3, @options);
	$limited->http(GET => '/x');
	my @kept;

	# The one of the http() above is kept as well.
	EntityApi::Test::wait_until(2, sub {
			@kept = map { connected($limited, "${get}\r\n") } 1 .. 2;
			my @got = statuses(map { first_of($_) } @kept);
			return 1 if "@got" eq '200 200';
			close $_ for @kept;
			return 0;
		});
	my $answer = $limited->raw("${get}\r\n");
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;
	like($head, qr/^HTTP\/1.1 429 /, 'one too many: 429');
	like($head, qr/^Retry-After: 1\r?$/m, 'Retry-After');
	like($head, qr/^Connection: close\r?$/m, 'closed');
	is(decode_json($body)->{errors}[0]{code}, 'THROTTLED', 'error document');
	my $mute = connected($limited);
	is(answer_of($mute, 60), '', 'one that asks nothing');
	ok(!waiting($mute), 'goes');
	my $dripping = connected($limited, 'P');
	like(answer_of($dripping, 2), qr/^HTTP\/1.1 429 /, 'one that drips is not waited for');
	ok(!waiting($dripping), 'and goes');
	print { $kept[0] } "${get}\r\n";
	is((statuses(first_of($kept[0])))[0], 200, 'those that are there stay');
	close $_ for @kept;
	ok(EntityApi::Test::wait_until(3, sub {
				(statuses($limited->raw("${get}Connection: close\r\n\r\n")))[0] eq '200' }),
		'and when they are gone others may come');

	my $behind = EntityApi::Test->shim($cluster, max_connections_per_address => 2,
		trusted_proxies => '127.0.0.1', @options);
	@kept = map { connected($behind, "${get}\r\n") } 1 .. 6;
	is_deeply([ statuses(map { first_of($_) } @kept) ], [ (200) x 6 ],
		'a trusted proxy has no limit');
	return;
}

subtest 'a shim that was halted' => sub {
	my $halted = EntityApi::Test->shim($cluster, request_timeout_ms => 3000, keep_alive_timeout_ms => 3000, keep_alive => 'yes');

	for my $round (1 .. 2)
	{
		my (@kept, @fresh);

		# halted while nobody has been silent for too long
		ok(EntityApi::Test::wait_until(60, sub {
					my $began = time;

					@kept = map { connected($halted, "${get}\r\n") } 1 .. 10;
					my @statuses = statuses(map { first_of($_) } @kept);
					@fresh = map { connected($halted) } 1 .. 10;
					sleep 0.2;
					kill STOP => $halted->pid;
					return "@statuses" eq join ' ', (200) x 10 if time < $began + 2.5;
					kill CONT => $halted->pid;
					return 0;
				}), 'some have asked');
		print { $_ } "${get}\r\n" for @kept, @fresh;
		sleep 3.2;
		kill CONT => $halted->pid;
		is_deeply([ statuses(map { first_of($_) } @kept, @fresh) ], [ (200) x 20 ], 'who asks meanwhile is answered, not taken for silent');
	}
	is($halted->stop, 0, 'ends with 0');
};

subtest 'the end, with idle connections' => sub {
	my @kept = map { connected($shim, "${get}\r\n") } 1 .. 10;
	first_of($_) for @kept;
	is($shim->stop, 0, 'ends with 0');
	is(scalar(grep { sysread($_, my $nothing, 1) } @kept), 0, 'and leaves them');
};

done_testing;
