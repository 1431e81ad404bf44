# Connections that were given up keep their place until the server has ended
# them, so that there are never more sessions than the pool has places; and a
# server that hangs holds nobody.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $cluster = EntityApi::Test::StandIn->cluster;
my $places = 2;
my $shim = EntityApi::Test->shim($cluster, pool_size => $places, login_pool_share => 1,
	pool_wait_ms => 200, statement_timeout_ms => 300, metrics => 'true');

sub sessions
{
	return split /\n/, $cluster->psql("select pid from pg_stat_activity where application_name = 'entityapi-shim'");
}

sub metric
{
	my ($name) = @_;
	my ($value) = $shim->http(GET => '/actuator/prometheus')->{body} =~ /^\Q$name\E (\d+)$/m;

	return $value // 'none';
}

sub connections { return metric(qq(entityapi_pool_connections{state="$_[0]"})) }

# The limits are short, and a busy machine may not keep them at once.
sub served
{
	return EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/x')->{status} == 200 });
}

# A request in a process of its own; returns what reads its status and time.
sub ask
{
	my ($target) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		my $started = time;
		my $answer = HTTP::Tiny->new(timeout => 60)->get($shim->url . $target);
		syswrite STDOUT, sprintf '%d %.1f', $answer->{status}, time - $started;
		POSIX::_exit(0);
	}
	return sub { local $/; return split / /, readline $child };
}

# As many sessions as there are places, none of them at work: those that the
# next requests get.
sub idle_sessions
{
	my @sessions;
	my $are_there = EntityApi::Test::wait_until(60, sub {
			my @requests = map { ask('/sleep/0.1') } 1 .. $places;

			$_->() for @requests;
			@sessions = sessions();
			return connections('idle') eq $places && @sessions == $places;
		});

	die "there are not $places sessions\n" if !$are_there;
	return @sessions;
}

# Whether a session that is stopped will find that it was cancelled.
sub is_cancelled
{
	my ($pid) = @_;
	my ($pending) = EntityApi::Test::slurp("/proc/$pid/status") =~ /^ShdPnd:\s*([0-9a-f]+)/m;

	return hex($pending) & 1 << POSIX::SIGINT - 1;
}

# Sessions that are stopped take no notice of being cancelled, nor of their own
# timeout, whatever else the machine does.
subtest 'sessions that go on' => sub {
	my @sessions = idle_sessions();

	kill STOP => @sessions;
	my @refused;
	my $all = EntityApi::Test::wait_until(60, sub {
			push @refused, map { [ $_->() ] } map { ask('/x') } 1 .. $places;
			return connections('given_up') eq $places;
		});

	ok($all, 'all places are taken');
	is($_->[0], 503, "given up after $_->[1] s") for @refused;
	is(connections('in_use'), 0, 'by none in use');
	is(metric('entityapi_database_connections_given_up_total'), $places, 'counted');
	for (1 .. 3)
	{
		is($shim->http(GET => '/x')->{status}, 503, 'nobody is let in meanwhile');
		is(sessions(), $places, 'there are never more sessions than places');
	}
	my $cancelled = EntityApi::Test::wait_until(60, sub { $places == grep { is_cancelled($_) } @sessions });
	ok($cancelled, 'all have been cancelled');
	kill CONT => @sessions;
	ok(served(), 'but when they have ended');
	ok(served(), 'and again');
	my $none = EntityApi::Test::wait_until(30, sub { connections('given_up') eq '0' });
	ok($none, 'none is left given up');
};

subtest 'logins keep their share' => sub {
	my @sessions = idle_sessions();
	my $login = sub { is($shim->http(POST => '/auth/login', { body => '{}' })->{status}, 503, $_[0]) };

	kill STOP => @sessions;
	my $given_up = EntityApi::Test::wait_until(60, sub { $login->('a login is refused'); return connections('given_up') eq '1' });
	ok($given_up, 'and given up');
	$login->('another one is refused');
	is(connections('given_up'), 1, 'as the first has the share of logins');

	my $cancelled;
	EntityApi::Test::wait_until(60, sub { ($cancelled) = grep { is_cancelled($_) } @sessions });
	kill CONT => grep { $_ != $cancelled } @sessions;
	ok(served(), 'others go on');
	is(connections('given_up'), 1, 'beside it');
	is(sessions(), $places, 'within the places');
	kill CONT => $cancelled;
};

subtest 'a server that hangs' => sub {
	my ($postmaster) = EntityApi::Test::slurp("$cluster->{data}/postmaster.pid") =~ /^(\d+)/;
	my @sessions = idle_sessions();

	# neither reads a session what is sent, nor is a cancel accepted
	kill STOP => $postmaster, @sessions;
	my ($status, $seconds) = ask('/x')->();
	is($status, 503, "it is not waited for ($seconds s)");
	is($shim->http(GET => '/actuator/health/liveness')->{status}, 200, 'the shim lives');
	kill CONT => $postmaster, @sessions;
	ok(served(), 'and back');
};

# What is between: it passes all on, but takes the first request to cancel and
# says nothing.  Returns its port.
sub proxy
{
	my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1') // die "listen: $!\n";
	my $pid = fork // die "fork: $!\n";
	my $hanging;

	return ($pid, $listener->sockport) if $pid;
	local $SIG{CHLD} = 'IGNORE';
	while (my $client = $listener->accept)
	{
		sysread $client, my $start, 65536;
		if ((unpack 'NN', $start)[1] == 80877102 && !$hanging)
		{
			$hanging = $client;
			next;
		}
		next if fork;
		my $server = IO::Socket::UNIX->new(Peer => $cluster->host . '/.s.PGSQL.' . $cluster->port) // die "connect: $!\n";
		my $both = IO::Select->new($client, $server);

		syswrite $server, $start;
		while (my @ready = $both->can_read)
		{
			for my $from (@ready)
			{
				sysread $from, my $bytes, 65536 or POSIX::_exit(0);
				syswrite $from == $client ? $server : $client, $bytes;
			}
		}
	}
	POSIX::_exit(1);
}

subtest 'a request to cancel that hangs' => sub {
	my $direct = $shim;
	$shim->stop;
	my ($proxy, $port) = proxy();
	$shim = EntityApi::Test->shim($cluster, pool_size => $places, pool_wait_ms => 200, statement_timeout_ms => 300, metrics => 'true',
		database => "host=127.0.0.1 port=$port user=entityapi_shim dbname=postgres sslmode=disable gssencmode=disable");
	my @sessions = idle_sessions();

	kill STOP => @sessions;
	EntityApi::Test::wait_until(60, sub {
			$_->() for map { ask('/x') } 1 .. $places;
			return connections('given_up') eq $places;
		});
	ok(EntityApi::Test::wait_until(60, sub { grep { is_cancelled($_) } @sessions }), 'keeps no other one');
	kill CONT => @sessions;
	is($shim->stop, 0, 'nor the end');
	kill KILL => $proxy;
	waitpid $proxy, 0;
	$shim = $direct;
	$shim->begin;
};

# A name server that hangs keeps to no limit of time; here the limit is long.
subtest 'a standby that hangs' => sub {
	my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') // die "listen: $!\n";
	my $watching = EntityApi::Test->shim($cluster, connect_timeout_s => 60,
		replicas => sprintf 'host=127.0.0.1 port=%d', $silent->sockport);

	ok(IO::Select->new($silent)->can_read(20), 'is looked at');
	my $began = time;
	is($watching->stop, 0, 'ends with 0');
	cmp_ok(time - $began, '<', 15, 'and is not waited for');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
