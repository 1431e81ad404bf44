# A tenant that ANALYZE has met no row of is expected to have one, so that LIMIT
# saves nothing in the planner's eyes, and a plan for the values at hand sorts all
# of them.  A plan in the order of an index is kept instead where it never reads
# more, or else one whose index answers the filter, counted in rows and pages
# beside plans for the values and plans for any; else, for a tenant of any size,
# what was planned for the values stays.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

use constant STOPS => 4000;

my $cluster = EntityApi::Test->cluster(conf => [ "shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track = 'all'", 'autovacuum = off', 'jit = off' ]);
my $shim = EntityApi::Test->shim($cluster);

# Parcels are deleted softly: what is hidden is a filter of each statement.  An index
# of customers answers a filter by region, but all of a tenant's entries are asked.
# Stops are so few that all of their indexes have the same height, and the same cost;
# they lie in the order of their names, and in no order of an index by region and rank.
$cluster->psql(<<'SQL');
create extension pg_stat_statements;
select count(*) from entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "unseen"}, "spec": {"tenancy": "POOL"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Reader": {"description": "reads"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Customer"}, "spec": {"permissions": {"Reader": ["read"]}, "indexes": [["name", "region"]], "fields": {
		"name": {"type": "string", "required": true, "index": true}, "region": {"type": "string", "index": true}, "rank": {"type": "integer"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Parcel"}, "spec": {"permissions": {"Reader": ["read"]}, "softDelete": true, "fields": {
		"name": {"type": "string", "required": true, "index": true}, "region": {"type": "string", "index": true}, "rank": {"type": "integer"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Stop"}, "spec": {"permissions": {"Reader": ["read"]}, "indexes": [["region", "rank"]], "fields": {
		"name": {"type": "string", "required": true, "index": true}, "region": {"type": "string", "index": true}, "rank": {"type": "integer"}}}}]');
create index north on app.stop (tenant_id, region, rank) where region = 'NORTH';
SQL

my @tenants = qw(large larger largest small grown);
my %tenant = map { $_ => $shim->tenant("of-$_")->{id} } @tenants;
my %user = map { $_ => $shim->user($tenant{$_}, "user-$_", ['Reader'])->{accessToken} } @tenants;

# one in 2000 is in a region of few, and has a rank of few
sub fill
{
	my ($name, $rows) = @_;
	my %rows = (customer => $rows, parcel => $rows, stop => $rows > STOPS ? STOPS : $rows);

	$cluster->psql("insert into app.$_ (tenant_id, id, name, region, rank, created_at, updated_at)
		select '$tenant{$name}', gen_random_uuid(), 'c' || lpad((case '$_' when 'stop' then i else i * 7919 % $rows{$_} end)::text, 6, '0'), case when i % 2000 = 17 then 'RARE' else (array['EAST', 'WEST'])[1 + i % 2] end,
			case when i % 2000 = 17 then 100000 else i % 100 end, now(), now() from generate_series(1, $rows{$_}) i") for keys %rows;
	return;
}

fill($_, 20_000) for qw(large larger largest);
$cluster->psql('vacuum analyze');
fill(small => 100);
fill(grown => 20_000);
is($cluster->psql("select string_agg(distinct coalesce(array_length(most_common_vals, 1), 0) || ' ' || n_distinct, ';') from pg_stats where schemaname = 'app' and attname = 'tenant_id'"),
	'3 3', 'two tenants are not in the statistics');

$cluster->psql(<<'SQL');
create function visited() returns bigint language sql as
$$ select sum(pg_stat_get_xact_tuples_returned(oid))::bigint from pg_class where relkind in ('r', 'i') and relnamespace = 'app'::regnamespace $$;
create function touched() returns bigint language sql as
$$ select sum(shared_blks_hit + shared_blks_read)::bigint from pg_stat_statements where query ~ 'FROM app\.' $$;
create function ask(token text, target text, n int) returns text language plpgsql as $$
declare
	answer record;
	rows bigint;
	pages bigint;
begin
	for i in 1 .. n loop
		rows := visited();
		pages := touched();
		select h.status, h.body into answer from entityapi.handle('GET', '/api/v1' || target, jsonb_build_object('authorization', 'Bearer ' || token), null, null) h;
		if answer.status <> 200 then
			raise exception 'status %', answer.status;
		end if;
	end loop;
	return format('%s %s %s', visited() - rows, touched() - coalesce(pages, 0), md5(answer.body));
end
$$;
SQL

# What the last request of each [tenant, target, times] has read, in one session
sub asked
{
	my ($mode, @asked) = @_;
	my @seen = split /\n/, $cluster->psql("set plan_cache_mode = $mode;\n" . join '', map { "select ask('$user{ $_->[0] }', '$_->[1]', $_->[2]);\n" } @asked);

	return map { my %seen; @seen{qw(rows pages answer)} = split / /; \%seen } @seen;
}

# The same by the plan that is kept, by one for the values and by one for any
sub compare
{
	my ($tenant, $target, @before) = @_;
	my @all = map { (asked($_, @before, [ $tenant, $target, 12 ]))[-1] } qw(auto force_custom_plan force_generic_plan);

	is($all[0]{answer}, $all[1]{answer}, "$tenant, $target: the same answer");
	return @all;
}

my @lists = map { "/$_?fields[$_]=name&page[totals]=false" } qw(customers parcels stops);

sub cursor
{
	my ($tenant, $target) = @_;

	return $shim->http(GET => "/api/v1$target&page[after]=start", { token => $user{$tenant} })->{json}{meta}{pagination}{after};
}

subtest 'a page is read, not all rows' => sub {
	my $list = $lists[0];

	for my $tenant ('small', 'grown')
	{
		my @targets = map { "$list&$_" } 'sort=name', 'sort=-name', 'sort=name&page[after]=start', 'sort=-name&page[after]=start',
		  'sort=name&page[after]=' . cursor($tenant, "$list&sort=name"), 'sort=-name&page[after]=' . cursor($tenant, "$list&sort=-name"),
		  'sort=name&page[number]=2';

		for my $target (@targets)
		{
			my ($kept, $own, $any) = compare($tenant, $target);

			cmp_ok($kept->{rows}, '<=', 42, "$tenant, $target: $kept->{rows} rows, $own->{rows} by a plan for the values");
			cmp_ok($kept->{rows}, '<=', $any->{rows}, "$tenant, $target: $any->{rows} by a plan for any");
		}
	}
};

# Of indexes that cost the same the planner takes that of the order, by which it
# sorts all the same; from 17 on it may read in that order, until the page is full.
subtest 'what a filter leaves is sorted, not all rows' => sub {
	my ($server) = qx(@{[EntityApi::Test::server_program('postgres')]} --version) =~ /(\d+)/;
	my %left = (small => { EAST => 50, RARE => 1 }, grown => { EAST => STOPS / 2, RARE => 2 });

	for my $tenant ('small', 'grown')
	{
		for my $region ('EAST', 'RARE')
		{
			my ($kept, $own) = compare($tenant, "$lists[2]&sort=name&filter=region==$region");

			cmp_ok($kept->{rows}, '<=', $server < 17 ? $left{$tenant}{$region} : $own->{rows},
				"$tenant, $region: $kept->{rows} rows, $own->{rows} by a plan for the values");
			cmp_ok($kept->{pages}, '<=', $own->{pages} + 5, "$tenant, $region: $kept->{pages} pages, $own->{pages} by a plan for the values");
		}
	}
};

subtest 'where many are equal, these, not all' => sub {
	my ($kept, $own) = compare('grown', "$lists[0]&sort=region");

	# from 17 on the plan for the values does not sort all of them either
	cmp_ok($kept->{rows}, '<=', 0.51 * 20_000, "$kept->{rows} rows, $own->{rows} by a plan for the values");
};

# What the index of the order does not answer: small ones come first, who are in
# the class of the one that has grown, and find plans.
subtest 'no tenant gets a plan that reads more than its own' => sub {
	for my $list (@lists)
	{
		for my $target (map { "$list&$_" } 'sort=name&filter=region==RARE', 'sort=name&filter=rank==100000', 'sort=-name&filter=rank==100000&page[after]=start',
			'sort=name&filter=region==EAST', 'sort=rank,name', 'sort=region', 'sort=name')
		{
			for my $tenant ('small', 'grown', 'large')
			{
				my ($kept, $own, $any) = compare($tenant, $target, map { [ $_, $target, 12 ] } 'small', 'large', 'small');

				cmp_ok($kept->{rows}, '<=', $own->{rows}, "$tenant, $target: $kept->{rows} rows of $own->{rows}, $any->{rows} by a plan for any");
				cmp_ok($kept->{pages}, '<=', 1.1 * $own->{pages} + 6, "$tenant, $target: $kept->{pages} pages of $own->{pages}, $any->{pages} by a plan for any");
			}
		}
	}
};

done_testing;
