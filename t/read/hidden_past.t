# The past of what a caller may not see costs as much as that of nothing: the
# same statements, which read no record of it, however long its log and however
# large its values.  Limits tell no difference either.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
plan skip_all => 'counts of other nodes are not shown here' if $cluster->nodes > 1;
my $true = JSON::PP::true;
my @operations = qw(create read update delete history);
my $text = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } }, { kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Chief => undef } } },
	{ kind => 'Policy', metadata => { name => 'Far' }, spec => { expression => q{#record.region != 'far'} } },
	map { { kind => 'Entity', metadata => { name => $_->[0] }, spec => { permissions => { Chief => [ @operations, $_->[1] ? 'restore' : () ] }, policies => { Far => ['read'] },
				fields => { region => { type => 'string' }, note => { type => 'text' } }, $_->[1] ? (softDelete => $true) : () } } } [ Soft => 1 ], [ Hard => 0 ] ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$)");
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $user = $shim->user($tenant, 'cleo', ['Chief']);
my $who = EntityApi::Test::Cases->new($shim, $user, '/api/v1');

sub make { my ($type) = @_; return $who->good(201, POST => "/$type", data => { type => $type, attributes => { region => 'near', note => 'n' } })->{json}{data}{id} }

my %hidden = ('a row', [ softs => make('softs') ], 'a deleted row', [ softs => make('softs') ], 'a row that is gone', [ hards => make('hards') ]);
$who->good(204, DELETE => "/softs/$hidden{'a deleted row'}[1]");
$who->good(204, DELETE => "/hards/$hidden{'a row that is gone'}[1]");
is($shim->stop, 0, 'ends with 0');

# Logs that are long, and too large to be read by anybody
for my $name (sort keys %hidden)
{
	my ($type, $id) = @{ $hidden{$name} };

	$cluster->psql(<<~SQL);
		insert into entityapi.audit (id, at, tenant_id, action, outcome, target_type, target_id, changes, revision)
			select ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, now() - interval '1 hour' + i * interval '1 second', '$tenant', 'ENTITY_UPDATE', 'SUCCESS', '$type', '$id',
				json_build_object('note', json_build_array(repeat('a', 200000), repeat('b', 200000))), (select max(revision) from entityapi.revision)
			from generate_series(1, 400) i
		SQL
}
$cluster->psql("update app.soft set region = 'far'; analyze");

# The end of what is gone is told by its record, which says that it is hidden
my $gone = $hidden{'a row that is gone'}[1];
$cluster->psql(<<~SQL);
	insert into entityapi.audit (id, at, tenant_id, action, outcome, target_type, target_id, changes, revision)
		values ('ffffffff-0000-7000-8000-000000000000', now(), '$tenant', 'ENTITY_DELETE', 'SUCCESS', 'hards', '$gone', '{"region":["far",null],"note":["n",null]}', (select max(revision) from entityapi.revision))
	SQL
my $then = $cluster->psql(q{select to_char((now() - interval '30 minutes') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')});

sub cost
{
	my ($path) = @_;
	my $call = "entityapi.handle('GET', '/api/v1/$path', jsonb_build_object('authorization', 'Bearer $user->{accessToken}'), null, null)";
	my $told = $cluster->psql(<<~SQL);
		set entityapi.max_memory = '4MB';
		select status from $call;
		begin;
		select 'before ' || coalesce(sum(seq_tup_read), 0) + coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_all_tables where schemaname = 'entityapi' and relname ~ '^audit';
		select entityapi.statement_count() is null;
		select 'answer ' || status || ' ' || (body::json #>> '{errors,0,code}') from $call;
		select 'statements ' || entityapi.statement_count();
		select 'after ' || coalesce(sum(seq_tup_read), 0) + coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_all_tables where schemaname = 'entityapi' and relname ~ '^audit';
		rollback;
		SQL
	my %cost = $told =~ /^(answer|statements|before|after) (.*)$/mg;

	# what was counted before may not have been told of yet
	$cost{records} = $cost{after} - $cost{before};
	return \%cost;
}

my $absent = '01980000-0000-7000-8000-000000000000';
for my $what ('?asOf=2099-01-01T00:00:00Z', "?asOf=$then", '?asOf=2000-01-01T00:00:00Z', '/history', "/history?asOf=$then")
{
	my %nothing = map { $_ => cost("$_/$absent$what") } qw(softs hards);

	for my $name (sort keys %hidden)
	{
		my ($type, $id) = @{ $hidden{$name} };
		my $cost = cost("$type/$id$what");

		is($cost->{answer}, '404 NOT_FOUND', "$name$what");
		is($cost->{answer}, $nothing{$type}{answer}, 'as of nothing');
		if ($name =~ /gone/)
		{
			# to judge one row: its record is read, and asked about
			cmp_ok($cost->{records}, '<=', 9, 'some of the newest records') or diag explain $cost;
			cmp_ok($cost->{statements} - $nothing{$type}{statements}, '<=', 4, 'to judge the last one');
			next;
		}
		is($cost->{records}, 0, 'no record is read');
		is($cost->{statements}, $nothing{$type}{statements}, 'the same statements');
	}
}

done_testing;
