# What a standby replays may come in the way of a request that reads there.  It
# ends that statement and nothing else: the primary answers, and the session
# with all that it has cached stays.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use EntityApi::Test::Client qw(connected answer);
use Test::More;

my @conf = ('allow_in_place_tablespaces = on', 'deadlock_timeout = 10ms');
my $primary = EntityApi::Test->cluster(conf => \@conf);
$primary->apply(map { EntityApi::Test::checkout() . "/t/data/entities/$_.yaml" } qw(service relations));
my $standby = EntityApi::Test->standby($primary, 'near',
	conf => [ @conf, 'max_standby_streaming_delay = 0', 'hot_standby_feedback = off' ]);
my $shim = EntityApi::Test->shim($primary, pool_size => 1, statement_timeout_ms => 600_000,
	replicas => $standby->conninfo('entityapi_shim'), replica_staleness => 'allowed', replica_max_lag_ms => 50_000,
	read_your_writes_ms => 60_000);
my $tenant = $shim->tenant('ours')->{id};
my $bob = $shim->user($tenant, 'bob', ['Editor']);
my $target = '/api/v1/people?include=origin&page[size]=1&sort=-name';

# All of them on one page
$primary->psql(<<~"SQL");
	insert into app.country (id, code, created_at, updated_at) values (gen_random_uuid(), 'no', now(), now());
	insert into app.person (tenant_id, id, name, origin_id, created_at, updated_at)
	select '$tenant', gen_random_uuid(), 'person ' || i, (select id from app.country), now(), now() from generate_series(10, 50) i;
	create tablespace other location '';
	set role entityapi_owner;
	create schema val;
	create function val.reads(request jsonb) returns jsonb language plpgsql as \$\$
	declare
		person record;
	begin
		-- a cursor stays on the page of which it has fetched no more than some rows
		for person in select id from app.person loop
			perform from app.country;
		end loop;
		return '{"reject": "nobody is known here"}';
	end \$\$;
	SQL

sub there { return $standby->psql(qq{select $_[0] from pg_stat_activity where application_name = 'entityapi-shim'}) }

# Until the standby answers this request: the session there, and when it was asked
sub until_read_there
{
	return EntityApi::Test::wait_until(60, sub {
			my $before = there('query_start');
			return $shim->http(GET => $target, { token => $bob })->{status} == 200 && there('query_start') ne $before });
}

# What others do at the primary, statement by statement
sub session
{
	open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', '/dev/null', '-d', $_[0]->conninfo('postgres')
	  or die "psql: $!\n";
	$psql->autoflush(1);
	return $psql;
}

# What has been logged is sent at the end of a transaction
sub until_on_standby
{
	my ($what, $sql) = @_;

	EntityApi::Test::wait_until(60, sub {
			$primary->psql(q{select pg_logical_emit_message(true, 'test', 'flush')});
			$standby->psql("select $sql") eq 't' }) or die "$what: not on the standby\n";
	return;
}

sub conflicts { return $standby->psql("select $_[0] from pg_stat_database_conflicts where datname = 'entityapi'") }

sub waits { return $_[0]->psql(q{select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and wait_event_type = 'Lock'}) }

# A request that waits on the standby for a table that somebody else has: who
# holds it, and the request's socket.  A busy machine leaves the standby out for
# a moment, and then it is asked again.
sub request_there
{
	for (1 .. 100)
	{
		my $holder = session($primary);
		print $holder "begin;\nlock table app.country in access exclusive mode;\n";
		until_on_standby('a lock', q{exists (select from pg_locks where relation = 'app.country'::regclass and mode = 'AccessExclusiveLock')});
		my $socket = connected($shim);
		print $socket "GET $target HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer $bob->{accessToken}\r\n\r\n";
		EntityApi::Test::wait_until(60, sub { waits($standby) || waits($primary) }) or die "nobody waits\n";
		return ($holder, $socket) if waits($standby);
		close $holder;
		answer($socket);
	}
	die "the standby is not asked\n";
}

# It has read another table; then comes what is in the way of that.
sub in_the_way
{
	my ($name, $kind, $cause, $before) = @_;

	subtest $name => sub {
		ok(until_read_there(), 'the standby answers');
		my $pid = there('pid');
		my $count = $kind ? conflicts($kind) : 0;

		$before->() if $before;
		my ($holder, $socket) = request_there();
		is($standby->psql("select count(*) from pg_locks where pid = $pid and granted and relation = 'app.person'::regclass"), 1,
			'a request has read something there');
		$cause->();
		ok(EntityApi::Test::wait_until(60, sub { waits($primary) }), 'then the primary is asked');
		print $holder "rollback;\n";
		close $holder;
		my $answer = answer($socket);
		is($answer->{status}, 200, 'which answers');
		like($answer->{body}, qr/"name":"person \d+".*"included":\[.*"code":"no"/s, 'rightly');

		# others may have been in the way, too
		ok(EntityApi::Test::wait_until(60, sub { conflicts($kind) > $count }), 'it was that conflict') if $kind;
		ok(until_read_there(), 'the standby is read from');
		is(there('pid'), $pid, 'by the same session');
		unlike(EntityApi::Test::slurp($shim->err), qr/"error"|"warning"/, 'nothing went wrong, as far as the log tells');
	};
	return;
}

in_the_way('a table is rewritten', confl_lock => sub { $primary->psql('vacuum full app.person') });
in_the_way('a table is altered', confl_lock => sub { $primary->psql('alter table app.person alter name set not null') });

# The rows go at a transaction that is older than the lock, which would keep them
my $deletes;
in_the_way('rows are cleaned away that its snapshot sees',
	confl_snapshot => sub {
		print $deletes "commit;\n";
		close $deletes;
		$primary->psql('vacuum (truncate off) app.person');
	},
	sub {
		$deletes = session($primary);
		print $deletes "begin;\ndelete from app.person where name between 'person 10' and 'person 14';\n";
		EntityApi::Test::wait_until(60, sub {
				$primary->psql(q{select count(*) from pg_stat_activity where state = 'idle in transaction' and query like 'delete from app.person%'}) eq '1' })
		  or die "nothing is deleted\n";
	});

# The page is wanted for itself alone.  Only on the standby a function says who
# somebody is, so that the primary knows him as before.
in_the_way('a page is cleaned that it reads',
	confl_bufferpin => sub {
		$primary->psql('vacuum (truncate off) app.person');
		$standby->set('entityapi.credential_validator' => undef);
	},
	sub {
		$primary->psql(q{delete from app.person where name between 'person 15' and 'person 19'});
		until_on_standby('a deletion', q{not exists (select from app.person where name = 'person 15')});
		$standby->set('entityapi.credential_validator' => 'val.reads');
	});

my $sorts;
in_the_way('a place of temporary files goes',
	confl_tablespace => sub { $primary->psql('drop tablespace other') },
	sub {
		until_on_standby('a tablespace', q{exists (select from pg_tablespace where spcname = 'other')});
		$sorts = session($standby);
		print $sorts "set temp_tablespaces = other;\nset work_mem = '64kB';\nbegin;\ndeclare sorted cursor for select from generate_series(1, 200000) i order by i desc;\nfetch 1 from sorted;\n";
		EntityApi::Test::wait_until(60, sub { $standby->psql(q{select count(*) > 0 from pg_tablespace t, pg_ls_tmpdir(t.oid) where spcname = 'other'}) eq 't' })
		  or die "there are no temporary files\n";
	});
close $sorts;

$standby->set(max_standby_streaming_delay => -1);
in_the_way('each waits for the other', undef, sub { $primary->psql('vacuum full app.person') });
$standby->set(max_standby_streaming_delay => 0);

# Nor does an answer that the primary gives take anything away.
subtest 'refusals' => sub {
	ok(until_read_there(), 'the standby answers');
	my $pid = there('pid');

	for my $case ([ 404 => "/api/v1/people/$tenant" ], [ 404 => '/api/v1/nothing' ], [ 400 => '/api/v1/people?sort=nothing' ],
		[ 401 => '/api/v1/people', 'x.y.z' ])
	{
		my ($status, $what, $token) = @$case;
		my %statuses;

		ok(EntityApi::Test::wait_until(60, sub {
					my $before = there('query_start');
					$statuses{ $shim->http(GET => $what, { token => $token // $bob })->{status} }++;
					return there('query_start') ne $before }), "the standby is asked for $what");
		is(join(' ', keys %statuses), $status, "it is $status");
	}
	is(there('pid'), $pid, 'by one session');
	unlike(EntityApi::Test::slurp($standby->log), qr/ask the primary|request refused/, 'of which its log has nothing');
	unlike(EntityApi::Test::slurp($shim->err), qr/"error"|"warning"/, 'nor has the shim\'s');
};

subtest 'faults' => sub {
	my $pid = there('pid');

	$primary->psql('alter table app.person rename name to other');
	until_on_standby('a column', q{exists (select from pg_attribute where attrelid = 'app.person'::regclass and attname = 'other')});
	ok(EntityApi::Test::wait_until(60, sub {
				$shim->http(GET => $target, { token => $bob })->{json}{errors}[0]{code} eq 'INTERNAL_ERROR'
				  && EntityApi::Test::slurp($standby->log) =~ /entityapi request \S+ failed: column .*name does not exist/ }),
		'are the primary\'s, and the standby\'s log has its own');
	$primary->psql('alter table app.person rename other to name');
	ok(until_read_there(), 'it goes on');
	is(there('pid'), $pid, 'with the same session');
};

subtest 'by SQL' => sub {
	my $asked = q{select status from entityapi.handle('GET', '/api/v1/nothing', '{}', null, null);};
	my $set = "\\set VERBOSITY verbose\nset entityapi.asks_primary = on;\n";

	is($standby->psql($asked), 404, 'who asks nobody else is answered');
	like($standby->try_psql("$set$asked")->{err}, qr/ERROR:  JA000: a standby does not answer this, ask the primary$/m, 'who does is told to');
	is($primary->psql("$set$asked"), 404, 'but not by the primary');
};

is($shim->stop, 0, 'ends with 0');

done_testing;
