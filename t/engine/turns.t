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

my @locks = split /\n/, $cluster->psql(q{
	select p.oid::regprocedure from pg_proc p
	where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^pg_(try_)?advisory.*lock' and p.proname !~ 'unlock' order by 1});

is(scalar @locks, 16, 'the lock functions');
for my $user (qw(nobody1 reader1 client1 deployer entityapi_shim))
{
	my @callable = grep
	{
		my $arguments = /integer/ ? '1, 1' : '1';
		$cluster->try_psql('select ' . s/\(.*//r . "($arguments)", user => $user)->{err} !~ /permission denied for function/
	} @locks;
	is(join(' ', @callable), '', "$user calls none of them");
	like($cluster->try_psql('create temp table t ()', user => $user)->{err}, qr/permission denied to create temporary tables/, 'and makes no temporary table');
}
$cluster->psql('grant execute on function pg_advisory_lock(bigint) to nobody1; grant temp on database entityapi to nobody1');
is($cluster->try_psql('select pg_advisory_lock(1); create temp table t ()', user => 'nobody1')->{err}, '', 'unless it is granted');

# Every lock that SQL can name, those of before among them, and still the work
# goes on: held by a superuser, as nobody else can.
subtest 'all locks that have a name are held' => sub {
	my $release = hold('postgres', q{select pg_advisory_lock(x'656e746974796170'::bigint), pg_advisory_lock(7309475736147749999);
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
