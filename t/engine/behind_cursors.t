# Pages behind a cursor by plans that are kept: what comes is what SQL says, among
# equal names, before and behind nulls, over rows that come and go between two
# pages, and when the plan is made anew.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

use constant { ROWS => 1500, SIZE => 20 };

my $json = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $cluster = EntityApi::Test->cluster;

# One session, so that its plans are kept
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $manifests = $json->encode([
	{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'cursors' }, spec => { tenancy => 'POOL' } },
	{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Reader => { description => 'r' } } } },
	{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'Thing' }, spec => {
			fields => {
				name => { type => 'string', required => $true, index => $true },
				rank => { type => 'integer', index => $true },
				at   => { type => 'datetime', required => $true, index => $true },
				word => { type => 'string', index => $true } },
			permissions => { Reader => ['read'] } } } ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");

my $tenant = $shim->tenant('one')->{id};
my $token = $shim->user($tenant, 'reader', ['Reader'])->{accessToken};

# Neighbours in the indexes, and ties of three, five and a hundred
$cluster->psql(<<"SQL") for $tenant, $shim->tenant('two')->{id}, $shim->tenant('three')->{id};
insert into app.thing (tenant_id, id, name, rank, "at", word, created_at, updated_at)
select '$_', gen_random_uuid(), 'Thing ' || i / 3, case when i % 7 > 0 then i / 5 end, '2026-01-01Z'::timestamptz + i / 100 * interval '1 day',
	case when i % 3 > 0 then 'word ' || md5((i / 2)::text) end, now(), now() from generate_series(1, @{[ROWS]}) i;
SQL
$cluster->psql('vacuum analyze app.thing');

my %orders = (
	'id'        => 'id',
	'-id'       => 'id desc',
	'name'      => 'name, id',
	'-name'     => 'name desc, id',
	'name,-id'  => 'name, id desc',
	'-name,-id' => 'name desc, id desc',
	'rank'      => 'rank, id',
	'-rank'     => 'rank desc, id',
	'rank,-id'  => 'rank, id desc',
	'at'        => '"at", id',
	'-at'       => '"at" desc, id',
	'word'      => 'word, id',
	'-word'     => 'word desc, id',
	'at,-name'  => '"at", name desc, id',
	'name,at'   => 'name, "at", id',
	'rank,name' => 'rank, name, id');

sub expected { return [ split /\n/, $cluster->psql("select id from app.thing where tenant_id = '$tenant' order by $orders{$_[0]}") ] }

sub page
{
	my ($target) = @_;
	my $answer = $shim->http(GET => $target, { token => $token });

	die "$target: $answer->{status} $answer->{body}\n" if $answer->{status} != 200;
	return $answer->{json};
}

sub target { return "/api/v1/things?fields[things]=name&page[size]=@{[SIZE]}&sort=$_[0]&page[$_[1]]=$_[2]" }
sub ids    { return map { $_->{id} } map { @{ $_->{data} } } @_ }

sub walk
{
	my ($target, $link) = @_;
	my @pages;

	while (defined $target)
	{
		push @pages, page($target);
		die "endless\n" if @pages > ROWS;
		$target = $pages[-1]{links}{$link};
	}
	return @pages;
}

subtest 'each row once, in order' => sub {
	for my $sort (sort keys %orders)
	{
		my $expected = expected($sort);

		is_deeply([ ids(walk(target($sort, after => 'start'), 'next')) ], $expected, $sort);
		is_deeply([ ids(reverse walk(target($sort, before => 'end'), 'prev')) ], $expected, "$sort, backwards");
	}
};

# Conditions of the same form that are no cursor's, of columns that may be null
subtest 'filters by one of several' => sub {
	for my $case (
		['rank=gt=250,rank=lt=9', 'rank > 250 or rank < 9'],
		['rank=lt=9,word=gt=%22word%209%22', "rank < 9 or word > 'word 9'"],
		['word=gt=%22word%209%22,rank=lt=9', "word > 'word 9' or rank < 9"],
		['rank=ge=100;(rank=gt=200,word=lt=%22word%205%22)', "rank >= 100 and (rank > 200 or word < 'word 5')"],
		['rank=le=200;(rank=lt=100,word=lt=%22word%205%22)', "rank <= 200 and (rank < 100 or word < 'word 5')"])
	{
		my ($filter, $condition) = @$case;

		for my $sort ('name', '-name', 'rank', '-rank')
		{
			my @expected = split /\n/, $cluster->psql("select id from app.thing where tenant_id = '$tenant' and ($condition) order by $orders{$sort}");

			is_deeply([ ids(walk(target($sort, after => 'start') . "&filter=$filter", 'next')) ], \@expected, "$filter, $sort");
		}
	}
};

# A list of values of a column that stands in an index behind the one sorted by is
# one scan for each of them
subtest 'filters by lists' => sub {
	# at the end that each order has last
	my %ranks = (name => '-1, -2', 'name,-id' => '-1, -2', '-name' => '-3, -4', '-name,-id' => '-3, -4');

	$cluster->psql(<<~"SQL");
		insert into app.thing (tenant_id, id, name, rank, "at", created_at, updated_at)
			select '$tenant', gen_random_uuid(), case when r < 3 then 'Zed ' else 'A ' end || i, -r, now(), now(), now()
			from generate_series(10, 19) i, generate_series(1, 4) r, generate_series(1, 3);
		create index thing_list on app.thing (tenant_id, name, rank);
		analyze app.thing;
		SQL
	for my $sort (sort keys %ranks)
	{
		my @expected = split /\n/, $cluster->psql("select id from app.thing where tenant_id = '$tenant' and rank in ($ranks{$sort}) order by $orders{$sort}");
		my $target = target($sort, after => 'start') . "&filter=rank=in=($ranks{$sort})" =~ s/ //gr;

		is_deeply([ ids(walk($target, 'next')) ], \@expected, $sort);
	}
	$cluster->psql('drop index app.thing_list; delete from app.thing where rank < 0');
};

# What happens between a page in the middle and the one behind it, to the row
# that the cursor stands at and to those around it
my @changes = (
	['nothing', 'select 1'],
	['the row is deleted', 'delete from app.thing where id = :at'],
	['so are those behind it', 'delete from app.thing where id in (:behind)'],
	['the row goes to the end', "update app.thing set name = 'Thing 999', rank = 100000, word = 'z', \"at\" = '2027-01-01Z' where id = :at"],
	['the row goes to the start', "update app.thing set name = 'A', rank = -1, word = 'a', \"at\" = '2025-01-01Z' where id = :at"],
	['those behind it go to the start', "update app.thing set name = 'A', rank = -1, word = 'a', \"at\" = '2025-01-01Z' where id in (:behind)"],
	['those behind it come to have nulls', 'update app.thing set rank = null, word = null where id in (:behind)'],
	['others come to have its name', 'update app.thing set (name, rank, word, "at") = (select name, rank, word, "at" from app.thing where id = :at) where id in (:behind)'],
	['all are written anew', "update app.thing set updated_at = now() where tenant_id = '$tenant'"],
	['dead rows are cleared away', 'vacuum app.thing'],
	['the plans are made anew', 'analyze app.thing'],
	['there is an index by all keys', 'create index thing_all on app.thing (tenant_id, name, id); create index thing_rank on app.thing (tenant_id, rank, id)'],
	['it is dropped', 'drop index app.thing_all, app.thing_rank'],
	['an index goes the other way', 'create index thing_down on app.thing (tenant_id, name desc); create index thing_first on app.thing (tenant_id, rank nulls first)'],
	['there is no index by names', "do \$\$ declare x regclass; begin
		for x in select i.indexrelid from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
			where i.indrelid = 'app.thing'::regclass and a.attname in ('name', 'rank') loop execute 'drop index ' || x; end loop; end \$\$"]);

# What the cursor's row had when it was written is what counts.
sub behind
{
	my ($sort, $place) = @_;
	my @all = split /\n/, $cluster->psql(<<"SQL");
with p as (select * from jsonb_populate_record(null::app.thing, \$p\$$place\$p\$))
select case when place then 'here' else id::text end as which
from (select t.id, t.name, t.rank, t."at", t.word, false as place from app.thing t where t.tenant_id = '$tenant'
	union all select id, name, rank, "at", word, true from p) x
order by $orders{$sort}, place
SQL
	my ($here) = grep { $all[$_] eq 'here' } 0 .. $#all;

	return [ grep { defined } @all[ $here + 1 .. $here + SIZE ] ];
}

subtest 'what changes between two pages' => sub {
	for my $change (@changes)
	{
		my ($what, $sql) = @$change;
		my @sorts = ('name', '-name', 'rank', '-rank', 'word', '-at');
		my %next;
		my %place;

		for my $sort (@sorts)
		{
			my $middle = page(target($sort, after => page(target($sort, after => 'start'))->{meta}{pagination}{after}));
			my $at = $middle->{data}[-1]{id};

			$next{$sort} = $middle->{links}{next};
			$place{$sort} = $cluster->psql("select to_jsonb(t) from app.thing t where id = '$at'");
		}
		my $first = $json->decode($place{name});
		my @behind = @{ behind('name', $place{name}) }[ 0 .. 4 ];
		my $list = join ', ', map { "'$_'" } @behind;

		$cluster->psql($sql =~ s/:at\b/'$first->{id}'/gr =~ s/:behind\b/$list/gr);
		is_deeply([ ids(page($next{$_})) ], behind($_, $place{$_}), "$what: $_") for @sorts;
	}
};

done_testing;
