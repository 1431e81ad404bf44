# A statement of ours that runs others of ours, by a trigger of the owner's,
# while plans are dropped and declared anew: plans live as long as they run.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $true = JSON::PP::true;
my $manifest = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } },
	{ kind => 'Entity', metadata => { name => 'Thing' }, spec => { fields => { name => { type => 'string' } },
			permissions => { Any => [qw(create read update delete)] } } } ]);

my $cluster = EntityApi::Test->cluster;
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $user = $shim->user($tenant, 'ann', ['Any']);

# Every row that is written or deleted runs more statements than plans are kept
$cluster->psql(<<~'SQL');
	create function public.look_around() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
	begin
		perform entityapi.sweep(10), entityapi.openapi(1);
		perform entityapi.current_tenant(), entityapi.map_role('entityapi_client', null);
		if new.name = 'bad' then
			raise exception 'no such name';
		end if;
		return coalesce(new, old);
	end $$;
	create trigger look_around before insert or update or delete on app.thing for each row execute function public.look_around();
	SQL

sub request
{
	my ($method, $path, $body) = @_;

	return "select status, body::jsonb->'data'->'attributes'->>'name' from entityapi.handle('$method', '/api/v1/$path', jsonb_build_object("
	  . "'authorization', 'Bearer $user->{accessToken}', 'content-type', 'application/vnd.api+json'), "
	  . ($body ? "convert_to('" . JSON::PP->new->canonical->encode({ data => $body }) . "', 'UTF8')" : 'null') . ', null)';
}

my $set = 'set entityapi.plan_cache_size = 8';
my $script = join ";\n", $set, map { (request(POST => 'things', { type => 'things', attributes => { name => "n$_" } }), request(GET => 'things?sort=name')) } 1 .. 20;
is($cluster->psql("$script;"), join("\n", map { "201|n$_\n200|" } 1 .. 20), 'a statement outlives plans that are dropped while it runs');

# What the log says of a failure, too
my $from = -s $cluster->log;
is($cluster->psql("$set; " . request(POST => 'things', { type => 'things', attributes => { name => 'bad' } })), '400|', 'a failure is answered');
like(substr(EntityApi::Test::slurp($cluster->log), $from), qr/SQL statement "INSERT INTO app\.thing .*?"\n/, 'and told with the statement that failed');

done_testing();
