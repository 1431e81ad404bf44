# Keys of several parts where they meet other things: indexes, hooks, deletion that hides,
# references of which only some columns are of the key, one-ofs.

use strict;
use warnings;

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
my @all = qw(create read update delete history restore);
my %given = (permissions => { Reader => ['read'], Editor => [ grep { $_ ne 'restore' } @all ] });

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
create table shop.orders (company integer, no integer, note text, primary key (company, no));
create table shop.person (company integer, nick text, name text, boss text, primary key (company, nick),
	foreign key (company, boss) references shop.person on delete set null (boss));
create table shop.line (company integer, order_no integer, n integer, what text, picker text, packer text not null, primary key (company, order_no, n),
	foreign key (company, order_no) references shop.orders on delete cascade,
	foreign key (company, picker) references shop.person on delete set null (picker), foreign key (company, packer) references shop.person);
create index on shop.line (company, picker);
create table shop.box (room integer, shelf char(3), label text, gone timestamptz, gone_id uuid, primary key (room, shelf));
create table shop.item (room integer, shelf char(3), n integer, label text, gone timestamptz, gone_id uuid, primary key (room, shelf, n), foreign key (room, shelf) references shop.box);
create table shop.remark (id integer generated always as identity primary key, words text, room integer, shelf char(3), company integer, nick text,
	foreign key (room, shelf) references shop.box, foreign key (company, nick) references shop.person, check (num_nonnulls(shelf, nick) <= 1));
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
reset role;
create schema hooks authorization entityapi_owner;
set role entityapi_owner;
create function hooks.number_it(context jsonb) returns jsonb language sql as $$ select '{"attributes": {"n": 77}}'::jsonb $$;
reset role;
SQL

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web' } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
my %label = (label => { type => 'text' });
declared(Entity => Order => { %given, table => 'shop.orders', key => [ 'company', 'no' ], fields => { no => { type => 'integer' }, note => { type => 'text' },
	lines => { type => 'ref', target => 'Line', relation => 'OneToMany', mappedBy => 'order' } } });
declared(Entity => Person => { %given, table => 'shop.person', key => [ 'company', 'nick' ], plural => 'persons', columns => { boss => [ 'company', 'boss' ] },
	fields => { name => { type => 'text' }, boss => { type => 'ref', target => 'Person', onDelete => 'setNull' },
		staff => { type => 'ref', target => 'Person', relation => 'OneToMany', mappedBy => 'boss' } } });
declared(Entity => Line => { %given, table => 'shop.line', key => [ 'company', 'order_no', 'n' ],
	columns => { order => [ 'company', 'order_no' ], picker => [ 'company', 'picker' ], packer => [ 'company', 'packer' ] },
	fields => { n => { type => 'integer' }, what => { type => 'text' }, order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' },
		picker => { type => 'ref', target => 'Person', onDelete => 'setNull' }, packer => { type => 'ref', target => 'Person', required => $true } } });
my %soft = (softDelete => $true, columns => { deletedAt => 'gone', deletionId => 'gone_id' }, permissions => { Reader => ['read'], Editor => \@all });
declared(Entity => Box => { %soft, table => 'shop.box', key => [ 'room', 'shelf' ], plural => 'boxes', fields => {%label, items => { type => 'ref', target => 'Item', relation => 'OneToMany', mappedBy => 'box' } } });
declared(Entity => Item => { %soft, table => 'shop.item', key => [ 'room', 'shelf', 'n' ], columns => { %{ $soft{columns} }, box => [ 'room', 'shelf' ] },
	fields => { %label, n => { type => 'integer' }, box => { type => 'ref', target => 'Box', required => $true, onDelete => 'cascade' } } });
declared(OneOf => About => { members => [ 'Box', 'Person' ] });
declared(Entity => Remark => { %given, table => 'shop.remark', key => 'id', columns => { 'about.Box' => [ 'room', 'shelf' ], 'about.Person' => [ 'company', 'nick' ] },
	fields => { words => { type => 'text' }, about => { type => 'oneof', target => 'About' } } });

my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT("$applied->{err}$applied->{out}");
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'no difference');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $principal = $encoder->encode({ kind => 'USER', tenantId => $tenant, userId => $cluster->psql(q{select id from entityapi.account where username = 'ann'}), roles => ['Editor'] });

sub to { my ($type, $id) = @_; return { data => defined $id ? { type => $type, id => $id } : undef } }
sub resource
{
	my ($type, $id, $attributes, $relationships) = @_;

	return { type => $type, defined $id ? (id => $id) : (), $attributes ? (attributes => $attributes) : (), $relationships ? (relationships => $relationships) : () };
}
sub made { my ($type, @rest) = @_; return $ann->good(201, POST => "/$type", data => resource($type, @rest))->{json}{data} }
sub ids { return join ' ', map { $_->{id} } @{ $_[0]{json}{data} } }
sub got { return ids($ann->good(200, GET => $_[0])) }
sub records { my ($id, $action) = @_; return $cluster->psql("select count(*) from entityapi.audit where target_id = '$id' and action = '$action' and outcome = 'SUCCESS'") }

attack 'columns that references share with the key' => sub {
	made(orders => '1,1');
	made(orders => '2,1');
	made(persons => $_) for '1,ann', '1,bob', '2,cy';
	made(persons => '1,dan', { name => 'D' }, { boss => to(persons => '1,ann') });
	is(got('/persons/1,ann/staff'), '1,dan', 'within the company');
	$ann->refused('a boss of another company', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/persons', data => resource(persons => '1,eve', undef, { boss => to(persons => '2,cy') }));
	my $line = made(lines => undef, { n => 1 }, { order => to(orders => '1,1'), picker => to(persons => '1,bob'), packer => to(persons => '1,ann') });
	is($line->{id}, '1,1,1', 'all of them agree');
	is($cluster->psql('select company, order_no, n, picker, packer from shop.line'), '1|1|1|bob|ann', 'and are stored');
	is(made(lines => '1,1,2', undef, { packer => to(persons => '1,ann') })->{id}, '1,1,2', 'an id, with what it does not say');
	$ann->refused('without what it does not say', 400, 'REQUIRED', undef, POST => '/lines', data => resource(lines => '1,1,3'));
	$ann->refused('references that differ', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], POST => '/lines',
		data => resource(lines => undef, { n => 4 }, { order => to(orders => '1,1'), packer => to(persons => '2,cy') }));
	$ann->refused('set once', 400, 'READ_ONLY', undef, PATCH => '/lines/1,1,1', data => resource(lines => '1,1,1', undef, { picker => to(persons => undef) }));
	$ann->refused('also from the other side', 400, 'READ_ONLY', undef, PATCH => '/persons/1,bob/relationships/staff', data => []);
	$ann->refused('kept by one', 409, 'STILL_REFERENCED', undef, DELETE => '/persons/1,ann');
	$ann->good(204, DELETE => '/persons/1,bob');
	is($cluster->psql('select company, picker is null from shop.line where n = 1'), '1|t', 'let go, and in its company');
	is(records('1,1,1', 'ENTITY_UPDATE'), 1, 'with a record');
	is($ann->good(200, GET => '/lines/1,1,1?include=picker,packer')->{json}{data}{relationships}{picker}{data}, undef, 'a part that is null');
	is(got('/lines?filter=picker=isnull=true'), '1,1,1 1,1,2', 'in filters as well');
	is(got(q{/lines?filter=packer.id=='1,ann'&sort=picker.id,-n}), '1,1,2 1,1,1', 'and orders');
};

attack 'what is hidden' => sub {
	made(boxes => '1,a');
	made(items => "1,a,$_") for 1, 2;
	made(items => undef, { n => 3 }, { box => to(boxes => '1,a') });
	$ann->good(204, DELETE => '/items/1,a,3');
	$ann->good(204, DELETE => '/boxes/1,a');
	$ann->refused('is gone', 404, 'NOT_FOUND', undef, GET => '/boxes/1,a');
	is(got('/items'), '', 'with what goes along');
	$ann->refused('but its id is taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/boxes', data => resource(boxes => '1,a'));
	is(got('/boxes?show[deleted]=only'), '1,a', 'it is shown to whom may restore it') or diag $ann->call(GET => '/boxes?show[deleted]=only')->{body};
	$ann->good(200, POST => '/boxes/1,a/restore');
	is(got('/items'), '1,a,1 1,a,2', 'and comes back with what went along');
	is(records('1,a,2', 'ENTITY_RESTORE'), 1, 'with records');
};

attack 'one of several' => sub {
	my $remark = made(remarks => undef, { words => 'box' }, { about => to(boxes => '1,a') });
	is($cluster->psql("select room, shelf, company, nick from shop.remark where id = $remark->{id}"), '1|a  ||', 'about one');
	$ann->good(200, PATCH => "/remarks/$remark->{id}", data => resource(remarks => $remark->{id}, undef, { about => to(persons => '2,cy') }));
	is($cluster->psql("select room, shelf, company, nick from shop.remark where id = $remark->{id}"), '||2|cy', 'about another');
	my $read = $ann->good(200, GET => "/remarks/$remark->{id}?include=about")->{json};
	is($read->{data}{relationships}{about}{data}{id}, '2,cy', 'shown');
	is($read->{included}[0]{id}, '2,cy', 'and included');
	is(got(q{/remarks?filter=about.id=='2,cy'}), $remark->{id}, 'in filters, with ids of any member');
};

attack 'by the index' => sub {
	$cluster->psql(<<'SQL');
insert into shop.person select c, 'p' || p, 'n', case when p > 1 then 'p1' end from generate_series(10, 20) c, generate_series(1, 10) p;
insert into shop.orders select c, o, 'n' || o % 7 from generate_series(10, 20) c, generate_series(1, 300) o;
insert into shop.line select c, o, n, 'w', null, 'p1' from generate_series(10, 20) c, generate_series(1, 300) o, generate_series(1, 5) n;
analyze shop.orders, shop.line, shop.person;
SQL
	my $plan = sub { return $cluster->psql("select string_agg(x, chr(10)) from entityapi.explain('GET', '$_[0]', '$principal') x") };
	my $next = $ann->good(200, GET => '/lines?page[size]=20&page[after]=start')->{json}{links}{next};
	my $down = $ann->good(200, GET => '/lines?sort=-id&page[size]=20&page[after]=start')->{json}{links}{next};
	for my $case (
		[ by_id => '/api/v1/lines/15,100,3', qr/Index Cond: \(\(company = .*\) AND \(order_no = .*\) AND \(n = / ],
		[ next => $next, qr/Index Cond: .*ROW\(company, order_no, n\) > ROW\(/ ],
		[ down => $down, qr/Index Scan Backward .*Index Cond: .*ROW\(company, order_no, n\) < ROW\(/s ],
		[ first => '/api/v1/lines?page[size]=20', qr/Index (?:Only )?Scan using line_pkey/ ],
		[ in => q{/api/v1/lines?filter=id=in=(''15,100,3'',''16,7,1'')}, qr/Index Cond: .*order_no = / ],
		[ related => '/api/v1/orders/15,100/lines', qr/Index Cond: \(\(company = .*\) AND \(order_no = / ],
		[ include => '/api/v1/orders?filter=note==n3&page[size]=20&include=lines', qr/on line t0.*Index Cond: .*order_no = /s ],
		[ filter => q{/api/v1/lines?filter=order.id==''15,100''}, qr/Index Cond: .*order_no = / ])
	{
		my ($what, $target, $wanted) = @$case;
		my $got = $plan->($target);

		like($got, $wanted, $what);
		unlike($got, qr/Seq Scan on line/, "$what reads no more");
	}
};

attack 'hooks' => sub {
	declared(Hook => number => { entity => 'Line', phase => 'mutate', on => ['create'], function => 'hooks.number_it' });
	my $done = $cluster->try_apply($folder);
	is($done->{status}, 0, 'a hook') or die "$done->{err}$done->{out}";
	is(made(lines => undef, { n => 1 }, { order => to(orders => '2,1'), packer => to(persons => '2,cy') })->{id}, '2,1,77', 'sets a part of the id');
	is(records('2,1,77', 'ENTITY_CREATE'), 1, 'which records have');
	unlink "$folder/number.json";
};

attack 'declared otherwise' => sub {
	my %line = (%given, table => 'shop.line', key => [ 'company', 'order_no', 'n' ], fields => { n => { type => 'integer' }, picker => { type => 'ref', target => 'Person', onDelete => 'setNull' }, packer => { type => 'ref', target => 'Person', required => $true } });
	my $order = sub { return (order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' }) };
	declared(Entity => Order => { %given, table => 'shop.orders', key => [ 'no', 'company' ], fields => { note => { type => 'text' } } });
	my $wrong = $cluster->try_apply($folder);
	like($wrong->{err}, qr/needs a foreign key to the key of shop\.orders/, 'what refers to it goes by its order');
	declared(Entity => Line => { %line, columns => { order => [ 'order_no', 'company' ], picker => [ 'company', 'picker' ], packer => [ 'company', 'packer' ] }, fields => { %{ $line{fields} }, $order->() } });
	my $done = $cluster->try_apply($folder);
	is($done->{status}, 0, 'another order of the parts') or die "$done->{err}$done->{out}";
	made(orders => '8,2');
	is($cluster->psql('select note is null from shop.orders where no = 8 and company = 2'), 't', 'is that of ids');
	is(made(lines => '2,8,1', undef, { packer => to(persons => '2,cy') })->{id}, '2,8,1', 'and of what a reference says');
	is($ann->good(200, GET => '/lines/2,8,1?include=order')->{json}{included}[0]{id}, '8,2', 'is followed');
	declared(Entity => Order => { %given, table => 'shop.orders', key => 'no', fields => { note => { type => 'text' } } });
	like($cluster->try_apply($folder)->{err}, qr/refers to Order, whose key has 1 column/, 'a key of one column');
};

done_testing();
