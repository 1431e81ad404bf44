# The pool: PostgreSQL away and back, conflicts, time limits, full pools.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use EntityApi::Shim;
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);

my $cluster = EntityApi::Shim->cluster;
my $shim = EntityApi::Test->shim($cluster, pool_size => 3, login_pool_share => 1,
	pool_wait_ms => 500, statement_timeout_ms => 1500, keep_alive => 'yes');

# Runs requests at the same time; returns their statuses in order.
sub at_once
{
	my (@requests) = @_;
	my @children;

	for my $request (@requests)
	{
		my $pid = open(my $child, '-|') // die "fork: $!\n";

		if ($pid == 0)
		{
			my $answer = HTTP::Tiny->new->request(@{$request}[ 0, 1 ],
				{ content => '{}' });
			syswrite STDOUT, $answer->{status};
			POSIX::_exit(0);
		}
		push @children, $child;
	}
	return map { local $/; scalar readline $_ } @children;
}

sub refused_well
{
	my ($answer, $name) = @_;

	is($answer->{status}, 503, "$name: 503");
	is($answer->{headers}{'retry-after'}, 1, "$name: Retry-After");
	is($answer->{json}{errors}[0]{status}, '503', "$name: error document");
	return;
}

subtest 'conflicts' => sub {
	for my $times (0 .. 2)
	{
		$cluster->psql('alter sequence retries restart');
		my $before = $cluster->calls;
		is($shim->http(GET => "/retry/$times")->{status}, 200, "$times are overcome");
		is($cluster->calls - $before, $times + 1, 'by as many tries');
	}
	$cluster->psql('alter sequence retries restart');
	my $before = $cluster->calls;
	refused_well($shim->http(GET => '/retry/3'), 'a third one');
	is($cluster->calls - $before, 3, 'after three tries');
	refused_well($shim->http(GET => '/fail/40P01'), 'deadlock');
};

subtest 'failures' => sub {
	for my $sqlstate (qw(XX000 22012 42P01 P0001))
	{
		my $before = $cluster->calls;
		my $answer = $shim->http(GET => "/fail/$sqlstate");

		is($answer->{status}, 500, "$sqlstate: 500");
		unlike($answer->{body}, qr/secret|$sqlstate/, 'without its cause');
		is($cluster->calls - $before, 1, 'and not tried again');
		my $id = $answer->{headers}{'x-request-id'};
		my ($line) = EntityApi::Test::slurp($shim->err) =~ /^(.*$id.*)$/m;
		my $record = decode_json($line);
		is($record->{sqlstate}, $sqlstate, 'the log has the cause');
		is($record->{message}, 'secret cause', 'and its message');
	}
	for my $sqlstate (qw(57014 57P01 57P03 53300 53200 08006))
	{
		refused_well($shim->http(GET => "/fail/$sqlstate"), $sqlstate);
	}
	refused_well($shim->http(GET => '/sleep/5'), 'statement timeout');
	is($shim->http(GET => '/x')->{status}, 200, 'and on it goes');
};

subtest 'a full pool' => sub {
	my $started = time;
	my @statuses = at_once(map { [ GET => $shim->url . '/sleep/1.2' ] } 1 .. 5);

	is_deeply([ sort @statuses ], [ 200, 200, 200, 503, 503 ], 'three of five');
	cmp_ok(time - $started, '<', 4, 'the others were told in time');
	my $count = $cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'");
	cmp_ok($count, '<=', 3, 'no more connections than allowed');
};

subtest 'logins' => sub {
	$cluster->psql(<<~'SQL');
		alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
		create function entityapi.handle(method text, target text, in_headers jsonb,
			in_body bytea, remote inet, out status int, out headers jsonb, out body text)
		language sql security definer as
		$$ select h.* from pg_sleep(case when target like '%uth%' then 1 else 0 end),
			entityapi.stand_in(method, '/x', in_headers, in_body, remote) h $$;
		SQL
	for my $path ('/auth/login', '/auth/token', '/auth/change-password',
		'/auth/accept-invite', '/%61uth/logi%6e?x=1')
	{
		my @statuses = at_once(map { [ POST => $shim->url . $path ] } 1 .. 3);
		is_deeply([ sort @statuses ], [ 200, 503, 503 ], "$path: one at a time");
	}
	my @statuses = at_once((map { [ POST => $shim->url . '/auth/login' ] } 1 .. 6),
		(map { [ GET => $shim->url . '/api/v1/x' ] } 1 .. 6));
	is_deeply([ @statuses[ 6 .. 11 ] ], [ (200) x 6 ], 'data requests do not starve');
	@statuses = at_once(map { [ POST => $shim->url . '/auth/refresh' ] } 1 .. 3);
	is_deeply(\@statuses, [ (200) x 3 ], 'others are no logins');
	$cluster->psql('drop function entityapi.handle(text, text, jsonb, bytea, inet); alter function entityapi.stand_in rename to handle');
};

subtest 'connections that died while idle' => sub {
	at_once(map { [ GET => $shim->url . '/sleep/0.3' ] } 1 .. 3);
	for my $round (1 .. 3)
	{
		$cluster->psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'entityapi-shim'");
		sleep 0.2;
		is($shim->http(GET => '/x')->{status}, 200, "terminated, round $round");
	}
	at_once(map { [ GET => $shim->url . '/sleep/0.3' ] } 1 .. 3);
	$cluster->restart;
	is_deeply([ map { $shim->http(GET => '/x')->{status} } 1 .. 6 ], [ (200) x 6 ],
		'the server was restarted');
	$cluster->stop('immediate');
	$cluster->start;
	is_deeply([ map { $shim->http(GET => '/x')->{status} } 1 .. 6 ], [ (200) x 6 ],
		'the server crashed');
};

subtest 'lost under way' => sub {
	my $before = $cluster->calls;
	my $killer = fork // die;

	if ($killer == 0)
	{
		sleep 0.5;
		$cluster->psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'entityapi-shim'");
		POSIX::_exit(0);
	}
	refused_well($shim->http(GET => '/sleep/1.2'), 'terminated');
	waitpid $killer, 0;
	is($cluster->calls - $before, 1, 'never repeated');
};

subtest 'PostgreSQL away' => sub {
	$cluster->stop;
	refused_well($shim->http(GET => '/api/v1/x'), 'away');
	my @statuses = at_once(map { [ GET => $shim->url . '/x' ] } 1 .. 10);
	is_deeply(\@statuses, [ (503) x 10 ], 'for everybody');

	my $health = $shim->http(GET => '/actuator/health');
	is($health->{status}, 503, 'health');
	is_deeply($health->{json}, { status => 'DOWN', components => { db => { status => 'DOWN' } } },
		'is DOWN');
	$health = $shim->http(GET => '/actuator/health/readiness');
	is($health->{status}, 503, 'readiness');
	is_deeply($health->{json}, { status => 'DOWN' }, 'is DOWN');
	$health = $shim->http(GET => '/actuator/health/liveness');
	is($health->{status}, 200, 'liveness');
	is_deeply($health->{json}, { status => 'UP' }, 'is UP');
	is($shim->http(HEAD => '/actuator/health')->{status}, 503, 'HEAD, too');
	refused_well($shim->http(POST => '/actuator/health', { body => 'x' }), 'POST is no probe');

	$cluster->start;
	is($shim->http(GET => '/x')->{status}, 200, 'and back');

	my $early = EntityApi::Test->shim($cluster, wait => 0, database => 'host=/nowhere');
	EntityApi::Test::wait_until(5, sub { -s $early->err });
	refused_well($early->http(GET => '/x'), 'never there');
	is($early->stop, 0, 'ends with 0');
};

is($shim->stop, 0, 'ends with 0');
my $left = $cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'");
EntityApi::Test::wait_until(5, sub {
		$left = $cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'");
		$left == 0;
	});
is($left, 0, 'and leaves no connection');

done_testing;
