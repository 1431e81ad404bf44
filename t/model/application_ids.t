# Keys that are no UUIDs, as ids everywhere: of a table that the database gives
# numbers, that clients do, of texts, of char(n), of dates, and of a key that
# refers; with all ways of reading and writing.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my @all = qw(create read update delete history);

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

# --- what cannot be a key ---------------------------------------------------

$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web login;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
create collation shop.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
set role shop_owner;
create type shop.mood as enum ('a', 'b');
create table shop.bad (mood shop.mood primary key, loose text collate shop.loose not null unique, many text not null, late text not null unique deferrable,
	part text not null, expr text not null, able text unique, whole numeric not null unique, note text);
create unique index on shop.bad (part) where note is null;
create unique index on shop.bad (lower(expr));
grant select, insert, update, delete on shop.bad to shop_web;
reset role;
SQL

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
for my $case (
	[ mood => qr/the column "mood" is shop\.mood: a key is a uuid/, qr/ALTER TABLE shop\.bad ALTER COLUMN mood TYPE text/ ],
	[ loose => qr/nondeterministic collation/ ],
	[ many => qr/needs a primary key or an immediate unique constraint on "many"/, qr/ALTER TABLE shop\.bad ADD UNIQUE \(many\)/ ],
	[ late => qr/needs a primary key or an immediate unique constraint on "late"/ ],
	[ part => qr/needs a primary key or an immediate unique constraint on "part"/ ],
	[ expr => qr/needs a primary key or an immediate unique constraint on "expr"/ ],
	[ able => qr/the column "able" must be not null/, qr/SET NOT NULL/ ],
	[ whole => qr/the column "whole" is numeric: a key is/ ],
	[ gone => qr/the column "gone" does not exist/ ],
	[ [] => qr/has 1 to 8 columns/ ],
	[ [ 'many', 'part' ] => qr/needs a primary key or an immediate unique constraint on "many" and "part"/ ],
	[ '' => qr/must be the name of a column/ ],
	[ { a => 'b' } => qr/must be the name of a column/ ])
{
	my ($key, @said) = @$case;

	declared(Entity => Bad => { table => 'shop.bad', key => $key, fields => { note => { type => 'text' } }, permissions => { Reader => ['read'] } });
	my $error = $cluster->try_apply($folder)->{err};
	like($error, $_, 'key: ' . $encoder->allow_nonref->encode($key)) for @said;
}
declared(Entity => Bad => { table => 'shop.bad', key => 'mood', columns => { id => 'many' }, fields => { note => { type => 'text' } } });
like($cluster->try_apply($folder)->{err}, qr/says what "columns" says of "id"/, 'said twice');
declared(Entity => Bad => { key => 'mood', fields => { note => { type => 'text' } } });
like($cluster->try_apply($folder)->{err}, qr/goes with "table"/, 'of a table that is made');
unlink "$folder/Bad.json";

# --- the tables -------------------------------------------------------------

$cluster->psql(<<'SQL');
set role shop_owner;
create domain shop.number as integer check (value <> 13);
create table shop.customer (customer_no varchar(40) primary key, name text, since date);
create table shop.country (code char(3) primary key, name text);
create table shop.orders (order_no serial primary key, customer_no varchar(40) references shop.customer on delete set null deferrable, country char(3) references shop.country deferrable,
	placed date, note text, lock bigint not null default 0);
create index on shop.orders (customer_no);
create table shop.line (id bigint generated always as identity primary key, order_no integer not null references shop.orders on delete cascade deferrable, what text);
create index on shop.line (order_no);
create table shop.day (day date primary key, note text);
create table shop.person (id shop.number primary key, name text);
create table shop.employee (person_id shop.number primary key references shop.person on delete cascade deferrable, job text);
create table shop.small (id smallint primary key, name text);
create table shop.thing (id uuid primary key, name text);
create table shop.made (id uuid primary key default gen_random_uuid(), name text);
create table shop.remark (id serial primary key, words text, order_no integer references shop.orders deferrable, country char(3) references shop.country deferrable,
	check (num_nonnulls(order_no, country) <= 1));
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
reset role;
SQL

my %given = (permissions => { Reader => ['read'], Editor => \@all });
declared(Entity => Customer => { %given, table => 'shop.customer', key => 'customer_no', fields => { name => { type => 'text' }, since => { type => 'date' },
	orders => { type => 'ref', target => 'Order', relation => 'OneToMany', mappedBy => 'customer' } } });
declared(Entity => Country => { %given, table => 'shop.country', key => ['code'], plural => 'countries', fields => { name => { type => 'text' } } });
declared(Entity => Order => { %given, table => 'shop.orders', key => 'order_no', optimisticLocking => $true,
	columns => { version => 'lock', customer => 'customer_no', country => 'country' },
	fields => { placed => { type => 'date' }, note => { type => 'text' }, customer => { type => 'ref', target => 'Customer', onDelete => 'setNull' },
		country => { type => 'ref', target => 'Country' }, lines => { type => 'ref', target => 'Line', relation => 'OneToMany', mappedBy => 'order' } } });
declared(Entity => Line => { %given, table => 'shop.line', key => 'id', columns => { order => 'order_no' },
	fields => { what => { type => 'text' }, order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' } } });
declared(Entity => Day => { %given, table => 'shop.day', key => 'day', fields => { note => { type => 'text' } } });
declared(Entity => Person => { %given, table => 'shop.person', key => 'id', plural => 'persons', columns => { number => 'id' }, fields => { name => { type => 'text' }, number => { type => 'integer' },
	employee => { type => 'ref', target => 'Employee', relation => 'OneToOne', mappedBy => 'person' } } });
declared(Entity => Employee => { %given, table => 'shop.employee', key => 'person_id',
	fields => { job => { type => 'text' }, person => { type => 'ref', target => 'Person', relation => 'OneToOne', onDelete => 'cascade' } } });
declared(Entity => Small => { %given, table => 'shop.small', key => 'id', fields => { name => { type => 'text' } } });
declared(Entity => Thing => { %given, table => 'shop.thing', key => 'id', fields => { name => { type => 'text' } } });
declared(Entity => Made => { %given, table => 'shop.made', key => 'id', plural => 'mades', fields => { name => { type => 'text' } } });
declared(OneOf => About => { members => [ 'Order', 'Country' ] });
declared(Entity => Remark => { %given, table => 'shop.remark', key => 'id', columns => { 'about.Order' => 'order_no', 'about.Country' => 'country' },
	fields => { words => { type => 'text' }, about => { type => 'oneof', target => 'About' } } });

my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($cluster->try_apply($folder)->{out} =~ /ALTER|CREATE/ ? 'changes' : 'nothing', 'nothing', 'and again, with nothing to do');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub to { my ($type, @ids) = @_; return { data => ref $ids[0] ? [ map { { type => $type, id => $_ } } @{ $ids[0] } ] : defined $ids[0] ? { type => $type, id => $ids[0] } : undef } }
sub made { my ($type, $id, $attributes, $relationships) = @_;
	return $ann->good(201, POST => "/$type", data => { type => $type, defined $id ? (id => $id) : (), attributes => $attributes // {}, $relationships ? (relationships => $relationships) : () })->{json}{data} }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub ids { return join ' ', map { $_->{id} } @{ $_[0]{json}{data} } }
sub total { return $_[0]{json}{meta}{pagination}{totalRecords} }

sub all_pages
{
	my ($next) = @_;
	my @seen;

	while ($next && @seen < 100)
	{
		my $page = $ann->good(200, GET => $next);
		push @seen, map { $_->{id} } @{ $page->{json}{data} };
		$next = $page->{json}{links}{next};
	}
	return "@seen";
}

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "reads, direct ways $way" => sub {
		$cluster->psql(<<'SQL');
truncate shop.customer, shop.country, shop.orders, shop.line, shop.day, shop.person, shop.employee, shop.small, shop.remark;
insert into shop.customer select 'C' || i, 'name ' || i, date '2026-01-01' + i from generate_series(1, 12) i;
insert into shop.country values ('D', 'Germany'), ('CH', 'Switzerland'), ('USA', 'America');
insert into shop.orders (order_no, customer_no, country, placed, note) select i, 'C' || 1 + i % 3, 'CH', date '2026-02-01' + i, 'n' || i from generate_series(1, 25) i;
insert into shop.line (order_no, what) overriding user value select 1 + i % 5, 'w' || i from generate_series(1, 20) i;
insert into shop.day select date '2026-03-01' + i, 'd' || i from generate_series(0, 9) i;
insert into shop.day values ('infinity', 'ever'), ('0044-03-15 BC', 'ides');
insert into shop.person values (1, 'one'), (2, 'two'), (10, 'ten'), (-5, 'minus');
insert into shop.employee values (2, 'cook'), (10, 'clerk');
insert into shop.small values (-32768, 'low'), (0, 'null'), (32767, 'high');
insert into shop.remark (words, order_no, country) values ('about 7', 7, null), ('about D', null, 'D'), ('about nothing', null, null);
SQL
		my $one = $ann->good(200, GET => '/orders/7')->{json}{data};
		is($one->{id}, '7', 'an id is a string');
		is($one->{links}{self} =~ m{/api/v1/orders/7$} ? 1 : $one->{links}{self}, 1, 'its address');
		is_deeply($one->{relationships}{customer}{data}, { type => 'customers', id => 'C2' }, 'linkage to a text');
		is_deeply($one->{relationships}{country}{data}, { type => 'countries', id => 'CH' }, 'to a char(3), without its padding');
		is($ann->good(200, GET => '/countries/D')->{json}{data}{attributes}{name}, 'Germany', 'by the text');
		is($ann->good(200, GET => '/smalls/-32768')->{json}{data}{attributes}{name}, 'low', 'a smallint');
		is($ann->good(200, GET => '/days/2026-03-04')->{json}{data}{attributes}{note}, 'd3', 'a date');
		is($ann->good(200, GET => "/days/$_->[0]")->{json}{data}{attributes}{note}, $_->[1], "the date $_->[0]") for [ infinity => 'ever' ], [ '-0043-03-15' => 'ides' ];
		$ann->refused("$_ names none", 404, 'NOT_FOUND', undef, GET => $_)
		  for map({ "/orders/$_" } '007', '07', '%2B7', '-0', '%207', '7%20', '7.0', '0x7', '2147483648', '99999999999999999999', '-2147483649', 'seven', '7,1', '~37', '00000000-0000-0000-0000-000000000007'),
		  map({ "/smalls/$_" } '32768', '-32769', '00'), map({ "/days/$_" } '2026-3-4', '20260304', '2026-02-30', 'today', 'Infinity'), '/countries/CH%20', '/countries/CHHH', '/countries/ch', '/customers/c1', '/customers/' . 'x' x 41;

		is(ids($ann->good(200, GET => '/orders?sort=id&page[size]=12')), join(' ', 1 .. 12), 'numbers in the order of numbers');
		is(ids($ann->good(200, GET => '/orders?sort=-id&page[size]=3')), '25 24 23', 'and down');
		is(ids($ann->good(200, GET => '/persons?sort=id')), '-5 1 2 10', 'with a sign');
		is(ids($ann->good(200, GET => '/customers?sort=id')), join(' ', sort map { "C$_" } 1 .. 12), 'texts in that of texts');
		is(ids($ann->good(200, GET => '/days?sort=id&page[size]=2')), '-0043-03-15 2026-03-01', 'dates');
		is(ids($ann->good(200, GET => '/orders?sort=customer.id,-id&page[size]=3')), '24 21 18', 'by the id of another');
		is(ids($ann->good(200, GET => "/orders?filter=$_->[0]&sort=id&page[totals]=true")), $_->[1], $_->[0])
		  for [ 'id==7' => '7' ], [ 'id=in=(3,20,99)' => '3 20' ], [ 'id=gt=23' => '24 25' ], [ 'id=le=2' => '1 2' ], [ 'id!=7;id=lt=9' => '1 2 3 4 5 6 8' ], [ 'customer.id==C1;id=lt=7' => '3 6' ],
			[ 'country.id==CH;id==1' => '1' ], [ 'lines.id=ge=1;id==2' => '2' ], [ 'customer.name==\'name%202\';id=lt=5' => '1 4' ];
		is(ids($ann->good(200, GET => '/customers?filter=orders.id=in=(1,2)&sort=id')), 'C2 C3', 'over a to-many');
		is(ids($ann->good(200, GET => '/employees?filter=person.name==ten')), '10', 'over a key that refers');
		$ann->refused("the filter $_", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/orders?filter=$_") for 'id==007', 'id==x', 'id==2147483648', 'id=in=(1,%2B2)', 'id=like=1*', 'customer.id==' . 'x' x 41;
		is(total($ann->good(200, GET => "/orders?page[size]=2&page[totals]=true$_->[0]")), $_->[1], "counted: $_->[0]")
		  for [ '' => 25 ], [ '&filter=id==7' => 1 ], [ '&filter=customer.id==C1' => 8 ];
		is(total($ann->good(200, GET => '/customers/C1/orders?page[size]=2&page[totals]=true')), 8, 'of one');
		is(all_pages('/api/v1/orders?sort=id&page[after]=start&page[size]=7'), join(' ', 1 .. 25), 'by cursors');
		is(all_pages('/api/v1/orders?sort=-placed&page[after]=start&page[size]=7'), join(' ', reverse 1 .. 25), 'by those of another order');
		is(all_pages('/api/v1/customers?page[after]=start&page[size]=5'), join(' ', sort map { "C$_" } 1 .. 12), 'of texts');
		is(all_pages('/api/v1/orders?sort=customer.id&page[after]=start&page[size]=7'), join(' ', map({ my $c = $_; grep { 1 + $_ % 3 == $c } 1 .. 25 } 1 .. 3)), 'by an id over a path');
		$ann->refused('a cursor of another list', 400, 'INVALID_PAGE', undef, GET => '/orders?page[after]=' . ($ann->good(200, GET => '/customers?page[after]=start&page[size]=5')->{json}{links}{next} =~ /after(?:\]|%5D)=([\w-]+)/i)[0]);

		my $included = $ann->good(200, GET => '/orders/1?include=customer,country,lines')->{json};
		is(join(' ', sort map { "$_->{type}/$_->{id}" } grep { $_->{type} ne 'lines' } @{ $included->{included} }), 'countries/CH customers/C2', 'included');
		is(scalar(grep { $_->{type} eq 'lines' } @{ $included->{included} }), 4, 'with the to-many');
		is(scalar @{ $ann->good(200, GET => '/customers?include=orders.lines&sort=id')->{json}{included} }, 45, 'over two steps');
		is(scalar @{ $ann->good(200, GET => '/customers/C1/relationships/orders')->{json}{data} }, 8, 'linkage alone');
		is(ids($ann->good(200, GET => '/customers/C1/orders?sort=id&page[size]=3')), '3 6 9', 'related');
		is($ann->good(200, GET => '/orders/7/customer')->{json}{data}{id}, 'C2', 'related to one');
		is($ann->good(200, GET => '/persons/2/employee')->{json}{data}{attributes}{job}, 'cook', 'from the other side');
		is($ann->good(200, GET => '/persons/1/employee')->{json}{data}, undef, 'where there is none');
		is_deeply([ map { $_->{relationships}{about}{data} } @{ $ann->good(200, GET => '/remarks?sort=words')->{json}{data} } ],
			[ { type => 'orders', id => '7' }, { type => 'countries', id => 'D' }, undef ], 'one of two, of two kinds');
		is(join(' ', sort map { "$_->{type}/$_->{id}" } @{ $ann->good(200, GET => '/remarks?include=about')->{json}{included} }), 'countries/D orders/7', 'included');
		is($ann->good(200, GET => '/persons/10')->{json}{data}{attributes}{number}, 10, 'the field that is the key');
	};

	attack "writes, direct ways $way" => sub {
		$cluster->psql('truncate shop.customer, shop.country, shop.orders, shop.line, shop.day, shop.person, shop.employee, shop.small, shop.remark, shop.thing, shop.made');

		# the client chooses
		my $made = $ann->good(201, POST => '/customers', data => { type => 'customers', id => 'ALFKI', attributes => { name => 'Alfred' } });
		is($made->{json}{data}{id}, 'ALFKI', 'made with this id');
		like($made->{headers}{location}, qr{/api/v1/customers/ALFKI$}, 'and its address');
		is($cluster->psql(q{select name from shop.customer where customer_no = 'ALFKI'}), 'Alfred', 'as it is in the table');
		made(countries => 'CH', { name => 'Switzerland' });
		is($cluster->psql(q{select octet_length(code) from shop.country}), 3, 'padded in the table');
		made(days => '2026-05-01');
		made(smalls => $_) for '-32768', '0';
		$ann->refused('none is given', 400, 'REQUIRED', [ pointer => '/data/id' ], POST => '/customers', data => { type => 'customers', attributes => { name => 'x' } });
		$ann->refused('it is taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/customers', data => { type => 'customers', id => 'ALFKI', attributes => {} });
		$ann->refused('with padding it is another form', 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/countries', data => { type => 'countries', id => 'CH ', attributes => {} });
		$ann->refused("$_->[1] is none", 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => "/$_->[0]", data => { type => $_->[0], id => $_->[1], attributes => {} })
		  for [ smalls => '017' ], [ smalls => '+1' ], [ smalls => '-0' ], [ smalls => '32768' ], [ smalls => ' 1' ], [ days => '2026-02-30' ], [ days => '1.5.2026' ], [ countries => 'CHHH' ], [ customers => '' ], [ customers => 'a/b' ], [ customers => 'x' x 41 ];
		$ann->refused('a number is no string', 400, 'INVALID_DOCUMENT', [ pointer => '/data/id' ], POST => '/smalls', body => '{"data":{"type":"smalls","id":5}}');

		# the database does
		my $first = made(orders => undef, { note => 'first' }, { customer => to(customers => 'ALFKI'), country => to(countries => 'CH') });
		like($first->{id}, qr/^\d+$/, 'a number of the sequence');
		is($cluster->psql("select note || customer_no || country from shop.orders where order_no = $first->{id}"), 'firstALFKICH', 'it is that of the row');
		$ann->refused('none may be given', 403, 'CLIENT_ID_NOT_ALLOWED', [ pointer => '/data/id' ], POST => '/orders', data => { type => 'orders', id => '5', attributes => {} });
		my $line = made(lines => undef, { what => 'a' }, { order => to(orders => $first->{id}) });
		like($line->{id}, qr/^\d+$/, 'an identity that is always made');
		like(made(mades => undef, { name => 'x' })->{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-4/, 'a uuid of the database');

		# the service does
		like(made(things => undef, { name => 'x' })->{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'a uuid of the service');
		$ann->refused('none may be given', 403, 'CLIENT_ID_NOT_ALLOWED', [ pointer => '/data/id' ], POST => '/things', data => { type => 'things', id => '00000000-0000-4000-8000-000000000001', attributes => {} });

		# a field does
		is(made(persons => undef, { number => 7, name => 'seven' })->{id}, '7', 'made by the field');
		is(made(persons => '8', { name => 'eight' })->{attributes}{number}, 8, 'or by the id');
		is(made(persons => '9', { name => 'nine', number => 9 })->{id}, '9', 'or by both');
		$ann->refused('which differ', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/persons', data => { type => 'persons', id => '10', attributes => { number => 11 } });
		$ann->refused('or by nothing', 400, 'REQUIRED', [ pointer => '/data/id' ], POST => '/persons', data => { type => 'persons', attributes => { name => 'x' } });
		$ann->refused('what the domain does not take', 400, undef, undef, POST => '/persons', data => { type => 'persons', id => '13', attributes => {} });
		$ann->refused('it is taken', 409, 'UNIQUE_VIOLATION', undef, POST => '/persons', data => { type => 'persons', attributes => { number => 7 } });
		is($ann->call(PATCH => '/persons/7', data => { type => 'persons', id => '7', attributes => { number => 7, name => 'Seven' } })->{status}, 200, 'it stays');
		$ann->refused('and is set once', 400, undef, undef, PATCH => '/persons/7', data => { type => 'persons', id => '7', attributes => { number => 70 } });
		is(made(employees => undef, { job => 'cook' }, { person => to(persons => '7') })->{id}, '7', 'made by a key that refers');
		is(made(employees => '8', { job => 'clerk' })->{relationships}{person}{data}{id}, '8', 'or by the id');
		$ann->refused('which leads nowhere', 404, 'RELATED_NOT_FOUND', undef, POST => '/employees', data => { type => 'employees', id => '99', attributes => {} });
		$ann->refused('which differ', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/employees', data => { type => 'employees', id => '9', relationships => { person => to(persons => '7') } });

		# changes
		$ann->refused('another id', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], PATCH => '/customers/ALFKI', data => { type => 'customers', id => 'alfki', attributes => { name => 'x' } });
		is($ann->good(200, PATCH => '/customers/ALFKI', data => { type => 'customers', id => 'ALFKI', attributes => { name => 'A.' } })->{json}{data}{attributes}{name}, 'A.', 'changed');
		$ann->refused("to $_", 404, 'RELATED_NOT_FOUND', undef, POST => '/lines', data => { type => 'lines', attributes => {}, relationships => { order => to(orders => $_) } }) for '007', '999999', 'x', '99999999999';
		my $etag = $ann->good(200, GET => "/orders/$first->{id}")->{headers}{etag};
		is($ann->call(PATCH => "/orders/$first->{id}", data => { type => 'orders', id => $first->{id}, attributes => { note => 'x' } }, headers => { 'If-Match' => '"99"' })->{status}, 412, 'another version');
		is($ann->call(PATCH => "/orders/$first->{id}", data => { type => 'orders', id => $first->{id}, attributes => { note => 'x' } }, headers => { 'If-Match' => $etag })->{status}, 200, 'this one');
		made(customers => 'B', { name => 'Berta' });
		my $second = made(orders => undef, { note => 'second' });
		is($ann->call(PATCH => "/orders/$first->{id}/relationships/customer", json => to(customers => 'B'), headers => { 'If-Match' => '*' })->{status}, 204, 'another target');
		is($ann->call(POST => '/customers/B/relationships/orders', json => to(orders => [ $second->{id} ]))->{status}, 204, 'one more');
		is($cluster->psql(q{select count(*) from shop.orders where customer_no = 'B'}), 2, 'as it is in the table');
		is($ann->call(DELETE => '/customers/B/relationships/orders', json => to(orders => [ $first->{id} ]))->{status}, 204, 'one less');
		is($ann->call(PATCH => '/customers/B/relationships/orders', json => to(orders => [ $first->{id}, $second->{id} ]))->{status}, 204, 'both');
		is($ann->call(POST => "/orders/$first->{id}/relationships/lines", json => to(lines => [ $line->{id} ]), headers => { 'If-Match' => '*' })->{status}, 204, 'what is there stays');
		my $remark = made(remarks => undef, { words => 'w' }, { about => to(countries => 'CH') });
		is($ann->call(PATCH => "/remarks/$remark->{id}/relationships/about", json => to(orders => $first->{id}))->{status}, 204, 'one of another kind');
		is($cluster->psql("select order_no || coalesce(country, '-') from shop.remark where id = $remark->{id}"), "$first->{id}-", 'and not the first');
		is($ann->call(DELETE => "/remarks/$remark->{id}")->{status}, 204, 'gone');
		is($ann->call(DELETE => "/orders/$first->{id}", headers => { 'If-Match' => '*' })->{status}, 204, 'deleted');
		is($cluster->psql('select count(*) from shop.line'), 0, 'with its lines');
		is($ann->call(DELETE => '/customers/B')->{status}, 204, 'deleted');
		is($cluster->psql('select count(*) from shop.orders where customer_no is not null'), 0, 'and nobody\'s customer');
		is($ann->call(DELETE => '/persons/7')->{status}, 204, 'deleted');
		is($cluster->psql('select count(*) from shop.employee where person_id = 7'), 0, 'with the employee');
	};

	attack "several operations, direct ways $way" => sub {
		$cluster->psql('truncate shop.customer, shop.country, shop.orders, shop.line, shop.person, shop.employee cascade');
		my $answer = batch(
			{ op => 'add', data => { type => 'customers', id => 'N', attributes => { name => 'New' } } },
			{ op => 'add', data => { type => 'orders', lid => 'o', attributes => { note => 'n' }, relationships => { customer => to(customers => 'N') } } },
			{ op => 'add', data => { type => 'orders', lid => 'p', attributes => { note => 'm' } } },
			{ op => 'add', data => { type => 'lines', attributes => { what => 'a' }, relationships => { order => { data => { type => 'orders', lid => 'o' } } } } },
			{ op => 'add', data => { type => 'lines', attributes => { what => 'b' }, relationships => { order => { data => { type => 'orders', lid => 'p' } } } } },
			{ op => 'add', data => { type => 'persons', lid => 'x', attributes => { number => 5 } } },
			{ op => 'add', data => { type => 'employees', attributes => { job => 'j' }, relationships => { person => { data => { type => 'persons', lid => 'x' } } } } },
			{ op => 'update', ref => { type => 'orders', lid => 'p', relationship => 'customer' }, data => { type => 'customers', id => 'N' } });
		is($answer->{status}, 200, 'done') or diag $answer->{body};
		is($cluster->psql(q{select string_agg(o.note || l.what || o.customer_no, ' ' order by l.what) from shop.line l join shop.orders o using (order_no)}), 'naN mbN', 'by local ids');
		is($answer->{json}{'atomic:results'}[6]{data}{id}, '5', 'and by a field');
		my ($o) = map { $_->{data}{id} } $answer->{json}{'atomic:results'}[1];
		is(batch({ op => 'update', ref => { type => 'orders', id => $o }, data => { type => 'orders', id => $o, attributes => { note => 'u' } } },
			{ op => 'remove', href => "/api/v1/customers/N" })->{status}, 200, 'by ids and addresses');
		my $later = batch({ op => 'add', data => { type => 'lines', lid => 'l', attributes => {} } }, { op => 'add', data => { type => 'orders', lid => 'z', attributes => {} } },
			{ op => 'update', ref => { type => 'lines', lid => 'l', relationship => 'order' }, data => { type => 'orders', lid => 'z' } });
		is($later->{status}, 400, 'not to what comes later');
		is($cluster->psql('select count(*) from shop.line'), 2, 'and nothing is left of it');
		for my $case ([ 403, 'CLIENT_ID_NOT_ALLOWED', { type => 'orders', id => '5', attributes => {} } ], [ 400, 'INVALID_VALUE', { type => 'smalls', id => '007', attributes => {} } ],
			[ 400, 'REQUIRED', { type => 'smalls', attributes => {} } ], [ 409, 'UNIQUE_VIOLATION', { type => 'persons', id => '5', attributes => {} } ])
		{
			my $refused = batch({ op => 'add', data => $case->[2] });
			is("$refused->{status} $refused->{json}{errors}[0]{code} $refused->{json}{errors}[0]{source}{pointer}", "$case->[0] $case->[1] /atomic:operations/0/data/id", "$case->[1] there") or diag $refused->{body};
		}
	};

	attack "the log, direct ways $way" => sub {
		$cluster->psql('truncate shop.customer, shop.orders, shop.line cascade');
		my $id = "K$way";
		made(customers => $id, { name => 'one' });
		is($ann->call(PATCH => "/customers/$id", data => { type => 'customers', id => $id, attributes => { name => 'two' } })->{status}, 200, 'changed');
		my $order = made(orders => undef, { note => 'n' }, { customer => to(customers => $id) });
		my $history = $ann->good(200, GET => "/customers/$id/history")->{json}{data};
		is_deeply([ map { [ $_->{attributes}{action}, $_->{attributes}{changes}{name}{to} ] } @$history ], [ [ ENTITY_UPDATE => 'two' ], [ ENTITY_CREATE => 'one' ] ], 'its history');
		is_deeply($ann->good(200, GET => "/orders/$order->{id}/history")->{json}{data}[0]{attributes}{changes}{customer}, { from => undef, to => { type => 'customers', id => $id } }, 'with references');
		is($cluster->psql("select string_agg(distinct target_id, ' ') from entityapi.audit where target_type = 'customers' and target_id = '$id'"), $id, 'the log has the text');
		is($ann->call(DELETE => "/customers/$id")->{status}, 204, 'deleted');
		is($ann->good(200, GET => "/customers/$id/history")->{json}{data}[0]{attributes}{action}, 'ENTITY_DELETE', 'its history ends');
		made(customers => $id, { name => 'another' });
		is(join(' ', map { $_->{attributes}{action} } @{ $ann->good(200, GET => "/customers/$id/history")->{json}{data} }), 'ENTITY_CREATE', 'made anew it has no past');

		# others have the same id, and more records
		my $number = $way eq 'on' ? 771 : 772;
		my $patched = sub { my ($type, $name) = @_; return $ann->good(200, PATCH => "/$type/$number", data => { type => $type, id => "$number", attributes => { name => $name } }) };
		made(smalls => "$number", { name => 'one' });
		made(persons => undef, { number => 0 + $number, name => 'p' });
		my $then = $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
		$patched->(smalls => 'two');
		$patched->(persons => "p$_") for 1 .. 9;
		my $past = $ann->call(GET => "/smalls/$number?asOf=$then");
		isnt($past->{json}{data}{attributes}{name} // $past->{json}{errors}[0]{code}, 'two', 'what it is now is not what it was') or diag $past->{body};
		is(scalar @{ $ann->good(200, GET => "/smalls/$number/history")->{json}{data} }, 2, 'its history is its own');
		is($ann->call(DELETE => "/smalls/$number")->{status}, 204, 'deleted');
		$patched->(persons => "q$_") for 1 .. 9;
		is($ann->good(200, GET => "/smalls/$number/history")->{json}{data}[0]{attributes}{action}, 'ENTITY_DELETE', 'it is not forgotten for others\' sake');
	};
}

unlike(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed/, 'no request failed for a reason of ours')
  or diag join "\n", EntityApi::Test::slurp($cluster->log) =~ /(.*entityapi request \S+ failed.*)/g;
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'nothing has drifted');

attack 'the description' => sub {
	my $document = $ann->good(200, GET => '/api/v1/openapi.json')->{json};
	my $schemas = $document->{components}{schemas};
	my %forms = (Order => { type => 'string', pattern => '^(0|-?[1-9][0-9]*)$' }, Customer => { type => 'string', minLength => 1, pattern => '^(~3(\\.\\.?|aggregates)?|([^~/,\\\\]|~[0124])+)$' }, Day => { type => 'string', anyOf => [ { format => 'date' }, { pattern => '^(-?infinity|-?[0-9]{4,7}(-[0-9]{2}){2})$' } ] }, Thing => { type => 'string', format => 'uuid' });

	is_deeply($schemas->{"${_}Resource"}{properties}{id}, $forms{$_}, "ids of $_") for sort keys %forms;
	is_deeply((grep { ($_->{name} // '') eq 'id' } @{ $document->{paths}{'/api/v1/orders/{id}'}{parameters} })[0]{schema}, $forms{Order}, 'in addresses');
	is($document->{paths}{'/api/v1/things/{id}'}{parameters}[0]{'$ref'}, '#/components/parameters/id', 'of UUIDs as ever');
	is_deeply($schemas->{OrderCustomerRelationshipData}{properties}{id}, $forms{Customer}, 'in linkage');
	is_deeply($schemas->{RemarkAboutRelationshipData}{properties}{id}, { type => 'string' }, 'of two kinds');
	my %create = map { $_ => $schemas->{"${_}CreateDocument"}{properties}{data} } qw(Order Customer Person Thing);
	is_deeply({ map { $_ => [ exists $create{$_}{properties}{id} ? 1 : 0, scalar grep { $_ eq 'id' } @{ $create{$_}{required} } ] } keys %create },
		{ Order => [ 0, 0 ], Thing => [ 0, 0 ], Customer => [ 1, 1 ], Person => [ 1, 0 ] }, 'who makes them');
	is_deeply($schemas->{ResourceId}, { type => 'string' }, 'in operations');
};

attack 'ids that SQL asks for' => sub {
	$cluster->psql(q{create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'ann')});
	my $asked = sub { my $said = $cluster->try_psql("select entityapi.caller_sees('$_[0]', '$_[1]')", user => 'bi'); return $said->{out} . $said->{err} };
	my $thing = made(things => undef, { name => 'x' });

	is($asked->(Thing => $thing->{id}), 't', 'a UUID');
	is($asked->($_ => '41414141-4141-4141-4141-414141414141'), 'f', "none of $_ is one") for qw(Customer Country Order Day);
};

attack 'a key that the application changes' => sub {
	$cluster->psql('truncate shop.orders, shop.line cascade; insert into shop.orders (order_no, note) values (1, \'a\'), (2, \'b\')');
	$cluster->psql('set role shop_owner; alter table shop.small alter id type integer');
	is($ann->call(GET => '/smalls')->{status}, 500, 'of another type it is refused');
	is($ann->call(GET => '/orders/1')->{status}, 200, 'all else is served');
	is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 1, 'and told');
	is($cluster->try_apply($folder)->{status}, 0, 'applied again');
	$cluster->psql('insert into shop.small values (100000, \'large\') on conflict do nothing');
	is($ann->good(200, GET => '/smalls/100000')->{json}{data}{attributes}{name}, 'large', 'it is the new one');
	is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'as it is declared');
};

done_testing;
