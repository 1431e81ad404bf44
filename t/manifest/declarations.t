# What is declared is believed by all who read it, so it is written by
# apply_manifest() alone; and where it is damaged all the same, that is told.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;

$cluster->psql('create role deployer login in role entityapi_owner');
$cluster->apply("$checkout/t/data/entities");

sub as_deployer
{
	return $cluster->try_psql($_[0], user => 'deployer');
}

# Several nodes have triggers for it, as he writes there what he applies
# (t/citus/rights.t has more); he can hold rows, as he can hold his turn.
my $refused = $cluster->nodes > 1 ? qr/written by apply_manifest\(\) alone|duplicate key/ : qr/permission denied for table/;

subtest 'a deployer declares by applying' => sub {
	for my $table (qw(entity service revision))
	{
		my ($column) = $table eq 'revision' ? 'checksum' : 'definition';

		like(as_deployer($_)->{err}, $refused, $_)
		  for "update entityapi.$table set $column = '{}'", "delete from entityapi.$table", "insert into entityapi.$table select * from entityapi.$table",
		  $cluster->nodes > 1 ? () : "select 1 from entityapi.$table for update";
		is(as_deployer("select count(*) > 0 from entityapi.$table")->{out}, 't', "$table can be read");
	}
	is(as_deployer(q{select count(*) > 0 from entityapi.apply_manifest(entityapi.export_manifest()::jsonb || '[{"apiVersion": "entityapi/v1", "kind": "Entity",
		"metadata": {"name": "Deployed"}, "spec": {"fields": {"a": {"type": "string"}}}}]')})->{out}, 't', 'applied');
	is(as_deployer(q{select definition like '%"deployed"%' from entityapi.entity where name = 'Deployed'})->{out}, 't', 'and declared');
	is($cluster->psql(q{select count(*) > 0 from entityapi.apply_manifest((select jsonb_agg(d) from jsonb_array_elements(entityapi.export_manifest()::jsonb) d
		where d->'metadata'->>'name' <> 'Deployed'), allow_data_loss => '{Deployed}')}), 't', 'a superuser applies, too');
};

# Each damages the definition d of Person or of the service
my %damages = (
	entity => [
		q{d || '{"policies": [{"name": "x", "expression": "true"}]}'}, q{d || '{"policies": [{"name": "x", "expression": "true", "operations": [{}]}]}'},
		q{d || '{"policies": {"a": 1}}'}, q{d || '{"hooks": [{"name": "x", "phase": "guard", "schema": "s", "function": "f"}]}'},
		q{d || '{"permissions": [["read"]]}'}, q{d || '{"permissions": {"*": "read"}}'}, q{d || '{"permissions": {"*": [["read"]]}}'},
		q{d || '{"constraints": {"x": {}}}'}, q{d || '{"constraints": [[]]}'}, q{d || '{"fields": {"a": {}}}'}, q{d || '{"fields": [[]]}'},
		q{jsonb_set(d, '{fields}', jsonb_build_array(d->'fields'->0 || '{"enum": [{}]}'))},
		q{jsonb_set(d, '{fields}', jsonb_build_array(d->'fields'->0 || '{"readRoles": [[]]}'))},
		q{jsonb_set(d, '{fields}', '[{"name": "x", "kind": "toMany", "members": [{"entity": "Person", "type": "people", "column": "x"}]}]')},
		q{jsonb_set(d, '{fields}', '[{"name": "x", "kind": "manyToMany", "members": [{"entity": "Person", "type": "people", "column": "x"}]}]')},
		q{jsonb_set(d, '{fields}', '[{"name": "x", "kind": "oneOf", "members": [{"entity": "Person", "type": "people", "column": "x"}]}]')},
		q{jsonb_set(d, '{fields}', '[{"name": "x", "kind": "toOne", "members": {"entity": []}}]')}, q{'[]'}, q{'5'},
	],
	service => [
		q{d || '{"roles": [{}]}'}, q{d || '{"versions": [{"number": 1, "sunset": "2027-77-01"}]}'}, q{d || '{"versions": [{"number": 1, "sunset": "2027-00-01"}]}'},
		q{d || '{"versions": {"a": 1}}'}, q{d || '{"securityAttributes": [[]]}'}, q{d || '{"tenancy": "SINGLE"}'}
	]
);

for my $table (sort keys %damages)
{
	subtest "a damaged $table" => sub {
		my $which = $table eq 'entity' ? q{where name = 'Person'} : '';

		for my $damage (@{ $damages{$table} })
		{
			my $done = $cluster->try_psql("begin; update entityapi.$table t set definition = ($damage)::text from (select definition::jsonb as d from entityapi.$table $which) x $which;
				select entityapi.openapi(1) is null; select 'no fault' from (select entityapi.explain('GET', '/api/v1/people',
				'{\"userId\": \"u\", \"tenantId\": \"01980000-0000-7000-8000-000000000001\", \"roles\": [\"Admin\"]}') l) e where l = 'answer: 200'");

			unlike($done->{err}, qr/server closed|terminat/, "$damage crashes nothing");
			unlike($done->{out}, qr/no fault/, 'and is not worked with');
		}
	};
}

open my $log, '<', $cluster->log or die;
is(scalar(grep { /terminated by signal/ } <$log>), 0, 'no process has crashed');

done_testing();
