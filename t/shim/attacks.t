# Thousands of sockets that drip heads, bodies, what a word from the server is
# waited for, and requests in bursts: others are served as while the same is
# sent to a socket that is not the shim's.
#
# ATTACK_SOCKETS and ATTACK_SECONDS choose a longer run than that of every day:
# 5000 and 20 are those of a release.

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
my $files = `sh -c 'ulimit -n'`;
plan skip_all => "the limit of open files is $files" if $files =~ /^\d+$/ && $files < 2 * $sockets + 200;

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;
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

# A process that does it until it is killed: a part of the sockets says
# something every 20 ms, and who has been cut comes again.
sub attack
{
	my ($kind, $port) = @_;
	my ($first, $more, $share) = @{ $attacks{$kind} };
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;

	my $address = pack_sockaddr_in($port, inet_aton('127.0.0.1'));
	my (@open, $next);
	for (;;)
	{
		my $began = time;

		for (1 .. $sockets * ($share // 0.02))
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
	my ($shim) = @_;
	my @clients = map { connected($shim) } 1 .. 4;
	my $login = connected($shim);
	my $end = time + $seconds;
	my (@times, %statuses);
	my $n = 0;

	while (time < $end)
	{
		print $_ "GET /x HTTP/1.1\r\n$host\r\n" for @clients;
		print $login "POST /auth/login HTTP/1.1\r\n${host}Content-Length: 18\r\n\r\n{\"username\":\"ann\"}" if $n % 10 == 0;
		for my $client (@clients, $n++ % 10 == 0 ? $login : ())
		{
			my $answer = answer($client);

			push @times, $answer->{seconds};
			$statuses{ $answer->{status} }++;
		}
	}
	@times = sort { $a <=> $b } @times;
	return { rate => @times / $seconds, late => $times[ $#times * 0.99 ], statuses => \%statuses };
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
	my ($kind, $shim) = @_;
	my (%wrong, $seen);
	my $unhurt = EntityApi::Test::wait_until(60, sub {
			my ($decoy, $port) = decoy();
			my %got;

			for my $target ([ elsewhere => $port ], [ here => $shim->port ])
			{
				my $attacker = attack($kind, $target->[1]);

				# until all of them are there, who can be
				sleep 1;
				$got{ $target->[0] } = others($shim);
				my $status = operators();
				$wrong{"operators: $status"}++ if $status ne '200';
				kill KILL => $attacker;
				waitpid $attacker, 0;
			}
			kill KILL => $decoy;
			waitpid $decoy, 0;
			$wrong{$_}++ for grep { $_ ne '200' } map { keys %{ $_->{statuses} } } values %got;
			$seen = sprintf '%.0f of %.0f a second, all but one of a hundred within %.1f of %.1f ms',
			  (map { $got{$_}{rate} } qw(here elsewhere)), map { 1000 * $got{$_}{late} } qw(here elsewhere);
			return $got{here}{rate} >= 0.8 * $got{elsewhere}{rate} && $got{here}{late} <= 3 * $got{elsewhere}{late} + 0.002;
		});

	is_deeply(\%wrong, {}, 'others, and operators, are answered');
	ok($unhurt, "as without it: $seen");
	return;
}

for my $kind (sort keys %attacks)
{
	subtest $kind => sub { compared($kind, $shim) };
}

subtest 'with several nodes' => sub {
	my $nodes = EntityApi::Test->shim($cluster, %settings, nodes => $cluster->conninfo);

	compared('heads', $nodes);
	$nodes->stop;
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
