# Three nodes of Citus with the extension on each, as all tests of this folder
# and make test-citus have them.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
my @nodes = $cluster->nodes;

is(scalar @nodes, 3, 'there are three');
is(join(' ', $cluster->on_all('select version from entityapi.version() v (version) join pg_extension on extname = \'citus\'')),
	join(' ', ($nodes[0]->psql('select entityapi.version()')) x 3), 'each has Citus and the extension');
is(join(' ', $cluster->on_all('select count(*) from pg_dist_node where hasmetadata and metadatasynced and isactive')), '3 3 3',
	'and knows all of them');
is(join(' ', $cluster->on_all(q{select string_agg(nodename, ',' order by groupid) from pg_dist_node})),
	join(' ', (join(',', map { $_->host } @nodes)) x 3), 'by the folders of their sockets');
is(join(' ', $cluster->on_all(q{select bool_and(result = 'on') from run_command_on_all_nodes($$ select 'on' $$)})), 't t t',
	'where each reaches the others');
is(join(' ', $cluster->on_all(q{select count(*) from pg_roles where rolname ~ '^entityapi_' and (rolcanlogin or rolname <> 'entityapi_shim')})),
	join(' ', ($nodes[0]->psql(q{select count(*) from pg_roles where rolname ~ '^entityapi_'})) x 3), 'roles are on all');

subtest 'whatever style of times a session has' => sub {
	my $now = q{at between now() - interval '5 minutes' and now()};

	$cluster->settle;
	for my $style ('SQL, DMY', 'German', 'Postgres, DMY')
	{
		$cluster->psql(qq{set datestyle = '$style'; select entityapi.rotate_signing_key(); select count(*) from entityapi.apply_manifest('[
			{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Any": {"description": "$style"}}}}]')});
	}
	is($cluster->psql("select count(*) filter (where $now), count(*) from entityapi.audit where action in ('SIGNING_KEY_ROTATED', 'MANIFEST_APPLIED')"), '7|7', 'records have the time that it is');
};

done_testing;
