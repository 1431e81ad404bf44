# Requests that one thread serves side by side, several on one database
# connection: none waits for another's statement, client or cancellation.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Compress::Zlib ();
use EntityApi::Test::Client qw(connected answer);
use Encode ();
use EntityApi::Test::StandIn;
use IO::Select;
use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;

# /write/VALUE stores it, slowly
$cluster->psql(<<~'SQL');
	create table written (value text not null);
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	begin
		if target like '/write/%' then
			insert into written values (split_part(target, '/', 3));
			perform pg_sleep(0.05);
			target := '/x';
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, target, in_headers, in_body, remote) h;
	end $$;
	SQL

# More requests than connections, so that some are behind others.
my %settings = (pool_size => 2, keep_alive => 'yes', keep_alive_timeout_ms => 600_000);
my $shim = EntityApi::Test->shim($cluster, %settings);

sub client { return connected($_[0] // $shim) }

sub ask
{
	my ($socket, $method, $target, @headers) = @_;

	print $socket join("\r\n", "$method $target HTTP/1.1", 'Host: a', @headers, '', '');
	return;
}

sub statuses
{
	return [ map { answer($_)->{status} } @_ ];
}

subtest 'many at once' => sub {
	my @clients = map { client() } 1 .. 20;

	for my $round (1 .. 50)
	{
		ask($clients[$_], GET => "/x?$round-$_") for 0 .. $#clients;
		my @wrong = grep { answer($clients[$_])->{body} !~ /"target": "\/x\?$round-$_"/ } 0 .. $#clients;

		is("@wrong", '', "round $round: each has its own answer") if @wrong || $round == 50;
	}
};

subtest 'one slow statement holds up nobody' => sub {
	my @clients = map { client() } 1 .. 12;
	my $slow = client();

	$cluster->hold;
	ask($slow, GET => '/hold');
	for my $round (1 .. 30)
	{
		ask($_, GET => '/x') for @clients;
		my @bad = grep { $_ ne '200' } @{ statuses(@clients) };

		is("@bad", '', "round $round") if @bad || $round == 30;
	}
	ok(!IO::Select->new($slow)->can_read(0), 'they are done before it');
	$cluster->release;
	is(answer($slow)->{status}, 200, 'the slow one is answered, too');
};

subtest 'what takes longer is not sent behind another one' => sub {
	my @clients = map { client() } 1 .. 12;
	my $before = $cluster->calls;

	for (1 .. 10)
	{
		ask($_, GET => '/sleep/0.01') for @clients;
		my @bad = grep { $_ ne '200' } @{ statuses(@clients) };

		is("@bad", '', 'all are answered') if @bad || $_ == 10;
	}
	my $calls = $cluster->calls - $before;

	cmp_ok($calls, '>=', 120, 'each is done');
	cmp_ok($calls, '<=', 132, "and few of them twice ($calls calls for 120)");
};

subtest 'what is cancelled takes nobody with it' => sub {
	my @clients = map { client() } 1 .. 12;
	my @slow = map { client() } 1 .. 2;
	my (%count, %slow);

	# short ones before, so that others are sent behind
	for my $round (1 .. 10)
	{
		for (1 .. 10)
		{
			ask($_, GET => '/x') for @clients;
			$count{$_}++ for @{ statuses(@clients) };
		}
		$cluster->hold;
		ask($_, GET => '/hold') for @slow;
		ask($_, GET => '/x') for @clients;
		for my $n (1 .. @slow)
		{
			# one of those that sleep: the next when that one has heard of it
			EntityApi::Test::wait_until(60, sub { $cluster->psql(<<~'SQL') });
				select count(pg_cancel_backend(pid)) from (select pid from pg_stat_activity
					where application_name = 'entityapi-shim' and wait_event = 'PgSleep' limit 1) s
				SQL
			EntityApi::Test::wait_until(60, sub { $n == (() = IO::Select->new(@slow)->can_read(0)) });
		}
		$cluster->release;
		$count{$_}++ for @{ statuses(@clients) };
		$slow{$_}++ for @{ statuses(@slow) };
	}
	is_deeply(\%slow, { 503 => 10 * @slow }, 'who was cancelled is told so');
	is_deeply(\%count, { 200 => 10 * 11 * @clients }, 'all others got their answers');
};

subtest 'no write is sent after another request, or twice' => sub {
	my @readers = map { client() } 1 .. 6;
	my @writers = map { client() } 1 .. 12;

	for my $round (1 .. 10)
	{
		ask($_, GET => '/sleep/0.02') for @readers;
		ask($writers[$_], POST => "/write/$round-$_", 'Content-Length: 0') for 0 .. $#writers;
		is_deeply(statuses(@readers, @writers), [ (200) x 18 ], "round $round");
	}
	is($cluster->psql('select count(*), count(distinct value) from written'), '120|120', 'each is there once');
};

# The sessions of a shim that has ended
sub gone
{
	return EntityApi::Test::wait_until(60, sub {
			$cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'") == 0 });
}

subtest 'connections beside the pool are for writes' => sub {
	# how many pay has not been found out there
	$shim->stop;
	gone();
	my $new = EntityApi::Test->shim($cluster, %settings);
	my @writers = map { client($new) } 1 .. 6;
	my @readers = map { client($new) } 1 .. 6;

	$cluster->hold;
	ask($_, POST => '/hold', 'Content-Length: 0') for @writers;
	$cluster->at_work(6);
	pass('six writes are at work, with a pool of two');
	ask($_, GET => '/hold') for @readers;
	$cluster->at_work(8) if $cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'") > 6;
	sleep 0.3;
	cmp_ok($cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'"), '<=', 8,
		'reads take no more than there are in the pool');
	$cluster->release;
	is_deeply(statuses(@writers, @readers), [ (200) x 12 ], 'all are answered');
	$new->stop;
	gone();

	my $none = EntityApi::Test->shim($cluster, %settings, pool_writes => 0);
	my @both = map { client($none) } 1 .. 3;

	$cluster->hold;
	ask($_, POST => '/hold', 'Content-Length: 0') for @both;
	$cluster->at_work(2);
	sleep 0.3;
	is($cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and state = 'active'"), 2,
		'without them writes have the pool');
	$cluster->release;
	is_deeply(statuses(@both), [ (200) x 3 ], 'and are answered');
	$none->stop;
	$shim->begin;
};

subtest 'who does not take his answer' => sub {
	my $lazy = client();
	my @clients = map { client() } 1 .. 4;

	ask($lazy, GET => '/big/8000000');
	for (1 .. 20)
	{
		ask($_, GET => '/x') for @clients;
		is_deeply(statuses(@clients), [ (200) x 4 ], 'others go on') if $_ % 10 == 0;
	}
	my $answer = answer($lazy);

	is(length $answer->{body}, 8_000_000, 'it is all there when he does');
	ask($lazy, GET => '/x');
	is(answer($lazy)->{status}, 200, 'and his connection goes on');
};

subtest 'large answers are compressed beside' => sub {
	my @clients = map { client() } 1 .. 6;

	ask($_, GET => '/big/3000000', 'Accept-Encoding: gzip') for @clients;
	for my $client (@clients)
	{
		my $answer = answer($client);

		like($answer->{head}, qr/^Content-Encoding: gzip/m, 'compressed');
		is(length(Compress::Zlib::memGunzip($answer->{body}) // ''), 3_000_000, 'whole');
	}
};

subtest 'what cannot be read ends nothing but its connection' => sub {
	my $client = client();

	for (1 .. 20)
	{
		my $bad = client();

		ask($bad, GET => '/x', "Header: a\x01b");
		my $answer = answer($bad);

		is($answer->{status}, 400, 'refused') if $answer->{status} ne '400' || $_ == 20;
		ask($client, GET => '/x');
		$answer = answer($client);
		is($answer->{status}, 200, 'another one goes on') if $answer->{status} ne '200' || $_ == 20;
	}
};

# All clients share the buffer that is received into.
subtest 'no byte of one client is left for another' => sub {
	my @headers = map { "X-$_: x" } 1 .. 70;

	for my $left ("GET /left HTTP/1.1\r\nHost: a\r\n\r\n", "GET /left HTTP/1.1\r\nHost: a\r\nX-Left: ")
	{
		for my $many (1, 0)
		{
			my $calls = $cluster->calls;
			my ($first, $second) = (client(), client());

			print $first join("\r\n", 'POST /x HTTP/1.1', 'Host: a', $many ? @headers : "X: a\x01b",
				'Content-Length: ' . length $left, '', $left);
			ask($second, GET => '/x?second');
			like(answer($first)->{status}, qr/^4(?:00|31)$/, 'refused');
			my $answer = answer($second);
			is($answer->{status}, 200, 'who comes next');
			like($answer->{body}, qr/"target": "\/x\?second"/, 'asks for what he asks for');
			unlike($answer->{body}, qr/left/i, 'with nothing of the other one');
			is(answer($first)->{status}, 'closed', 'whose connection ends');
			is($cluster->calls, $calls + 1, 'and who is not heard');
		}
	}
};

subtest 'a credential is what was sent' => sub {
	my $client = client();
	my $long = join '', map { chr 33 + $_ % 94 } 1 .. 3000;

	for my $sent ('x', 'Bearer a', 'Bearer ab', 'Bearer ' . 'a.b' x 200, $long, 'Bearer x y  z', "Bearer \xc3\xa4bcdefghij")
	{
		for my $space ('', ' ', '   ')
		{
			ask($client, GET => '/x', 'X-Before: b', "authORization:$space$sent$space", 'X-After: c');
			my $answer = answer($client);
			my $body = $answer->{status} eq '200' ? JSON::PP::decode_json($answer->{body}) : {};
			my $name = length $sent > 40 ? length($sent) . ' bytes' : $sent;

			is(Encode::encode_utf8($body->{headers}{authorization} // ''), $sent, "$name between '$space'");
			is(join(' ', map { $_ // '' } @{ $body->{headers} }{qw(x-before x-after)}), 'b c', 'and so are the others')
			  if ($body->{headers}{'x-before'} // '') ne 'b' || $space eq '';
		}
	}
	my %bad = ("Bearer abcdefghijkl\x01m" => '400', "Bearer abcdefghijklm\x7f" => '400', "Bearer abcdefghijkl\xff" => '400',
		"Bearer abcdefghijklm\r\nAuthorization: Bearer b" => '400', 'Bearer ' . 'x' x 1200 => '431');
	my $narrow = EntityApi::Test->shim($cluster, %settings, max_headers_bytes => 1024);

	for my $sent (sort keys %bad)
	{
		my $client = client($narrow);

		ask($client, GET => '/x', "Authorization: $sent");
		is(answer($client)->{status}, $bad{$sent}, 'refused: ' . substr($sent =~ s/[^ -~]/?/gr, 0, 40));
	}
	$narrow->stop;
};

subtest 'half closed' => sub {
	my $short = EntityApi::Test->shim($cluster, %settings, keep_alive_timeout_ms => 1000);
	my $client = client($short);

	ask($client, GET => '/sleep/0.2');
	shutdown $client, 1;
	is(answer($client)->{status}, 200, 'who says no more gets his answer');
	is(sysread($client, my $rest, 1), 0, 'and the end');
	$short->stop;
};

# A process whose connections ask for the same again and again.
sub flood
{
	my ($shim, $target, $count) = @_;
	my $child = fork // die "cannot fork: $!\n";

	return $child if $child;
	my @sockets = map { client($shim) } 1 .. $count;
	my $select = IO::Select->new(@sockets);

	ask($_, GET => $target) for @sockets;
	while (my @ready = $select->can_read)
	{
		for my $socket (@ready)
		{
			POSIX::_exit(1) unless sysread $socket, my $answer, 65536;
			ask($socket, GET => $target);
		}
	}
	POSIX::_exit(1);
}

# How many answers four clients get in two seconds.
sub answers_beside
{
	my ($shim, $target) = @_;
	my $flood = defined $target ? flood($shim, $target, 300) : undef;
	my @clients = map { client($shim) } 1 .. 4;
	my $count = 0;

	sleep 1;
	for (my $end = time + 2; time < $end; $count += @clients)
	{
		ask($_, GET => '/x') for @clients;
		my @bad = grep { $_ ne '200' } @{ statuses(@clients) };

		is("@bad", '', 'is answered') if @bad;
	}
	if ($flood)
	{
		kill KILL => $flood;
		waitpid $flood, 0;
	}
	return $count;
}

subtest 'a flood of requests for health' => sub {
	my $flooded = EntityApi::Test->shim($cluster, %settings, pool_wait_ms => 60_000);

	# Health leaves most to others; all the rest is a request as any other.
	# Others on the machine may take it away in either of two measurements, so
	# one pair of five in a row has to be good.
	for my $case ([ '/actuator/health' ], [ '/actuator/health/liveness' ], [ '/actuator/x', '/y' ])
	{
		my ($target, $other) = @$case;
		my ($good, @seen);

		while (!$good && @seen < 5)
		{
			my $before = answers_beside($flooded, $other);
			my $count = answers_beside($flooded, $target);

			$good = $count >= $before / 4;
			push @seen, "$count after $before";
		}
		ok($good, "$target: " . join ', ', @seen);
	}
	$flooded->stop;
};

$shim->stop;
unlike(EntityApi::Test::slurp($shim->err), qr/"level":"error".*"event":"(?!database|handle)/, 'no errors but those asked for');
done_testing;
