# A deleted tenant goes, too, if each step is made by a session of its own, which
# knows nothing of those before, and takes all the time of a step to get ready.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

use constant ENTITIES => 120;

my $cluster = EntityApi::Test->cluster;
my $json = JSON::PP->new->canonical;
my @names = map { sprintf 'Thing%03d', $_ } 1 .. ENTITIES;
my %all = (permissions => { '*' => [qw(create read update delete)] });
my $documents = $json->encode([ map { { apiVersion => 'entityapi/v1', kind => 'Entity', %$_ } }
	(map { { metadata => { name => $_ }, spec => { %all, fields => { name => { type => 'string' } } } } } @names),

	# these need one another, so references are taken away first
	{ metadata => { name => 'Hen' }, spec => { %all, fields => { egg => { type => 'ref', target => 'Egg', relation => 'ManyToOne', onDelete => 'setNull' } } } },
	{ metadata => { name => 'Egg' }, spec => { %all, fields => { hen => { type => 'ref', target => 'Hen', relation => 'ManyToOne', onDelete => 'setNull' } } } } ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$m\$$documents\$m\$::jsonb)");
my $shim = EntityApi::Test->shim($cluster, sweep_interval_ms => 3_600_000);
my $tenant = $shim->tenant('acme')->{id};
my @tables = map { lc "app.$_" } @names[ 0, ENTITIES / 2, ENTITIES - 1 ];

$cluster->psql(join '', map { "insert into $_ (tenant_id, id, name, created_at, updated_at) select '$tenant', gen_random_uuid(), 'x', now(), now() from generate_series(1, 10);\n" } @tables);
$cluster->psql(<<"SQL");
insert into app.hen (tenant_id, id, created_at, updated_at) select '$tenant', ('01980000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, now(), now() from generate_series(1, 1200) i;
insert into app.egg (tenant_id, id, hen_id, created_at, updated_at) select tenant_id, id, id, now(), now() from app.hen;
update app.hen set egg_id = id;
SQL

# each step loosens some, and has no time for more
$cluster->everywhere(q{create function public.slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.1); return null; end $$;
	alter function public.slowly() owner to entityapi_owner});
$cluster->on_rows($_, 'create trigger slowly after update on %s for each statement execute function public.slowly()') for qw(app.hen app.egg);
is($shim->http(DELETE => "/manage/tenants/$tenant", { token => $shim->superadmin })->{status}, 204, 'deleted');
$shim->stop;

my ($steps, @idle) = (0);
while ($steps++ < 1000 && @idle < 10 && $cluster->psql("select count(*) from entityapi.tenant where id = '$tenant'"))
{
	push @idle, $steps if $cluster->psql('select entityapi.sweep()') == 0;
}
is($cluster->psql("select count(*) from entityapi.tenant where id = '$tenant'"), 0, "gone, after $steps sessions") or diag "idle: @idle";
is($cluster->psql('select ' . join ' + ', map { "(select count(*) from $_)" } @tables, 'app.hen', 'app.egg'), 0, 'with all rows');
is("@idle", '', 'each did something');

done_testing;
