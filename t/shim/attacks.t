# Thousands of sockets that drip heads, bodies, what a word from the server is
# waited for, and requests in bursts: others are served as while the same is
# sent to a socket that is not the shim's.
#
# Every day some kinds are tried for a moment, chosen by ATTACK_SEED.  With
# ATTACK_SECONDS all are, for so long each, and ATTACK_SOCKETS says by how many:
# 20 and 5000 are those of a release.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::Client qw(connected answer);
use EntityApi::Test::StandIn;
use Errno ();
use IO::Socket::INET;
use POSIX ();
use Socket qw(pack_sockaddr_in inet_aton SOCK_STREAM AF_INET);
use Test::More;
use Time::HiRes qw(time sleep);

# A perl has no setrlimit(): a shell has.
if (!$ENV{ATTACKS})
{
	local $ENV{ATTACKS} = 1;
	exec 'sh', '-c', 'ulimit -n $(ulimit -H -n); exec "$@"', '-', $^X, $0;
}
my $sockets = $ENV{ATTACK_SOCKETS} // 1000;
my $seconds = $ENV{ATTACK_SECONDS} // 0.8;
my $seed = $ENV{ATTACK_SEED} // time;
srand $seed;
my $files = `sh -c 'ulimit -n'`;
plan skip_all => "the limit of open files is $files" if $files =~ /^\d+$/ && $files < 2 * $sockets + 200;

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;

# The stand-in counts its calls, which a standby cannot.
$cluster->psql(<<~'SQL');
	alter function entityapi.handle(bytea) rename to stand_in;
	create function entityapi.handle(message bytea) returns bytea
	language plpgsql security definer set search_path = public as $$
	begin
		return case when not pg_is_in_recovery() then entityapi.stand_in(message)
			else convert_to(E'200\n\nX-From: standby\r\n\r\nx', 'UTF8') end;
	end $$;
	SQL
my $standby = EntityApi::Test->standby($cluster, 'near');
$standby->{database} = 'postgres';
my $admin = EntityApi::Test::free_port();
my %settings = (pool_size => 4, keep_alive => 'yes', access_log => 'false');
my $shim = EntityApi::Test->shim($cluster, %settings, admin_listen => "127.0.0.1:$admin");

# The bytes that are sent at first, and then again and again
my $host = "Host: a\r\n";
my %attacks = (
	heads => [ "GET /x HTTP/1.1\r\n${host}X-A: ", 'a' ],
	bodies => [ "POST /auth/login HTTP/1.1\r\n${host}Content-Length: 60000\r\n\r\n", 'a' ],
	chunks => [ "POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n" ],
	words => [ "POST /x HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n", '' ],
	bursts => [ '', "GET /x HTTP/1.1\r\n${host}\r\n" x 5, 0.001 ]);

# A process that does it until it is killed: all come, and then a part of the
# sockets says something every 20 ms, and who has been cut comes again.
sub attack
{
	my ($kind, $port) = @_;
	my ($first, $more, $share) = @{ $attacks{$kind} };
	pipe my $ready, my $word or die "pipe: $!\n";
	my $pid = fork // die "fork: $!\n";

	if ($pid)
	{
		close $word;
		readline $ready;
		return $pid;
	}
	my $address = pack_sockaddr_in($port, inet_aton('127.0.0.1'));
	my (@open, $next);
	for (my $all = 1;; $all = 0)
	{
		my $began = time;

		syswrite $word, "ready\n" if !$all && defined $next && $next == $sockets;
		for (1 .. $sockets * ($all ? 1 : $share // 0.02))
		{
			my $n = $next++ % $sockets;

			if ($open[$n])
			{
				my $gone = 1;

				if (length $more ? defined syswrite($open[$n], $more) || $!{EAGAIN} : 1)
				{
					my $got = sysread $open[$n], my $bytes, 65536;
					$gone = 0 if $got || (!defined $got && $!{EAGAIN});
				}
				next if !$gone;
			}
			socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
			$socket->blocking(0);
			connect $socket, $address;
			$open[$n] = $socket;
			vec(my $ready = '', fileno $socket, 1) = 1;
			select undef, $ready, undef, 0.05;
			syswrite $socket, $first if length $first;
		}
		my $left = 0.02 - (time - $began);
		sleep $left if $left > 0;
	}
}

# A process whose socket takes what is sent, and says nothing
sub decoy
{
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1024) or die "listen: $!\n";
	my $pid = fork // die "fork: $!\n";

	return ($pid, $listener->sockport) if $pid;
	my @clients;
	while (my $client = $listener->accept) { push @clients, $client }
	POSIX::_exit(1);
}

# Answers of others meanwhile: how many in a second, and the time that all but
# one of a hundred take at most
sub others
{
	my ($shim, $path) = @_;
	my @clients = map { connected($shim) } 1 .. 4;
	my $login = connected($shim);
	my $end = time + $seconds;
	my (@times, %statuses, %from);
	my $n = 0;

	while (time < $end)
	{
		print $_ "GET $path HTTP/1.1\r\n$host\r\n" for @clients;
		print $login "POST /auth/login HTTP/1.1\r\n${host}Content-Length: 18\r\n\r\n{\"username\":\"ann\"}" if $n % 10 == 0;
		for my $client (@clients, $n++ % 10 == 0 ? $login : ())
		{
			my $answer = answer($client);

			push @times, $answer->{seconds};
			$statuses{ $answer->{status} }++;
			$from{ $answer->{head} =~ /^X-From: (\w+)/m ? $1 : 'primary' }++;
		}
	}
	@times = sort { $a <=> $b } @times;
	return { rate => @times / $seconds, late => $times[ $#times * 0.99 ], statuses => \%statuses, from => \%from };
}

sub operators
{
	my $operators = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $admin) or die "connect: $@\n";

	$operators->autoflush(1);
	print $operators "GET /actuator/health/readiness HTTP/1.1\r\n$host\r\n";
	return answer($operators)->{status};
}

# One attack, on a shim, and on what is none
sub compared
{
	my ($kind, $shim, $path) = @_;
	my (%wrong, %from, $seen);
	my $unhurt = EntityApi::Test::wait_until(60, sub {
			my ($decoy, $port) = decoy();
			my %got;

			for my $target ([ elsewhere => $port ], [ here => $shim->port ])
			{
				my $attacker = attack($kind, $target->[1]);

				$got{ $target->[0] } = others($shim, $path // '/x');
				my $status = operators();
				$wrong{"operators: $status"}++ if $status ne '200';
				kill KILL => $attacker;
				waitpid $attacker, 0;
			}
			kill KILL => $decoy;
			waitpid $decoy, 0;
			$from{$_}++ for map { keys %{ $_->{from} } } values %got;
			$wrong{$_}++ for grep { $_ ne '200' } map { keys %{ $_->{statuses} } } values %got;
			$seen = sprintf '%.0f of %.0f a second, all but one of a hundred within %.1f of %.1f ms',
			  (map { $got{$_}{rate} } qw(here elsewhere)), map { 1000 * $got{$_}{late} } qw(here elsewhere);
			return $got{here}{rate} >= 0.8 * $got{elsewhere}{rate} && $got{here}{late} <= 3 * $got{elsewhere}{late} + 0.002;
		});

	is_deeply(\%wrong, {}, 'others, and operators, are answered');
	ok($unhurt, "as without it: $seen");
	return \%from;
}

# Some of the kinds, or all
sub some
{
	my ($count) = @_;
	my @kinds = sort keys %attacks;

	return @kinds if $ENV{ATTACK_SECONDS};
	return map { splice @kinds, rand @kinds, 1 } 1 .. $count;
}

note "ATTACK_SEED=$seed";
for my $kind (some(2))
{
	subtest $kind => sub { compared($kind, $shim) };
}

subtest 'with several nodes' => sub {
	my $nodes = EntityApi::Test->shim($cluster, %settings, nodes => $cluster->conninfo);

	for my $kind (some(1)) { note $kind; compared($kind, $nodes) }
	$nodes->stop;
};

subtest 'with a standby' => sub {
	my $replicas = EntityApi::Test->shim($cluster, %settings, replica_staleness => 'allowed', replica_max_lag_ms => 50_000,
		read_your_writes_ms => 50_000, replicas => $standby->conninfo('entityapi_shim'));

	EntityApi::Test::wait_until(60, sub { $replicas->http(GET => '/api/v1/x')->{headers}{'x-from'} });
	for my $kind (some(1))
	{
		note $kind;
		ok(compared($kind, $replicas, '/api/v1/x')->{standby}, 'which answers');
	}
	$replicas->stop;
};

subtest 'bodies that lack a byte' => sub {
	my @greedy;
	my $piece = 'x' x 65536;
	my $most = 0;

	for my $n (1 .. $sockets / 4)
	{
		my $client = connected($shim);

		$client->blocking(0);
		syswrite $client, "POST /api/v1/x HTTP/1.1\r\n${host}Content-Length: 1048576\r\n\r\n";
		push @greedy, { socket => $client, left => 1048575 };
	}
	my $end = time + 60;
	while (@greedy && time < $end)
	{
		for my $client (@greedy)
		{
			my $sent = syswrite $client->{socket}, $piece, $client->{left} < 65536 ? $client->{left} : 65536;

			$client->{left} = defined $sent ? $client->{left} - $sent : $!{EAGAIN} ? $client->{left} : 0;
		}
		@greedy = grep { $_->{left} > 0 } @greedy;
		my ($memory) = EntityApi::Test::slurp('/proc/' . $shim->pid . '/status') =~ /^VmRSS:\s+(\d+) kB/m;
		$most = $memory if $memory > $most;
	}
	cmp_ok($most, '<', 96 * 1024, "memory: $most kB") if !$ENV{SANITIZER};
	is($shim->http(GET => '/x')->{status}, 200, 'others go on');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
