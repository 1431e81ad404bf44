# What a cluster does with the log's own tables when it takes them and gives them
# back, without Citus: the statements hold on each version of PostgreSQL, and
# since 18 a key leaves a constraint behind.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(nodes => 1);
my $shim = EntityApi::Test->shim($cluster);

$shim->tenant('acme');
is($shim->http(POST => '/auth/login', { json => { username => 'nobody', password => 'wrong wrong wrong' } })->{status}, 401, 'a record of no tenant is made');
$shim->stop;

my $indexes = q{select string_agg(tablename || regexp_replace(indexdef, '^.* USING', (indexdef ~ 'UNIQUE')::text), E'\n' order by tablename, indexdef)
	from pg_indexes where schemaname = 'entityapi' and tablename ~ '^audit_'};
my $null = 'select count(*) filter (where tenant_id is null) > 0, bool_or(tenant_id = \'00000000-0000-0000-0000-000000000000\') from entityapi.audit';
my $record = q{insert into entityapi.audit (id, at, action, outcome) values ('00000000-0000-0000-0000-000000000001', now(), 'ONE_MORE', 'SUCCESS')};
my $nullable = q{select count(*) from pg_attribute where attname = 'tenant_id' and attnotnull and attrelid in (select entityapi.list_audit_tables())};
my $begin = q{begin; do $$ declare part regclass; begin for part in select entityapi.list_audit_tables() loop
	execute format('drop trigger append_only on %s', part); end loop; end $$;};

is($cluster->psql("$null; $nullable"), "t|f\n0", 'it has no tenant');
my $before = $cluster->psql($indexes);
is($cluster->psql("$begin select entityapi.key_audit(true); $null; rollback"), "\nf|t", 'keyed by tenant it has that of zeros');
like($cluster->try_psql("$begin select entityapi.key_audit(true); $record; rollback")->{err}, qr/violates not-null constraint/, 'and none can be without');
my $back = $cluster->try_psql("$begin select entityapi.key_audit(true); select entityapi.key_audit(false); $null; $nullable; $record; $indexes; rollback");
is($back->{err}, '', 'keyed by time again, a record of no tenant is taken');
is($back->{out}, "\n\nt|f\n0\n$before", 'all is as it was');

done_testing;
