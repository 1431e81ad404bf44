# A step of housekeeping ends when its time is over, though it has met no row of
# the deleted tenant so far; the next one of the session goes on behind that.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $tables = 60;
my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster;

open my $out, '>', "$folder/all.json" or die "all.json: $!\n";
print $out JSON::PP->new->canonical->encode([ { apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'x' }, spec => { tenancy => 'POOL' } },
		map { { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => "Thing$_" }, spec => { fields => { name => { type => 'string' } } } } } 1 .. $tables ]);
close $out;
$cluster->apply("$folder/all.json");

# Nobody else keeps house
my $shim = EntityApi::Test->shim($cluster, sweep_interval_ms => 0);
my $root = $shim->login($cluster->superadmin->{username}, $cluster->superadmin->{password});
my $tenant = $shim->tenant('acme')->{id};
$shim->must(204, DELETE => "/manage/tenants/$tenant", { token => $root });
is($shim->stop, 0, 'the shim ends');

# One statement for each table, whichever comes first
my $holder = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo,
	'-c', 'begin; ' . join('', map { "lock table app.thing$_ in access exclusive mode; " } 1 .. $tables) . 'select pg_sleep(600)' ]);
EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and relation::regclass::text like 'app.thing%'}) == $tables });
my $steps = 'select * from entityapi.housekeep();';
open my $file, '>', "$folder/steps.sql" or die "steps.sql: $!\n";
print $file "select 'before', entityapi.statement_count();\n$steps\nselect 'after', entityapi.statement_count();\n",
  "select 'select * from entityapi.housekeep()' from generate_series(1, 500) \\gexec\n";
close $file;
my $keeper = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-f', "$folder/steps.sql" ], out => "$folder/steps.out");
EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_stat_activity where query like '%housekeep%' and wait_event_type = 'Lock' and clock_timestamp() - query_start > '3s'}) == 1 });
$cluster->psql(q{select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'begin; lock table app.thing%'});
waitpid $_, 0 for $holder, $keeper;
my $said = EntityApi::Test::slurp("$folder/steps.out");

like($said, qr/^before\|\d+\n0\|t\nafter\|\d+\n/, 'the step that took three seconds has more to do') or diag substr $said, 0, 2000;
my ($statements) = $said =~ /^after\|(\d+)$/m;
cmp_ok($statements // 1000, '<', $tables * 1.5, 'and has read what is declared of each, but looked at few');
is($cluster->psql("select count(*) from entityapi.tenant where id = '$tenant'"), 0, 'those of the session after it come to the end');

done_testing;
