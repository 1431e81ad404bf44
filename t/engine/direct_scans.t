# Code that bypasses the executor against the executor: key scans, counts on an
# index, the look-up of a session, and pages by cursor.  Each comparison is one
# request twice in one snapshot, with entityapi.direct_scans on and off, answers
# compared byte by byte; or a count beside count(*), or a walk by cursors beside
# one ordered statement.
#
# Meanwhile rows are inserted, updated (HOT and not), deleted, put back under the
# ids of before; work is undone, in whole and in subtransactions; transactions are
# prepared, and end one way or the other; tables are vacuumed, truncated by vacuum
# and by TRUNCATE, rewritten, indexes built and dropped; a hot standby looks on,
# which cancels whoever stands in replay's way.
#
# ENTITYAPI_MODEL_COMPARISONS goes on until there have been so many.

use strict;
use warnings;

use FindBin;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

my $wanted = $ENV{ENTITYAPI_MODEL_COMPARISONS} // 0;
my $slice = $wanted ? 10 : 1.5;

# After each of these everybody plans anew, which is not what is to be done a
# million times.
my $pause = $wanted ? 0.1 : 0.02;
my $checkout = EntityApi::Test::checkout();
my (%sum, @problems);

sub prepare
{
	my ($cluster) = @_;

	$cluster->apply("$checkout/t/data/lists");
	my $shim = EntityApi::Test->shim($cluster);
	my @tenants = map { $shim->tenant("t$_")->{id} } 1 .. 3;
	my @users = map { $shim->user($tenants[ $_ ? $_ % 3 : 0 ], "u$_", [ $_ % 3 ? 'Reader' : 'Editor' ]) } 0 .. 5;
	my $made = $cluster->psql('set client_min_messages = warning; ' . EntityApi::Test::slurp("$FindBin::Bin/../data/model/model.sql"));

	for my $user (@users)
	{
		$cluster->psql("insert into token (name, access, session, account, tenant) select username, '$user->{accessToken}',
			(select id from entityapi.session where account_id = a.id and not forced order by created_at desc limit 1), id, tenant_id
			from entityapi.account a where id = '$user->{id}'");
	}
	$cluster->psql(<<~"SQL");
		insert into app.group (tenant_id, id, title, created_at, updated_at) select t, gen_random_uuid(), 'g' || i, now(), now()
			from unnest('{@{[join ',', @tenants]}}'::uuid[]) t, generate_series(1, 5) i;
		insert into pool (item, grp, tenant)
			select gen_random_uuid(), (select id from app.group g where g.tenant_id = t order by id offset i % 5 limit 1), t
			from unnest('{@{[join ',', @tenants]}}'::uuid[]) with ordinality x(t, o), generate_series(1, 60) i order by o = 1 desc, i;
		select put_back(p) from pool p;
		select insert_some(t, 500) from unnest('{@{[join ',', @tenants]}}'::uuid[]) t;
		insert into app.label (tenant_id, id, word, created_at, updated_at) select '$tenants[0]', gen_random_uuid(), 'l' || i, now(), now() from generate_series(1, 4) i;
		vacuum analyze;
		SQL
	$shim->stop;
	return $tenants[0];
}

# -------- what goes on --------

# Transactions that are prepared cannot be of a function.
sub prepared
{
	my @work = (
		"update app.item set rank = floor(random() * 50), note = 'p' where id in (select item from pool where n % 17 = floor(random() * 17))",
		"delete from app.item where id in (select item from pool where n % 29 = floor(random() * 29))",
		"select insert_some((select tenant from pool limit 1), 40)",
		"select put_back(p) from pool p where n % 7 = floor(random() * 7)",
		"update entityapi.account set email = 'p' || random() where id in (select account from token where n > 1 order by random() limit 1)",
		"update entityapi.session set expires_at = expires_at + interval '1 s' where id in (select session from token where n > 1 order by random() limit 1)",
		"savepoint a; update app.item set note = 'gone' where rank < 3; rollback to a; update app.item set note = 'stays' where rank = 4");
	my $sql = '';

	for my $i (1 .. 15)
	{
		my $end = rand() < 0.5 ? 'commit' : 'rollback';
		my ($one, $two) = @work[ rand @work, rand @work ];

		$sql .= "begin; $one; $two; prepare transaction 'p'; select pg_sleep(0.01); $end prepared 'p';\n";
	}
	return $sql;
}

# An index that is made while a standby's snapshot is held has no entries for
# what only that snapshot sees, and the executor takes it all the same.
my $makes_indexes = qr/reindex|create index|vacuum full|cluster/;

sub maintenance
{
	my ($aged) = @_;
	my @work = grep { !$aged || !/$makes_indexes/ } ((map { "vacuum $_;" } 'app.item', 'entityapi.session', 'entityapi.account', 'entityapi.tenant_admin', 'entityapi.tenant'),
		'call thin_out(); vacuum (truncate on) app.item;', 'vacuum (freeze) app.item;', 'vacuum full app.item;', 'vacuum (index_cleanup off) app.item;',
		'truncate app.item cascade; select put_back(p) from pool p; select insert_some(tenant, 300) from (select distinct tenant from pool) t;',
		'begin; truncate app.item cascade; select pg_sleep(0.02); rollback;',
		'reindex table app.item;', 'reindex index concurrently app.item__pkey;', 'reindex table entityapi.session;', 'reindex index concurrently entityapi.account_pkey;',
		'cluster app.item using item__rank_idx;', 'vacuum full entityapi.account;',
		'create index other on app.item (tenant_id, rank); select pg_sleep(0.1); drop index app.other;',
		'create index concurrently other on app.item (rank, tenant_id); select pg_sleep(0.1); drop index concurrently app.other;',
		'analyze app.item;', 'checkpoint;', 'select txid_current(); select pg_switch_wal();');

	# half of it are plain vacuums: what they do is what matters most
	my $sql = "set lock_timeout = '400ms';\n\\set ON_ERROR_STOP off\n";
	$sql .= ($_ % 2 ? $work[ rand 6 ] : $work[ rand @work ]) . " select pg_sleep($pause);\n" for 1 .. 16;
	return $sql;
}

# The server has thrown somebody out: replay needed what he held.
my $thrown_out = qr/conflict with recovery|terminating connection|server closed|connection to server was lost/;

# What a process does: its statements, for the seconds that are left.  Who only
# compares begins anew.
sub work
{
	my ($job, $end) = @_;
	my $said = '';
	my $result;

	srand(time ^ $$);
	do
	{
		$result = $job->{cluster}->try_psql("set application_name = 'model'; " . $job->{sql}->($end - time));
		$said .= $result->{err};
	} while ($result->{status} != 0 && $job->{name} && $result->{err} =~ $thrown_out && time < $end - 0.1);
	return "$result->{status}\n$said";
}

# Run all of these at the same time.  Those with a name are comparers.
sub at_once
{
	my ($seconds, @jobs) = @_;
	my $end = time + $seconds;

	for my $job (@jobs)
	{
		pipe my $in, my $out or die "pipe: $!";
		my $pid = fork // die "fork: $!";
		if ($pid == 0)
		{
			print {$out} work($job, $end);
			close $out;
			POSIX::_exit(0);
		}
		close $out;
		@$job{qw(pid in)} = ($pid, $in);
	}
	for my $job (@jobs)
	{
		local $/;
		my ($status, $said) = split /\n/, readline($job->{in}) // '', 2;
		my $name = $job->{name};

		waitpid $job->{pid}, 0;
		push @problems, ($name // 'worker') . ": $said"
		  if $said =~ /DIFFERENT/ || $status != 0 && !$job->{loose} && !($name && $said =~ $thrown_out);
		next unless $name;
		my $sum = $sum{$name} //= [ 0, 0, 0, 0 ];
		while ($said =~ /COMPARED (\d+) good (\d+) again (\d+)/g)
		{
			$sum->[0] += $1;
			$sum->[1] += $2;
			$sum->[2] += $3;
			$sum{all} += $1;
		}
		$sum->[3]++ while $said =~ /FATAL/g;
	}
	return;
}

sub comparer
{
	my ($cluster, $name, $kind, $level, $batch) = @_;

	return { cluster => $cluster, name => "$name, $kind, $level", sql => sub {
			"set statement_timeout = '60s'; set lock_timeout = '60s'; set default_transaction_isolation = '$level'; call compare_for($_[0], '$kind', $batch)" } };
}

sub round
{
	my ($primary, $standby, $seconds) = @_;
	my $patient = "set lock_timeout = '60s'";
	my $careless = "\\set ON_ERROR_STOP off\n";
	my $turn = $sum{rounds}++;
	my $name = $standby ? 'logical' : 'minimal';

	# snapshots of some age on the standby, for which hints that come from the
	# primary do not count
	my $aged = $standby && $turn / 2 % 2 == 0;
	my @jobs = (
		(map { { cluster => $primary, sql => sub { "$patient; call write_for($_[0])" } } } 1, 2),
		{ cluster => $primary, sql => sub { "$patient; call sessions_for($_[0])" } },
		{ cluster => $primary, sql => sub { "$patient; $careless" . join '', map { prepared() } 1 .. 1 + $_[0] / 1.5 }, loose => 1 },
		{ cluster => $primary, sql => sub { $careless . join '', map { maintenance($aged) } 1 .. 1 + $_[0] / 3 }, loose => 1 },
		comparer($primary, $name, 'answer', 'read committed', 1),
		comparer($primary, $name, 'answer', (('repeatable read', 'serializable')[ $turn / 2 % 2 ]), 20),
		comparer($primary, $name, (qw(write count walk))[ $turn % 3 ], 'repeatable read', 5));

	push @jobs, comparer($standby, 'standby', 'answer', 'read committed', 1),
	  comparer($standby, 'standby', (qw(count walk))[ $turn / 4 % 2 ], 'read committed', 1)
	  if $standby;
	push @jobs, comparer($standby, 'standby', 'answer', 'repeatable read', 20),
	  comparer($standby, 'standby', 'count', 'repeatable read', 100)
	  if $aged;
	# the large form has more who compare, beside the same who write
	push @jobs, map { { %$_ } } (grep { $_->{name} } @jobs) x 2 if $wanted;
	at_once($seconds, @jobs);

	# nothing may stay prepared
	$primary->psql("select format('rollback prepared %L', gid) from pg_prepared_xacts \\gexec");
	return;
}

# -------- clusters --------

my @common = ('max_prepared_transactions = 10', 'autovacuum = off', 'entityapi.access_token_ttl = 86400', 'deadlock_timeout = 100ms');

# With data checksums, which 18 has anyway and a cluster that is stopped can be
# given
sub with_checksums
{
	my (@conf) = @_;
	my $cluster = EntityApi::Test->cluster(conf => [ @common, @conf ]);

	return $cluster if $cluster->psql('show data_checksums') eq 'on';
	$cluster->stop;
	my $result = EntityApi::Test::run([ EntityApi::Test::server_program('pg_checksums'), '--enable', '-N', '-D', $cluster->data ], service => 1);
	die "pg_checksums: $result->{err}\n" if $result->{status} != 0;
	return $cluster->start;
}

my $logical = with_checksums('wal_level = logical');
is($logical->psql('show data_checksums'), 'on', 'data checksums');
prepare($logical);
my $standby = EntityApi::Test->standby($logical, 'model', conf => [ 'hot_standby_feedback = off', 'max_standby_streaming_delay = 200ms',
		'max_prepared_transactions = 10' ]);
is($standby->psql('select pg_is_in_recovery()'), 't', 'a hot standby');
my $minimal = EntityApi::Test->cluster(conf => [ @common, 'wal_level = minimal', 'max_wal_senders = 0' ]);
prepare($minimal);
is($minimal->psql('show wal_level'), 'minimal', 'wal_level minimal');

# What a snapshot of the standby counts before and after $meanwhile on the primary,
# which deletes what it counts.
sub old_snapshot
{
	my ($name, $meanwhile) = @_;
	my $folder = EntityApi::Test::folder() . "/$name";
	my $tenant = $logical->psql('select tenant from token where n = 1');
	my $caught_up = sub {
		my $lsn = $logical->psql('select pg_current_wal_insert_lsn()');
		return EntityApi::Test::wait_until(20, sub { $standby->psql("select pg_last_wal_replay_lsn() >= '$lsn'") eq 't' });
	};
	my $count = "select compare_count(1, '$tenant', 1), (select count(*) from app.item where rank = 1);";

	mkdir $folder or die "$folder: $!";
	EntityApi::Test::own($folder);
	$logical->psql(<<~"SQL");
		truncate app.item cascade;
		insert into app.item (tenant_id, id, name, rank, created_at, updated_at)
			select '$tenant', gen_random_uuid(), 'n', i % 2, now(), now() from generate_series(1, 40) i;
		SQL
	$logical->psql('vacuum analyze app.item');
	$logical->psql('checkpoint');
	ok($caught_up->(), 'the same rows');

	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		my $result = $standby->try_psql("begin isolation level repeatable read;\n$count\n"
			  . "\\! touch $folder/begun; until test -e $folder/done; do sleep 0.05; done\n$count\ncommit;");

		open my $out, '>', "$folder/said" or die "said: $!";
		print $out "$result->{out}$result->{err}";
		close $out;
		POSIX::_exit(0);
	}
	EntityApi::Test::wait_until(20, sub { -e "$folder/begun" });
	$logical->psql('delete from app.item where rank = 1');
	$meanwhile->($tenant);
	ok($caught_up->(), 'which the standby knows');
	open my $done, '>', "$folder/done" or die "done: $!";
	close $done;
	waitpid $pid, 0;
	is(EntityApi::Test::slurp("$folder/said"), "200|20\n200|20", 'an old snapshot sees them all the same');
	return;
}

# The primary marks entries of an index as dead when it sees no rows behind them
# any more, and with checksums these marks come along with the page.  A snapshot
# of a standby can be older.
subtest 'marks of the primary are not for old snapshots of a standby' => sub {
	old_snapshot('marks', sub {
			my ($tenant) = @_;

			is($logical->psql("set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off; select count(*) from app.item where tenant_id = '$tenant' and rank = 1"),
				0, 'gone on the primary') for 1 .. 2;
		});
};

# An index that the primary makes has no entries for rows that nobody there sees.
subtest 'nor are its new indexes' => sub {
	# empty, it is the smallest
	old_snapshot('index', sub { $logical->psql('delete from app.item; create index made_later on app.item (tenant_id, rank)') });
	$logical->psql('drop index app.made_later');
};

# HOT updates, others, deletions, vacuums, and answers that have something in them
sub went_on
{
	return ($sum{'logical, answer, read committed'}[1] // 0) > 20 && $logical->psql(<<~'SQL') eq 't';
		select n_tup_hot_upd > 20 and n_tup_upd - n_tup_hot_upd > 20 and n_tup_del > 60 and vacuum_count > 1
		from pg_stat_user_tables where relid = 'app.item'::regclass
		SQL
}

my $started = time;
do
{
	round($logical, $standby, $slice);
	round($minimal, undef, $slice);
	diag sprintf '%d comparisons in %d s, %d problems', $sum{all}, time - $started, scalar @problems if $wanted && $sum{rounds} % 10 == 0;
} until ($sum{all} // 0) >= ($wanted || 100) && went_on() || @problems > 20 || !$wanted && time - $started > 600;

is(scalar @problems, 0, 'no difference') or diag map { substr($_, 0, 3000) . "\n" } @problems[ 0 .. ($#problems < 4 ? $#problems : 4) ];
cmp_ok($sum{all}, '>=', $wanted || 100, 'of so many comparisons');
for my $name (sort grep { ref $sum{$_} } keys %sum)
{
	my $text = sprintf '%s: %d comparisons, %d of them 2xx, %d times anew, %d times thrown out', $name, @{ $sum{$name} };

	$wanted ? diag $text : note $text;
}
diag sprintf '%d comparisons in %d s', $sum{all}, time - $started if $wanted;
ok(went_on(), 'HOT updates, others, deletions, vacuums');
unlike(EntityApi::Test::slurp($_->log), qr/PANIC|TRAP:|signal \d+:|page verification failed|invalid page/, 'nothing worse in the log')
  for $logical, $minimal, $standby;

done_testing;
