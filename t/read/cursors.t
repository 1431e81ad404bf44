# Pages by cursor: every order, forwards and backwards, gives each row once and
# in the order that page numbers give.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use MIME::Base64 qw(decode_base64url encode_base64url);
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant("t$_") } 1 .. 2;
my $tenant = $tenants[0]{id};
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');
my $reader = $editor->as($shim->user($tenant, 'rea', ['Reader']));

# Few values and many nulls, so that ties and nulls meet at every cut; and what
# only plain SQL can store.
$cluster->psql(<<"SQL") for map { $_->{id} } @tenants;
insert into app.group (tenant_id, id, title, created_at, updated_at)
select '$_', gen_random_uuid(), case when i < 3 then 'g' || i end, now(), now() from generate_series(1, 4) i;
with g as (select array_agg(id order by title, id) as ids from app.group where tenant_id = '$_')
insert into app.item (tenant_id, id, name, state, rank, big, price, "any", flag, day, moment, token, note, hidden, group_id, created_at, updated_at)
select '$_', gen_random_uuid(), (array['a', 'B', 'b', 'ä', 'a b', 'Z', '', '𝄞', 'é', 'A'])[1 + i % 10],
	case when i % 3 > 0 then (array['NEW', 'OPEN', 'DONE'])[1 + i % 3] end,
	case when i % 4 > 0 then i % 5 - 2 end,
	case when i % 5 > 0 then 9007199254740992 + i % 3 end,
	case when i % 7 > 0 then 0.0000000001 * (i % 4) + 12345678901234567890 end,
	case i % 6 when 0 then null when 1 then 'NaN' when 2 then 123456789012345.6789 when 3 then -0.0001 when 4 then 1.10 else 1.1 end::numeric,
	case when i % 3 > 0 then i % 2 = 0 end,
	case i % 5 when 0 then null when 1 then 'infinity' when 2 then '-infinity' when 3 then '0044-03-15 BC' else '2024-02-29' end::date,
	case i % 5 when 0 then null when 1 then '2024-01-01 00:00:00.000001Z' when 2 then '2024-01-01 00:00:00.000002Z' when 3 then 'infinity' else '1970-01-01' end::timestamptz,
	case when i % 2 > 0 then lpad(i % 3 || '', 32, '0')::uuid end,
	case when i % 3 > 0 then repeat('long ', 300) || i % 4 end,
	'h' || i % 3,
	case when i % 4 > 0 then ((select ids from g))[1 + i % 4] end,
	now(), now()
from generate_series(1, 61) i;
SQL

sub ids { return join ' ', map { $_->{id} } @{ $_[0]{data} } }

# All pages by following a link, as lists of ids.
sub follow
{
	my ($who, $target, $link) = @_;
	my @pages;

	while (defined $target)
	{
		my $json = $who->good(200, GET => $target)->{json};

		die "endless\n" if @pages > 100;
		push @pages, $json;
		$target = $json->{links}{$link};
	}
	return @pages;
}

sub same_as_numbered
{
	my ($name, $who, $list, $size) = @_;
	my @numbered = follow($who, "$list&page[size]=100&page[number]=1", 'next');
	my $expected = join ' ', map { ids($_) } @numbered;
	my @forward = follow($who, "$list&page[size]=$size&page[after]=start", 'next');
	my @backward = follow($who, "$list&page[size]=$size&page[before]=end", 'prev');

	is(join(' ', map { ids($_) } @forward), $expected, "$name, $size a page");
	is(join(' ', map { ids($_) } reverse @backward), $expected, "$name, $size a page, backwards");
	return @forward;
}

my @sorts = (
	'', 'id', '-id', 'name', '-name', 'state', '-state', 'rank', '-rank', 'big', '-big', 'price', '-price', 'any', '-any',
	'flag', '-flag', 'day', '-day', 'moment', '-moment', 'token', '-token', 'group.title', '-group.title', 'group.id',
	'name,rank', '-name,rank', 'name,-rank,state', '-rank,-moment', 'rank,-id', '-state,group.title,-any', 'id,name', '-flag,day,-moment,token');

subtest 'every order' => sub {
	for my $sort (@sorts)
	{
		my $list = '/items?fields[items]=name' . ($sort eq '' ? '' : "&sort=$sort");

		same_as_numbered("sort=$sort", $editor, $list, $_) for $sort =~ /,/ ? 7 : (1, 20);
	}
};

subtest 'values too long for a cursor' => sub {
	for my $sort ('note', '-note', 'name,-note')
	{
		same_as_numbered("sort=$sort", $editor, "/items?sort=$sort&fields[items]=name", 6);
	}
	my $page = $editor->good(200, GET => '/items?sort=-note&fields[items]=name&page[after]=start&page[size]=30&filter=note=isnull=false')->{json};
	cmp_ok(length $page->{meta}{pagination}{after}, '<', 60, 'the cursor is short');
	$editor->good(204, DELETE => "/items/$page->{data}[-1]{id}");
	$editor->refused('whose row is gone', 400, 'INVALID_PAGE', [ parameter => 'page[after]' ], GET => $page->{links}{next});
};

subtest 'other lists' => sub {
	my $group = $editor->good(200, GET => '/groups?sort=title&page[size]=2')->{json}{data}[1]{id};
	my $label = $editor->good(201, POST => '/labels', data => { type => 'labels', attributes => { word => 'w' },
			relationships => { items => { data => [ map { { type => 'items', id => $_->{id} } } @{ $editor->good(200, GET => '/items?page[size]=30&sort=-rank')->{json}{data} } ] } } })->{json}{data}{id};

	cmp_ok(scalar(same_as_numbered('a filter', $editor, "/items?filter=name!=B;rank=isnull=false&sort=-rank,name", 5)), '>', 2, 'several pages');
	cmp_ok(scalar(same_as_numbered('members of a to-many', $editor, "/groups/$group/items?sort=rank", 4)), '>', 2, 'several pages');
	cmp_ok(scalar(same_as_numbered('of a many-to-many', $editor, "/labels/$label/items?sort=-moment,name", 7)), '>', 2, 'several pages');
	$cluster->psql("insert into app.guarded (tenant_id, id, name, open, created_at, updated_at) select '$tenant', gen_random_uuid(), 'n' || i % 4, i % 3 > 0, now(), now() from generate_series(1, 40) i;
		insert into app.scrap (tenant_id, id, name, deleted_at, created_at, updated_at) select '$tenant', gen_random_uuid(), 'n' || i % 4, case when i % 3 > 0 then now() end, now(), now() from generate_series(1, 40) i;
		insert into app.place (id, name, created_at, updated_at) select gen_random_uuid(), 'n' || i % 4, now(), now() from generate_series(1, 40) i");
	same_as_numbered('under a policy', $reader, '/guarded?sort=-name', 5);
	same_as_numbered('with soft deletion', $editor, '/scraps?sort=name', 5);
	same_as_numbered('a global entity', $editor, '/places?sort=-name', 9);
};

subtest 'links and meta' => sub {
	my ($first, $second, @more) = follow($editor, '/items?sort=-rank&page[size]=20&page[after]=start', 'next');
	my $p = $first->{meta}{pagination};

	is($first->{links}{prev}, undef, 'nothing before the first');
	is($p->{before}, undef, 'nor in meta');
	like($first->{links}{next}, qr/page%5Bafter%5D=\Q$p->{after}\E/, 'meta has the cursors of the links');
	like($first->{links}{next}, qr/sort=-rank&page%5Bsize%5D=20/, 'the rest stays');
	is(join(' ', sort keys %$p), 'after before size', 'no number, no totals');
	is($more[-1]{links}{next}, undef, 'nothing after the last');
	is(ids($editor->good(200, GET => $second->{links}{prev})->{json}), ids($first), 'and back');
	is(ids($editor->good(200, GET => $second->{links}{first})->{json}), ids($first), 'first');
	my $last = $editor->good(200, GET => $second->{links}{last})->{json};
	like(ids(($more[-1])), qr/./, 'there is a last page');
	is((split / /, ids($last))[-1], (split / /, ids($more[-1]))[-1], 'last');
	is($last->{links}{next}, undef, 'with nothing after it');
	$p = $editor->good(200, GET => '/items?page[after]=start&page[totals]=true&page[size]=7')->{json}{meta}{pagination};
	is("$p->{totalRecords} $p->{totalPages}", '60 9', 'totals when asked for');

	my $none = $editor->good(200, GET => '/items?filter=name==nothing&page[after]=start')->{json};
	is_deeply([ @{$none}{'data'}, @{ $none->{links} }{qw(prev next)} ], [ [], undef, undef ], 'an empty list');
	my $beyond = $editor->good(200, GET => "/items?sort=name&page[after]=" . follow_cursor('sort=name'))->{json};
	is(ids($beyond), '', 'beyond the last row');
	like($beyond->{links}{prev}, qr/page%5Bbefore%5D=end/, 'the last page comes before');
	my $numbered = $editor->good(200, GET => '/items?page[number]=2&page[size]=3')->{json};
	unlike(join(' ', grep { defined } values %{ $numbered->{links} }), qr/after|before/, 'numbered lists stay so');
	is($numbered->{meta}{pagination}{number}, 2, 'with numbers');
	my $included = $editor->good(200, GET => '/items?page[after]=start&page[size]=5&include=group&sort=-group.title')->{json};
	is(scalar @{ $included->{data} }, 5, 'include');
	my %linked = map { $_->{relationships}{group}{data} ? ($_->{relationships}{group}{data}{id} => 1) : () } @{ $included->{data} };
	is(scalar @{ $included->{included} }, scalar keys %linked, 'of the page, and of no row more');
};

# The cursor of the very last row: as the second last page sees it, it is the
# row before which a page ends.
sub follow_cursor
{
	my ($sort) = @_;
	my @pages = follow($editor, "/items?$sort&page[size]=1&page[before]=end", 'prev');

	return $pages[0]{meta}{pagination}{before} =~ s/.*//r . cursor_after($sort);
}

sub cursor_after
{
	my ($sort) = @_;
	my $row = $editor->good(200, GET => "/items?$sort&page[size]=1&page[before]=end")->{json};
	my $id = pack 'H*', $row->{data}[0]{id} =~ s/-//gr;
	my $bytes = decode_base64url($row->{meta}{pagination}{before});
	my $name = EntityApi::Test::utf8_bytes($row->{data}[0]{attributes}{name});

	return encode_base64url(substr($bytes, 0, 6) . $id . "\1" . pack('N', length $name) . $name);
}

subtest 'rows that come and go' => sub {
	my $page = $editor->good(200, GET => '/items?sort=name&page[size]=10&page[after]=start')->{json};
	my @rest = map { map { $_->{id} } @{ $_->{data} } } follow($editor, $page->{links}{next}, 'next');

	$editor->good(204, DELETE => "/items/$page->{data}[-1]{id}");
	my $new = $editor->good(201, POST => '/items', data => { type => 'items', attributes => { name => '' } })->{json}{data}{id};
	is(join(' ', map { map { $_->{id} } @{ $_->{data} } } follow($editor, $page->{links}{next}, 'next')), "@rest",
		'what was deleted and added before the cursor moves nothing');
	$editor->good(204, DELETE => "/items/$new");
};

subtest 'bad cursors' => sub {
	my $list = '/items?sort=rank,-price&page[size]=5';
	my $cursor = $editor->good(200, GET => "$list&page[after]=start")->{json}{meta}{pagination}{after};
	my $bytes = decode_base64url($cursor);

	for my $parameter ('page[after]', 'page[before]')
	{
		$editor->refused("$parameter: $_->[0]", 400, undef, [ parameter => $parameter ], GET => "$list&$parameter=$_->[1]")
		  for [ 'empty', '' ], [ 'one letter', 'A' ], [ 'a word', 'here' ], [ 'the other end', $parameter =~ /after/ ? 'end' : 'start' ],
		  [ 'not base64url', "$cursor%2B" ], [ 'padded', "$cursor=" ], [ 'cut', substr $cursor, 0, -4 ], [ 'longer', encode_base64url("${bytes}x") ],
		  [ 'another version', encode_base64url("\2" . substr $bytes, 1) ], [ 'another hash', encode_base64url(substr($bytes, 0, 2) . 'abcd' . substr $bytes, 6) ];
		for my $sort ('rank', 'rank,price', '-rank,-price', 'price,rank', 'name', '')
		{
			$editor->refused("$parameter: of another order: $sort", 400, 'INVALID_PAGE', [ parameter => $parameter ],
				GET => "/items?$parameter=$cursor" . ($sort && "&sort=$sort"));
		}
		$editor->refused("$parameter: of another entity", 400, 'INVALID_PAGE', [ parameter => $parameter ], GET => "/groups?$parameter="
			  . $editor->good(200, GET => '/items?page[size]=5&page[after]=start')->{json}{meta}{pagination}{after});
		$editor->refused("$parameter and a number", 400, 'INVALID_PAGE', [ parameter => $parameter ], GET => "$list&$parameter=$cursor&page[number]=1");
		$editor->refused("$parameter twice", 400, 'INVALID_PARAMETER', [ parameter => $parameter ], GET => "$list&$parameter=$cursor&$parameter=$cursor");
		$editor->refused("$parameter of one resource", 400, 'UNKNOWN_PARAMETER', [ parameter => $parameter ], GET => "/items/$tenant?$parameter=start");
		$shim->http(GET => "/manage/tenants?$parameter=start", { token => $shim->superadmin })->{status} == 400 or fail('not a list of records');
	}
	$editor->refused('both', 400, 'INVALID_PAGE', [ parameter => 'page[before]' ], GET => "$list&page[after]=$cursor&page[before]=$cursor");
	$reader->refused('a sort that the caller may not', 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => '/items?sort=hidden&page[after]=start');
	$reader->refused('nor with the cursor of somebody who may', 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => '/items?sort=hidden&page[after]='
		  . $editor->good(200, GET => '/items?sort=hidden&page[size]=5&page[after]=start')->{json}{meta}{pagination}{after});

	# Whatever a client makes up: an answer of the contract.
	srand 9;
	my %seen;
	for my $sort (qw(rank big price any flag day moment token name group.title note), '-rank,price,any,day,moment')
	{
		my $page = $editor->good(200, GET => "/items?sort=$sort&page[size]=9&page[after]=start")->{json};
		my $whole = decode_base64url($page->{meta}{pagination}{after});

		for (1 .. 40)
		{
			my $forged = $whole;

			substr($forged, 6 + int rand(length($forged) - 6), 1) = chr int rand 256 for 0 .. rand 3;
			$forged = substr $forged, 0, 6 + rand(length($forged) - 6) if rand() < 0.2;
			my $answer = $editor->call(GET => "/items?sort=$sort&page[size]=3&" . (rand() < 0.5 ? 'page[after]=' : 'page[before]=') . encode_base64url($forged));

			$seen{ $answer->{status} }++;
			diag("$sort: " . unpack('H*', $forged) . " $answer->{body}") if $answer->{status} !~ /^[24]00$/;
		}
	}
	is(join(' ', sort keys %seen), '200 400', 'made up ones are read or refused');
};

subtest 'no row before the cursor is read' => sub {
	$cluster->psql(<<"SQL");
insert into app.item (tenant_id, id, name, rank, moment, created_at, updated_at)
select '$tenant', gen_random_uuid(), 'many' || i, case when i % 2 = 0 then i end, case when i % 2 = 0 then '2025-01-01'::timestamptz + i * interval '1 s' end, now(), now() from generate_series(1, 20000) i;
analyze app.item;
SQL
	for my $case (
		[ 'id',      qr/Index Cond: .*tenant_id = .*id > / ],
		[ '-id',     qr/Index Cond: .*tenant_id = .*id <= /, 'ascending' ],
		[ 'name',    qr/Index Cond: .*name.* >= / ],
		[ '-name',   qr/Index Cond: .*name.* <= / ],
		[ 'rank',    qr/Index Cond: .*rank >= / ],
		[ '-rank',   qr/Index Cond: .*rank (<=|IS NULL)/ ],
		[ '-moment', qr/Index Cond: .*moment (<=|IS NULL)/ ])
	{
		my ($sort, $condition) = @$case;
		my $next = $editor->good(200, GET => "/items?sort=$sort&page[size]=100&page[after]=start&filter=id!=$tenant")->{json}{links}{next};
		my $plan = $cluster->psql(sprintf q{select string_agg(x, chr(10)) from entityapi.explain('GET', '%s', '%s') x}, $next,
			qq({"kind": "USER", "userId": "$tenant", "username": "x", "roles": ["Editor"], "tenantId": "$tenant"}));

		$condition = qr/Index Cond: .*tenant_id = .*id < / if $sort eq '-id';
		like($plan, $condition, "sort=$sort");
	}
};

done_testing;
