# The pool: PostgreSQL away and back, conflicts, time limits, full pools.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use JSON::PP;
use POSIX ();
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster, pool_size => 3, login_pool_share => 1, keep_alive => 'yes');

# Begins requests at the same time.
sub begun
{
	my (@requests) = @_;
	my @children;

	for my $request (@requests)
	{
		my $pid = open(my $child, '-|') // die "fork: $!\n";

		if ($pid == 0)
		{
			my $answer = HTTP::Tiny->new(timeout => 120)->request(@{$request}[ 0, 1 ],
				{ content => '{}' });
			syswrite STDOUT, $answer->{status};
			POSIX::_exit(0);
		}
		push @children, $child;
	}
	return @children;
}

# Their statuses in order
sub ended
{
	return map { local $/; scalar readline $_ } @_;
}

sub at_once
{
	return ended(begun(@_));
}

# So many connections of the pool are made, and idle.
sub filled
{
	my ($count) = @_;

	$cluster->hold;
	my @children = begun(map { [ GET => $shim->url . '/hold' ] } 1 .. $count);
	$cluster->at_work($count);
	$cluster->release;
	return ended(@children);
}

sub terminate
{
	return $cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'entityapi-shim'");
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
		my $line = $shim->said(qr/$id/);
		my $record = decode_json($line);
		is($record->{sqlstate}, $sqlstate, 'the log has the cause');
		is($record->{message}, 'secret cause', 'and its message');
	}
	for my $sqlstate (qw(57014 57P01 57P03 53300 53200 08006))
	{
		refused_well($shim->http(GET => "/fail/$sqlstate"), $sqlstate);
	}
	is($shim->http(GET => '/x')->{status}, 200, 'and on it goes');
};

subtest 'a statement that takes too long' => sub {
	my $hasty = EntityApi::Test->shim($cluster, statement_timeout_ms => 1500);

	$cluster->hold;
	refused_well($hasty->http(GET => '/hold'), 'statement timeout');
	$cluster->release;
	ok(EntityApi::Test::wait_until(60, sub { $hasty->http(GET => '/x')->{status} == 200 }), 'and on it goes');
};

subtest 'a full pool' => sub {
	my $full = EntityApi::Test->shim($cluster, pool_size => 3, reloaded => { pool_wait_ms => 60_000 });
	$shim->stop;
	$cluster->hold;
	my @first = begun(map { [ GET => $full->url . '/hold' ] } 1 .. 3);
	$cluster->at_work(3);
	$full->reload(pool_wait_ms => 500);

	is_deeply([ at_once(map { [ GET => $full->url . '/hold' ] } 1 .. 2) ], [ 503, 503 ],
		'who finds it full is told while the others are at work');
	is($cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and state = 'active'"), 3,
		'no more connections than allowed');
	$cluster->release;
	is_deeply([ ended(@first) ], [ 200, 200, 200 ], 'three of five');
	$full->stop;
	$shim->begin;
};

subtest 'logins' => sub {
	$cluster->psql(<<~'SQL');
		alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
		create function entityapi.handle(method text, target text, in_headers jsonb,
			in_body bytea, remote inet, out status int, out headers jsonb, out body text)
		language sql security definer as
		$$ select h.* from entityapi.stand_in(method, case when target like '%uth%' then '/hold' else '/x' end,
			in_headers, in_body, remote) h $$;
		SQL
	$shim->stop;
	my $shim = EntityApi::Test->shim($cluster, pool_size => 3, login_pool_share => 1, reloaded => { pool_wait_ms => 60_000 });
	for my $path ('/auth/login', '/auth/token', '/auth/change-password',
		'/auth/accept-invite', '/%61uth/logi%6e?x=1')
	{
		$cluster->hold;
		my @first = begun([ POST => $shim->url . $path ]);
		$cluster->at_work(1);
		$shim->reload(pool_wait_ms => 500);
		my @statuses = at_once(map { [ POST => $shim->url . $path ] } 1 .. 2);
		$shim->reload(pool_wait_ms => 60_000);
		$cluster->release;
		is_deeply([ ended(@first), @statuses ], [ 200, 503, 503 ], "$path: one at a time");
	}
	$cluster->hold;
	my @logins = begun(map { [ POST => $shim->url . '/auth/login' ] } 1 .. 6);
	$cluster->at_work(1);
	my @statuses = at_once(map { [ GET => $shim->url . '/api/v1/x' ] } 1 .. 6);
	is_deeply(\@statuses, [ (200) x 6 ], 'data requests do not starve');
	my %seen;
	$cluster->release;
	$seen{$_}++ for ended(@logins);
	is_deeply(\%seen, { 200 => 6 }, 'nor do logins');
	$cluster->hold;
	my @others = begun(map { [ POST => $shim->url . '/auth/refresh' ] } 1 .. 3);
	$cluster->at_work(3);
	$cluster->release;
	is_deeply([ ended(@others) ], [ (200) x 3 ], 'others are no logins');
	$shim->stop;
	$cluster->psql('drop function entityapi.handle(text, text, jsonb, bytea, inet); alter function entityapi.stand_in rename to handle');
};
$shim->begin;

subtest 'connections that died while idle' => sub {
	filled(3);
	for my $round (1 .. 3)
	{
		terminate();
		is($shim->http(GET => '/x')->{status}, 200, "terminated, round $round");
	}
	filled(3);
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
	$cluster->hold;
	my $killer = fork // die;

	if ($killer == 0)
	{
		$cluster->at_work(1);
		terminate();
		POSIX::_exit(0);
	}
	refused_well($shim->http(GET => '/hold'), 'terminated');
	waitpid $killer, 0;
	$cluster->release;
	is($cluster->calls - $before, 1, 'never repeated');
};

subtest 'PostgreSQL away' => sub {
	$cluster->stop;
	refused_well($shim->http(GET => '/api/v1/x'), 'away');
	my @statuses = at_once(map { [ GET => $shim->url . '/x' ] } 1 .. 10);
	is_deeply(\@statuses, [ (503) x 10 ], 'for everybody');

	# who asked while it stopped was told so, which is the reason until the next try
	EntityApi::Test::wait_until(10, sub { !$shim->http(GET => '/actuator/health')->{json}{components}{db}{reason} });
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
	$early->said(qr/listening on/);
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
