# A mapped reader sees no row of others, but PostgreSQL plans with statistics of
# whole tables, and EXPLAIN tells by them that a value is there.  The threat
# model says so, and how statistics of a column are taken away.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/folders.json';

open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Reader => undef, Boss => undef } } },
	{ kind => 'Entity', metadata => { name => 'Folder' }, spec => { permissions => { Reader => ['read'] }, fields => {
		region => { type => 'string' }, code => { type => 'string', readRoles => ['Boss'] } } } } ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);
my $shim = EntityApi::Test->shim($cluster);
my ($here, $there) = map { $shim->tenant($_)->{id} } qw(here there);
$shim->user($here, 'rea', ['Reader']);
$cluster->psql(qq(create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'rea');
	insert into app.folder (tenant_id, id, created_at, updated_at, region, code) select t.id, gen_random_uuid(), now(), now(), t.region, 'c'
	from (values ('$here'::uuid, 'EU'), ('$there', 'Takeover')) t (id, region), generate_series(1, 2000);
	analyze app.folder));

sub expected
{
	my ($value) = @_;
	return $cluster->psql("explain select from app.folder where region = '$value'", user => 'bi') =~ /rows=(\d+)/ ? $1 : -1;
}

is($cluster->psql(q(select string_agg(distinct region, ',') from app.folder), user => 'bi'), 'EU', 'the rows of its tenant');
is($cluster->psql(q(select count(*) from pg_stats where tablename = 'folder'), user => 'bi'), 0, 'no statistics by themselves');
like($cluster->try_psql(q(explain select from app.folder where code = 'c'), user => 'bi')->{err}, qr/permission denied/, 'nor by a column that it may not read');
cmp_ok(expected('Takeover'), '>', 10 * expected('Takeovfr'), 'estimates tell what is there');

$cluster->psql(q(set role entityapi_owner; alter table app.folder alter column region set statistics 0));
cmp_ok(expected('Takeover'), '>', 10 * expected('Takeovfr'), 'what has been gathered stays');
$cluster->psql(q(delete from pg_statistic where starelid = 'app.folder'::regclass
	and staattnum = (select attnum from pg_attribute where attrelid = 'app.folder'::regclass and attname = 'region');
	analyze app.folder));
is(expected('Takeover'), expected('Takeovfr'), 'without statistics they do not');
is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'which is no difference');
like($cluster->apply($manifests, '--dry-run'), qr/nothing to change/, 'and stays');

is($shim->stop, 0, 'ends with 0');
done_testing;
