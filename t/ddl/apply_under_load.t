# A table of many rows gets new fields, indexes, constraints and system
# attributes while requests read and write it: each is answered, none fails, none waits for what takes
# long.  Nothing is said by the clock: the change is held where it is until all
# clients have gone on.
#
# ENTITYAPI_LOAD_ROWS chooses how many rows (50000).

use strict;
use warnings;

use IO::Handle;
use JSON::PP;
use List::Util ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

use EntityApi::Test;
use EntityApi::Test::Cases;

use constant { CLIENTS => 4, ROUND => 5 };

my $rows = $ENV{ENTITYAPI_LOAD_ROWS} // 50_000;
my $cluster = EntityApi::Test->cluster(conf => [ 'max_wal_size = 4GB' ]);
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;

sub file
{
	my ($name, $fields, $more, @others) = @_;
	my @documents = map { { apiVersion => 'entityapi/v1', kind => 'Entity', %$_ } } (
		{ metadata => { name => 'Parcel' }, spec => {
				fields => $fields, %$more, permissions => { '*' => [qw(create read update delete)] } } },
		{ metadata => { name => 'Depot' }, spec => { fields => { name => { type => 'string' } }, permissions => { '*' => ['read'] } } }, @others);

	open my $file, '>', "$folder/$name" or die "$name: $!\n";
	print $file JSON::PP->new->canonical->encode(\@documents);
	close $file;
	return "$folder/$name";
}

my %before = (code => { type => 'string' }, weight => { type => 'integer' }, status => { type => 'string' });
my %after = (
	code   => { type => 'string', unique => $true, required => $true },
	weight => { type => 'integer', minimum => 0 },
	status => { type => 'string', index => $true },
	note   => { type => 'string' },
	urgent => { type => 'boolean', required => $true, default => JSON::PP::false },
	depot  => { type => 'ref', target => 'Depot', relation => 'ManyToOne' });

$cluster->apply(file('before.json', \%before, {}));
my $shim = EntityApi::Test->shim($cluster, pool_size => 6);
my $tenant = $shim->tenant('acme');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'ann'), '/api/v1');
$cluster->psql(<<~"SQL");
	insert into app.parcel (tenant_id, id, code, weight, status, created_at, updated_at)
	select '$tenant->{id}', gen_random_uuid(), 'code ' || i, i % 1000, (array['NEW','SENT','LOST'])[i % 3 + 1], now(), now()
	from generate_series(1, $rows) i;
	analyze app.parcel;
	SQL
my @ids = split /\n/, $cluster->psql('select id from app.parcel limit 2000');

# What a client does over and over, each with the status it must have
sub requests
{
	my ($client, $n) = @_;
	my $id = $ids[ ($client + CLIENTS * $n) % @ids ];

	return (
		[ 200, GET => "/parcels/$id" ],
		[ 200, GET => '/parcels?page[size]=10&page[totals]=false&sort=id' ],
		[ 200, PATCH => "/parcels/$id", data => { type => 'parcels', id => $id, attributes => { weight => $n % 1000 } } ],
		[ 201, POST => '/parcels', data => { type => 'parcels', attributes => { code => "client $client $n", weight => 1, status => 'NEW' } } ],
		[ 200, GET => '/depots' ]);
}

# Goes on until the file "stop" is there; a line a request into its own file
sub client
{
	my ($client) = @_;

	open my $log, '>', "$folder/client$client" or die "$client: $!\n";
	$log->autoflush(1);
	for (my $n = 0; !-e "$folder/stop"; $n++)
	{
		for my $request (requests($client, $n))
		{
			my ($expected, @call) = @$request;
			my $answer = eval { $ann->call(@call) } // { status => 0, body => $@ };

			print $log $answer->{status} == $expected ? 'good' : 'BAD', " $call[0] $call[1] ",
			  $answer->{status} == $expected ? '' : "$answer->{status} $answer->{body}" =~ s/\s+/ /gr, "\n";
		}
	}
	close $log;
	return;
}

my @clients;
for my $client (1 .. CLIENTS)
{
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		eval { client($client); 1 } or print STDERR $@;
		POSIX::_exit(0);
	}
	push @clients, $pid;
}

# What each client has been answered
sub answered
{
	return map { -e "$folder/client$_" ? scalar(() = EntityApi::Test::slurp("$folder/client$_") =~ /\n/g) : 0 } 1 .. CLIENTS;
}

# Until each of them has gone on by so many rounds of requests
sub all_go_on
{
	my ($rounds) = @_;
	my @before = answered();

	return EntityApi::Test::wait_until(300, sub {
			my @now = answered();
			return !grep { $now[$_] < $before[$_] + $rounds * ROUND } 0 .. $#now });
}

# A snapshot from before it: an index that is built without its lock is waited
# for in the end, however fast it is built.
my $snapshot = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo ],
	in => "set application_name = 'snapshot'; begin isolation level repeatable read; select 1; select pg_sleep(600)");
EntityApi::Test::wait_until(60, sub {
		$cluster->psql("select count(*) from pg_stat_activity where application_name = 'snapshot' and wait_event = 'PgSleep'") })
  or die "no snapshot\n";
sub release { return $cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'snapshot'") }

ok(all_go_on(2), 'clients before');

my $apply = EntityApi::Test::start(
	[   EntityApi::Test::private_program('entityapi-shim'),
		'apply', '--database', $cluster->conninfo, file('after.json', \%after,
			{ indexes => [ [qw(status weight)] ], system => [qw(createdAt updatedAt createdBy updatedBy)] },
			{ metadata => { name => 'User' }, spec => { accounts => $true, permissions => { '*' => ['read'] } } }) ],
	out => "$folder/applied", err => "$folder/error");
my ($held, $ended, %holds_up);

# Statements that requests wait for.  Those that need the table for themselves
# read no rows, and give up if they have to wait.  Who holds up whom is seen
# after what each does: it must have been the same statement afterwards, too.
until ($ended)
{
	for my $seen (split /\n/, $cluster->psql(<<~'SQL'))
		select distinct a.pid || ' ' || extract(epoch from a.query_start) || ' ' || a.query
		from pg_stat_activity w, unnest(pg_blocking_pids(w.pid)) b, pg_stat_activity a
		where w.application_name = 'entityapi-shim' and w.wait_event_type = 'Lock' and a.pid = b
			and a.wait_event_type is distinct from 'Lock' and a.query ~ '^(CREATE|ALTER TABLE \S+ VALIDATE)'
		SQL
	{
		my ($pid, $start, $query) = split / /, $seen, 3;

		$holds_up{$query}++ if $cluster->psql("select count(*) from pg_stat_activity
			where pid = $pid and extract(epoch from query_start) = $start and state = 'active'");
	}
	if (!$held && $cluster->psql("select count(*) from pg_stat_progress_create_index where phase = 'waiting for old snapshots'"))
	{
		$held = 1;
		ok(all_go_on(4), 'clients, while an index is made');
		release();
	}
	$ended = waitpid($apply, POSIX::WNOHANG()) != 0 ? { status => $? } : undef;
	sleep 0.01 if !$ended;
}
my $result = { status => $ended->{status}, out => EntityApi::Test::slurp("$folder/applied"), err => EntityApi::Test::slurp("$folder/error") };
release();
waitpid $snapshot, 0;
ok(all_go_on(2), 'clients afterwards');
open my $stop, '>', "$folder/stop" or die "stop: $!\n";
close $stop;
waitpid $_, 0 for @clients;

is($result->{status}, 0, 'applied') or diag $result->{err};
like($result->{out}, qr/CREATE INDEX CONCURRENTLY parcel__status__weight_idx .*\n-- done/, 'not within the transaction');
is($cluster->psql('select count(*) from entityapi.pending_steps'), 0, 'nothing is left');

ok($held, 'requests were answered meanwhile');
is(join("\n", sort keys %holds_up), '', 'none waited for what reads all rows');
my @bad = map { EntityApi::Test::slurp("$folder/client$_") =~ /^(BAD.*)$/mg } 1 .. CLIENTS;
diag sprintf '%d rows, %d requests, %d failed', $rows, List::Util::sum(answered()), scalar @bad;
is(scalar @bad, 0, 'none failed') or diag join "\n", @bad[ 0 .. ($#bad < 5 ? $#bad : 5) ];

is_deeply([ sort keys %{ $ann->good(200, GET => "/parcels/$ids[0]")->{json}{data}{attributes} } ],
	[ sort 'createdAt', 'updatedAt', grep { $_ ne 'depot' } keys %after ], 'the new state');
is($cluster->psql('select count(*) from app.parcel where created_by is not null and updated_by is null'), 0, 'who makes a row wrote it last');
is($cluster->psql("select count(*) > 0 and count(*) filter (where created_by is not null) > 0 from app.parcel where code like 'client%'"), 't',
	'rows of since then have authors');
is($cluster->psql("select count(*) from app.parcel where code like 'code %' and created_by is not null"), 0, 'those of before have none');
$ann->refused('is in force', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/code' ],
	POST => '/parcels', data => { type => 'parcels', attributes => { code => 'code 7' } });
my $posts = () = map { EntityApi::Test::slurp("$folder/client$_") =~ /good POST/g } 1 .. CLIENTS;
is($cluster->psql(q{select count(*) from app.parcel where code like 'client%'}), $posts, 'what was answered is there');

done_testing;
