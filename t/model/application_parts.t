# Keys of several parts: ids with commas between them, in addresses, documents, filters,
# orders and cursors; rows that are made by the id, by fields or by references; and
# references of several columns, with what goes along and what is let go.

use strict;
use warnings;
use utf8;

use Encode ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster();
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical->utf8;
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my @all = qw(create read update delete history);
my %given = (permissions => { Reader => ['read'], Editor => \@all });

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}

$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
set role shop_owner;
create table shop.orders (year smallint, no integer, note text, placed date, primary key (year, no));
create table shop.line (line_no integer, order_no integer, order_year smallint, what text, amount integer, primary key (order_year, order_no, line_no),
	foreign key (order_no, order_year) references shop.orders (no, year) on delete cascade);
create table shop.split (order_year smallint, order_no integer, line_no integer, n integer, what text, primary key (order_year, order_no, line_no, n),
	foreign key (order_year, order_no, line_no) references shop.line on delete cascade deferrable);
create table shop.parcel (id integer generated always as identity primary key, what text, a_year smallint, a_no integer, b_year integer, b_no bigint,
	foreign key (a_year, a_no) references shop.orders on delete set null, foreign key (b_year, b_no) references shop.orders);
create table shop.strange (part text, kind char(4), day date, nr bigint, it uuid, note text, primary key (part, kind, day, nr, it));
create table shop.pair (a text, b varchar(10), note text, unique (b, a));
create table shop.profile (year smallint, no integer, words text, primary key (year, no), foreign key (year, no) references shop.orders on delete cascade deferrable);
create table shop.event (id integer, day date, note text, primary key (id, day)) partition by range (day);
create table shop.event_26 partition of shop.event for values from ('2026-01-01') to ('2027-01-01');
create view shop.busy as select order_year, order_no, count(*)::integer as lines from shop.line group by order_year, order_no;
create view shop.twice as select order_year, order_no, what from shop.line;
create table shop.bad (a integer, b integer not null, c numeric not null, d integer not null, "e
e" integer not null, unique (a, b), unique (b, c));
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
alter table shop.pair alter a set not null, alter b set not null;
reset role;
SQL

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web' } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
declared(Entity => Order => { %given, table => 'shop.orders', key => [ 'year', 'no' ], fields => { year => { type => 'integer' }, no => { type => 'integer' },
	note => { type => 'text' }, placed => { type => 'date' }, lines => { type => 'ref', target => 'Line', relation => 'OneToMany', mappedBy => 'order' },
	profile => { type => 'ref', target => 'Profile', relation => 'OneToOne', mappedBy => 'order' },
	parcels => { type => 'ref', target => 'Parcel', relation => 'OneToMany', mappedBy => 'a' } } });
declared(Entity => Line => { %given, table => 'shop.line', key => [ 'order_year', 'order_no', 'line_no' ], columns => { order => [ 'order_year', 'order_no' ], n => 'line_no' },
	fields => { n => { type => 'integer' }, what => { type => 'text' }, amount => { type => 'integer' },
		order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' },
		splits => { type => 'ref', target => 'Split', relation => 'OneToMany', mappedBy => 'line' } } });
declared(Entity => Split => { %given, othersWrite => JSON::PP::false, table => 'shop.split', key => [ 'order_year', 'order_no', 'line_no', 'n' ], columns => { line => [ 'order_year', 'order_no', 'line_no' ] },
	fields => { n => { type => 'integer' }, what => { type => 'text' }, line => { type => 'ref', target => 'Line', required => $true, onDelete => 'cascade' } } });
declared(Entity => Parcel => { %given, table => 'shop.parcel', key => 'id', columns => { a => [ 'a_year', 'a_no' ], b => [ 'b_year', 'b_no' ] },
	fields => { what => { type => 'text' }, a => { type => 'ref', target => 'Order', onDelete => 'setNull' }, b => { type => 'ref', target => 'Order' } } });
declared(Entity => Strange => { %given, table => 'shop.strange', key => [ 'part', 'kind', 'day', 'nr', 'it' ], plural => 'stranges', fields => { note => { type => 'text' } } });
declared(Entity => Event => { %given, table => 'shop.event', key => [ 'day', 'id' ], fields => { note => { type => 'text' } } });
declared(Entity => Busy => { table => 'shop.busy', key => [ 'order_year', 'order_no' ], plural => 'busies', columns => { order => [ 'order_year', 'order_no' ] },
	fields => { lines => { type => 'integer' }, order => { type => 'ref', target => 'Order' } }, permissions => { Reader => ['read'], Editor => ['read'] } });
declared(Entity => Twice => { table => 'shop.twice', key => [ 'order_year', 'order_no' ], plural => 'twices', fields => { what => { type => 'text' } }, permissions => { Editor => ['read'] } });
declared(Entity => Pair => { %given, table => 'shop.pair', key => [ 'a', 'b' ], fields => { note => { type => 'text' } } });
declared(Entity => Profile => { %given, table => 'shop.profile', key => [ 'year', 'no' ], columns => { order => [ 'year', 'no' ] },
	fields => { words => { type => 'text' }, order => { type => 'ref', target => 'Order', relation => 'OneToOne', onDelete => 'cascade' } } });

# --- what is refused --------------------------------------------------------

for my $case (
	[ { key => [ 'a', 'b' ] }, qr/the column "a" must be not null/ ],
	[ { key => [ 'b', 'c' ] }, qr/the column "c" is numeric: a key is/ ],
	[ { key => [ 'b', 'd' ] }, qr/needs a primary key or an immediate unique constraint on "b" and "d" \(ALTER TABLE shop\.bad ADD PRIMARY KEY \(b, d\)\)/ ],
	[ { key => [ 'b', 'b' ] }, qr/names a column twice/ ],
	[ { key => [ 'b', "e\ne" ] }, qr/control character/ ],
	[ { key => [ 'a' .. 'i' ] }, qr/has 1 to 8 columns/ ],
	[ { key => 'b', columns => { note => [ 'a', 'b' ] } }, qr/must be the name of a column: a list goes with a reference/ ],
	[ { key => 'b', columns => { order => ['a'] }, ref => 'Order' }, qr{/spec/columns/order: must be the name of a column} ],
	[ { key => 'b', columns => { order => 'a' }, ref => 'Order' }, qr/refers to Order, whose key has 2 columns \(name as many/ ],
	[ { key => 'b', columns => { order => [ 'a', 'd', 'c' ] }, ref => 'Order' }, qr/refers to Order, whose key has 2 columns/ ],
	[ { key => 'b', columns => { order => [ 'a', 'd' ] }, ref => 'Order' }, qr/needs a foreign key to the key of shop\.orders/ ],
	[ { key => 'b', columns => { order => [ 'a', 'd' ], two => [ 'a', 'c' ] }, ref => 'Order', also => 'Order' }, qr/its column "a" is that of "order" as well/ ])
{
	my ($spec, $said) = @$case;
	my %fields = (delete $spec->{ref} ? (order => { type => 'ref', target => 'Order' }) : (note => { type => 'text' }),
		delete $spec->{also} ? (two => { type => 'ref', target => 'Order' }) : ());

	declared(Entity => Bad => { table => 'shop.bad', %$spec, fields => \%fields, permissions => { Reader => ['read'] } });
	my $error = $cluster->try_apply($folder)->{err};
	like($error, $said, $encoder->encode($spec));
}
declared(Entity => Bad => { table => 'shop.pair', key => [ 'b', 'a' ], fields => { a => { type => 'text', default => 'x' } }, permissions => { Editor => ['create'] } });
like($cluster->try_apply($folder)->{err}, qr{/spec/fields/a/default: the field is a part of the key, of which the client says all or nothing}, 'no default of a part');
unlink "$folder/Bad.json";
declared(Entity => Ours => { plural => 'ours', fields => { what => { type => 'text' }, order => { type => 'ref', target => 'Order', onDelete => 'setNull' }, line => { type => 'ref', target => 'Line', required => $true } }, permissions => { Reader => ['read'], Editor => \@all } });

my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT("$applied->{err}$applied->{out}");
is($cluster->try_apply($folder)->{out} =~ /ALTER|CREATE/ ? 'changes' : 'nothing', 'nothing', 'and again, with nothing to do');
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'no difference');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');

sub to { my ($type, @ids) = @_; return { data => ref $ids[0] ? [ map { { type => $type, id => $_ } } @{ $ids[0] } ] : defined $ids[0] ? { type => $type, id => $ids[0] } : undef } }
sub resource
{
	my ($type, $id, $attributes, $relationships) = @_;

	return { type => $type, defined $id ? (id => $id) : (), $attributes ? (attributes => $attributes) : (), $relationships ? (relationships => $relationships) : () };
}
sub made { my ($type, @rest) = @_; return $ann->good(201, POST => "/$type", data => resource($type, @rest))->{json}{data} }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub ids { return join ' ', map { $_->{id} } @{ $_[0]{json}{data} } }
sub got { return ids($ann->good(200, GET => $_[0])) }
sub escaped { my ($text) = @_; my $bytes = Encode::encode_utf8($text); $bytes =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ge; return $bytes }
sub records { my ($id, $action) = @_; return $cluster->psql("select count(*) from entityapi.audit where target_id = '$id' and action = '$action' and outcome = 'SUCCESS'") }

sub all_pages
{
	my ($next, $way) = @_;
	my @seen;

	while ($next && @seen < 100)
	{
		my $page = $ann->good(200, GET => $next);
		push @seen, $way eq 'prev' ? reverse map { $_->{id} } @{ $page->{json}{data} } : map { $_->{id} } @{ $page->{json}{data} };
		$next = $page->{json}{links}{$way};
	}
	return "@seen";
}

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "reads, direct ways $way" => sub {
		$cluster->psql(<<'SQL');
truncate shop.orders, shop.line, shop.split, shop.parcel, shop.profile;
insert into shop.orders select 2020 + i % 3, i, 'n' || i % 4, date '2026-02-01' + i from generate_series(1, 12) i;
insert into shop.orders values (-5, -7, 'below', null), (2020, 100, 'n1', null);
insert into shop.line (order_year, order_no, line_no, what) select year, no, l, 'w' || l from shop.orders, generate_series(1, 2) l where no between 1 and 4;
insert into shop.split select order_year, order_no, line_no, 1, 'half' from shop.line where line_no = 2;
insert into shop.parcel (what, a_year, a_no, b_year, b_no) values ('one', 2021, 1, 2020, 3), ('none', null, null, null, null), ('half', 2021, null, 2020, 3);
insert into shop.profile values (2021, 1, 'about 1');
SQL
		my $one = $ann->good(200, GET => '/orders/2021,1')->{json}{data};
		is($one->{id}, '2021,1', 'parts have a comma between them');
		is($one->{links}{self}, '/api/v1/orders/2021,1', 'in addresses as well');
		is($one->{attributes}{no}, 1, 'a part may be a field');
		is($ann->good(200, GET => $one->{links}{self})->{json}{data}{id}, '2021,1', 'the link leads there');
		is($ann->good(200, GET => '/orders/-5,-7')->{json}{data}{attributes}{note}, 'below', 'below zero');
		$ann->refused("/orders/$_", 404, 'NOT_FOUND', undef, GET => "/orders/$_")
		  for split / /, '2021 2021,1,1 2021,01 02021,1 2021,+1 2021, ,1 , 2021,1, 2021,-0 2021,99 70000,1 2021,1x ~3 2021,%201 2021~21 aggregates';

		is(got('/orders?sort=id'), '-5,-7 2020,3 2020,6 2020,9 2020,12 2020,100 2021,1 2021,4 2021,7 2021,10 2022,2 2022,5 2022,8 2022,11', 'numbers have their order, part by part');
		is(got('/orders'), got('/orders?sort=id'), 'which is the usual one');
		is(got('/orders?sort=-id'), join(' ', reverse split / /, got('/orders?sort=id')), 'and the other way');
		for my $sort (('id', '-id', 'note,id', '-note,-id', 'note,-id', '-placed', 'placed', '-placed,note'))
		{
			my $whole = got("/orders?sort=$sort");

			is(all_pages("/api/v1/orders?sort=$sort&page[size]=3&page[after]=start", 'next'), $whole, "pages by cursor, $sort");
			is(join(' ', reverse split / /, all_pages("/api/v1/orders?sort=$sort&page[size]=3&page[before]=end", 'prev')), $whole, "and back, $sort");
		}

		is(got(q{/orders?filter=id=='2021,4'}), '2021,4', 'a filter by id');
		is(got(q{/orders?filter=id=in=('2021,4','2020,3','1,1')}), '2020,3 2021,4', 'by several');
		is(got(q{/orders?filter=id=out=('2021,4','2020,3');year==2021}), '2021,1 2021,7 2021,10', 'by none of several');
		is(got(q{/orders?filter=id!='2021,4';year==2021}), '2021,1 2021,7 2021,10', 'by another');
		is(got(q{/orders?filter=id=gt='2021,7';id=le='2022,5'}), '2021,10 2022,2 2022,5', 'by a range, part by part');
		is($ann->good(200, GET => q{/orders?filter=id=='2021,4'&page[totals]=true})->{json}{meta}{pagination}{totalRecords}, 1, 'counted');
		$ann->refused("filter by $_", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/orders?filter=id==$_") for "'2021'", "'2021,01'", "'1,2,3'", 2021, "'a,b'", "''";
		$ann->refused('no part of a list', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/orders?filter=id==2021,1');
		$ann->refused('no pattern', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/orders?filter=id=like=2021*');
		is(got(q{/lines?filter=order.id=='2021,1'}), '2021,1,1 2021,1,2', 'through a reference');
		is(got(q{/lines?filter=order.note==n1&sort=-order.placed,id}), '2021,1,1 2021,1,2', 'and its fields');
		is(got(q{/lines?sort=-order.id,-id}), '2022,2,2 2022,2,1 2021,4,2 2021,4,1 2021,1,2 2021,1,1 2020,3,2 2020,3,1', 'ordered by the id of another');
		is(all_pages('/api/v1/lines?sort=-order.id,-id&page[size]=3&page[after]=start', 'next'), got('/lines?sort=-order.id,-id'), 'by cursor');
		is(got('/parcels?sort=b.id,id&filter=what!=half'), got('/parcels?filter=what!=half'), 'of which some are null');
		is(all_pages('/api/v1/parcels?sort=-b.id,id&page[size]=1&page[after]=start', 'next'), got('/parcels?sort=-b.id,id'), 'by cursor, too');
		is(got(q{/orders?filter=lines.what==w2;lines.splits.what==half}), '2020,3 2021,1 2021,4 2022,2', 'through to-many relationships');
		is(got(q{/orders?filter=lines.splits.id=='2020,3,2,1'}), '2020,3', 'by an id at their end');
		is(got(q{/orders?filter=profile.words=='about%201'}), '2021,1', 'through a to-one from the other side');
		is(got(q{/parcels?filter=a=isnull=true}) =~ tr/ //, 1, 'what has a part that is null is null');

		my $tree = $ann->good(200, GET => '/orders/2021,1?include=lines.splits,profile,parcels.b')->{json};
		is(join(' ', sort map { "$_->{type}/$_->{id}" } @{ $tree->{included} }),
			join(' ', sort 'lines/2021,1,1', 'lines/2021,1,2', 'splits/2021,1,2,1', 'profiles/2021,1', 'orders/2020,3', map { "parcels/$_" } $cluster->psql(q{select id from shop.parcel where what = 'one'})), 'included');
		is_deeply($tree->{data}{relationships}{lines}{data}, to(lines => [ '2021,1,1', '2021,1,2' ])->{data}, 'linkage of many');
		is_deeply($tree->{data}{relationships}{profile}{data}, to(profiles => '2021,1')->{data}, 'and of one');
		is(got('/orders/2021,1/lines'), '2021,1,1 2021,1,2', 'related resources');
		is(ids($ann->good(200, GET => '/orders/2021,1/relationships/lines')), '2021,1,1 2021,1,2', 'and identifiers');
		is($ann->good(200, GET => '/lines/2021,1,2/order')->{json}{data}{id}, '2021,1', 'one of them');
		is($ann->good(200, GET => '/orders/2021,1/lines?page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 2, 'counted');
		my @parcels = map { $_->{relationships} } @{ $ann->good(200, GET => '/parcels?include=a,b')->{json}{data} };
		is_deeply([ map { [ map { $_->{data} && $_->{data}{id} } @$_{qw(a b)} ] } @parcels ], [ [ '2021,1', '2020,3' ], [ undef, undef ], [ undef, '2020,3' ] ], 'references of any integer');
	};
}

attack 'ids as strange as they come' => sub {
	my @texts = ('', ' ', '.', '..', 'aggregates', 'a/b', 'a,b', 'a~b', '~', '~3', '%', '%2F', 'a b ', "a\\b", '"', "'", '😀', 'ä', '?', '#', '&', '+', ';', "\t");
	my $n = 0;

	for my $text (@texts)
	{
		my $form = $text =~ s{([~/,\\])}{{ '~' => '~0', '/' => '~1', ',' => '~2', '\\' => '~4' }->{$1}}ger;
		my $id = "$form," . ($text =~ /^[ab]/ ? substr($text, 0, 1) : 'k') . ',0044-03-15,' . --$n . ',aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee';
		$id =~ s/0044/2024/;

		is(made(stranges => $id, { note => "n$n" })->{id}, $id, "made: $id");
		is($cluster->psql("select encode(convert_to(part, 'UTF8'), 'hex') from shop.strange where nr = $n"), unpack('H*', Encode::encode_utf8($text)), 'with the part as it is');
		my $answer = $ann->good(200, GET => '/stranges/' . escaped($id))->{json}{data};
		is($answer->{id}, $id, 'read');
		is($ann->good(200, GET => '/stranges/' . escaped($id =~ s/(a{8}.*)/uc $1/er))->{json}{data}{id}, $id, 'also by a UUID in capitals');
		is($ann->good(200, GET => $answer->{links}{self})->{json}{data}{attributes}{note}, "n$n", 'by its link');
		(my $literal = $id) =~ s/([\\'])/\\$1/g;
		is(got('/stranges?filter=id==' . escaped("'$literal'")), $id, 'by a filter');
		$ann->refused('taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/stranges', data => resource(stranges => $id));
		$ann->good(200, PATCH => '/stranges/' . escaped($id), data => resource(stranges => $id, { note => 'changed' }));
		is($cluster->psql("select note from shop.strange where nr = $n"), 'changed', 'changed');
	}
	is(all_pages('/api/v1/stranges?page[size]=5&page[after]=start', 'next'), got('/stranges?page[size]=100'), 'all of them by pages');
	my $whole = 'a,k,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee';
	for my $other (
		[ 'a,k ,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'padded' ],
		[ 'a,kkkkk,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'too long' ],
		[ 'a,k,2024-1-1,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'a date of another form' ],
		[ 'a,k,2024-02-30,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'no date' ],
		[ 'a,k,2024-01-01,1,aaaaaaaa', 'no UUID' ],
		[ 'a,k,2024-01-01,9223372036854775808,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'too large' ],
		[ '~3a,k,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'a mark' ],
		[ 'a~5,k,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'an unknown escape' ],
		[ 'a,k,2024-01-01,1', 'too few' ],
		[ "$whole,", 'too many' ])
	{
		my ($id, $what) = @$other;

		$ann->refused("$what in an address", 404, 'NOT_FOUND', undef, GET => '/stranges/' . escaped($id));
		$ann->refused("$what in a new resource", 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/stranges', data => resource(stranges => $id));
		$ann->refused("$what in a filter", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/stranges?filter=id==' . escaped("'$id'"));
	}
	$ann->refused('an id that is too long', 400, 'VALUE_TOO_LARGE', [ pointer => '/data/id' ], POST => '/stranges', data => resource(stranges => ('x' x 210) . ',k,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'));
	$cluster->psql("insert into shop.strange values (repeat('x', 600), 'k', '2024-01-01', 1, 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', 'long')");
	is($ann->good(200, GET => '/stranges/' . ('x' x 600) . ',k,2024-01-01,1,aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee')->{json}{data}{attributes}{note}, 'long', 'one that is there is served');
	is(made(pairs => ',')->{id}, ',', 'two empty texts');
	is($ann->good(200, GET => '/pairs/,')->{json}{data}{id}, ',', 'are a resource');
	$ann->refused('a text that its column has no room for', 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/pairs', data => resource(pairs => 'a,12345678901'));
};

attack 'making, changing and deleting' => sub {
	$cluster->psql('truncate shop.orders, shop.line, shop.split, shop.parcel, shop.profile');
	is(made(orders => '2026,1', { note => 'by id' })->{attributes}{year}, 2026, 'the id says the fields');
	is(made(orders => undef, { year => 2026, no => 2 })->{id}, '2026,2', 'or they say the id');
	is(made(orders => '2026,3', { year => 2026, no => 3 })->{id}, '2026,3', 'or both');
	is(made(orders => '2026,4', { no => 4 })->{id}, '2026,4', 'or some of them');
	my $answer = $ann->call(POST => '/orders', data => resource(orders => undef, { year => 2026, no => 5 }));
	is($answer->{headers}{location}, '/api/v1/orders/2026,5', 'where it is');
	$ann->refused('a field that differs', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/orders', data => resource(orders => '2026,6', { no => 7 }));
	$ann->refused('no id', 400, 'REQUIRED', [ pointer => '/data/id' ], POST => '/orders', data => resource(orders => undef, { note => 'none' }));
	$ann->refused('a part of one', 400, 'REQUIRED', [ pointer => '/data/id' ], POST => '/orders', data => resource(orders => undef, { year => 2026 }));
	$ann->refused('one that is taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/orders', data => resource(orders => undef, { year => 2026, no => 2 }));
	$ann->refused("a part is set once: $_", 400, 'READ_ONLY', [ pointer => "/data/attributes/$_" ], PATCH => '/orders/2026,2', data => resource(orders => '2026,2', { $_ => 9 })) for 'no', 'year';
	$ann->refused('another id', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], PATCH => '/orders/2026,2', data => resource(orders => '2026,3', { note => 'x' }));

	is(made(lines => undef, { n => 1, what => 'a' }, { order => to(orders => '2026,1') })->{id}, '2026,1,1', 'parts may be a reference');
	my $line = made(lines => '2026,1,2');
	is($line->{attributes}{n}, 2, 'an id says fields');
	is($ann->good(200, GET => '/lines/2026,1,2?include=order')->{json}{data}{relationships}{order}{data}{id}, '2026,1', 'and references');
	$ann->refused('a reference that differs', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/lines', data => resource(lines => '2026,1,3', undef, { order => to(orders => '2026,2') }));
	$ann->refused('no such target', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/relationships/order/data' ], POST => '/lines', data => resource(lines => undef, { n => 1 }, { order => to(orders => '1,1') }));
	$ann->refused('none of its form', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/relationships/order/data' ], POST => '/lines', data => resource(lines => undef, { n => 1 }, { order => to(orders => '1') }));
	$ann->refused('nor by an id', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/id' ], POST => '/lines', data => resource(lines => '1,1,1'));
	is(made(splits => undef, { n => 1, what => 'half' }, { line => to(lines => '2026,1,2') })->{id}, '2026,1,2,1', 'one further down');

	my $many = batch(map { { op => 'add', data => resource(lines => undef, { n => 10 + $_, what => "m$_" }, { order => to(orders => '2026,2') }) } } 1 .. 4);
	is($many->{status}, 200, 'many at once') or diag $many->{body};
	is(got(q{/lines?filter=order.id=='2026,2'}), '2026,2,11 2026,2,12 2026,2,13 2026,2,14', 'are there');
	my $chain = batch({ op => 'add', data => { %{ resource(orders => undef, { year => 2027, no => 1 }) }, lid => 'o' } },
		{ op => 'add', data => resource(parcels => undef, { what => 'lid' }, { a => { data => { type => 'orders', lid => 'o' } } }) },
		{ op => 'add', data => resource(lines => undef, { n => 1 }, { order => { data => { type => 'orders', lid => 'o' } } }) });
	is($chain->{status}, 200, 'local ids') or diag $chain->{body};
	is($chain->{json}{'atomic:results'}[2]{data}{id}, '2027,1,1', 'stand for ids of parts') or diag $chain->{body};

	my $parcel = made(parcels => undef, { what => 'p' }, { a => to(orders => '2026,1'), b => to(orders => '2026,2') });
	is($ann->good(200, GET => "/parcels/$parcel->{id}?include=a,b")->{json}{data}{relationships}{b}{data}{id}, '2026,2', 'a reference of several columns');
	$ann->good(200, PATCH => "/parcels/$parcel->{id}", data => resource(parcels => $parcel->{id}, undef, { b => to(orders => '2026,3') }));
	is($cluster->psql("select b_year || ' ' || b_no from shop.parcel where id = $parcel->{id}"), '2026 3', 'is changed');
	$ann->good(200, PATCH => "/parcels/$parcel->{id}", data => resource(parcels => $parcel->{id}, undef, { b => to(orders => undef) }));
	is($cluster->psql("select b_year is null and b_no is null from shop.parcel where id = $parcel->{id}"), 't', 'and taken away');
	$ann->good(204, PATCH => "/parcels/$parcel->{id}/relationships/b", data => { type => 'orders', id => '2026,4' });
	$ann->good(204, POST => '/orders/2026,5/relationships/parcels', data => [ { type => 'parcels', id => $parcel->{id} } ]);
	is(got('/orders/2026,5/parcels'), $parcel->{id}, 'put in from the other side');
	$ann->good(204, DELETE => '/orders/2026,5/relationships/parcels', data => [ { type => 'parcels', id => $parcel->{id} } ]);
	is(got('/orders/2026,5/parcels'), '', 'and taken out');
	$ann->good(204, PATCH => '/orders/2026,1/relationships/parcels', data => [ { type => 'parcels', id => $parcel->{id} } ]);

	$ann->refused('kept by a reference', 409, 'STILL_REFERENCED', undef, DELETE => '/orders/2026,4');
	$ann->good(204, DELETE => '/orders/2026,1');
	is($cluster->psql('select count(*) from shop.line where order_no = 1 and order_year = 2026'), 0, 'what goes along');
	is(records('2026,1,2,1', 'ENTITY_DELETE'), 1, 'has a record, the last as well');
	is($cluster->psql("select a_year is null and a_no is null from shop.parcel where id = $parcel->{id}"), 't', 'another is let go');
	is(records($parcel->{id}, 'ENTITY_UPDATE') > 3 ? 'some' : 'few', 'some', 'with a record');

	is(made(profiles => '2026,2', { words => 'w' })->{id}, '2026,2', 'a key that is a reference as a whole');
	is(made(profiles => undef, { words => 'w' }, { order => to(orders => '2026,3') })->{id}, '2026,3', 'by that');
	is($ann->good(200, GET => '/orders/2026,3/profile')->{json}{data}{id}, '2026,3', 'from the other side');
};

attack 'partitions and views' => sub {
	is(made(events => '2026-11-30,1', { note => 'a' })->{id}, '2026-11-30,1', 'a row of a partition');
	$ann->good(200, PATCH => '/events/2026-11-30,1', data => resource(events => '2026-11-30,1', { note => 'b' }));
	is($cluster->psql('select note from shop.event_26'), 'b', 'changed');
	$ann->refused('of none', 400, 'INVALID_VALUE', [ pointer => '/data' ], POST => '/events', data => resource(events => '2030-01-01,1'));
	$ann->good(204, DELETE => '/events/2026-11-30,1');
	$cluster->psql(<<'SQL');
truncate shop.orders, shop.line, shop.split, shop.parcel, shop.profile;
insert into shop.orders values (1, 1, 'one'), (1, 2, 'two');
insert into shop.line (order_year, order_no, line_no) values (1, 1, 1), (1, 1, 2), (1, 2, 1);
SQL
	is(got('/busies?sort=-lines'), '1,1 1,2', 'a view by two columns');
	is($ann->good(200, GET => '/busies/1,1?include=order')->{json}{included}[0]{attributes}{note}, 'one', 'leads on');
	is(got(q{/busies?filter=order.note==two}), '1,2', 'and is asked by that');
	$ann->refused('two rows of one id', 500, undef, undef, GET => '/twices/1,1');
	$ann->refused('on a page', 500, undef, undef, GET => '/twices');
	is($ann->good(200, GET => '/twices/1,2')->{json}{data}{id}, '1,2', 'another is served');
};

attack 'from made tables' => sub {
	$cluster->psql('truncate shop.orders, shop.line, shop.split, shop.parcel, shop.profile');
	made(orders => "5,$_") for 1 .. 3;
	made(lines => '5,1,1');
	my $one = made(ours => undef, { what => 'one' }, { order => to(orders => '5,2'), line => to(lines => '5,1,1') });
	is($cluster->psql("select order_year, order_no, line_order_year, line_order_no, line_line_no from app.ours where id = '$one->{id}'"), '5|2|5|1|1', 'a reference has a column for each part');
	my $read = $ann->good(200, GET => "/ours/$one->{id}?include=order,line.order")->{json};
	is(join(' ', sort map { "$_->{type}/$_->{id}" } @{ $read->{included} }), 'lines/5,1,1 orders/5,1 orders/5,2', 'included');
	is(got(q{/ours?filter=line.order.id=='5,1';order.id=='5,2'&sort=order.id}), $one->{id}, 'filtered and sorted');
	$ann->refused('no such target', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/relationships/order/data' ], PATCH => "/ours/$one->{id}", data => resource(ours => $one->{id}, undef, { order => to(orders => '5,9') }));
	$ann->refused('nor one that its columns have no room for', 404, 'RELATED_NOT_FOUND', undef, PATCH => "/ours/$one->{id}", data => resource(ours => $one->{id}, undef, { order => to(orders => '70000,1') }));
	$ann->good(200, PATCH => "/ours/$one->{id}", data => resource(ours => $one->{id}, undef, { order => to(orders => '5,3') }));
	$ann->refused('restrict', 409, 'STILL_REFERENCED', undef, DELETE => '/lines/5,1,1');
	$ann->good(204, DELETE => '/orders/5,3');
	is($cluster->psql("select order_year is null and order_no is null from app.ours where id = '$one->{id}'"), 't', 'let go');
	$ann->good(200, PATCH => "/ours/$one->{id}", data => resource(ours => $one->{id}, undef, { order => to(orders => '5,2') }));
	$cluster->psql('delete from shop.orders where no = 2');
	is($ann->good(200, GET => "/ours/$one->{id}?include=order")->{json}{data}{relationships}{order}{data}, undef, 'what others have deleted is null');
	is(got('/ours?filter=order=isnull=true'), $one->{id}, 'in filters, too');
	declared(Entity => Ours => { plural => 'ours', fields => { what => { type => 'text' }, order => { type => 'ref', target => 'Order', onDelete => 'setNull' },
		place => { type => 'ref', target => 'Line', required => $true, renamedFrom => 'line' } }, permissions => { Reader => ['read'], Editor => \@all } });
	my $renamed = $cluster->try_apply($folder);
	is($renamed->{status}, 0, 'renamed') or diag "$renamed->{err}$renamed->{out}";
	is($ann->good(200, GET => "/ours/$one->{id}?include=place")->{json}{data}{relationships}{place}{data}{id}, '5,1,1', 'with its links');
	is($cluster->psql(q{select string_agg(message, ' ') from entityapi.list_differences() where kind = 'difference'}), '', 'no difference');
};

attack 'a made table, and another order of the parts' => sub {
	my @turned = (table => 'shop.pair', fields => { note => { type => 'text' } });
	declared(Entity => Holds => { plural => 'holds', fields => { pair => { type => 'ref', target => 'Pair' } }, permissions => { Reader => ['read'], Editor => \@all } });
	is($cluster->try_apply($folder)->{status}, 0, 'applied');
	made(pairs => 'x,y', { note => 'xy' });
	my $holds = made(holds => undef, undef, { pair => to(pairs => 'x,y') })->{id};
	declared(Entity => Pair => { %given, @turned, key => [ 'b', 'a' ] });
	my $refused = $cluster->try_apply($folder);
	is($refused->{status}, 1, 'is refused');
	is(scalar(() = $refused->{err} =~ /references of Holds\.pair to Pair would be lost: now in 1 row/g), 1, 'once, for the links that would lead elsewhere') or diag $refused->{err};
	$ann->good(200, PATCH => "/holds/$holds", data => resource(holds => $holds, undef, { pair => to(pairs => undef) }));
	my $done = $cluster->try_apply($folder);
	is($done->{status}, 0, 'applied without links') or diag $done->{err};
	$ann->good(200, PATCH => "/holds/$holds", data => resource(holds => $holds, undef, { pair => to(pairs => 'y,x') }));
	is($ann->good(200, GET => "/holds/$holds?include=pair")->{json}{included}[0]{attributes}{note}, 'xy', 'links are by the new order');
	is($cluster->psql(q{select string_agg(message, ' ') from entityapi.list_differences() where kind = 'difference'}), '', 'no difference');
};

attack 'what was' => sub {
	my $order = made(orders => '2030,1', { note => 'first' });
	$ann->good(200, PATCH => '/orders/2030,1', data => resource(orders => '2030,1', { note => 'second' }));
	my $history = $ann->good(200, GET => '/orders/2030,1/history')->{json}{data};
	is(scalar @$history, 2, 'history') or diag explain $history;
	made(lines => '2030,1,1');
	made(splits => '2030,1,1,1', { what => 'a' });
	$ann->good(200, PATCH => '/splits/2030,1,1,1', data => resource(splits => '2030,1,1,1', { what => 'b' }));
	is(scalar @{ $ann->good(200, GET => '/splits/2030,1,1,1/history')->{json}{data} }, 2, 'of a row whose key is a reference');
	my $at = $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
	$ann->good(200, PATCH => '/splits/2030,1,1,1', data => resource(splits => '2030,1,1,1', { what => 'c' }));
	my $then = $ann->good(200, GET => "/splits/2030,1,1,1?asOf=$at")->{json}{data};
	is($then->{attributes}{what}, 'b', 'as of a time');
	is($then->{relationships}{line}{data}{id}, '2030,1,1', 'with its reference');
	$ann->good(204, DELETE => '/orders/2030,1');
	is($cluster->psql(q{select string_agg(target_id, ' ' order by target_id) from entityapi.audit where action = 'ENTITY_DELETE' and target_id like '2030%'}), '2030,1 2030,1,1 2030,1,1,1', 'records have the text');
	made(orders => '2030,1', { note => 'anew' });
	is(scalar @{ $ann->good(200, GET => '/orders/2030,1/history')->{json}{data} }, 1, 'an id that comes again has its own history');
};

attack 'policies and versions' => sub {
	declared(Policy => placed => { expression => q{#record.a != null or #record.what == 'free'} });
	declared(Policy => dear => { expression => q{#record.order.note != 'secret'} });
	declared(Entity => Parcel => { table => 'shop.parcel', key => 'id', optimisticLocking => $true, columns => { a => [ 'a_year', 'a_no' ], b => [ 'b_year', 'b_no' ], version => 'xmin' },
		fields => { what => { type => 'text' }, a => { type => 'ref', target => 'Order', onDelete => 'setNull' }, b => { type => 'ref', target => 'Order' } },
		permissions => { Reader => ['read'], Editor => \@all }, policies => { placed => ['read'] } });
	declared(Entity => Line => { %given, table => 'shop.line', key => [ 'order_year', 'order_no', 'line_no' ], columns => { order => [ 'order_year', 'order_no' ], n => 'line_no', version => 'xmin' }, optimisticLocking => $true,
		fields => { n => { type => 'integer' }, what => { type => 'text' }, amount => { type => 'integer' },
			order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' },
			splits => { type => 'ref', target => 'Split', relation => 'OneToMany', mappedBy => 'line' } }, policies => { dear => ['read'] } });
	my $changed = $cluster->try_apply($folder);
	is($changed->{status}, 0, 'applied') or diag "$changed->{err}$changed->{out}";
	$cluster->psql(<<'SQL');
truncate shop.orders, shop.line, shop.split, shop.parcel, shop.profile;
insert into shop.orders values (1, 1, 'open'), (1, 2, 'secret');
insert into shop.line (order_year, order_no, line_no) values (1, 1, 1), (1, 2, 1);
insert into shop.parcel (what, a_year, a_no) values ('some', 1, 1), ('half', 1, null), ('free', null, null);
SQL
	my $bob = $ann->as($shim->user($tenant, 'bob', ['Editor']));
	my @seen = map { $_->{attributes}{what} } @{ $bob->good(200, GET => '/parcels?sort=id')->{json}{data} };
	is("@seen", 'some free', 'a policy asks whether a reference is there');
	is(ids($bob->good(200, GET => '/lines')), '1,1,1', 'and for what is behind it');
	my $line = $bob->good(200, GET => '/lines/1,1,1');
	$bob->refused('no version', 428, undef, undef, PATCH => '/lines/1,1,1', data => resource(lines => '1,1,1', { what => 'x' }));
	my $headers = { 'If-Match' => $line->{headers}{etag} };
	is($bob->call(PATCH => '/lines/1,1,1', headers => { 'Content-Type' => 'application/vnd.api+json', %$headers }, data => resource(lines => '1,1,1', { what => 'x' }))->{status}, 200, 'by its version');
	is($bob->call(PATCH => '/lines/1,1,1', headers => { 'Content-Type' => 'application/vnd.api+json', %$headers }, data => resource(lines => '1,1,1', { what => 'y' }))->{status}, 412, 'which is another now');
	declared(Entity => Split => { table => 'shop.split', key => [ 'order_year', 'order_no', 'line_no', 'n' ], columns => { line => [ 'order_year', 'order_no', 'line_no' ] },
		fields => { n => { type => 'integer' }, line => { type => 'ref', target => 'Line', required => $true, onDelete => 'cascade' } }, permissions => { Reader => ['read'] }, policies => { broken => ['read'] } });
	declared(Policy => broken => { expression => q{#record.line.id == '1,1,1'} });
	like($cluster->try_apply($folder)->{err}, qr/may be compared with null only/, 'no more can be asked of such an id');
};

attack 'what a migration takes away' => sub {
	$cluster->psql('set role shop_owner; alter table shop.pair drop constraint pair_b_a_key');
	$ann->refused('without the index', 500, undef, undef, GET => '/pairs');
	like($cluster->psql(q{select string_agg(message, ' ') from entityapi.list_differences()}), qr/no primary key or immediate unique constraint on b, a any more/, 'it is told');
	$cluster->psql('set role shop_owner; alter table shop.pair add unique (a, b)');
	is($ann->good(200, GET => '/pairs')->{status}, 200, 'until it is back, in any order');
	$cluster->psql('set role shop_owner; alter table shop.pair alter b drop not null');
	$ann->refused('with a part that may be null', 500, undef, undef, GET => '/pairs');
	$cluster->psql('set role shop_owner; alter table shop.pair alter b set not null');
};

attack 'what clients are told' => sub {
	my $api = $ann->good(200, GET => '/api/v1/openapi.json')->{json};
	my ($path) = grep { m{/lines/\{id\}$} } keys %{ $api->{paths} };
	my ($parameter) = grep { ($_->{name} // '') eq 'id' } @{ $api->{paths}{$path}{parameters} };

	like('2026,1,1', qr/$parameter->{schema}{pattern}/, 'the form of ids');
	unlike($_, qr/$parameter->{schema}{pattern}/, "and not $_") for '2026,1', '2026,01,1', '2026,1,1,1';
};

done_testing();
