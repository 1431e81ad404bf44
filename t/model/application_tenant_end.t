# A tenant that goes leaves rows of an application alone, and no statement is on
# them; made anew by its id, it has them again.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $known = '0193d7a0-1111-7aaa-8bbb-0123456789ab';

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

sub sql { return $cluster->psql(@_) }

sql(<<'SQL');
create role shop_app login;
create schema shop authorization shop_app;
set role shop_app;
create table shop.touched (what text);
create function shop.touch() returns trigger language plpgsql as $$ begin insert into shop.touched values (tg_op || ' ' || tg_table_name); return null; end $$;
create table shop.orders (id uuid primary key default gen_random_uuid(), firm uuid, words text, boss uuid references shop.orders on delete cascade);
create table shop.part (id uuid primary key default gen_random_uuid(), orders uuid not null references shop.orders on delete cascade, words text);
create index on shop.orders (boss);
create index on shop.part (orders);
create trigger touch after update or delete on shop.orders for each row execute function shop.touch();
create trigger touch after update or delete on shop.part for each row execute function shop.touch();
reset role;
SQL
my @all = qw(create read update delete history);
declared(Service => service => { existing => { role => 'shop_app' } });
declared(Roles => roles => { roles => { Clerk => {} } });
my %words = (words => { type => 'text' });
declared(Entity => Order => { table => 'shop.orders', tenant => { column => 'firm' }, columns => { boss => 'boss' }, permissions => { Clerk => \@all },
		fields => { %words, boss => { type => 'ref', target => 'Order', onDelete => 'cascade' }, notes => { type => 'ref', target => 'Note', relation => 'OneToMany', mappedBy => 'order' } } });
declared(Entity => Part => { table => 'shop.part', tenant => { by => 'order' }, columns => { order => 'orders' }, permissions => { Clerk => \@all },
		fields => { %words, order => { type => 'ref', target => 'Order', required => $true, onDelete => 'cascade' } } });
declared(Entity => Note => { permissions => { Clerk => \@all }, fields => { %words, order => { type => 'ref', target => 'Order', onDelete => 'cascade' } } });
$cluster->apply($folder);

my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
sub make { return $shim->http(POST => '/manage/tenants', { token => $root, json => { id => $known, name => 'n', slug => 'n' } })->{status} }

sub create
{
	my ($user, $type, $words, %to) = @_;

	return $shim->must(201, POST => "/api/v1/$type", { token => $user, json => { data => { type => $type, attributes => { words => $words },
					relationships => { map { ($_ => { data => { type => $to{$_}[0], id => $to{$_}[1] } }) } keys %to } } } })->{data}{id};
}
sub words { my ($user, $type) = @_; return join ' ', map { $_->{attributes}{words} } @{ $shim->must(200, GET => "/api/v1/$type?sort=words", { token => $user })->{data} } }

is(make(), 201, 'a tenant');
my $ann = $shim->user($known, 'ann', ['Clerk']);
my $order = create($ann, orders => 'one');
my $other = create($ann, orders => 'two', boss => [ orders => $order ]);
create($ann, parts => 'part', order => [ orders => $order ]);
create($ann, notes => 'note', order => [ orders => $order ]);
is(sql('select count(*) from shop.orders'), 2, 'the rows are there');

my $rows = sub { sql('select (select md5(string_agg(concat(o.xmin, o), \' \' order by id)) from shop.orders o) || (select md5(string_agg(concat(p.xmin, p), \' \' order by id)) from shop.part p)') };
my $before = $rows->();
sql('alter table shop.orders rename to away; alter table shop.part rename to far');
is($shim->http(DELETE => "/manage/tenants/$known", { token => $root })->{status}, 204, 'it goes');
EntityApi::Test::wait_until(60, sub { sql('select entityapi.sweep()') eq '0' && !sql("select count(*) from entityapi.tenant where id = '$known'") });
is(sql("select count(*) from entityapi.tenant where id = '$known'"), 0, 'which takes no statement on tables of the application');
sql('alter table shop.away rename to orders; alter table shop.far rename to part');
is($rows->(), $before, 'whose rows are the same');
is(sql('select count(*) from shop.touched'), 0, 'and no trigger of theirs ran');
is(sql('select count(*) from app.note'), 0, 'rows that the service made have gone');
is($cluster->psql("select count(*) from entityapi.audit where action = 'TENANT_ERASED'"), 1, 'all is done');

is(make(), 201, 'made anew');
my $eve = $shim->user($known, 'eve', ['Clerk']);
is(words($eve, 'orders'), 'one two', 'it has its rows again');
is(words($eve, 'parts'), 'part', 'also those that are its by others');
is(words($eve, 'notes'), '', 'and none of those that the service made');
my $history = $shim->must(200, GET => "/api/v1/orders/$order/history", { token => $eve });
is_deeply([ map { $_->{attributes}{action} } @{ $history->{data} } ], ['ENTITY_CREATE'], 'with their history') or diag explain $history;
$shim->must(200, PATCH => "/api/v1/orders/$order", { token => $eve, json => { data => { type => 'orders', id => $order, attributes => { words => 'three' } } } });
is($shim->http(DELETE => "/api/v1/orders/$order", { token => $eve })->{status}, 204, 'and they are deleted as ever');
is(words($eve, 'orders') . words($eve, 'parts'), '', 'with what is theirs');

done_testing;
