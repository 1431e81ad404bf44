# Tables of an application: statements on them run as its role, by the rights that
# this has, with its settings; nothing of it runs as another role, and nothing of
# others as it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

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
		JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
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
declared(Entity => Tag => { fields => { name => { type => 'string' } }, tenantScoped => $false, permissions => { '*' => ['read'] } });

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

my $name = sub { my ($status, $id) = @_;
	return $api->(PATCH => "customers/$id", { data => { type => 'customers', id => $id, attributes => { name => $status } } }) };
my $differs = sub { return $cluster->psql("select string_agg(message, '; ') from entityapi.list_differences() where kind = 'difference'") };

# the role is asked for again at every news of roles
subtest 'a role that may no more' => sub {
	is($differs->(), '', 'no difference');
	my %gained = (
		'alter role shop_app superuser' => [ 'alter role shop_app nosuperuser', qr/it is a superuser/ ],
		'grant entityapi_reader to shop_app' => [ 'revoke entityapi_reader from shop_app', qr/the rights of entityapi_reader/ ],
		'grant entityapi_owner to shop_app' => [ 'revoke entityapi_owner from shop_app', qr/the rights of entityapi_owner/ ],
		'alter role shop_app rename to shop_other' => [ 'alter role shop_other rename to shop_app', qr/not the one that was declared/ ],
		'grant insert on shop.customer to entityapi_owner' => [ 'revoke insert on shop.customer from entityapi_owner', qr/entityapi_owner may write it/ ],
		'grant update (name) on shop.customer to public' => [ 'revoke update (name) on shop.customer from public', qr/entityapi_owner may write it/ ],
		'alter table shop.customer owner to postgres; grant all on shop.customer to shop_app; alter table shop.customer owner to mallory' =>
		  [ 'alter table shop.customer owner to shop_app', qr/belongs to mallory/ ],
		'create rule r as on insert to shop.customer do also select 1' => [ 'drop rule r on shop.customer', qr/rewrite rules/ ],
	);

	$cluster->psql('create role mallory');
	for my $change (sort keys %gained)
	{
		my ($back, $why) = @{ $gained{$change} };

		$cluster->psql($change);
		is($name->('x', $customer)->{status}, 500, "refused: $change");
		is($api->(GET => 'tags')->{status}, 200, 'made tables are served');
		like($differs->(), $why, 'told as a difference');
		like(EntityApi::Test::slurp($cluster->log), $why, 'and in the log');
		$cluster->psql($back);
		is($name->('x', $customer)->{status}, 200, 'mended');
		is($differs->(), '', 'no difference is left');
	}
};

# Money that has to be on both sides in the end
subtest 'constraints that wait' => sub {
	$cluster->psql(<<~'SQL');
		set role shop_app;
		create function shop.even() returns trigger language plpgsql as $$
		begin
			if (select sum(total) from orders) % 2 <> 0 then
				raise exception 'odd';
			end if;
			insert into log (what, who, path, app_user) values ('even', current_user, current_setting('search_path'), current_setting('app.user'));
			return null;
		end $$;
		create constraint trigger even after insert or update on shop.orders deferrable initially deferred
			for each row execute function shop.even();
		SQL
	my $add = sub { return { op => 'add', data => { type => 'orders', attributes => { state => 'new', total => $_[0] } } } };
	my $answer = $shim->http(POST => '/api/v1/operations', { token => $ann, json => { 'atomic:operations' => [ map { $add->($_) } 1, 3 ] },
		headers => { 'content-type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' } });

	is($answer->{status}, 200, 'two that are even together') or diag explain $answer;
	is($cluster->psql("select distinct who || path || app_user from shop.log where what = 'even'"), 'shop_appshopann', 'asked as the role');
	$answer = $api->(POST => 'orders', { data => $add->(1)->{data} });
	is($answer->{status}, 400, 'an odd one');
	is($answer->{json}{errors}[0]{code}, 'REFUSED_BY_TABLE', 'is refused by the table');
	is($answer->{json}{errors}[0]{source}, undef, 'at no place');
	is($cluster->psql('select sum(total) from shop.orders'), 4, 'and not there');
};

# Who changes the table waits for the service, and the service for a row of his
subtest 'a migration never loses' => sub {
	my $id = $cluster->psql('select id from shop.customer limit 1');
	my $migration = EntityApi::Test::Session->new($cluster);
	my $body = JSON::PP->new->canonical->encode({ data => { type => 'customers', id => $id, attributes => { name => 'asked' } } });
	my $client = EntityApi::Test::Client::connected($shim);

	$migration->must('set role shop_app');
	$migration->must('set search_path = shop');
	$migration->must('begin');
	$migration->must("update shop.customer set name = 'migrating' where id = '$id'");
	print {$client} "PATCH /api/v1/customers/$id HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $ann\r\n",
	  "Content-Type: application/vnd.api+json\r\nContent-Length: @{[ length $body ]}\r\n\r\n$body";
	EntityApi::Test::wait_until(60, sub { $cluster->psql('select count(*) from pg_locks where not granted') > 0 }) or fail('the request waits');
	is($migration->ask('alter table shop.customer add column extra integer')->{sqlstate}, '00000', 'the migration goes on');
	is($migration->ask('commit')->{sqlstate}, '00000', 'to its end');
	is(EntityApi::Test::Client::answer($client)->{status}, 200, 'the request is repeated');
	is($api->(GET => "customers/$id")->{json}{data}{attributes}{name}, 'asked', 'and done');
};

subtest 'row security' => sub {
	$cluster->psql(<<~'SQL');
		create role shop_web;
		grant usage on schema shop to shop_web;
		grant select, insert, update, delete on all tables in schema shop to shop_web;
		grant usage on all sequences in schema shop to shop_web;
		alter role shop_web set search_path = shop;
		alter table shop.customer enable row level security;
		create policy mine on shop.customer to shop_web using (name <> 'hidden') with check (name <> 'refused');
		SQL
	$documents{service}{existing}{role} = 'shop_web';
	declared(Service => service => $documents{service});
	like($cluster->try_apply($folder)->{err}, qr/row-level security binds shop_web/, 'a fault');
	$documents{Customer}{rowSecurity} = $true;
	declared(Entity => Customer => $documents{Customer});
	$cluster->apply($folder);
	$cluster->psql("set search_path = shop; insert into shop.customer (name) values ('hidden')");
	my $hidden = $cluster->psql("select id from shop.customer where name = 'hidden'");
	is($api->(GET => "customers/$hidden")->{status}, 404, 'hidden is absent');
	is($api->(GET => 'customers?page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 1, 'and not counted');
	my $answer = $api->(POST => 'customers', { data => { type => 'customers', attributes => { name => 'refused' } } });
	is($answer->{status}, 403, 'what a policy refuses') or diag explain $answer;
	is($answer->{json}{errors}[0]{code}, 'FORBIDDEN', 'is forbidden');
	is($api->(POST => 'customers', { data => { type => 'customers', attributes => { name => 'shown' } } })->{status}, 201, 'another is not');
};

$shim->stop;
done_testing;
