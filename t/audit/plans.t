# GET /manage/audit goes by an index whatever it is asked, in every month, and
# what it says is what a plain look at the log says.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($acme, $other) = map { $shim->tenant($_)->{id} } qw(acme other);
my $boss = $shim->user($acme, 'boss', []);
$shim->must(204, POST => "/manage/tenants/$acme/tenant-admins/$boss->{id}", { token => $root });

# Three months; most of it of others, some things rare
$cluster->psql(<<~SQL);
	select entityapi.extend_audit(date_trunc('month', now()) - i * interval '1 month', 0) from generate_series(0, 3) i;
	insert into entityapi.audit (id, at, tenant_id, actor_id, actor_kind, actor_username, action, outcome, target_type, target_id,
			changes, request_id, ip)
		select ('018f0000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid,
			date_trunc('month', now()) - interval '3 months' + i / 2 * interval '6 minutes',
			case when i % 7 = 0 then null when i % 3 = 0 then '$acme'::uuid else '$other' end,
			case when i % 11 = 0 then null when i % 5 = 0 then '$boss->{id}' else 'actor' || i % 97 end, 'USER', 'x',
			case when i % 4999 = 0 then 'TENANT_DELETED' when i % 4 = 0 then 'ENTITY_CREATE' else 'ENTITY_UPDATE' end,
			case when i % 301 = 0 then 'FAILURE' when i % 101 = 0 then 'DENIED' else 'SUCCESS' end,
			case when i % 4001 = 0 then 'rarities' when i % 13 = 0 then null else 'invoices' end, 'target' || i % 1009,
			'{"a":["something","else"]}', 'request' || i, '192.0.2.1'
		from generate_series(1, 40000) i;
	SQL

# One of the months has an index by action of all records, as before 1.2
$cluster->psql(<<~'SQL');
	do $$
	declare
		month text := to_char(date_trunc('month', now() at time zone 'UTC') - interval '2 months', '"audit_"YYYY_MM');
	begin
		execute format('drop index entityapi.%I', month || '_action_at_id_idx');
		execute format('create index on entityapi.%I (action, at, id)', month);
	end $$;
	analyze;
	SQL

my ($early, $late) = split /\|/, $cluster->psql("select to_char(date_trunc('month', now()) - interval '80 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
	. " to_char(date_trunc('month', now()) - interval '20 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");

# Filters, and what they mean in SQL
my %column = (tenantId => 'tenant_id', actorId => 'actor_id', action => 'action', outcome => 'outcome', targetType => 'target_type',
	targetId => 'target_id', requestId => 'request_id');
my %known = (tenantId => [ $acme, '00000000-0000-4000-8000-000000000000' ], actorId => [ 'actor5', $boss->{id}, 'nobody' ],
	action => [ 'ENTITY_UPDATE', 'TENANT_DELETED', 'NOTHING' ], outcome => [qw(SUCCESS DENIED FAILURE)], targetType => [qw(invoices rarities none)],
	targetId => [qw(target7 none)], requestId => [qw(request4321 none)]);
my @filters = ([ '', 'true' ]);
for my $name (sort keys %column)
{
	my $column = $column{$name};
	my @values = @{ $known{$name} };
	push @filters, map { [ "$name==$_", "$column = '$_'" ], [ "$name!=$_", "$column <> '$_'" ] } @values;
	push @filters, [ "$name=in=(@{[ join ',', @values ]})", "$column in (@{[ join ',', map { qq('$_') } @values ]})" ],
	  [ "$name=out=($values[0],$values[-1])", "$column not in ('$values[0]', '$values[-1]')" ],
	  [ "$name=isnull=true", "$column is null" ], [ "$name=isnull=false", "$column is not null" ];
	push @filters, [ "$name=gt=$values[0]", "$column > '$values[0]'" ], [ "$name=le=$values[0]", "$column <= '$values[0]'" ],
	  [ "$name=like=%25" . substr($values[-1], 2), "$column like '%" . substr($values[-1], 2) . "'" ],
	  [ "$name=ilike=%25" . lc substr($values[-1], 2), "$column ilike '%" . substr($values[-1], 2) . "'" ] if $name ne 'tenantId';
}
push @filters, map { [ "at=$_->[0]=$late", "at $_->[1] '$late'" ] } [ lt => '<' ], [ le => '<=' ], [ gt => '>' ], [ ge => '>=' ];
push @filters, [ "at==$late", "at = '$late'" ], [ "at!=$late", "at <> '$late'" ], [ "at=lt=2001-01-01T00:00:00Z", 'false' ],
  [ 'at=isnull=true', 'false' ], [ 'at=isnull=false', 'true' ];

# Pairs: each drives with each as the rest, with and without a time, and in OR
my @some = grep { $_->[0] =~ /^(?:tenantId|actorId|action|outcome|targetType|targetId|requestId)==/ && $_->[0] !~ /0000-4000|none|nobody/ } @filters;
for my $i (grep { $_ % 3 == 0 } 0 .. $#some)
{
	my ($x, $y) = ($some[$i], $some[ ($i * 5 + 3) % @some ]);
	push @filters, [ "$x->[0];$y->[0]", "$x->[1] and $y->[1]" ], [ "($x->[0],$y->[0])", "($x->[1] or $y->[1])" ],
	  [ "at=ge=$early;$x->[0];at=lt=$late", "at >= '$early' and $x->[1] and at < '$late'" ],
	  [ "$x->[0];at=gt=$early;$y->[0];targetType!=none", "$x->[1] and at > '$early' and $y->[1] and target_type <> 'none'" ];
}

# Some pages in one transaction: ids, and sequential scans of months with records
$cluster->psql(<<'SQL');
	create table public.found (id uuid, n serial);
	create function public.walk(filter text, size int, bearer text, out pages int, out scans bigint) language plpgsql as $$
	declare
		answer record;
		body jsonb;
		after text := '';
	begin
		delete from public.found;
		pages := 0;
		loop
			select * into answer from entityapi.handle('GET', '/manage/audit?page[size]=' || size || case when filter > '' then '&filter=' || filter else '' end
				|| after, jsonb_build_object('authorization', 'Bearer ' || bearer), null, null);
			if answer.status <> 200 then raise exception '% %', filter, answer.body; end if;
			body := answer.body::jsonb;
			pages := pages + 1;
			insert into public.found (id) select (r->>'id')::uuid from jsonb_array_elements(body->'data') r;
			exit when pages >= 4 or body->'meta'->'page'->>'after' is null;
			after := '&page[after]=' || (body->'meta'->'page'->>'after');
		end loop;
		select coalesce(sum(seq_scan), 0) into scans from pg_stat_xact_all_tables s join pg_class c on c.oid = s.relid
			where c.relname ~ '^audit' and c.reltuples > 1000;
	end $$;
SQL

my %caller = (SuperAdmin => [ $root, 'true' ], TenantAdmin => [ $boss, "tenant_id = '$acme'" ]);
for my $who (sort keys %caller)
{
	my ($token, $scope) = @{ $caller{$who} };

	subtest $who => sub {
		for my $case (@filters)
		{
			my ($filter, $where) = @$case;
			my ($name) = ($filter || 'no filter');
			my $limited = ($filter ? "$filter;" : '') . "at=lt=$late";
			my $expected = "select id, row_number() over (order by at desc, id desc) as n from entityapi.audit where $scope and at < '$late' and ($where)";
			my ($pages, $scans, $right, $all) = split /\|/, $cluster->psql("begin; create temp table w as select * from"
				. " public.walk('$limited', 100, '$token->{accessToken}');"
				. " create temp table expected as $expected;"
				. " select w.pages, w.scans, (select array_agg(id order by n) from public.found) is not distinct from"
				. " (select array_agg(id order by n) from expected where n <= (select count(*) from public.found)),"
				. " w.pages >= 4 or (select count(*) from public.found) = (select count(*) from expected) from w; rollback");
			is($scans, 0, "$name: goes by indexes");
			is($right, 't', "$name: the right records, in order");
			is($all, 't', "$name: to the last");
		}
	};
}

# Ids that clients choose: others can put as many records there as they like
$cluster->psql(<<~SQL);
	insert into entityapi.audit (id, at, tenant_id, actor_id, actor_kind, action, outcome, target_type, target_id, request_id)
		select ('018e0000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, date_trunc('month', now()) - interval '1 day' - i * interval '1 s',
			case when i % 20000 = 0 then '$acme'::uuid else '$other' end, 'x', 'USER', 'ENTITY_UPDATE', 'DENIED', 'invoices', 'crowded', 'crowded'
		from generate_series(1, 60000) i;
	analyze;
	create function public.fetched(filter text, bearer text, out n bigint, out own bigint) language plpgsql as \$\$
	declare
		answer record;
	begin
		select * into answer from entityapi.handle('GET', '/manage/audit?filter=' || filter, jsonb_build_object('authorization', 'Bearer ' || bearer), null, null);
		select jsonb_array_length(answer.body::jsonb->'data') into own;
		select sum(idx_tup_fetch) into n from pg_stat_xact_all_tables where relname ~ '^audit';
	end \$\$;
	SQL
for my $filter ('targetId==crowded', 'requestId==crowded', 'requestId==crowded;targetId==crowded')
{
	my ($n) = split /\|/, $cluster->psql("select * from public.fetched('$filter', '$boss->{accessToken}')");
	cmp_ok($n, '<', $filter =~ /requestId/ ? 130_000 : 40_000, "$filter: a TenantAdmin does not wait for others' records");
	my $found = $cluster->psql("begin; create temp table w as select * from public.walk('$filter;at=ge=$early', 2, '$boss->{accessToken}');"
		. ' select count(*) from public.found; rollback');
	cmp_ok($found, '<=', 3, "$filter: nothing but the tenant's");
	my $expected = "select id from entityapi.audit where tenant_id = '$acme' and target_id = 'crowded' order by at desc, id desc";
	my ($after, @ids) = ('');
	for (1 .. 100)
	{
		my $page = $shim->must(200, GET => "/manage/audit?page[size]=2&filter=$filter$after", { token => $boss });
		push @ids, map { $_->{id} } @{ $page->{data} };
		last unless defined $page->{meta}{page}{after};
		$after = "&page[after]=$page->{meta}{page}{after}";
	}
	is_deeply(\@ids, [ split /\n/, $cluster->psql($expected) ], "$filter: all of it, in order");
	my ($all, $shown) = split /\|/, $cluster->psql("select * from public.fetched('$filter', '$root->{accessToken}')");
	cmp_ok($all, '<', $filter =~ /requestId/ ? 61_000 : 1000, "$filter: a SuperAdmin's page costs no more than it must");
	cmp_ok($shown, '>', 0, "$filter: and shows something");
}

done_testing;
