# Who can stand in whose way: the locks that serialise the service's own work
# are none that a role could hold that does not do the work.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $holders = 0;

$cluster->psql('create role nobody1 login; create role reader1 login in role entityapi_reader; create role client1 login in role entityapi_client;
	create role deployer login; grant entityapi_owner to deployer');
$cluster->apply("$checkout/t/data/entities");

# A session that does something and stays in its transaction
sub hold
{
	my ($user, $sql) = @_;
	my $mark = 'holder' . ++$holders;
	my $pid = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo($user) ],
		in => "set application_name = '$mark'; begin; $sql; select pg_sleep(600)");

	EntityApi::Test::wait_until(10, sub {
		$cluster->psql("select count(*) from pg_stat_activity where application_name = '$mark' and wait_event = 'PgSleep'") })
	  or die "$sql: nothing is held\n";
	return sub {
		$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = '$mark'");
		waitpid $pid, 0;
	};
}

# Everybody has PostgreSQL's locks and temporary tables
my @functions = split /\n/, $cluster->psql(q{
	select p.oid::regprocedure from pg_proc p
	where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^pg_(try_)?advisory' order by 1});

# All of them, of the two numbers that pg_locks shows of a lock
sub calls
{
	my ($high, $low) = @_;

	return map {
		my $arguments = /integer/ ? "($high)::bit(32)::int, ($low)::bit(32)::int" : /bigint/ ? "(($high)::bit(32) || ($low)::bit(32))::bit(64)::bigint" : '';
		'select ' . s/\(.*//r . "($arguments)"
	} @functions;
}

is(scalar @functions, 21, 'the lock functions');
for my $user (qw(nobody1 reader1 client1 deployer entityapi_shim))
{
	is($cluster->try_psql(join(";\n", calls('0::bigint', '1::bigint'), 'create temp table t ()'), user => $user)->{err} =~ s/WARNING.*\n//gr, '',
		"$user calls all of them, and makes a temporary table");
}

# A turn is a lock that others see, and that no SQL takes or gives back: not
# where it is held, not within a function, not elsewhere.
subtest 'locks that SQL has no name for' => sub {
	my $own = q{select classid, objid, objsubid, mode from pg_locks where locktype = 'advisory' and granted and objsubid not in (1, 2) and pid = %s order by 1, 2, 3};
	my @held = ('select count(*) from entityapi.apply_manifest(entityapi.export_manifest(), true)', q{select entityapi.purge_audit('2001-01-01')},
		'select entityapi.claim_apply()', map { "select entityapi.take_slots(1, $_, 77, 64)" } 59905, 59906);
	my @rows = split /\n/, $cluster->psql(join(";\n", 'begin', @held, sprintf($own, 'pg_backend_pid()')), user => 'deployer') =~ s/\A(?:[^|]*\n)+//r;
	cmp_ok(scalar @rows, '>=', 5, 'turns, the one who applies, and slots') or diag "@rows";

	my @calls = map { calls(map { "$_\::bigint" } (split /\|/)[ 0, 1 ]) } @rows;
	my $listed = sub { "\\echo $_[0]\n" . sprintf($own, 'pg_backend_pid()') };
	my $in_function = join '; ', map { s/^select/perform/r } @calls;
	my $done = $cluster->try_psql(join(";\n", 'begin', @held, $listed->('before'), @calls, $listed->('after'),
			"do \$\$ begin $in_function; end \$\$", $listed->('function'), 'commit', $listed->('committed'), 'select pg_advisory_unlock_all()', 'discard all', $listed->('discarded')),
		user => 'deployer');
	my %listed = $done->{out} =~ /^(before|after|function|committed|discarded)\n((?:\d+\|\d+\|-?\d+\|.*\n?)*)/mg;
	chomp %listed;
	is($listed{before}, join("\n", @rows), 'held') or diag $done->{err};
	is($listed{after}, $listed{before}, 'none is given back where it is held');
	is($listed{function}, $listed{before}, 'nor within a function');
	like($listed{committed}, qr/\A0\|\d+\|-5613\|ExclusiveLock\z/, 'who applies is so beyond its transaction');
	is($listed{discarded}, $listed{committed}, 'and with a session that is cleaned up');

	my $release = hold('deployer', join '; ', @held);
	for my $user (qw(nobody1 client1 reader1 entityapi_shim postgres))
	{
		my $result = $cluster->try_psql(join(";\n", "set lock_timeout = '10s'", @calls), user => $user);

		is($result->{err} =~ s/WARNING.*\n//gr, '', "$user: none of them is in the way");
	}
	my $still = $cluster->psql(sprintf($own, q{(select pid from pg_stat_activity where wait_event = 'PgSleep')}));
	is($still, join("\n", @rows), 'they are held as before');
	$release->();
};

# Every lock that SQL can name, those of before among them, and still the work
# goes on: held by anybody.
subtest 'all locks that have a name are held' => sub {
	my $release = hold('nobody1', q{select pg_advisory_lock(x'656e746974796170'::bigint), pg_advisory_lock(7309475736147749999);
		select pg_advisory_lock(c.oid::bigint) from pg_class c where c.relnamespace = 'entityapi'::regnamespace;
		select pg_advisory_lock(c.oid::int, 0), pg_advisory_lock(0, c.oid::int) from pg_class c where c.relnamespace = 'entityapi'::regnamespace;
		select pg_advisory_lock(k), pg_advisory_lock(0, k) from unnest(array[0, 59904, 59905, 59906, 59907, 59920, 59921, 59922, 59923]) k});

	is($cluster->try_psql('select count(*) from entityapi.apply_manifest(entityapi.export_manifest())')->{out}, 0, 'declarations are applied');
	is($cluster->psql('select entityapi.claim_apply()'), 't', 'pending steps are claimed');
	$cluster->psql(q{insert into entityapi.tenant values (gen_random_uuid(), 'x', 'x', 'DELETED', '{}', now(), now(), null)});
	ok(EntityApi::Test::wait_until(60, sub {
				$cluster->psql('select entityapi.sweep();' x 40);
				!$cluster->psql(q{select count(*) from entityapi.tenant where status = 'DELETED'}) }),
		'deleted tenants are erased');
	$cluster->psql(q{select entityapi.extend_audit('2047-03-03', 1)});
	is($cluster->psql(q{select count(*) from pg_class where relname in ('audit_2047_03', 'audit_2047_04')}), 2, 'months are made');
	is($cluster->try_psql(q{select entityapi.purge_audit('2001-01-01')})->{err}, '', 'and dropped');
	$release->();
};

# and they do serialise
subtest 'one at a time' => sub {
	my $release = hold('deployer', 'select count(*) from entityapi.apply_manifest(entityapi.export_manifest(), true)');
	like($cluster->try_psql('select entityapi.apply_manifest(entityapi.export_manifest())')->{err}, qr/another change of the declarations is under way/, 'changes');
	$release->();

	$release = hold('deployer', 'select entityapi.claim_apply()');
	is($cluster->psql('select entityapi.claim_apply()'), 'f', 'steps');
	$release->();
	is($cluster->psql('select entityapi.claim_apply()'), 't', 'until the session has ended');

	# as long as it takes, a statement that fails gives it back, and it is asked for again
	my $taken = $cluster->try_psql("\\set ON_ERROR_STOP 0\nselect entityapi.claim_apply();\nselect 1 / 0;\nselect count(*) from pg_locks where objsubid = -5613;\n"
		  . "select entityapi.claim_apply(), entityapi.claim_apply();\nselect count(*) from pg_locks where objsubid = -5613", user => 'deployer');
	is($taken->{out}, "t\n0\nt|t\n1", 'or a statement has failed');
	is($cluster->psql('select count(*) from pg_locks where objsubid = -5613'), 0, 'nothing is left of ended sessions');

	$release = hold('deployer', q{select entityapi.purge_audit('2001-01-01')});
	like($cluster->try_psql(q{select entityapi.extend_audit('2048-01-01', 0)})->{err}, qr/lock timeout/, 'months that are missing');
	is($cluster->try_psql(q{select entityapi.extend_audit('2047-03-01', 2)})->{err}, '', 'those ahead are left to the other one');
	is($cluster->psql(q{select to_regclass('entityapi.audit_2047_05') is null}), 't', 'who makes them');
	$release->();
};

# What each role can lock of the tables.  A reader's own statement holds off DDL
# on what he reads until entityapi.apply_lock_timeout, nothing else.
subtest 'locks on tables' => sub {
	my @relations = split /\n/, $cluster->psql(q{select c.oid::regclass from pg_class c
		where c.relnamespace in ('entityapi'::regnamespace, 'app'::regnamespace) and c.relkind in ('r', 'p')});

	for my $user (qw(nobody1 reader1 client1 entityapi_shim))
	{
		my @lockable = grep { $cluster->try_psql("begin; lock table $_ in row share mode", user => $user)->{err} eq '' } @relations;
		is(join(' ', @lockable), '', "$user: none but by reading");
		my @rows = grep { $cluster->try_psql("begin; select from $_ for key share", user => $user)->{err} eq '' } @relations;
		is(join(' ', @rows), '', 'and no row');
	}
	my @read = grep { $cluster->try_psql("begin; lock table $_ in access share mode", user => 'reader1')->{err} eq '' } @relations;
	is(scalar(grep { /^entityapi/ } @read), 0, 'a reader reads no table of the extension');
};

done_testing();
