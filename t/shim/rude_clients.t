# Clients and a database that misbehave, and the thread that serves all of them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::Client qw(connected answer);
use EntityApi::Test::StandIn;
use IO::Select;
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;

# /defer/VALUE stores it, and what is checked at the end of its transaction
# refuses some.
$cluster->psql(<<~'SQL');
	create table deferred (value text not null);
	create function refuse_deferred() returns trigger language plpgsql as $$
	begin
		raise exception 'refused at the end' using errcode = '23514';
	end $$;
	create constraint trigger refuse_deferred after insert on deferred
		deferrable initially deferred for each row
		when (new.value like 'bad%') execute function refuse_deferred();
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	begin
		if target like '/defer/%' then
			insert into deferred values (split_part(target, '/', 3));
			target := '/x';
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, target, in_headers, in_body, remote) h;
	end $$;

	-- /large is 40 MB, and ready
	create table large (answer bytea not null);
	alter table large alter answer set storage external;
	insert into large values (convert_to(E'200\n\nContent-Type: text/plain\r\n\r\n' || repeat('x', 40000000), 'UTF8'));
	alter function entityapi.handle(bytea) rename to stand_in;
	create function entityapi.handle(message bytea) returns bytea
	language plpgsql security definer set search_path = public as $$
	begin
		return case when substr(message, 1, 11) = 'GET /large ' then (select answer from large)
			else entityapi.stand_in(message) end;
	end $$;
	SQL

my %settings = (pool_size => 2, keep_alive => 'yes', keep_alive_timeout_ms => 600_000, request_timeout_ms => 600_000, write_timeout_ms => 600_000);
my $shim = EntityApi::Test->shim($cluster, %settings);

sub client { return connected($_[0] // $shim) }

sub request
{
	my ($method, $target, @headers) = @_;
	return join("\r\n", "$method $target HTTP/1.1", 'Host: a', @headers, '', '');
}

# How many bytes of an answer of more than 40 MB come
sub taken
{
	my ($socket) = @_;
	my $taken = 0;

	while ($taken <= 40_000_000 && IO::Select->new($socket)->can_read(60))
	{
		my $got = sysread $socket, my $bytes, 1 << 20;

		last if !$got;
		$taken += $got;
	}
	return $taken;
}

subtest 'a write that fails at the end of its transaction' => sub {
	for my $header ('X-A: served side by side', 'Connection: close')
	{
		my $client = client();

		print $client request(POST => '/defer/bad', 'Content-Length: 0', $header);
		is(answer($client)->{status}, 500, "is not acknowledged ($header)");
		$client = client();
		print $client request(POST => '/defer/good', 'Content-Length: 0', $header);
		is(answer($client)->{status}, 200, "the next one is");
	}
	is($cluster->psql('select string_agg(value, \' \') from deferred'), 'good good', 'what is there');
};

subtest 'a request as long as the buffer, and another one behind it' => sub {
	my $client = client();
	my $start = request(GET => '/x?first');
	my $first = request(GET => '/x?first', 'X-A: ' . 'a' x (8192 - length($start) - length("X-A: \r\n")));

	is(length $first, 8192, 'of 8 KiB');
	syswrite $client, $first . request(GET => '/x?second');
	like(answer($client)->{body}, qr/first/, 'the first');
	my $answer = answer($client);
	like($answer->{body} // '', qr/second/, 'the second');
};

subtest 'many clients are slow, and a head cannot be read' => sub {
	my $few = EntityApi::Test->shim($cluster, %settings);
	my $healthy = client($few);
	my %seen;

	my $at_once = EntityApi::Test::wait_until(60, sub {
			my @slow = map { client($few) } 1 .. 30;
			my $began = time;

			print $_ "GET /x HTTP/1.1\r\nHost: a\r\nX-A: " for @slow;
			sleep 0.2;
			print $healthy request(GET => '/x');
			$seen{ 'healthy: ' . answer($healthy)->{status} }++;
			my $bad = client($few);
			print $bad request(GET => '/x', "Header: a\x01b");
			$seen{ 'bad: ' . answer($bad)->{status} }++;
			print $healthy request(GET => '/x');
			$seen{ 'healthy: ' . answer($healthy)->{status} }++;
			return time < $began + 0.9 * EntityApi::Test::SLOWNESS();
		});

	ok($at_once, 'one goes on at once');
	is(join(', ', sort keys %seen), 'bad: 400, healthy: 200', 'and only the head is refused');
	$few->stop;
};

subtest 'some wait for a connection, and a head cannot be read' => sub {
	my $one = EntityApi::Test->shim($cluster, %settings, pool_size => 1, pool_writes => 0);
	my $slow = client($one);
	my @others = map { client($one) } 1 .. 12;

	$cluster->hold;
	print $slow request(GET => '/hold');
	$cluster->at_work(1);
	print $_ request(GET => '/x', 'Connection: close') for @others;
	sleep 0.1;
	my $bad = client($one);
	print $bad request(GET => '/x', "Header: a\x01b");
	sleep 0.1;
	$cluster->release;
	is(answer($_)->{status}, 200, 'all are answered') for $slow, @others;
	$one->stop;
};

subtest 'many requests in one go take turns with those of others' => sub {
	my $one = EntityApi::Test->shim($cluster, %settings, pool_size => 1, pool_writes => 0, pool_wait_ms => 60_000);
	my ($greedy, $other) = map { client($one) } 1 .. 2;
	my $many = 200;

	print $greedy request(GET => '/sleep/0.01') x $many;
	is(answer($greedy)->{status}, 200, 'the first one');
	print $other request(GET => '/x');
	is(answer($other)->{status}, 200, 'another client');
	is($one->stop, 0, 'the end');
	my $answers = 1;
	$answers++ while answer($greedy)->{status} eq '200';
	cmp_ok($answers, '<', $many, "did not wait for all of them: $answers were answered before the end");
};

# Sends heads that cannot be read for as long as told, 32 at a time, each on a
# connection of its own; prints how many were refused.
sub flood
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my $refused = 0;

	while (time < $end)
	{
		my @bad = map { client() } 1 .. 32;

		print $_ request(GET => '/x', "Header: a\x01b") for @bad;
		$refused += answer($_)->{status} eq '400' for @bad;
	}
	return $refused;
}

subtest 'a flood of heads that cannot be read' => sub {
	my $healthy = client();
	my $seconds = 2;
	my $slow = EntityApi::Test::SLOWNESS();
	my $refused = 0;
	my %statuses;
	my $ask = sub {
		print $healthy request(GET => '/x');
		my $answer = answer($healthy);

		$statuses{ $answer->{status} }++;
		return $answer->{seconds};
	};

	# What else the machine does makes it slower only, so one round will do.
	my $soon = EntityApi::Test::wait_until(60, sub {
			my @floods = map { open my $out, '-|' or do { $| = 1; print flood($seconds); POSIX::_exit(0) }; $out } 1 .. 2;
			my $end = time + $seconds;
			my @times;

			push @times, $ask->() while time < $end;
			$refused += readline $_ for @floods;
			@times = sort { $a <=> $b } @times;
			my $afterwards = $ask->();
			note "$refused refused so far, the median in $times[ @times / 2 ] s, the longest in $times[-1] s, afterwards in $afterwards s";
			return $refused > 100 && $times[ @times / 2 ] < 0.1 * $slow && $times[-1] < $slow && $afterwards < 0.4 * $slow;
		});
	cmp_ok($refused, '>', 100, 'they are refused');
	is_deeply([ keys %statuses ], [200], 'who asks meanwhile is answered');
	ok($soon, 'soon, and always, and afterwards as before');
};

subtest 'requests for health, while all connections are at work' => sub {
	my $hung = EntityApi::Test->shim($cluster, %settings, reloaded => { pool_wait_ms => 60_000 });
	my @holders = map { client($hung) } 1 .. 2;

	$cluster->hold;
	print $_ request(GET => '/hold') for @holders;
	$cluster->at_work(2);
	$hung->reload(pool_wait_ms => 1000);
	my @waiting = map { client($hung) } 1 .. 3;
	print $_ request(GET => '/x') for @waiting;
	my @probes;

	ok(EntityApi::Test::wait_until(60, sub {
				push @probes, client($hung);
				print { $probes[-1] } request(GET => '/actuator/health');
				return 3 == (() = IO::Select->new(@waiting)->can_read(0.05));
			}), 'do not keep others from being refused in time');
	is(answer($_)->{status}, 503, 'with 503') for @waiting;
	$cluster->release;
	$hung->stop;
};

subtest 'liveness, while requests for health are stuck' => sub {
	my $hung = EntityApi::Test->shim($cluster, %settings);
	my @stuck = map { client($hung) } 1 .. 6;
	my $alive = client($hung);

	$cluster->hold;
	print { $stuck[$_] } request(GET => '/hold') for 0, 1;
	$cluster->at_work(2);
	print { $stuck[$_] } request(GET => $_ < 4 ? '/actuator/health' : '/x') for 2 .. 5;
	for my $method ('GET', 'HEAD')
	{
		print $alive request($method => '/actuator/health/liveness?x');
		my $answer = $method eq 'GET' ? answer($alive) : { head => do { sysread $alive, my $head, 65536; $head } };
		like($answer->{head}, qr/^HTTP\/1.1 200 /, "$method is answered");
		is($answer->{body}, '{"status":"UP"}', 'at once') if $method eq 'GET';
		like($answer->{head}, qr/^Content-Length: 15\r\nX-Request-Id: \S+\r$/m, 'alike');
	}
	is(scalar(() = IO::Select->new(@stuck)->can_read(0)), 0, 'before all that are stuck');
	$cluster->release;
	is(answer($_)->{status}, 200, 'which are answered as well') for @stuck;
	$hung->stop;
};

subtest 'more sent ahead than there may be' => sub {
	my $full = EntityApi::Test->shim($cluster, %settings, pool_size => 4, max_unfinished => 1 << 20);
	my @ahead = map { client($full) } 1 .. 4;
	my $last = client($full);

	$cluster->hold;
	syswrite $_, request(GET => '/hold') . request(GET => '/x', 'X-A: ' . 'a' x 1000) x 61 for @ahead;
	$cluster->at_work(4);
	syswrite $last, request(GET => '/x?first') . request(GET => '/x?second');
	$cluster->release;
	my $answer = answer($last);
	like($answer->{body}, qr/first/, 'a request is answered');
	like($answer->{head}, qr/^Connection: close\r$/m, 'and its client told that the next one is not');
	is(answer($last)->{status}, 'closed', 'as it is');
	for my $client (@ahead)
	{
		my %statuses;

		$statuses{ answer($client)->{status} }++ for 1 .. 62;
		is_deeply(\%statuses, { 200 => 62 }, 'all that are kept are answered');
	}
	$full->stop;
};

subtest 'who takes nothing' => sub {
	my @lazy;

	for (1 .. 12)
	{
		push @lazy, client();
		print { $lazy[-1] } request(GET => '/large');
		IO::Select->new($lazy[-1])->can_read(60) or die "no answer\n";
	}
	my $last = client();
	print $last request(GET => '/x');
	is(answer($last)->{status}, 200, 'who asks after them is served');
	my ($memory) = EntityApi::Test::slurp('/proc/' . $shim->pid . '/status') =~ /^VmRSS:\s+(\d+) kB/m;
	cmp_ok($memory, '<', 450 * 1024, "memory: $memory kB") if !$ENV{SANITIZER};
	my %got;

	$got{ taken($_) > 40_000_000 ? 'whole' : 'cut' }++ for @lazy;
	cmp_ok($got{cut} // 0, '>=', 2, 'some were not waited for');
	cmp_ok($got{whole} // 0, '>=', 4, 'others have all of theirs');
};

$shim->stop;
done_testing;
