# What policies call, asked by a reader in ways of his own: beside processes
# that share a scan, and for something else with each row.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/t/data/entities");
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $ann = $shim->user($tenant, 'ann', ['Editor'], profile => { team => 'red' });
my $id = $shim->must(201, POST => '/api/v1/people', { token => $ann, json => { data => { type => 'people', attributes => { name => 'Ann' } } } })->{data}{id};

$cluster->psql(q{create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'ann');
	grant select on pg_backend_memory_contexts to bi; grant execute on function pg_get_backend_memory_contexts() to bi});

sub as_reader { return $cluster->try_psql($_[0], user => 'bi') }

# Parallel mode is that of the statement, whatever it calls
my ($parallel) = grep { $cluster->psql("select count(*) from pg_settings where name = '$_'") == 1 } qw(debug_parallel_query force_parallel_mode);
for my $call ("entityapi.caller_sees('Person', '$id')", "entityapi.caller_reads('Person')", "entityapi.current_tenant() = '$tenant'",
	"entityapi.caller_text('profile', 'team') = 'red'", "entityapi.readable_tenant('Person') = '$tenant'", '(select count(*) = 1 from app.person)')
{
	my $result = as_reader("set $parallel = on; select $call");

	is($result->{out}, 't', "$call in parallel mode") or diag $result->{err};
}

# What is asked for is not kept
sub kept
{
	my ($rows) = @_;

	return as_reader(qq{select count(entityapi.caller_text('profile', 'no' || g)), count(entityapi.caller_texts('roles', case when g < 0 then '' end)),
			count(entityapi.caller_text('profile', case when g > 0 then 'team' end)) from generate_series(1, $rows) g;
		select sum(total_bytes) from pg_backend_memory_contexts where name = 'entityapi caller'})->{out};
}

like(kept(1), qr/^0\|1\|1\n\d+$/, 'answers');
my ($few, $many) = map { (split /\n/, kept($_))[1] } 1, 20_000;
is($many, $few, 'as much memory for one row as for thousands');

done_testing();
