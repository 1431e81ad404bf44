# What the history of a resource costs follows from its own records: in a long
# log they are found by an index, in every month, and nothing else is read.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my %roles = (Chief => [qw(create read update delete history)]);
my $text = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } }, { kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Chief => undef } } },
	{ kind => 'Policy', metadata => { name => 'Far' }, spec => { expression => q{#record.region != 'far'} } },
	{ kind => 'Entity', metadata => { name => 'Open' }, spec => { permissions => \%roles, fields => { region => { type => 'string' }, n => { type => 'integer' } } } },
	{ kind => 'Entity', metadata => { name => 'Ruled' }, spec => { permissions => \%roles, policies => { Far => ['read'] }, fields => { region => { type => 'string' }, n => { type => 'integer' } } } } ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$)");
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $user = $shim->user($tenant, 'cleo', ['Chief']);
my $who = EntityApi::Test::Cases->new($shim, $user, '/api/v1');
my %id = map { $_ => $who->good(201, POST => "/$_", data => { type => $_, attributes => { region => 'near', n => 0 } })->{json}{data}{id} } qw(opens ruleds);

for my $type (sort keys %id)
{
	$who->good(200, PATCH => "/$type/$id{$type}", data => { type => $type, id => $id{$type}, attributes => { n => $_ } }) for 1 .. 9;
}
is($shim->stop, 0, 'ends with 0');

# Others' records, by the thousand for each day
$cluster->psql(<<~SQL);
	select entityapi.extend_audit(date_trunc('month', now()) - i * interval '1 month', 0) from generate_series(0, 3) i;
	insert into entityapi.audit (id, at, tenant_id, actor_id, actor_kind, actor_username, action, outcome, target_type, target_id, changes, revision)
		select gen_random_uuid(), date_trunc('month', now()) - interval '3 months' + i * interval '2.7 minutes', '$tenant', '$user->{id}', 'USER', 'cleo', 'ENTITY_UPDATE',
			case when i % 97 = 0 then 'DENIED' else 'SUCCESS' end, 'opens', md5((i % 6000)::text)::uuid::text, '{"n":[1,2]}', 1
		from generate_series(1, 60000) i;
	analyze;
	SQL

my $scans = <<~'SQL';
	select coalesce(sum(seq_scan), 0) || ' ' || coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_all_tables s join pg_class c on c.oid = s.relid
	where s.schemaname = 'entityapi' and c.relname ~ '^audit' and c.reltuples > 100
	SQL

for my $type (sort keys %id)
{
	# all records without their changes; those that are shown; changes of all where policies ask what it was; or none
	my $states = $type eq 'ruleds' ? 10 : 0;
	for (['/history', 10 + 10 + $states], [ '/history?page[size]=2', 10 + 2 + $states ], [ '?asOf=2099-01-01T00:00:00Z', 0 ])
	{
		my ($what, $all) = @$_;
		my $told = $cluster->psql("begin; select status || ' ' || length(body) from entityapi.handle('GET', '/api/v1/$type/$id{$type}$what', "
			. "jsonb_build_object('authorization', 'Bearer $user->{accessToken}'), null, null); $scans; rollback");
		my ($status, $length, $seq, $fetched) = $told =~ /(\d+)/g;

		is($status, 200, "$type$what") or diag $told;
		is($seq, 0, 'goes by indexes');
		cmp_ok($fetched, '==', $all, 'and fetches what is about the resource');
	}
}

done_testing;
