# A backend stays small: what requests leave behind is bounded.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('t1')->{id};
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');

$cluster->psql(<<"SQL");
insert into app.item (tenant_id, id, name, state, rank, price, moment, note, created_at, updated_at)
select '$tenant', ('01900000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'n' || i, 'OPEN', i % 50, i, now(), repeat('x', 2000), now(), now() from generate_series(1, 500) i;
analyze;
create table token as select '$editor->{token}{accessToken}' as access;

-- One request of a mix that never ends: 400 texts of lists, single resources,
-- writes, atomic operations, refusals, and cursors.
create function ask(n int) returns int language plpgsql as \$\$
declare
	id text := '01900000-0000-7000-8000-' || lpad((1 + n % 500)::text, 12, '0');
	method text := 'GET';
	target text;
	body text;
	kind text := 'application/vnd.api+json';
	answer record;
	sorts text[] := '{name,-name,rank,-rank,price,-price,moment,-moment,state,-state}';
begin
	case n % 10
		when 0 then target := '/items/' || id || '?include=group,labels';
		when 1 then target := '/items?sort=' || sorts[1 + n / 10 % 10] || ',' || case n / 100 % 2 when 0 then '' else '-' end || 'flag&page[size]=' || 1 + n % 37;
		when 2 then target := '/items?filter=rank==' || n % 50 || ';name=like=n1%25&include=labels';
		when 3 then target := '/items?page[after]=start&sort=' || sorts[1 + n / 10 % 10] || '&page[size]=' || 1 + n % 50;
		when 4 then
			method := 'POST'; target := '/items';
			body := '{"data": {"type": "items", "attributes": {"name": "m' || n || '", "note": "' || repeat('y', 3000) || '"}}}';
		when 5 then
			method := 'PATCH'; target := '/items/' || id;
			body := '{"data": {"type": "items", "id": "' || id || '", "attributes": {"rank": ' || n % 60 || '}}}';
		when 6 then target := '/items?filter=nothing==' || n;
		when 7 then target := '/nothing/' || n;
		when 8 then
			method := 'POST'; target := '/operations'; kind := 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
			select '{"atomic:operations": [' || string_agg('{"op": "add", "data": {"type": "labels", "attributes": {"word": "w' || i || '"}}}', ',') || ']}'
			into body from generate_series(1, 1 + n % 15) i;
		else target := '/labels?filter=word=in=(w1,w2)&page[size]=' || 1 + n % 50 || '&page[totals]=false';
	end case;
	select h.* into answer from token t, entityapi.handle(method, '/api/v1' || target, jsonb_strip_nulls(jsonb_build_object(
		'authorization', 'Bearer ' || t.access, 'accept', case when n % 10 = 8 then kind end, 'content-type', case when body is not null then kind end)), convert_to(body, 'UTF8'), null) h;
	return answer.status;
end
\$\$;
create function rss() returns bigint language sql as \$\$
	select (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'RssAnon:\\s+(\\d+)'))[1]::bigint
\$\$;
create function contexts() returns bigint language sql as 'select sum(total_bytes)::bigint / 1024 from pg_backend_memory_contexts';
create procedure ask_often(first int, last int) language plpgsql as \$\$
declare
	seen int[] := '{}';
	s int;
begin
	for i in first .. last loop
		s := ask(i);
		if s >= 500 then
			raise exception 'status % of request %', s, i;
		end if;
		seen[s] := coalesce(seen[s], 0) + 1;
		commit;
	end loop;
	raise notice 'seen % % % %', seen[200], seen[201], seen[400], seen[404];
end
\$\$;
SQL

subtest 'six thousand requests' => sub {
	my $result = $cluster->try_psql(<<'SQL');
set statement_timeout = 0;
select 'fresh', rss(), contexts();
call ask_often(1, 2000);
select 'warm', rss(), contexts();
call ask_often(2001, 6000);
select 'end', rss(), contexts();
SQL
	is($result->{status}, 0, 'run') or diag $result->{err};
	my %at = map { /^(\w+)\|(\d+)\|(\d+)$/ ? ($1 => [ $2, $3 ]) : () } split /\n/, $result->{out};
	my @seen = $result->{err} =~ /seen (\d+) (\d+) (\d+) (\d+)/;

	cmp_ok($_, '>', 100, 'of each kind of answer') for @seen;
	diag("anonymous memory: $at{fresh}[0], $at{warm}[0], $at{end}[0] kB; contexts $at{fresh}[1], $at{warm}[1], $at{end}[1] kB");
	cmp_ok($at{end}[0] - $at{fresh}[0], '<', 40 * 1024, 'less than 40 MB more than a fresh one');
	cmp_ok($at{end}[1] - $at{warm}[1], '<', 4 * 1024, 'and it does not go on so');
};

# Plans are what stays; where few are allowed, the others' memory is free.
subtest 'the plan cache' => sub {
	my $sizes = $cluster->psql(<<'SQL');
create function plans() returns text language sql as $$
	select count(*) || ' ' || sum(total_bytes)::bigint / 1024 from pg_backend_memory_contexts where name in ('CachedPlanSource', 'CachedPlan', 'CachedPlanQuery')
$$;
set entityapi.plan_cache_size = 256;
call ask_often(1, 4000);
select 'large ' || plans();
set entityapi.plan_cache_size = 8;
call ask_often(1, 50);
select 'small ' || plans();
SQL
	my ($large, $large_kb) = $sizes =~ /large (\d+) (\d+)/;
	my ($small, $small_kb) = $sizes =~ /small (\d+) (\d+)/;

	diag("plans: $large, $large_kb kB; with room for eight: $small, $small_kb kB");
	cmp_ok($large, '>', 250, 'many plans');
	cmp_ok($small, '<', $large / 4, 'few are kept');
	cmp_ok($small_kb, '<', $large_kb / 3, 'and the others\' memory is free');
};

done_testing;
