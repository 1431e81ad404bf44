# Connections that were given up keep their place until the server has ended
# them, so that there are never more sessions than the pool has places; and a
# server that hangs holds nobody.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);

my $cluster = EntityApi::Test::StandIn->cluster;

# /stubborn takes no notice of being cancelled, and goes on until it may end
$cluster->psql(<<~'SQL');
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer as $$
	begin
		while target ~ '^/(stubborn|auth/)' loop
			-- a cancel may come at any time, also between two statements
			begin
				while (select last_value from public.held) > 1 loop
					perform pg_sleep(0.05);
				end loop;
				exit;
			exception when query_canceled then
				null;
			end;
		end loop;
		select * into status, headers, body from entityapi.stand_in(method, '/x', in_headers, in_body, remote);
	end $$;
	SQL
my $places = 2;
my $shim = EntityApi::Test->shim($cluster, pool_size => $places, login_pool_share => 1, threads => 16,
	pool_wait_ms => 200, statement_timeout_ms => 300, metrics => 'true');

sub sessions
{
	return $cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'");
}

sub metric
{
	my ($name) = @_;
	my ($value) = $shim->http(GET => '/actuator/prometheus')->{body} =~ /^\Q$name\E (\d+)$/m;

	return $value // 'none';
}

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

subtest 'sessions that go on' => sub {
	$cluster->hold;
	my @stubborn = map { ask('/stubborn') } 1 .. $places;
	my @answers = map { [ $_->() ] } @stubborn;

	is($_->[0], 503, "given up after $_->[1] s") for @answers;
	is(metric('entityapi_pool_connections{state="given_up"}'), $places, 'all places are taken');
	is(metric('entityapi_pool_connections{state="in_use"}'), 0, 'by none in use');
	is(metric('entityapi_database_connections_given_up_total'), $places, 'counted');
	my $most = 0;
	my $status = sub {
		my $got = $shim->http(GET => '/x')->{status};
		my $now = sessions();

		$most = $now if $now > $most;
		return $got;
	};
	is($status->(), 503, 'nobody is let in meanwhile') for 1 .. 3;
	$cluster->release;
	ok(EntityApi::Test::wait_until(60, sub { $status->() == 200 }), 'but when they have ended');
	is($most, $places, 'there are never more sessions than places');
	ok(served(), 'and again');
	my $none = EntityApi::Test::wait_until(30, sub { metric('entityapi_pool_connections{state="given_up"}') eq '0' });
	ok($none, 'none is left given up');
};

subtest 'logins keep their share' => sub {
	$cluster->hold;
	is($shim->http(POST => '/auth/login', { body => '{}' })->{status}, 503, 'a login is given up');
	is($shim->http(POST => '/auth/login', { body => '{}' })->{status}, 503, 'and has the share of logins');
	ok(served(), 'others go on');
	cmp_ok(sessions(), '<=', $places, 'within the places');
	$cluster->release;
};

subtest 'a server that hangs' => sub {
	my ($postmaster) = EntityApi::Test::slurp("$cluster->{data}/postmaster.pid") =~ /^(\d+)/;
	my @backends;

	EntityApi::Test::wait_until(30, sub { metric('entityapi_pool_connections{state="given_up"}') eq '0' });
	$cluster->psql('drop function entityapi.handle(text, text, jsonb, bytea, inet); alter function entityapi.stand_in rename to handle');
	ok(served(), 'it is there');
	@backends = split /\n/, $cluster->psql("select pid from pg_stat_activity where application_name = 'entityapi-shim'");

	# neither reads a session what is sent, nor is a cancel accepted
	kill STOP => $postmaster, @backends;
	my ($status, $seconds) = ask('/x')->();
	is($status, 503, "it is not waited for ($seconds s)");
	is($shim->http(GET => '/actuator/health/liveness')->{status}, 200, 'the shim lives');
	kill CONT => $postmaster, @backends;
	my $back = EntityApi::Test::wait_until(30, sub { $shim->http(GET => '/x')->{status} == 200 });
	ok($back, 'and back');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
