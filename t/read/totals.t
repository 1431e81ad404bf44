# Totals of lists are counted on an index: they are exact whatever happened to
# the rows, and while it happens.

use strict;
use warnings;

use JSON::PP ();
use Test::More;
use Time::HiRes ();

use EntityApi::Test;
use EntityApi::Test::Cases;

my $seconds = $ENV{ENTITYAPI_TOTALS_SECONDS} || 2;

my $cluster = EntityApi::Test->cluster(conf => [ 'entityapi.direct_scans = on', 'autovacuum = off', 'entityapi.access_token_ttl = 3600' ]);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant("t$_") } 1 .. 3;
my $tenant = $tenants[1]{id};
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');
my $reader = $editor->as($shim->user($tenant, 'rea', ['Reader']));

# In one statement and, being stable, in one snapshot: what the service says and what
# PostgreSQL says.  Rows of tenant lie between those of two others.
$cluster->psql(<<"SQL");
create table token (name text, access text);
insert into token values ('ed', '$editor->{token}{accessToken}'), ('rea', '$reader->{token}{accessToken}');
create function total(target text, who text default 'ed') returns bigint language sql stable as \$\$
	select (h.body::jsonb->'meta'->'pagination'->>'totalRecords')::bigint
	from token t, entityapi.handle('GET', '/api/v1/' || target
		|| case when target ~ '[?]' then '&' else '?' end || 'page[size]=1',
		jsonb_build_object('authorization', 'Bearer ' || t.access), null, null) h
	where t.name = who and h.status = 200
\$\$;
create function way(target text, roles text default '["Editor"]') returns text language sql as \$\$
	select coalesce(string_agg(x, ';'), 'statement') from entityapi.explain('GET', '/api/v1/' || target,
		format('{"kind": "USER", "userId": "01900000-0000-7000-8000-000000000001", "username": "x", "roles": %s, "tenantId": "$tenant"}', roles)::jsonb) x
	where x like 'count:%'
\$\$;
create function any_id() returns uuid language sql volatile as \$\$ select gen_random_uuid() \$\$;
create view tenants as select * from (values (1, '$tenants[0]{id}'::uuid), (2, '$tenant'), (3, '$tenants[2]{id}')) v(n, id);
SQL

sub fill
{
	my ($rows) = @_;

	$cluster->psql(<<"SQL");
truncate app.item cascade;
insert into app.item (tenant_id, id, name, state, rank, created_at, updated_at)
select t.id, any_id(), 'n' || i, (array['NEW', 'OPEN', 'DONE', null])[1 + i % 4], i % 50, now(), now()
from tenants t, generate_series(1, $rows) i;
SQL
	return;
}

sub agrees
{
	my ($name, $before) = @_;
	my $out = $cluster->psql(($before // '') . <<"SQL");
select total('items'), (select count(*) from app.item where tenant_id = '$tenant'),
	total('items?filter=state==OPEN'), (select count(*) from app.item where tenant_id = '$tenant' and state = 'OPEN'),
	total('items?filter=rank==7'), (select count(*) from app.item where tenant_id = '$tenant' and rank = 7);
SQL
	my ($line) = reverse split /\n/, $out;
	my @n = split /\|/, $line, -1;

	# a page that is not full tells by itself
	is(join(' ', @n[ 0, 2, 4 ]), join(' ', @n[ 1, 3, 5 ]), $name);
	return $n[1];
}

subtest 'which way' => sub {
	fill(300);
	$cluster->psql('analyze');
	like($cluster->psql("select way('items')"), qr/^count: .* index item__/, 'a tenant');
	like($cluster->psql("select way('items?filter=state==OPEN')"), qr/index item__state_idx/, 'a value');
	like($cluster->psql("select way('items?filter=rank==7')"), qr/index item__rank_idx|^statement$/, 'a number');
	$cluster->psql("insert into app.place (id, name, created_at, updated_at) select any_id(), 'p' || i, now(), now() from generate_series(1, 50) i;
		insert into app.scrap (tenant_id, id, name, deleted_at, created_at, updated_at) select '$tenant', any_id(), 's' || i, case when i % 3 = 0 then now() end, now(), now() from generate_series(1, 90) i;
		insert into app.guarded (tenant_id, id, name, open, created_at, updated_at) select '$tenant', any_id(), 'g' || i, i % 5 = 0, now(), now() from generate_series(1, 100) i;");
	like($cluster->psql("select way('places')"), qr/^count: /, 'all rows of a global entity');
	is($cluster->psql("select total('places')"), 50, 'are counted');
	is($cluster->psql("select way('scraps')"), 'statement', 'soft deletion needs the rows');
	is($cluster->psql("select total('scraps')"), 60, 'and gets them right');
	is($cluster->psql("select way('guarded', '[\"Reader\"]')"), 'statement', 'so does a policy');
	is($cluster->psql("select total('guarded', 'rea')"), 20, 'which hides');
	like($cluster->psql("select way('guarded')"), qr/^count: /, 'but not one that is decided without the row');
	is($cluster->psql("select total('guarded')"), 100, 'which hides nothing');
	for my $filter ('state!=OPEN', 'state==OPEN;state==NEW', 'state==OPEN,state==NEW', 'state=isnull=true', 'group.title==x', 'flag==true')
	{
		is($cluster->psql("select way('items?filter=$filter')"), 'statement', $filter);
	}
	my $group = $editor->good(201, POST => '/groups', data => { type => 'groups', attributes => { title => 'g' } })->{json}{data}{id};
	$cluster->psql("update app.item set group_id = '$group' where tenant_id = '$tenant' and rank < 10");
	like($cluster->psql("select way('groups/$group/items')"), qr/index item__group_id/, 'members of a to-many');
	is($cluster->psql("select total('groups/$group/items')"),
		$cluster->psql("select count(*) from app.item where tenant_id = '$tenant' and group_id = '$group'"), 'all of them');
	is($cluster->psql("begin isolation level serializable; select way('items'); commit"), 'statement', 'serializable transactions leave traces');
	$cluster->psql('create table app.child () inherits (app.item)');
	is($cluster->psql("select way('items')"), 'statement', 'not for a table with children');
	$cluster->psql('drop table app.child; drop index app.item__state_idx; create index item__state_idx on app.item (tenant_id, state) where rank > 3');
	is($cluster->psql("select way('items?filter=state==OPEN')"), 'statement', 'nor by a part of an index');
	$cluster->psql('drop index app.item__state_idx; create index item__state_idx on app.item (tenant_id, state)');
};

# One row more is read, which is not shown
subtest 'the next page without totals' => sub {
	fill(45);
	for my $case ([ '', 15, 2, 1 ], [ '', 15, 3, 0 ], [ '', 45, 1, 0 ], [ '', 44, 1, 1 ], [ '', 50, 1, 0 ], [ '', 15, 4, 0 ], [ '&sort=-rank', 15, 3, 0 ], [ '&filter=rank=lt=30', 10, 2, 1 ], [ '&filter=rank=lt=30', 29, 1, 0 ])
	{
		my ($more, $size, $number, $next) = @$case;
		my $page = $editor->good(200, GET => "/items?page[size]=$size&page[number]=$number&page[totals]=false$more")->{json};
		my $total = $editor->good(200, GET => "/items?page[size]=$size&page[number]=$number$more")->{json};

		is(defined $page->{links}{next} ? 1 : 0, $next, "page $number of $size$more");
		is_deeply([ map { $_->{id} } @{ $page->{data} } ], [ map { $_->{id} } @{ $total->{data} } ], 'with the same rows');
		is(defined $total->{links}{next} ? 1 : 0, $next, 'as totals say');
	}
	my $group = $editor->good(201, POST => '/groups', data => { type => 'groups', attributes => { title => 'g' } })->{json}{data}{id};
	$cluster->psql("update app.item set group_id = '$group' where tenant_id = '$tenant' and rank < 10");
	my $members = $cluster->psql("select count(*) from app.item where group_id = '$group'");
	is($editor->good(200, GET => "/groups/$group/items?page[size]=$members&page[totals]=false")->{json}{links}{next}, undef, 'members of a to-many');
};

subtest 'states of a table' => sub {
	fill(3000);
	is(agrees('fresh, never vacuumed'), 3000, 'all');
	$cluster->psql('vacuum app.item');
	is(agrees('vacuumed'), 3000, 'all');
	$cluster->psql('vacuum (freeze) app.item');
	agrees('frozen');
	$cluster->psql("update app.item set note = 'x' where rank % 2 = 0");
	agrees('updated, index entries as they were');
	$cluster->psql("update app.item set rank = rank + 1, state = 'OPEN' where rank % 3 = 0");
	agrees('updated, with new entries');
	$cluster->psql("delete from app.item where rank % 5 = 0");
	agrees('deleted');
	agrees('and seen by an index scan, which marks entries', "set enable_seqscan = off; set enable_bitmapscan = off; select count(note) from app.item where tenant_id = '$tenant';");
	$cluster->psql("begin; update app.item set rank = -1; delete from app.item where state = 'NEW'; rollback");
	agrees('rolled back');
	$cluster->psql('vacuum app.item');
	agrees('vacuumed again');
	$cluster->psql("delete from app.item where tenant_id = '$tenant' and rank > 10; vacuum app.item");
	agrees('pages of the index are gone');
	$cluster->psql("delete from app.item where tenant_id = '$tenant'");
	is(agrees('empty, between others'), 0, 'nothing');
	is(agrees('own rows of a transaction', "begin; insert into app.item (tenant_id, id, name, created_at, updated_at) select '$tenant', any_id(), 'own', now(), now() from generate_series(1, 500);"), 500, 'count');
	is(agrees('but not what a savepoint took back', <<"SQL"), 200, 'count');
begin; insert into app.item (tenant_id, id, name, created_at, updated_at) select '$tenant', any_id(), 'own', now(), now() from generate_series(1, 300);
savepoint a; delete from app.item where tenant_id = '$tenant'; rollback to a;
savepoint b; insert into app.item (tenant_id, id, name, state, created_at, updated_at) select '$tenant', any_id(), 'more', 'OPEN', now(), now() from generate_series(1, 300); rollback to b;
savepoint c; delete from app.item where id in (select id from app.item where tenant_id = '$tenant' limit 100); release c;
SQL
	$cluster->psql("insert into app.item (tenant_id, id, name, state, created_at, updated_at) select '$tenant', any_id(), 'same', 'OPEN', now(), now() from generate_series(1, 5000); vacuum app.item");
	agrees('many entries of one value');
	$cluster->psql('reindex table app.item');
	agrees('rebuilt');
};

# Random work of a writer on its own connection, transaction by transaction.
sub writer
{
	my ($n) = @_;

	return <<"SQL";
set statement_timeout = '120s';
do \$\$
declare
	t uuid;
	until timestamptz := clock_timestamp() + interval '$seconds s';
begin
	while clock_timestamp() < until loop
		select id into t from tenants order by random() limit 1;
		case (random() * 9)::int
			when 0 then insert into app.item (tenant_id, id, name, state, rank, created_at, updated_at)
				select t, any_id(), 'w' || i, 'OPEN', i % 50, now(), now() from generate_series(1, (random() * 40)::int) i;
			when 1 then update app.item set note = 'hot' where tenant_id = t and rank = (random() * 50)::int and name < 'n3';
			when 2 then update app.item set rank = (random() * 50)::int where tenant_id = t and rank = (random() * 50)::int and name < 'n2';
			when 3 then update app.item set state = (array['NEW', 'OPEN', 'DONE', null])[1 + (random() * 3)::int] where tenant_id = t and rank = (random() * 50)::int and name < 'n2';
			when 4 then delete from app.item where tenant_id = t and rank = (random() * 50)::int and random() < 0.3;
			when 5 then update app.item set rank = rank + 1 where tenant_id = t and rank = (random() * 50)::int; rollback;
			when 6 then insert into app.item (tenant_id, id, name, rank, created_at, updated_at)
				select t, any_id(), 'gone', i % 50, now(), now() from generate_series(1, 100) i; rollback;
			when 7 then
				begin
					delete from app.item where tenant_id = t and rank = (random() * 50)::int;
					raise exception 'x';
				exception when raise_exception then
					update app.item set note = 'kept' where tenant_id = t and rank = (random() * 50)::int and name < 'n1';
				end;
			when 8 then insert into app.item (tenant_id, id, name, state, rank, created_at, updated_at)
				select t, any_id(), 'w' || i, 'DONE', 7, now(), now() from generate_series(1, 30) i;
			else perform pg_sleep(0.002);
		end case;
		commit;
	end loop;
end
\$\$;
SQL
}

my $compare = <<"SQL";
	select total('items') is distinct from (select count(*) from app.item where tenant_id = '$tenant')
		or total('items?filter=state==OPEN') is distinct from (select count(*) from app.item where tenant_id = '$tenant' and state = 'OPEN')
		or total('items?filter=rank==7') is distinct from (select count(*) from app.item where tenant_id = '$tenant' and rank = 7)
SQL

# Compares again and again; each comparison is a statement with a snapshot of
# its own, or all of one transaction have the same.
sub reader
{
	my ($level) = @_;
	my $commit = $level eq 'read committed' ? 'commit' : 'if n % 20 = 0 then commit; end if';

	return <<"SQL";
set statement_timeout = '120s';
set default_transaction_isolation = '$level';
do \$\$
declare
	n int := 0;
	wrong boolean;
	until timestamptz := clock_timestamp() + interval '$seconds s';
begin
	while clock_timestamp() < until or n < 20 loop
		$compare into wrong;
		if wrong then
			raise exception 'wrong after % comparisons', n;
		end if;
		n := n + 1;
		$commit;
	end loop;
	raise notice 'right % times', n;
end
\$\$;
SQL
}

subtest 'while others write' => sub {
	fill(2000);
	$cluster->psql('vacuum analyze app.item');

	my $vacuum = join '', map { "vacuum app.item; select pg_sleep(0.15);\n" } 1 .. $seconds * 4;
	my @jobs;
	for my $sql (writer(1), writer(2), writer(3), $vacuum, reader('read committed'), reader('repeatable read'))
	{
		pipe my $in, my $out or die "pipe: $!";
		my $pid = fork // die "fork: $!";
		if ($pid == 0)
		{
			my $result;

			# rows that several change can be met in another order by each
			do { $result = $cluster->try_psql($sql) } while ($result->{err} =~ /deadlock detected/);

			print {$out} "$result->{status}\n$result->{err}";
			close $out;
			require POSIX;
			POSIX::_exit(0);
		}
		close $out;
		push @jobs, { pid => $pid, in => $in };
	}
	for my $job (@jobs)
	{
		local $/;
		($job->{status}, $job->{err}) = split /\n/, readline($job->{in}), 2;
		waitpid $job->{pid}, 0;
	}
	is(join(' ', map { $_->{status} } @jobs), '0 0 0 0 0 0', 'nobody met an error') or diag(map { $_->{err} } @jobs);
	for my $job (@jobs[ 4, 5 ])
	{
		my ($n) = $job->{err} =~ /right (\d+) times/;
		cmp_ok($n // 0, '>=', 20, 'exact each of ' . ($n // 0) . ' times');
	}
	agrees('and in the end');
	cmp_ok($cluster->psql("select pg_relation_size('app.item__pkey')") / 8192, '>', 10, 'over pages that were split');
};

# A snapshot sees what it saw, however much is done meanwhile.
subtest 'a snapshot' => sub {
	fill(2000);
	my $result = $cluster->psql(<<"SQL");
create extension if not exists dblink;
begin isolation level repeatable read;
select 'before ' || total('items');
select dblink_exec('@{[$cluster->conninfo]}', 'delete from app.item where rank < 25');
select dblink_exec('@{[$cluster->conninfo]}', 'insert into app.item (tenant_id, id, name, created_at, updated_at) select tenant_id, any_id(), name, now(), now() from app.item');
select dblink_exec('@{[$cluster->conninfo]}', 'vacuum app.item');
select 'within ' || total('items');
commit;
select 'after ' || total('items');
SQL
	is(join(' ', $result =~ /(before \d+|within \d+|after \d+)/g), 'before 2000 within 2000 after 2000', 'holds');
	agrees('afterwards');
};

# Entries of an index lead to each page many times, and no map says that all of
# it is visible: each is visited once all the same.
subtest 'right after a load' => sub {
	fill(10);
	$cluster->psql("insert into app.item (tenant_id, id, name, state, rank, moment, created_at, updated_at)
		select '$tenant', any_id(), 'n' || i % 10, (array['NEW', 'OPEN', 'DONE'])[1 + i % 3], i % 50, now() + i % 20 * interval '1 day', now(), now() from generate_series(1, 50000) i;
		analyze app.item");
	agrees('all of them');
	my $out = $cluster->psql(<<'SQL');
select total('items');
explain (analyze, buffers, costs off, timing off, summary off) select total('items');
select 'pages ' || pg_relation_size('app.item') / current_setting('block_size')::int;
SQL
	my ($visits) = $out =~ /shared hit=(\d+)/;
	my ($pages) = $out =~ /^pages (\d+)/m;

	cmp_ok($visits, '>', $pages, "pages visited: $visits");
	cmp_ok($visits, '<', 1.5 * $pages + 200, "of $pages");

	# versions that nobody sees
	$cluster->psql("update app.item set rank = rank + 1 where rank % 3 = 0; delete from app.item where rank % 7 = 0");
	agrees('after writes');
};

# What it is for.  Time of a processor, the least of some attempts: what else the
# machine does is not counted.
subtest 'a large tenant' => sub {
	fill(10);
	$cluster->psql("insert into app.item (tenant_id, id, name, rank, created_at, updated_at) select '$tenant', any_id(), 'n', 1, now(), now() from generate_series(1, 200000) i; vacuum analyze app.item");
	my ($ours, $theirs) = split /\|/, $cluster->psql(<<"SQL");
set max_parallel_workers_per_gather = 0;
create function pg_temp.spent() returns float8 language sql as
\$\$ select split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6 \$\$;
create function pg_temp.best(what text) returns float8 language plpgsql as \$\$
declare
	t float8;
	best float8 := 1e9;
begin
	for i in 1 .. 5 loop
		t := pg_temp.spent();
		execute what;
		best := least(best, pg_temp.spent() - t);
	end loop;
	return best;
end
\$\$;
select round(pg_temp.best('select total(''items'')')::numeric, 2), round(pg_temp.best('select count(*) from app.item where tenant_id = ''$tenant''')::numeric, 2);
SQL
	diag("200 000 rows: $ours ms, count(*): $theirs ms");
	cmp_ok($ours, '<', $theirs, 'less than a statement takes');
};

done_testing;
