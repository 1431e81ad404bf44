# An application's own migrations: what they take from its tables, manifests that
# follow let go.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

$cluster->psql(<<'SQL');
create role shop_app login;
create schema shop authorization shop_app;
create schema ours authorization entityapi_owner;
grant usage on schema ours to entityapi_reader;
set role shop_app;
create table shop.book (id uuid primary key default gen_random_uuid(), title text not null, pages integer not null, state text default 'new');
create table shop.note (id uuid primary key default gen_random_uuid(), words text);
insert into shop.book (title, pages) values ('Emma', 474);
create type shop.sort as enum ('paper', 'audio');
create table shop.item (id uuid primary key default gen_random_uuid(), sort shop.sort not null default 'audio');
insert into shop.item default values;
set role entityapi_owner;
create table ours.shelf (id uuid primary key default gen_random_uuid(), place text not null, room integer);
insert into ours.shelf (place, room) values ('left', 3);
reset role;
SQL

my %pages = (pages => { type => 'integer', required => $true });
my %state = (state => { type => 'text' });
my %room = (room => { type => 'integer' });
my $book = sub { my ($table, @fields) = @_;
	return declared(Entity => Book => { table => $table, fields => { title => { type => 'text', required => $true }, @fields },
		permissions => { Reader => [qw(read update)] } }) };
my $shelf = sub { my (@fields) = @_;
	return declared(Entity => Shelf => { table => 'ours.shelf', plural => 'shelves', tenantScoped => $false,
		fields => { place => { type => 'text', required => $true }, @fields }, permissions => { Reader => ['read'] } }) };

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app' } });
declared(Roles => roles => { roles => { Reader => {} } });
declared(Entity => Note => { table => 'shop.note', fields => { words => { type => 'text' } }, permissions => { Reader => ['read'] } });
declared(Entity => Item => { table => 'shop.item', fields => { sort => { type => 'string', enum => 'database', required => $true } },
	permissions => { Reader => ['read'] } });
$book->('shop.book', %pages, %state);
$shelf->(%room);
$cluster->apply($folder);

my $shim = EntityApi::Test->shim($cluster);
my $reader = $shim->user($cluster->psql('select id from entityapi.tenant'), 'ann', ['Reader'])->{accessToken};
my $get = sub { my ($path) = @_;
	my $answer = $shim->http(GET => "/api/v1/$path", { token => $reader });
	return $answer->{status} == 200 ? $answer->{json}{data}[0]{attributes} : $answer->{status} };
my $migrated = sub { my ($sql, $role) = @_;
	return $cluster->psql("set role @{[ $role // 'shop_app' ]}; $sql") };
my $applied = sub { my $run = $cluster->try_apply(@_, $folder);
	return "$run->{status} $run->{err}" };
my $differs = sub { return $cluster->psql('select count(*) from entityapi.list_differences()') };

is_deeply($get->('books'), { title => 'Emma', pages => 474, state => 'new' }, 'served');

subtest 'a column gets another name' => sub {
	$migrated->('alter table shop.book rename pages to page_count');
	is($get->('books'), 500, 'no request');
	cmp_ok($differs->(), '>', 0, 'but a line in the drift');
	like($applied->(), qr{^1 .*/spec/fields/pages: the column "pages" does not exist|^1 .*the column "pages" of shop\.book does not exist}s, 'manifests that still name it are refused');
	$book->('shop.book', pageCount => $pages{pages}, %state);
	is($applied->(), '0 ', 'those that name the new one are not');
	is_deeply($get->('books'), { title => 'Emma', pageCount => 474, state => 'new' }, 'and it is served');
	is($differs->(), 0, 'without a difference');
};

subtest 'a column goes' => sub {
	$migrated->('alter table shop.book drop state');
	$book->('shop.book', pageCount => $pages{pages});
	is($applied->(), '0 ', 'with its field');
	is_deeply($get->('books'), { title => 'Emma', pageCount => 474 }, 'the others stay');
};

subtest 'a column gets another type' => sub {
	$migrated->('alter table shop.book alter page_count type bigint');
	is($get->('books'), 500, 'no request');
	$book->('shop.book', pageCount => { type => 'long', required => $true });
	is($applied->(), '0 ', 'with its field');
	is_deeply($get->('books'), { title => 'Emma', pageCount => 474 }, 'served');
};

subtest 'a table gets another name' => sub {
	$migrated->('alter table shop.book rename to volume');
	is($get->('books'), 500, 'no request');
	$book->('shop.volume', pageCount => { type => 'long', required => $true });
	is($applied->(), '0 ', 'which the manifest says');
	is_deeply($get->('books'), { title => 'Emma', pageCount => 474 }, 'served');
};

subtest 'an enumeration is made anew' => sub {
	is_deeply($get->('items'), { sort => 'audio' }, 'served');
	$migrated->(q{begin; alter type shop.sort rename to sort_old; create type shop.sort as enum ('audio', 'game');
		alter table shop.item alter sort drop default, alter sort type shop.sort using sort::text::shop.sort; drop type shop.sort_old; commit});
	is_deeply($get->('items'), { sort => 'audio' }, 'as its column is of the type of this name');
	is($get->('items?filter=sort==game&page[totals]=true'), undef, 'by its labels');
	is($get->('items?filter=sort==paper'), 400, 'no others');
	is($differs->(), 0, 'without a difference');
	$migrated->('alter type shop.sort rename to kind');
	is($get->('items'), 500, 'not under another name');
	like($cluster->psql('select message from entityapi.list_differences()'), qr/column sort of table shop\.item is not what entity "Item" needs: shop\.sort/,
		'of which there is a line in the drift');
	$migrated->('alter type shop.kind rename to sort');
	is_deeply($get->('items'), { sort => 'audio' }, 'but under the old one');
	is($differs->(), 0, 'without a difference');
};

subtest 'a table has a child, and has none any more' => sub {
	my $id = $shim->must(200, GET => '/api/v1/books', { token => $reader })->{data}[0]{id};
	my $patched = sub { return $shim->http(PATCH => "/api/v1/books/$id", { token => $reader,
		json => { data => { type => 'books', id => $id, attributes => { title => 'Emma' } } } })->{status} };

	is($patched->(), 200, 'changed');
	$migrated->('create table shop.kid () inherits (shop.volume)');
	is($get->('books'), 500, 'rows of another table are not shown');
	is($patched->(), 500, 'nor written');
	like($cluster->psql('select message from entityapi.list_differences()'), qr/inherits from it/, 'a line in the drift');
	$migrated->('drop table shop.kid');
	is($patched->(), 200, 'changed again, whatever PostgreSQL remembers of it');
	is($differs->(), 0, 'without a difference');
};

subtest 'a table goes' => sub {
	$migrated->('drop table shop.note');
	unlink "$folder/Note.json";
	is($applied->(), '0 ', 'with its entity');
	is($get->('notes'), 404, 'which is not served');
	is_deeply($get->('books'), { title => 'Emma', pageCount => 474 }, 'others are');
};

subtest 'a table of the service\'s owner that others made' => sub {
	$migrated->('alter table ours.shelf drop room', 'entityapi_owner');
	is($get->('shelves'), 500, 'no request');
	$shelf->();
	is($applied->('--repair'), '0 ', 'a column that went, with its field; the right of readers to it went, too');
	is_deeply($get->('shelves'), { place => 'left' }, 'the others stay');
	is($differs->(), 0, 'without a difference');
};

done_testing();
