# Tables of an application: statements on them run as its role, by the rights that
# this has, with its settings; nothing of it runs as another role, and nothing of
# others as it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my %documents;

sub declared
{
	my ($kind, $name, $spec) = @_;

	$documents{$name} = $spec;
	EntityApi::Test::write_file("$folder/$name.json",
		JSON::PP->new->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

# A shop that has been there for years; its path, its clock, its log
$cluster->psql(<<'SQL');
create role shop_app login;
create schema shop authorization shop_app;
alter role shop_app set search_path = shop;
set role shop_app;
create table shop.log (at timestamptz default now(), what text, who text, session text, path text, app_user text, zone text);
create table shop.customer (id uuid primary key default gen_random_uuid(), name varchar(100) not null, no serial not null,
	booked timestamp default now());
create table shop.orders (id uuid primary key default gen_random_uuid(), customer_id uuid references shop.customer deferrable,
	state text not null default 'new', total integer not null default 0);
create function shop.note() returns trigger language plpgsql as $$
begin
	insert into log (what, who, session, path, app_user, zone) values (tg_table_name || ' ' || tg_op, current_user, session_user,
		current_setting('search_path'), current_setting('app.user', true), current_setting('timezone'));
	return coalesce(new, old);
end $$;
create trigger note before insert or update or delete on shop.orders for each row execute function shop.note();
create trigger note before insert on shop.customer for each row execute function shop.note();
reset role;
SQL
my $dump = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $dump->();

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app',
	settings => { TimeZone => 'Asia/Tokyo', 'app.user' => '#user.username', 'app.kind' => 'api' } } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
declared(Entity => Customer => { table => 'shop.customer', fields => { name => { type => 'string', maxLength => 100, required => $true },
	no => { type => 'integer', readOnly => $true, required => $true } },
	permissions => { Reader => ['read'], Editor => [qw(create read update delete)] } });
declared(Entity => Order => { table => 'shop.orders', fields => { customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne' },
	state => { type => 'text', required => $true }, total => { type => 'integer', required => $true } },
	permissions => { Reader => ['read'], Editor => [qw(create read update delete)] } });
declared(Entity => Tag => { fields => { name => { type => 'string' } }, tenantScoped => $false, permissions => { Reader => ['read'] } });

my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied, without a statement on its tables') or BAIL_OUT($applied->{err});
unlike($applied->{out}, qr/shop\./, 'none of the statements is over them');
is($dump->(), $before, 'the schema is as it was');

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = $shim->user($tenant, 'ann', ['Editor'])->{accessToken};
my $bob = $shim->user($tenant, 'bob', ['Reader'])->{accessToken};
my $api = sub { my ($method, $path, $json, $user) = @_;
	return $shim->http($method => "/api/v1/$path", { token => $user // $ann, $json ? (json => $json) : () }) };

my ($customer, $order);
subtest 'writes and reads' => sub {
	my $answer = $api->(POST => 'customers', { data => { type => 'customers', attributes => { name => 'Ada' } } });

	is($answer->{status}, 201, 'created') or diag explain $answer;
	$customer = $answer->{json}{data}{id};
	is($answer->{json}{data}{attributes}{no}, 1, 'with what its default makes');
	$answer = $api->(POST => 'orders', { data => { type => 'orders', attributes => { state => 'new', total => 7 },
		relationships => { customer => { data => { type => 'customers', id => $customer } } } } });
	is($answer->{status}, 201, 'a reference') or diag explain $answer;
	$order = $answer->{json}{data}{id};
	is($cluster->psql('select what, who, session, path, app_user, zone from shop.log order by at'), <<~"END" =~ s/\n\z//r, 'triggers run as the role, with its settings');
		customer INSERT|shop_app|@{[ $cluster->psql("select session from shop.log limit 1") ]}|shop|ann|Asia/Tokyo
		orders INSERT|shop_app|@{[ $cluster->psql("select session from shop.log limit 1") ]}|shop|ann|Asia/Tokyo
		END
	is($cluster->psql("select booked - (now() at time zone 'Asia/Tokyo') < interval '1 minute' and booked - (now() at time zone 'Asia/Tokyo') > interval '-10 minutes' from shop.customer"), 't',
		'and so do defaults');
	is($api->(GET => "orders/$order?include=customer", undef, $bob)->{json}{included}[0]{id}, $customer, 'read with what it refers to');
	is($api->(GET => 'orders?filter=customer.name==Ada&page[totals]=true')->{json}{data}[0]{id}, $order, 'by a path');
	is($api->(PATCH => "orders/$order", { data => { type => 'orders', id => $order, attributes => { state => 'paid' } } })->{status}, 200, 'changed');
	is($api->(GET => "orders/$order")->{json}{data}{attributes}{state}, 'paid', 'and read again');
	is($api->(DELETE => "customers/$customer")->{status}, 409, 'what others refer to stays');
	is($api->(PATCH => "orders/$order", { data => { type => 'orders', id => $order, attributes => { state => 'x' } } }, $bob)->{status}, 403, 'permissions hold');
	is($api->(DELETE => "orders/$order")->{status}, 204, 'deleted');
	is($cluster->psql("select string_agg(distinct action, ' ' order by action) from entityapi.audit where target_type in ('orders', 'customers')"), 'ENTITY_CREATE ENTITY_DELETE ENTITY_UPDATE', 'with records');
	is($cluster->psql("select count(*) from shop.log where who <> 'shop_app'"), 0, 'nothing ran as another role');
};

$shim->stop;
done_testing;
