# Keys of several parts where tenants share the tables: the tenant is beside the parts.

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
my $encoder = JSON::PP->new->canonical;
my $true = JSON::PP::true;

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

$cluster->psql(<<'SQL');
create role saas_web;
create role saas_app;
create schema saas authorization saas_app;
grant usage on schema saas to saas_web;
set role saas_app;
create table saas.orders (org uuid, year integer, no integer, note text, primary key (org, year, no));
create table saas.line (org uuid, year integer, no integer, n integer, what text, primary key (org, year, no, n),
	foreign key (org, year, no) references saas.orders on delete cascade);
create table saas.paper (org uuid, label text, note text, primary key (org, label));
grant select, insert, update, delete on all tables in schema saas to saas_web;
reset role;
SQL

my %given = (permissions => { Editor => [qw(create read update delete history)] });
declared(Service => service => { tenancy => 'POOL', existing => { role => 'saas_web' } });
declared(Roles => roles => { roles => { Editor => {} } });
$cluster->apply($folder);
declared(Entity => Order => { %given, table => 'saas.orders', key => [ 'year', 'no' ], tenant => { column => 'org' }, fields => { year => { type => 'integer' }, no => { type => 'integer' }, note => { type => 'text' },
	lines => { type => 'ref', target => 'Line', relation => 'OneToMany', mappedBy => 'order' } } });
declared(Entity => Line => { %given, table => 'saas.line', key => [ 'year', 'no', 'n' ], tenant => { column => 'org' }, columns => { order => [ 'year', 'no' ] },
	fields => { n => { type => 'integer' }, what => { type => 'text' }, order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' } } });
declared(Entity => Paper => { %given, table => 'saas.paper', key => [ 'org', 'label' ], tenant => { column => 'org' }, fields => { note => { type => 'text' } } });
like($cluster->try_apply($folder)->{err}, qr{/spec/key: has the column of the tenant, which ids do not name \(leave it out\)}, 'the tenant is no part');
declared(Entity => Paper => { %given, table => 'saas.paper', key => 'label', tenant => { column => 'org' }, fields => { note => { type => 'text' } } });
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT("$applied->{err}$applied->{out}");
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'no difference');

my $shim = EntityApi::Test->shim($cluster);
my %tenant = map { $_ => $shim->tenant($_)->{id} } qw(north south);
my %user = map { $_ => EntityApi::Test::Cases->new($shim, $shim->user($tenant{$_}, $_, ['Editor']), '/api/v1') } keys %tenant;

sub resource
{
	my ($type, $id, $attributes, $relationships) = @_;

	return { type => $type, defined $id ? (id => $id) : (), $attributes ? (attributes => $attributes) : (), $relationships ? (relationships => $relationships) : () };
}
sub made { my ($who, $type, @rest) = @_; return $user{$who}->good(201, POST => "/$type", data => resource($type, @rest))->{json}{data} }
sub got { my ($who, $target) = @_; return join ' ', map { $_->{id} } @{ $user{$who}->good(200, GET => $target)->{json}{data} } }
sub to { my ($type, $id) = @_; return { data => { type => $type, id => $id } } }

for my $who (qw(north south))
{
	made($who, orders => '2026,1', { note => $who });
	made($who, lines => undef, { n => 1, what => $who }, { order => to(orders => '2026,1') });
}
made(north => orders => '2026,2');
made(north => lines => '2026,2,1');
is($user{$_}->good(200, GET => '/orders/2026,1?include=lines')->{json}{included}[0]{attributes}{what}, $_, "one id, of $_") for qw(north south);
is(got(south => '/lines?sort=-id'), '2026,1,1', 'lists');
is(got(south => q{/orders?filter=lines.what==north}), '', 'filters');
is(got(north => q{/orders?filter=lines.what==north&page[size]=1&page[after]=start}), '2026,1', 'and their pages');
$user{south}->refused('what is another tenant\'s', 404, 'NOT_FOUND', undef, GET => '/orders/2026,2');
$user{south}->refused('in a reference', 404, 'RELATED_NOT_FOUND', undef, POST => '/lines', data => resource(lines => '2026,2,2'));
$user{south}->refused('one that is there', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/orders', data => resource(orders => '2026,1'));
$user{south}->good(204, DELETE => '/orders/2026,1');
is($cluster->psql("select string_agg(what, ' ') from saas.line where what is not null"), 'north', 'what goes along is of one tenant');

done_testing();
