# A tenant whose rows somebody does not let go: it keeps back neither the other
# deleted tenants nor the rest of what the service looks after.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $manifest = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } },
	{ kind => 'Entity', metadata => { name => 'Thing' }, spec => { fields => { name => { type => 'string' } },
			permissions => { Any => [qw(create read update delete)] } } } ]);

my $cluster = EntityApi::Test->cluster;
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($stuck, $next) = map { $shim->tenant($_)->{id} } qw(stuck next);
$shim->user($_, "u$_", ['Any']) for $stuck, $next;
my $session = '01900000-0000-7000-8000-000000000001';
$cluster->psql(<<~SQL);
	insert into app.thing (tenant_id, id, created_at, updated_at, name)
		select t, gen_random_uuid(), now(), now(), 'x' from unnest('{$stuck,$next}'::uuid[]) t, generate_series(1, 3);
	SQL
$cluster->everywhere(q{create function public.keep() returns trigger language plpgsql as $$ begin raise exception 'kept by somebody'; end $$});
$cluster->on_rows('app.thing', "create trigger keep before delete on %s for each row when (old.tenant_id = '$stuck') execute function public.keep()");
$shim->must(204, DELETE => "/manage/tenants/$_", { token => $root }) for $stuck, $next;
$cluster->psql("insert into entityapi.session select '$session', id, now() - interval '2 days', now() - interval '1 day', null, false"
	. " from entityapi.account where is_super_admin limit 1");

sub step { return $cluster->psql('select deleted is not null from entityapi.housekeep()') }
sub tenants { return $cluster->psql("select count(*) from entityapi.tenant where id = '$_[0]'") }

is(step(), 't', 'a step is made although a tenant is stuck');
ok(EntityApi::Test::wait_until(30, sub { step(); !tenants($next) }), 'the next tenant goes');
ok(EntityApi::Test::wait_until(30, sub { step(); !$cluster->psql("select count(*) from entityapi.session where id = '$session'") }), 'and what else has ended');
is(tenants($stuck), 1, 'the stuck one stays');
is($cluster->psql("select count(*) from app.thing where tenant_id = '$stuck'"), 3, 'with its rows');
like(EntityApi::Test::slurp($cluster->log), qr/entityapi cannot erase tenant $stuck: kept by somebody/, 'and the log says why');

$cluster->on_rows('app.thing', 'drop trigger keep on %s');
ok(EntityApi::Test::wait_until(30, sub { step(); !tenants($stuck) }), 'it goes when it is let go');

done_testing();
