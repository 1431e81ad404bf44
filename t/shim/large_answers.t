# Large answers, whose clients take them fast, slowly or not at all, and what
# they must not do to others.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Compress::Zlib ();
use EntityApi::Test::Client qw(connected answer);
use EntityApi::Test::StandIn;
use IO::Select;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;

# /large/N is one of N MB, and ready: a number in each line of ten bytes
$cluster->psql(<<~'SQL');
	create table large (size int primary key, answer bytea not null);
	alter table large alter answer set storage external;
	insert into large select size, convert_to(E'200\n\nContent-Type: text/plain\r\n\r\n', 'UTF8') ||
		(select string_agg(convert_to(lpad(n::text, 9, '0') || E'\n', 'UTF8'), '' order by n)
			from generate_series(1, size * 100000) n)
		from unnest('{1,15,60}'::int[]) size;
	alter function entityapi.handle(bytea) rename to stand_in;
	create function entityapi.handle(message bytea) returns bytea
	language plpgsql security definer set search_path = public as $$
	declare
		wanted int := substring(convert_from(substr(message, 1, 16), 'UTF8') from '^GET /large/(\d+)')::int;
	begin
		return case when wanted is null then entityapi.stand_in(message)
			else (select answer from large where size = wanted) end;
	end $$;
	SQL

my %settings = (pool_size => 2, keep_alive => 'yes', keep_alive_timeout_ms => 600_000, write_timeout_ms => 600_000);
my $shim = EntityApi::Test->shim($cluster, %settings);

sub ask
{
	my ($client, $target, @headers) = @_;

	print $client join("\r\n", "GET $target HTTP/1.1", 'Host: a', @headers, '', '');
	return;
}

# What is not as it should be of a body of so many MB
sub wrong
{
	my ($body, $size) = @_;

	return length($body // '') . ' bytes' if length($body // '') != $size * 1_000_000;
	for my $n (1 .. $size * 100_000)
	{
		my $line = substr $body, 10 * ($n - 1), 10;
		return "line $n is $line" if $line ne sprintf "%09d\n", $n;
	}
	return '';
}

# The thread that serves all: the first one that was begun
sub loop_of
{
	my ($shim) = @_;
	my @threads = sort { $a <=> $b } map { m{/(\d+)$} } glob '/proc/' . $shim->pid . '/task/*';

	return '/proc/' . $shim->pid . "/task/$threads[1]/schedstat";
}

# How long it has been at work, in ms, whatever else the machine does
sub worked
{
	my ($loop) = @_;

	return (split ' ', EntityApi::Test::slurp($loop))[0] / 1e6;
}

subtest 'whole, whoever else asks' => sub {
	my @clients = map { connected($shim) } 1 .. 4;

	for my $round (1 .. 2)
	{
		ask($clients[$_], '/large/' . (1, 15, 15, 1)[$_]) for 0 .. 3;
		is(wrong(answer($clients[$_])->{body}, (1, 15, 15, 1)[$_]), '', 'as it is') for 0 .. 3;
	}
	ask($clients[0], '/large/15', 'Accept-Encoding: gzip');
	my $answer = answer($clients[0]);
	like($answer->{head}, qr/^Content-Encoding: gzip/m, 'compressed');
	is(wrong(Compress::Zlib::memGunzip($answer->{body}), 15), '', 'and the same');
	ask($clients[1], '/large/15', 'Connection: close');
	is(wrong(answer($clients[1])->{body}, 15), '', 'the last one of a connection');
	is(sysread($clients[1], my $rest, 1), 0, 'which ends then');
	print { $clients[2] } "HEAD /large/15 HTTP/1.1\r\nHost: a\r\n\r\n";
	sysread $clients[2], my $head, 65536;
	like($head, qr/^Content-Length: 15000000\r\n(?:\S+: .*\r\n)*\r\n\z/m, 'HEAD has nothing of it');
};

subtest 'with others behind it' => sub {
	my $client = connected($shim);

	ask($client, "/large/1?$_"), ask($client, "/x?$_") for 1 .. 3;
	for (1 .. 3)
	{
		is(wrong(answer($client)->{body}, 1), '', 'a large one');
		like(answer($client)->{body}, qr/"target": "\/x\?$_"/, 'and a small one');
	}
};

subtest 'to who leaves' => sub {
	for (1 .. 10)
	{
		my $client = connected($shim);

		ask($client, '/large/15');
		sysread $client, my $some, 100_000;
	}
	is($shim->http(GET => '/x')->{status}, 200, 'others are served');
};

# A process that fetches them until it is killed
sub greedy
{
	my ($shim) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	my $client = connected($shim);
	for (;;)
	{
		my $left = 60_000_000;

		ask($client, '/large/60');
		while ($left > 0)
		{
			$left -= sysread($client, my $some, 1 << 20) || POSIX::_exit(1);
		}
	}
}

subtest 'others meanwhile' => sub {
	my $loop = loop_of($shim);

	plan skip_all => 'nothing tells how long a thread is at work' if !-e $loop;
	my $other = connected($shim);
	my $greedy = greedy($shim);
	my @worked;

	# each waits for one step, or for a few that are short
	for (my $end = time + 4; time < $end;)
	{
		my $before = worked($loop);

		ask($other, '/x');
		answer($other);
		push @worked, worked($loop) - $before;
		sleep 0.001;
	}
	kill KILL => $greedy;
	waitpid $greedy, 0;
	@worked = sort { $a <=> $b } @worked;
	cmp_ok(scalar @worked, '>', 50, 'are answered');
	cmp_ok($worked[-1], '<', 20 * EntityApi::Test::SLOWNESS(), sprintf 'while the loop works for %.1f ms at most', $worked[-1]);
};

# Takes so much of an answer; returns how much came.
sub take
{
	my ($client, $most) = @_;
	my $taken = 0;

	while ($taken < $most)
	{
		$taken += sysread($client, my $some, 1 << 18) || last;
	}
	return $taken;
}

subtest 'who takes nothing goes, whoever came first' => sub {
	my $reader = connected($shim);
	my @lazy;
	my $taken = 0;

	ask($reader, '/large/60');
	for (1 .. 7)
	{
		$taken += take($reader, 6_000_000);
		push @lazy, connected($shim);
		ask($lazy[-1], '/large/60');
		IO::Select->new($lazy[-1])->can_read(60) or die "no answer\n";
	}
	$taken += take($reader, 60_000_000 - $taken);
	cmp_ok($taken, '>=', 60_000_000, 'who takes his has all of it');
	my @taken = map { take($_, 60_000_000) } @lazy;
	cmp_ok(scalar(grep { $_ < 60_000_000 } @taken), '>=', 3, 'others do not');
	cmp_ok($taken[-1], '>=', 60_000_000, 'the last one has it');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
