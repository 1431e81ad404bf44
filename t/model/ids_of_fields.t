# An id that sets a field, or that a column refers to: the rules of the field
# hold for it, and so do the bounds of the column.

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
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web login;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
create collation shop.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
set role shop_owner;
create table shop.code (code varchar(9) primary key, note text);
create table shop.year (year integer primary key, note text);
create table shop.wide (id bigint primary key, note text);
create table shop.narrow (id serial primary key, wide_id integer references shop.wide on delete set null deferrable initially deferred, note text);
create table shop.small (id smallint primary key, note text);
create table shop.part (id integer primary key references shop.small deferrable, note text);
create table shop.word (word text primary key, note text);
insert into shop.wide values (1), (5000000000);
insert into shop.narrow (wide_id) values (1), (null);
insert into shop.small values (1), (2);
insert into shop.word values ('Mixed');
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
reset role;
SQL

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

my @all = qw(create read update delete);
my %both = (permissions => { Editor => \@all, Clerk => \@all });
my %note = (note => { type => 'text' });

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Editor => {}, Clerk => {} } });
declared(Entity => Code => { %both, table => 'shop.code', key => 'code', fields => { %note, code => { type => 'string', maxLength => 9, pattern => '^[A-Z]*$', writeRoles => ['Editor'] } } });
declared(Entity => Year => { %both, table => 'shop.year', key => 'year', fields => { %note, year => { type => 'integer', minimum => 1900 } } });
declared(Entity => Wide => { %both, table => 'shop.wide', key => 'id', fields => { %note,
	narrows => { type => 'ref', target => 'Narrow', relation => 'OneToMany', mappedBy => 'wide' } } });
declared(Entity => Narrow => { %both, table => 'shop.narrow', key => 'id', columns => { wide => 'wide_id' }, fields => { %note, wide => { type => 'ref', target => 'Wide', onDelete => 'setNull' } } });
declared(Entity => Small => { permissions => { Editor => \@all }, table => 'shop.small', key => 'id', fields => {%note} });
declared(Entity => Part => { %both, table => 'shop.part', key => 'id', columns => { small => 'id' }, fields => { %note, small => { type => 'ref', target => 'Small', relation => 'OneToOne' } } });
declared(Entity => Word => { %both, table => 'shop.word', key => 'word', fields => {%note} });
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $bob = $ann->as($shim->user($tenant, 'bob', ['Clerk']));

sub doc
{
	my ($type, $id, $attributes, $relationships) = @_;

	return (data => { type => $type, $id ? (id => $id) : (), attributes => $attributes // {}, relationships => $relationships // {} });
}

subtest 'a field that is the key' => sub {
	is($ann->call(POST => '/codes', doc(codes => 'ABC'))->{status}, 201, 'made by its id');
	$ann->refused('its pattern', 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/codes', doc(codes => 'abc'));
	$ann->refused('its bounds', 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/years', doc(years => '1899'));
	is($ann->call(POST => '/years', doc(years => '1900'))->{status}, 201, 'within them');
	$bob->refused('its roles', 403, 'FORBIDDEN', [ pointer => '/data/id' ], POST => '/codes', doc(codes => 'DEF'));
	$ann->refused("the value $_->[1] of $_->[0]", 400, 'INVALID_VALUE', [ pointer => "/data/attributes/$_->[0]" ], POST => "/$_->[0]s", doc("$_->[0]s" => undef, { $_->[0] => $_->[1] }))
	  for [ code => 5 ], [ code => 'ABCDEFGHIJ' ], [ code => {} ], [ year => 'x' ], [ year => 1.5 ], [ year => 99999999999 ];
	$ann->refused('and beside an id', 400, 'INVALID_VALUE', [ pointer => '/data/attributes/code' ], POST => '/codes', doc(codes => 'ABC', { code => 5 }));
	my $batch = $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => [ { op => 'add', doc(codes => undef, { code => 5 }) } ] }));
	is("$batch->{status} $batch->{json}{errors}[0]{source}{pointer}", '400 /atomic:operations/0/data/attributes/code', 'and in an operation');
};

subtest 'a reference that is the key' => sub {
	is($ann->call(POST => '/parts', doc(parts => '1'))->{status}, 201, 'made by its id');
	$ann->refused('one that the target cannot have', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/id' ], POST => '/parts', doc(parts => '70000'));
	$bob->refused($_ == 2 ? 'a target that is not to be seen' : 'as one that is not there', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/id' ], POST => '/parts', doc(parts => "$_")) for 2, 3;
};

subtest 'a column that is narrower than what it refers to' => sub {
	my $narrow = { data => [ { type => 'narrows', id => '2' } ] };

	$ann->refused("$_->[0] $_->[1]", 400, 'INVALID_VALUE', [ pointer => $_->[2] ], @$_[ 0, 1 ], @$_[ 3, 4 ])
	  for [ POST => '/wides/5000000000/relationships/narrows', '/data', json => $narrow ], [ PATCH => '/wides/5000000000/relationships/narrows', '/data', json => $narrow ],
		[ PATCH => '/wides/5000000000', '/data/relationships/narrows/data', doc(wides => '5000000000', {}, { narrows => $narrow }) ],
		[ POST => '/wides', '/data/relationships/narrows/data', doc(wides => '6000000000', {}, { narrows => $narrow }) ];
	is($cluster->psql('select count(*) from shop.wide where id = 6000000000'), 0, 'nothing is left of it');
	is($ann->call($_ => '/wides/5000000000/relationships/narrows', json => { data => $_ eq 'PATCH' ? [] : $narrow->{data} })->{status}, 204, "$_ of none") for 'PATCH', 'DELETE';
	is($ann->call(POST => '/wides/1/relationships/narrows', json => $narrow)->{status}, 204, 'what fits');
	$ann->refused('from the other side', 404, 'RELATED_NOT_FOUND', undef, POST => '/narrows', doc(narrows => undef, {}, { wide => { data => { type => 'wides', id => '5000000000' } } }));
};

subtest 'a key that gets a collation of which two spellings are equal' => sub {
	$cluster->psql('alter table shop.word alter word type text collate shop.loose');
	is($ann->call($_ => '/words/MIXED')->{status}, 500, "$_ by another spelling") for 'GET', 'DELETE';
	is($cluster->psql('select count(*) from shop.word'), 1, 'the row is there');
	like($cluster->psql('select message from entityapi.list_differences()'), qr/nondeterministic collation/, 'and it is told');
	$cluster->psql('alter table shop.word alter word type text collate "C"');
	is($ann->call(GET => '/words/Mixed')->{status}, 200, 'served again');
};

subtest 'a key that nothing keeps apart any more' => sub {
	is($ann->call(GET => '/years/1900')->{status}, 200, 'one row');
	$cluster->psql(q{alter table shop.year drop constraint year_pkey; insert into shop.year values (1900, 'again')});
	is($ann->call($_->[0] => "/years$_->[1]", $_->[0] eq 'GET' ? () : doc(years => '1900', { note => 'which' }))->{status}, 500, "$_->[0] $_->[1]") for [ GET => '/1900' ], [ GET => '' ], [ PATCH => '/1900' ], [ POST => '' ];
	is($cluster->psql(q{select count(*) from shop.year where note = 'which'}), 0, 'nothing is written');
	like($cluster->psql('select message from entityapi.list_differences()'), qr/no primary key or immediate unique constraint on year/, 'and it is told');
	$cluster->psql(q{delete from shop.year where note = 'again'; create unique index on shop.year (year)});
	is($ann->call(GET => '/years/1900')->{status}, 200, 'served again');
	is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'as declared');
};

subtest 'ids in the API\'s description' => sub {
	my $schemas = $ann->good(200, GET => '/openapi.json')->{json}{components}{schemas};
	my ($pattern) = map { $_->{properties}{id}{pattern} // () } map { $schemas->{$_} } grep { /^Word/ } sort keys %$schemas;

	like($_, qr/$pattern/, "$_ is one") for 'a', '~0', 'a~1b~2c~4', '~3', '~3.', '~3..', '~3aggregates', "a\nb", '...';
	unlike($_, qr/$pattern/, "$_ is none") for '', '~', '~5', 'a~3', '~3x', '~3...', '~3~3', 'a/b', 'a,b', 'a\\b';
};

done_testing;
