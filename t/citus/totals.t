# Totals of lists are counted on an index of the tenant's part, on its own node,
# and are exact while that node and others write: those of t/read/totals.t, which
# asks a single server.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $seconds = $ENV{ENTITYAPI_TOTALS_SECONDS} || 2;
my $cluster = EntityApi::Test->cluster(nodes => 3, conf => ['entityapi.direct_scans = on']);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, node => 0);
my ($mine) = grep { $_->{node} == 1 } $cluster->place($shim, 'Editor');
my ($tenant, $home) = ($mine->{id}, $cluster->node(1));
my $part = $cluster->shard_of($tenant);

# one whose rows lie among them
my ($beside, $n);
do { $beside = $shim->tenant('beside' . ++$n)->{id} } until $cluster->shard_of($beside) == $part;

$cluster->psql("insert into app.item (tenant_id, id, name, state, rank, created_at, updated_at)
	select '$_', gen_random_uuid(), 'n' || i, (array['NEW', 'OPEN', 'DONE', null])[1 + i % 4], i % 50, now(), now() from generate_series(1, 2000) i") for $tenant, $beside;

# In one statement and, being stable, in one snapshot: what the service says and
# what PostgreSQL says of the part.
$home->psql(<<"SQL");
set citus.enable_ddl_propagation = off;
create function public.total(target text) returns bigint language sql stable as \$\$
	select (h.body::jsonb->'meta'->'pagination'->>'totalRecords')::bigint
	from entityapi.handle('GET', '/api/v1/' || target || 'page[size]=1', '{"authorization": "Bearer $mine->{user}{accessToken}"}', null, null) h where h.status = 200
\$\$;
SQL
my %filters = ('items?' => 'true', 'items?filter=state==OPEN&' => q{state = 'OPEN'}, 'items?filter=rank==7&' => 'rank = 7');
my @compared = map { ("public.total('$_')", "(select count(*) from app.item_$part where tenant_id = '$tenant' and $filters{$_})") } sort keys %filters;

sub agrees
{
	my ($name) = @_;
	my @n = split /\|/, $home->psql('select ' . join ', ', @compared);

	return is(join(' ', @n[ 0, 2, 4 ]), join(' ', @n[ 1, 3, 5 ]), $name);
}

$home->psql("vacuum analyze app.item_$part");
for my $target (sort keys %filters)
{
	my $told = $home->psql(sprintf q{select entityapi.explain('GET', '/api/v1/%spage[size]=1', '{"kind": "USER", "userId": "%s", "username": "x", "roles": ["Editor"], "tenantId": "%s"}')},
		$target, $mine->{user}{id}, $tenant);

	like($told, qr/^count: .* index item__/m, "$target is counted on an index");
}
agrees('at rest');

# A writer for some seconds, one transaction after the other, for both tenants,
# of rows that no other one changes
sub writer
{
	my ($n) = @_;

	return <<"SQL";
do \$\$
declare
	t uuid;
	r int;
	until timestamptz := clock_timestamp() + interval '$seconds s';
begin
	while clock_timestamp() < until loop
		t := (array['$tenant', '$beside'])[1 + (random() < 0.3)::int];
		r := 3 * (random() * 16)::int + $n;
		case (random() * 6)::int
			when 0 then insert into app.item (tenant_id, id, name, state, rank, created_at, updated_at)
				select t, gen_random_uuid(), 'w' || i, 'OPEN', 7, now(), now() from generate_series(1, 20) i;
			when 1 then update app.item set note = 'hot' where tenant_id = t and rank = r;
			when 2 then update app.item set rank = 7 where tenant_id = t and rank = r and name < 'n2';
			when 3 then update app.item set state = 'OPEN' where tenant_id = t and rank = r and name < 'n2';
			when 4 then delete from app.item where tenant_id = t and rank = r and name < 'n15';
			when 5 then update app.item set rank = rank + 1 where tenant_id = t and rank = r; rollback;
			else perform pg_sleep(0.002);
		end case;
		commit;
	end loop;
end
\$\$;
SQL
}

sub reader
{
	my ($level) = @_;
	my $commit = $level eq 'read committed' ? 'commit' : 'if n % 20 = 0 then commit; end if';
	my $wrong = join ' or ', map { "$compared[ 2 * $_ ] is distinct from $compared[ 2 * $_ + 1 ]" } 0 .. $#compared / 2;

	return <<"SQL";
set default_transaction_isolation = '$level';
do \$\$
declare
	n int := 0;
	wrong boolean;
	until timestamptz := clock_timestamp() + interval '$seconds s';
begin
	while clock_timestamp() < until or n < 20 loop
		select $wrong into wrong;
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

my @jobs;
for my $job ((map { [ writer($_), $_ ] } 0 .. 2), [ reader('read committed'), 1 ], [ reader('repeatable read'), 1 ],
	[ join('', map { "vacuum app.item_$part; select pg_sleep(0.15);\n" } 1 .. $seconds * 4), 1 ])
{
	my ($sql, $node) = @$job;

	pipe my $in, my $out or die "pipe: $!\n";
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		my $result = $cluster->node($node)->try_psql("set statement_timeout = '120s';\n$sql");

		print {$out} "$result->{status}\n$result->{err}";
		close $out;
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
for my $job (@jobs[ 3, 4 ])
{
	my ($times) = ($job->{err} // '') =~ /right (\d+) times/;
	cmp_ok($times // 0, '>=', 20, 'exact each of ' . ($times // 0) . ' times');
}
agrees('and in the end');

done_testing;
