# What policies said to a caller is kept while he is the same, and no longer:
# all in one session of the server, which changes between its requests.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);

sub policy { return { apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => $_[0] }, spec => { description => 'one', expression => $_[1] } } }

my @documents = (
	{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'kept' }, spec => { tenancy => 'POOL', tenantAdminBypass => JSON::PP::false } },
	{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { map { $_ => { description => $_ } } qw(Reader Auditor) } } },
	{ apiVersion => 'entityapi/v1', kind => 'SecurityAttributes', metadata => { name => 'attributes' },
		spec => { attributes => { region => { type => 'string' }, until => { type => 'string' } } } },
	policy(Region => "#record.region == #user.securityAttributes['region']"),
	policy(SameRegion => "#record.region == #user.securityAttributes['region']"),
	policy(NotEve => "#user.username != 'eve'"),
	policy(Auditors => "'Auditor' in #user.roles"),
	policy(Later => "#record.until > #now"),
	map({ my ($name, @policies) = @$_;
		{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => {
				fields => { region => { type => 'string' }, until => { type => 'datetime' } }, permissions => { Reader => ['read'] },
				policies => { map { $_ => ['read'] } @policies } } } }
		[ Place => qw(Region SameRegion NotEve) ], [ Report => qw(Auditors NotEve) ], [ Offer => 'Later' ]));
my $manifests = JSON::PP->new->canonical->encode(\@documents);
my $applied = $cluster->try_psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $tenant = $shim->tenant('one')->{id};
my %user = map { $_ => $shim->user($tenant, $_, ['Reader'], securityAttributes => { region => 'EAST' }) } qw(ann eve);

$cluster->psql("insert into app.$_ (tenant_id, id, region, until, created_at, updated_at)
	select '$tenant', gen_random_uuid(), r, u, now(), now() from unnest('{EAST,EAST,WEST}'::text[], array[null, now() + interval '1 day', now() - interval '1 day']) x(r, u)")
  for qw(place report offer);

# How many rows a user sees, page and total
sub sees
{
	my ($name, $entity) = @_;
	return "select 'sees ' || status || ' ' || jsonb_array_length((body::jsonb)->'data') || ' ' || ((body::jsonb)->'meta'->'pagination'->>'totalRecords')
		from entityapi.handle('GET', '/api/v1/$entity?page[size]=3', '{\"authorization\": \"Bearer $user{$name}{accessToken}\"}', null, null);\n";
}

sub change { return "update entityapi.account set $_[1] where username = '$_[0]';\n" }

my @steps = (
	sees(ann => 'places') => 2, sees(eve => 'places') => 0, sees(ann => 'places') => 2,
	change(ann => q(security_attributes = '{"region": "WEST"}')) . sees(ann => 'places') => 1,
	change(ann => q(security_attributes = '{}')) . sees(ann => 'places') => 0,
	change(ann => q(security_attributes = '{"region": "EAST"}')) . sees(ann => 'places') => 2,
	sees(ann => 'reports') => 0, sees(ann => 'reports') => 0,
	change(ann => "roles = '{Reader,Auditor}'") . sees(ann => 'reports') => 3,
	sees(ann => 'reports') => 3, sees(eve => 'reports') => 0, sees(ann => 'reports') => 3,
	change(ann => "roles = '{Reader}'") . sees(ann => 'reports') => 0,
	sees(ann => 'offers') => 1,
	"update app.offer set until = now() + interval '10 ms';\nselect pg_sleep(0.05);\n" . sees(ann => 'offers') => 0,

	# the declarations change
	"do \$x\$ begin perform entityapi.apply_manifest((select jsonb_agg(case when d->'metadata'->>'name' = 'NotEve' then jsonb_set(d, '{spec,expression}', '\"#user.username != ''ann''\"') else d end)
		from jsonb_array_elements(entityapi.export_manifest()::jsonb) d)); end \$x\$;\n" . sees(ann => 'places') => 0,
	sees(eve => 'places') => 2, sees(ann => 'places') => 0);

my $out = $cluster->psql(join '', map { $steps[ 2 * $_ ] } 0 .. $#steps / 2);
my @seen = $out =~ /^sees (\d+ \d+ \d+)$/mg;

is_deeply(\@seen, [ map { my $n = $steps[ 2 * $_ + 1 ]; "200 $n $n" } 0 .. $#steps / 2 ], 'each sees what he may now');

done_testing;
