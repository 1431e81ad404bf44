# Reading on hot standbys: what they may answer, what they must not, and what
# holds while they lag, go away or take over.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use Test::More;
use Time::HiRes qw(time sleep);

# what a backend gives back is overwritten, so that nothing is read after that
local $ENV{MALLOC_PERTURB_} = 85;

my $primary = EntityApi::Test->cluster;
$primary->apply(map { EntityApi::Test::checkout() . "/t/data/entities/$_.yaml" } qw(service values));
my $standby = EntityApi::Test->standby($primary, 'near');
my $reader_of_standby = $standby->conninfo('entityapi_shim');

sub shim
{
	my (%flags) = @_;
	return EntityApi::Test->shim($primary, replicas => $reader_of_standby, %flags);
}

# The last statement that the shim's pool has sent there
sub last_on_standby
{
	return $standby->psql(<<~'SQL');
		select coalesce(max(query_start)::text, 'never') from pg_stat_activity
		where application_name = 'entityapi-shim'
		SQL
}

# Whether the standby was asked meanwhile, and what came back.
sub asked
{
	my ($shim, @request) = @_;
	my $before = last_on_standby();
	my $answer = $shim->http(@request);

	return ($before ne last_on_standby(), $answer);
}

sub said
{
	my ($shim, $what, $seconds) = @_;
	return EntityApi::Test::wait_until($seconds // 5,
		sub { EntityApi::Test::slurp($shim->err) =~ $what });
}

# Until the standby answers this request.
sub until_read_there
{
	my ($shim, $user, $seconds) = @_;

	return EntityApi::Test::wait_until($seconds // 6, sub {
			my ($there, $answer) = asked($shim, GET => '/api/v1/specimens', { token => $user });
			return $there && $answer->{status} == 200 });
}

sub specimen
{
	my ($shim, $user, $name) = @_;

	return $shim->must(201, POST => '/api/v1/specimens', { token => $user,
			json => { data => { type => 'specimens', attributes => { name => $name } } } })->{data}{id};
}

my $shim = shim(replica_staleness => 'allowed', replica_max_lag_ms => 500, read_your_writes_ms => 1200);
my $tenant = $shim->tenant('ours')->{id};
my ($ann, $bob, $eve) = map { $shim->user($tenant, $_, ['Editor']) } qw(ann bob eve);

subtest 'a primary that waits for nobody' => sub {
	my $strict = shim();
	ok(said($strict, qr/replica 1 is left out: the primary does not wait/), 'is told');
	my ($there) = asked($strict, GET => '/api/v1/specimens', { token => $ann });
	ok(!$there, 'and read from alone');
};

subtest 'reads' => sub {
	ok(said($shim, qr/replica 1 is read from/), 'the log says so');
	ok(until_read_there($shim, $ann), 'GET goes to the standby');
	my ($there, $answer);

	# a busy machine leaves the standby behind now and then
	ok(EntityApi::Test::wait_until(60, sub { (asked($shim, HEAD => '/api/v1/specimens', { token => $ann }))[0] }), 'HEAD too');
	for my $target ('/auth/me', "/manage/tenants/$tenant", '/actuator/health')
	{
		($there) = asked($shim, GET => $target, { token => $ann });
		ok(!$there, "$target does not");
	}
	my $before = $primary->psql('select count(*) from entityapi.audit');
	($there, $answer) = asked($shim, GET => '/api/v1/specimens', { headers => { Authorization => 'Bearer x.y.z' } });
	is($answer->{status}, 401, 'a refusal');
	cmp_ok($primary->psql('select count(*) from entityapi.audit'), '>', $before,
		'is the primary\'s, who writes it down');
	is($shim->http(GET => "/api/v1/specimens/$tenant", { token => $ann })->{status}, 404, 'absent');
};

subtest 'an answer of a session that knows nothing yet' => sub {
	my $id = $standby->psql("select id from entityapi.account where username = 'ann'");
	my $answer = $standby->psql(<<~"SQL");
		set entityapi.asks_primary = on;
		select headers from entityapi.handle('GET', '/api/v1/specimens',
			jsonb_build_object('authorization', 'Bearer ' || '$ann->{accessToken}'), null, null)
		SQL
	like($answer, qr/"x-entityapi-principal": "$id"/, 'says whose it is');
};

subtest 'what one has written' => sub {
	my ($wrong, $asked, $n) = (0, 0, 0);

	# who has been kept from asking for so long may well be answered elsewhere
	ok(EntityApi::Test::wait_until(60, sub {
				my $began = time;
				my $id = specimen($shim, $ann, 'n' . ++$n);
				my ($there, $answer) = asked($shim, GET => "/api/v1/specimens/$id", { token => $ann });
				$wrong++ if $answer->{status} != 200;
				return 0 if time > $began + 1.1;
				$wrong++ if $there;
				return ++$asked == 20;
			}), 'one reads at once');
	is($wrong, 0, 'from the primary');
	my $written = $primary->psql('select count(*) from app.specimen');
	ok(until_read_there($shim, $bob), 'others go on at the standby');
	ok(until_read_there($shim, $ann), 'and so does the writer, later');
	is($shim->http(GET => '/api/v1/specimens', { token => $ann })->{json}{meta}{pagination}{totalRecords}, $written,
		'and sees all of it');
};

subtest 'a credential that is revoked here' => sub {
	ok(until_read_there($shim, $eve), 'it is good on the standby');
	$standby->psql('select pg_wal_replay_pause()');
	$shim->must(200, PATCH => "/manage/tenants/$tenant/users/$eve->{id}",
		{ token => $shim->superadmin, json => { status => 'DISABLED' } });
	my @statuses = map { $shim->http(GET => '/api/v1/specimens', { token => $eve })->{status} } 1 .. 20;
	is_deeply(\@statuses, [ (401) x 20 ], 'is refused at once, although the standby still believes it');
	is($shim->http(GET => '/api/v1/specimens', { token => $bob })->{status}, 200, 'others read');
	$standby->psql('select pg_wal_replay_resume()');
	ok(until_read_there($shim, $bob), 'on the standby, when it has caught up');
	is($shim->http(GET => '/api/v1/specimens', { token => $eve })->{status}, 401, 'who refuses it, too');
};

subtest 'what anybody can do' => sub {
	my $patient = shim(replica_staleness => 'allowed', replica_max_lag_ms => 50_000, read_your_writes_ms => 60_000);
	ok(until_read_there($patient, $bob), 'read from');
	$standby->psql('select pg_wal_replay_pause()');
	is($patient->http(POST => '/auth/login', { json => { username => 'nobody', password => 'wrong' } })->{status}, 401,
		'a login that fails');
	my ($there) = asked($patient, GET => '/api/v1/specimens', { token => $bob });
	ok($there, 'keeps nobody from the standby');
	is($patient->http(POST => '/auth/refresh', { json => { refreshToken => 'ear_nonsense' } })->{status}, 401,
		'a token used again could end a session');
	($there) = asked($patient, GET => '/api/v1/specimens', { token => $bob });
	ok(!$there, 'so this does');
	$standby->psql('select pg_wal_replay_resume()');
	is($patient->stop, 0, 'ends');
};

subtest 'a standby that lags' => sub {
	$standby->psql('select pg_wal_replay_pause()');
	$primary->psql("update entityapi.account set status = 'DISABLED' where id = '$ann->{id}'");
	ok(EntityApi::Test::wait_until(60, sub {
				$shim->http(GET => '/api/v1/specimens', { token => $ann })->{status} == 401 }),
		'a revocation elsewhere counts, although the standby never hears of it');
	my ($there, $answer) = asked($shim, GET => '/api/v1/specimens', { token => $bob });
	ok(!$there && $answer->{status} == 200, 'it is not asked any more');
	ok(said($shim, qr/replica 1 lags/), 'the log says so');
	$standby->psql('select pg_wal_replay_resume()');
	ok(until_read_there($shim, $bob), 'until it has caught up');
};

subtest 'a primary that waits for its standbys' => sub {
	$primary->set(synchronous_standby_names => 'FIRST 1 (near)');
	$primary->set(synchronous_commit => 'remote_apply');
	my $strict = shim();
	ok(said($strict, qr/replica 1 is read from/), 'may be read from them');
	my $tim = $shim->user($tenant, 'tim', ['Editor']);
	my $wrong = 0;

	for my $round (1 .. 5)
	{
		ok(until_read_there($strict, $tim), 'the standby answers');
		$primary->psql("update entityapi.account set status = 'DISABLED' where id = '$tim->{id}'");
		$wrong++ if $strict->http(GET => '/api/v1/specimens', { token => $tim })->{status} != 401;
		$primary->psql("update entityapi.account set status = 'ACTIVE' where id = '$tim->{id}'");
		$wrong++ if $strict->http(GET => '/api/v1/specimens', { token => $tim })->{status} != 200;
	}
	is($wrong, 0, 'what is revoked by anybody counts at once');
	$primary->set(synchronous_standby_names => 'FIRST 1 (near, far)');
	ok(said($strict, qr/does not wait for all.*\n/), 'a standby that is waited for only sometimes is left out');
	$primary->set(synchronous_commit => undef);
	$primary->set(synchronous_standby_names => undef);
};

subtest 'a standby that is away' => sub {
	ok(until_read_there($shim, $bob), 'it was there');
	$standby->stop('immediate');
	my @statuses = map { $shim->http(GET => '/api/v1/specimens', { token => $bob })->{status} } 1 .. 10;
	is_deeply(\@statuses, [ (200) x 10 ], 'nobody notices');
	$standby->start;
	ok(until_read_there($shim, $bob, 10), 'and is back by itself');
};

subtest 'the standby takes over' => sub {
	my $hosts = sprintf 'host=%s,%s port=%d,%d user=entityapi_shim dbname=entityapi',
	  $primary->host, $standby->host, $primary->port, $standby->port;
	my $both = EntityApi::Test->shim($primary, database => $hosts);
	my $id = specimen($both, $bob, 'before');

	EntityApi::Test::wait_until(60, sub {
			$standby->psql("select count(*) from entityapi.account") > 0
			  && $primary->psql("select sent_lsn = replay_lsn from pg_stat_replication") eq 't' });
	$primary->stop;
	is($both->http(GET => '/api/v1/specimens', { token => $bob })->{status}, 503,
		'a standby alone is not the primary');
	$standby->promote;
	ok(EntityApi::Test::wait_until(60, sub {
				$both->http(GET => "/api/v1/specimens/$id", { token => $bob })->{status} == 200 }),
		'it is found');
	ok(specimen($both, $bob, 'after'), 'and written to');
	is($both->stop, 0, 'ends with 0');
};

is($shim->stop, 0, 'ends with 0');

done_testing;
