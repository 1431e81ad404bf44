# Plans where tenants are of unequal size, counted by pg_stat_statements: hardly
# any request is planned, each class of tenants is read by the plan that suits
# it, and what makes a plan unfit has it made anew.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(conf =>
	  [ "shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track = 'all'", 'pg_stat_statements.track_planning = on', 'jit = off' ]);
my $shim = EntityApi::Test->shim($cluster);

$cluster->psql(<<'SQL');
create extension pg_stat_statements;
select count(*) from entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "sizes"}, "spec": {"tenancy": "POOL"}},
	{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Reader": {"description": "reads"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Customer"}, "spec": {"permissions": {"Reader": ["read"]}, "fields": {
		"name": {"type": "string", "required": true, "index": true}, "region": {"type": "string", "index": true}, "rank": {"type": "integer", "index": true}}}}]');
SQL

my @sizes = (10, 100, 1000, 60_000);
my @users = map {
	my $tenant = $shim->tenant("of-$_")->{id};

	# one in 5000 is in a region of few, and has a rank of few
	$cluster->psql("insert into app.customer (tenant_id, id, name, region, rank, created_at, updated_at)
		select '$tenant', gen_random_uuid(), 'c' || lpad((i * 7919 % $_)::text, 6, '0'), case when i % 5000 = 17 then 'RARE' else (array['EAST', 'WEST'])[1 + i % 2] end,
			case when i % 5000 = 17 then 100000 else i % 100 end, now(), now() from generate_series(1, $_) i");
	$shim->user($tenant, "user-$_", ['Reader'])->{accessToken};
} @sizes;

$cluster->psql(<<"SQL");
vacuum analyze;
create procedure ask(target text, first int, last int) language plpgsql as \$\$
declare
	tokens text[] := '{@{[join ',', @users]}}';
	answer int;
begin
	for i in first .. last loop
		for k in 1 .. array_length(tokens, 1) loop
			select h.status into answer from entityapi.handle('GET', '/api/v1' || replace(target, '%', (40 + i % 20)::text),
				jsonb_build_object('authorization', 'Bearer ' || tokens[k]), null, null) h;
			if answer <> 200 then
				raise exception 'status %', answer;
			end if;
			commit;
		end loop;
	end loop;
end
\$\$;
create procedure ask_one(k int, target text, n int) language plpgsql as \$\$
declare
	answer int;
	tokens text[] := '{@{[join ',', @users]}}';
begin
	for i in 1 .. n loop
		select h.status into answer from entityapi.handle('GET', '/api/v1' || target, jsonb_build_object('authorization', 'Bearer ' || tokens[k]), null, null) h;
		if answer <> 200 then
			raise exception 'status %', answer;
		end if;
		commit;
	end loop;
end
\$\$;
create function seen() returns text language sql as \$\$
	select 'seen ' || sum(plans) || ' ' || sum(calls) || ' ' || sum(shared_blks_hit + shared_blks_read) || ' ' || sum(rows)
	from pg_stat_statements where query ~ 'FROM app\\.customer'
\$\$;
create function begin_again() returns void language sql as 'select pg_stat_statements_reset()';
SQL

my $list = '/customers?fields[customers]=name&page[totals]=false';

# Plans, runs and pages of each part of a session that ends with seen()
sub parts
{
	my ($sql) = @_;
	my $out = $cluster->psql($sql);
	my @seen;

	push @seen, { plans => $1, runs => $2, pages => $3, rows => $4 } while $out =~ /^seen (\d+) (\d+) (\d+) (\d+)$/mg;
	return @seen;
}

subtest 'hardly any request is planned' => sub {
	my %lists = (
		'a filter of many'   => "$list&sort=name&filter=region==EAST",
		'a filter of few'    => "$list&sort=name&filter=region==RARE",
		'pages by cursor'    => "$list&sort=-name&page[after]=start",
		'values of all kinds' => "$list&sort=name&filter=rank=lt=%",
		'lists of values'    => "$list&sort=-name&filter=region=in=(EAST,WEST)");

	for my $name (sort keys %lists)
	{
		my ($seen) = parts("call ask('$lists{$name}', 1, 60); select begin_again(); call ask('$lists{$name}', 60, 459); select seen()");

		is($seen->{runs}, 1600, "$name: runs");
		cmp_ok($seen->{plans}, '<=', 16, "at most one of 100 planned: $seen->{plans}");
		for my $k (1 .. @sizes)
		{
			my $target = $lists{$name} =~ s/%/50/r;
			my ($alone) = parts("call ask_one($k, '$target', 60); select begin_again(); call ask_one($k, '$target', 400); select seen()");

			cmp_ok($alone->{plans}, '<=', 4, "$name, $sizes[$k - 1] rows alone: $alone->{plans}");
		}
	}
};

# The better of two for each tenant, alone, and all of them side by side.
subtest 'each reads what its own plan reads' => sub {
	for my $target ("$list&sort=name&filter=region==EAST", "$list&sort=name&filter=region==RARE", "$list&sort=name&page[after]=start")
	{
		for my $k (1 .. @sizes)
		{
			my @alone = map { (parts("set plan_cache_mode = $_; call ask_one($k, '$target', 10); select begin_again(); call ask_one($k, '$target', 10); select seen()"))[0]{pages} }
			  'force_generic_plan', 'force_custom_plan';
			my ($beside) = parts("call ask('$target', 1, 40); select begin_again(); call ask_one($k, '$target', 10); select seen()");

			# an index in order may be one level higher than that of a plan which sorts
			cmp_ok($beside->{pages}, '<=', 1.1 * $alone[1] + 10, "$target, $sizes[$k - 1] rows: $beside->{pages} pages; @alone by any plan, and by its own");
		}
	}
};

# Values of a filter are all in one class, whatever they match.
subtest 'values of a filter' => sub {
	my %filters = (
		equality => [ 'region==EAST',          'region==RARE' ],
		range    => [ 'rank=gt=50',            'rank=gt=99' ],
		list     => [ 'region=in=(EAST,WEST)', 'region=in=(RARE,RARER)' ],
		pattern  => [ 'region=like=%25ST',     'region=like=%25ARE' ]);

	for my $name (sort keys %filters)
	{
		my ($common, $rare) = map { "$list&sort=name&filter=$_" } @{ $filters{$name} };
		my $turn = "call ask_one(4, '$common', 9); call ask_one(4, '$rare', 1);";

		# most ask for many; who asks for few must not walk all for ever
		my ($own, $first, $later, $own_turns, $turns) = parts(<<"SQL");
set plan_cache_mode = force_custom_plan; call ask_one(4, '$rare', 5);
select begin_again(); call ask_one(4, '$rare', 10); select seen();
reset plan_cache_mode; call ask_one(4, '$common', 40);
select begin_again(); call ask_one(4, '$rare', 1); select seen();
select begin_again(); call ask_one(4, '$rare', 10); select seen();
set plan_cache_mode = force_custom_plan; select begin_again(); @{[$turn x 10]} select seen();
reset plan_cache_mode; @{[$turn x 20]} select begin_again(); @{[$turn x 10]} select seen();
SQL
		cmp_ok($first->{pages}, '>', $own->{pages}, "$name: a plan for many was kept: $first->{pages} pages");
		cmp_ok($later->{pages}, '<=', 1.1 * $own->{pages}, "$name: and is no more: $later->{pages} of $own->{pages}");
		cmp_ok($turns->{pages}, '<=', 1.1 * $own_turns->{pages} + 10, "$name: nor in turns: $turns->{pages} of $own_turns->{pages}");
	}
};

# What takes too long has an error for an end, which must not be all of it.
subtest 'a run that is cut off' => sub {
	my $common = "$list&sort=-name&filter=rank=gt=50";
	my $rare = "$list&sort=-name&filter=rank=gt=99";
	my $headers = qq({"authorization": "Bearer $users[3]"});

	# where a request takes longer, a limit may be met before the statement: not always
	my $cut = join '', map { "set statement_timeout = $_; select from entityapi.handle('GET', '/api/v1$rare', '$headers', null, null); reset statement_timeout;\n" } (1, 2, 4, 8) x 10;
	my ($after) = parts(<<"SQL");
call ask_one(4, '$common', 40); select begin_again();
\\set ON_ERROR_STOP off
$cut
\\set ON_ERROR_STOP on
select begin_again(); call ask_one(4, '$rare', 10); select seen();
SQL
	cmp_ok($after->{pages}, '<=', 1.1 * 140, "others are planned: $after->{pages} pages");
};

subtest 'what outdates a plan' => sub {
	my $target = "$list&sort=name&filter=region==EAST";
	my ($before, $without, $with) = parts(<<"SQL");
call ask_one(4, '$target', 20); select begin_again(); call ask_one(4, '$target', 10); select seen();
set client_min_messages = error; drop index app.customer__name_idx; call ask_one(4, '$target', 20); select begin_again(); call ask_one(4, '$target', 10); select seen();
create index customer__name_idx on app.customer (tenant_id, name); call ask_one(4, '$target', 20); select begin_again(); call ask_one(4, '$target', 10); select seen();
SQL
	cmp_ok($without->{pages}, '>', 5 * $before->{pages}, "an index that goes: $before->{pages}, $without->{pages} pages");
	cmp_ok($with->{pages}, '<=', 1.1 * $before->{pages} + 10, "and comes: $with->{pages}");
	is($_->{plans}, 0, 'kept again') for $before, $without, $with;

	# a tenant grows
	my ($small, $grown) = parts(<<"SQL");
call ask_one(1, '$target', 20); select begin_again(); call ask_one(1, '$target', 10); select seen();
insert into app.customer (tenant_id, id, name, region, rank, created_at, updated_at)
	select tenant_id, gen_random_uuid(), 'd' || i, 'EAST', 1, now(), now() from (select tenant_id from app.customer group by 1 order by count(*) limit 1) t, generate_series(1, 30000) i;
analyze app.customer;
call ask_one(1, '$target', 20); select begin_again(); call ask_one(1, '$target', 10); select seen();
SQL
	is($_->{plans}, 0, 'kept') for $small, $grown;
	cmp_ok($grown->{pages}, '<', 10 * 60, "and reads a page of them, not all: $grown->{pages} pages");
};

done_testing;
