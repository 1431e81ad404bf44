# Views, materialized views and foreign tables of an application: read-only
# entities by a key that is their word alone.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $files = EntityApi::Test::folder();
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

EntityApi::Test::write_file("$files/rates.csv", "EUR,1.00\nUSD,1.10\n");
$cluster->psql(<<"SQL");
create role shop_owner;
create role shop_web login;
create role rival;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
grant usage, create on schema shop to rival;
create extension file_fdw;
create server files foreign data wrapper file_fdw;
create foreign table shop.rate (code varchar(3) not null, rate numeric(6,2)) server files options (filename '$files/rates.csv', format 'csv');
alter table shop.rate owner to shop_owner;
set role shop_owner;
create table shop.customer (customer_no integer primary key, name text, city text);
create table shop.orders (order_no integer primary key, customer_no integer references shop.customer, total numeric(10,2) not null, placed date);
create table shop.pair (id text, customer_no integer, note text);
create table shop.ran (who text);
create table shop.told (who text);
create function shop.later() returns trigger language plpgsql as \$\$ begin insert into shop.told values (current_user || ' ' || current_setting('search_path')); return null; end \$\$;
create constraint trigger later after insert on shop.ran deferrable initially deferred for each row execute function shop.later();
create function shop.queue() returns integer language sql volatile as 'insert into shop.ran values (current_user) returning 1';
create function shop.seen() returns text language plpgsql as \$\$
begin
	return current_user || ' ' || current_setting('search_path') || ' ' || coalesce((select 'risen' from pg_roles where pg_has_role(current_user, oid, 'member') and rolname like 'entityapi%' limit 1), '-');
end \$\$;
create function shop.attack() returns text language plpgsql as \$\$
declare
	attack text;
	done text := '';
begin
	foreach attack in array array['select 1 from entityapi.signing_key', 'select 1 from entityapi.account', 'select 1 from app.tag', 
		'set role entityapi_owner', 'reset role', 'set session authorization postgres', 'prepare told as select 1', 'deallocate all', 'listen told', 'create temp table t (a int)',
		'select entityapi.handle(''GET'', ''/api/v1/tags'', ''{}'', null)', 'alter role shop_web superuser'] loop
		begin
			execute attack;
			done := done || attack || ';';
		exception when others then
			null;
		end;
	end loop;
	perform set_config('search_path', 'shop', false), set_config('DateStyle', 'SQL, DMY', false), set_config('TimeZone', 'Asia/Kolkata', false);
	return done;
end \$\$;
create view shop.turnover as select c.customer_no, c.name, c.city, count(o.order_no) as orders, sum(o.total)::numeric(12,2) as total, max(o.placed) as last
	from shop.customer c left join shop.orders o using (customer_no) group by c.customer_no;
create view shop.placed as select order_no, customer_no + 0 as customer_no, total, placed from shop.orders;
create view shop.plain as select order_no, customer_no, total, placed from shop.orders;
create materialized view shop.best as select customer_no, sum(total)::numeric(12,2) as total from shop.orders where customer_no is not null group by customer_no;
create view shop.look as select 1 as id, shop.seen() as seen, shop.attack() as attack;
create function shop.scans() returns text immutable language plpgsql as 'begin return current_setting(''enable_seqscan''); end';
create view shop.planned as select customer_no, shop.scans() as scans, count(*) as orders from shop.orders group by customer_no;
create view shop.queues as select shop.queue() as id;
create view shop.pairs as select id, customer_no, note from shop.pair;
create view shop.hidden with (security_invoker = true) as select * from shop.customer;
grant select, insert, update, delete on all tables in schema shop to shop_web;
set role rival;
create view shop.foreign_view as select 1 as id;
grant select on shop.foreign_view to shop_web;
reset role;
SQL

my $dump = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $dump->();

# --- what cannot be ---------------------------------------------------------

my %read = (permissions => { Reader => ['read'] });
my %customer = (table => 'shop.customer', key => 'customer_no', fields => { name => { type => 'text' }, city => { type => 'text' } });
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web' } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
declared(Entity => Customer => { %customer, %read });
declared(Entity => Tag => { fields => { name => { type => 'string' } }, tenantScoped => $false, %read });
my %placed = (table => 'shop.placed', key => 'order_no', fields => { total => { type => 'decimal', precision => 10, scale => 2 } }, %read);
for my $case (
	[ 'no key' => { key => undef }, qr{/spec/table.*a view, which has no key.*key: column}s ],
	[ 'a column that is not there' => { key => 'number' }, qr/the column "number" does not exist/ ],
	[ 'a key of numeric' => { key => 'total', fields => {} }, qr/the column "total" is numeric.*: a key is/s ],
	[ 'another type' => { fields => { total => { type => 'long' } } }, qr/the column "total" is numeric\(10,2\) and must be bigint/ ],
	(map { [ "to $_" => { permissions => { Editor => [ 'read', $_ ] } }, qr{/spec/permissions/Editor.*only read, so there is no "$_"}s ] } qw(create update delete history)),
	[ 'soft deletion' => { softDelete => $true }, qr{/spec/softDelete} ],
	[ 'locking' => { optimisticLocking => $true }, qr{/spec/optimisticLocking} ],
	[ 'indexes' => { indexes => [ ['placed'] ], fields => { placed => { type => 'date' } } }, qr{/spec/indexes} ],
	[ 'one index' => { fields => { placed => { type => 'date', index => $true } } }, qr{/spec/fields/placed/index} ],
	[ 'unique values' => { fields => { placed => { type => 'date', unique => $true } } }, qr{/spec/fields/placed/unique} ],
	[ 'values that have to be' => { fields => { placed => { type => 'date', required => $true } } }, qr{/spec/fields/placed/required} ],
	[ 'what goes along' => { fields => { customer => { type => 'ref', target => 'Customer', onDelete => 'cascade' } }, columns => { customer => 'customer_no' } }, qr{/spec/fields/customer/onDelete} ],
	[ 'one of each' => { fields => { customer => { type => 'ref', target => 'Customer', relation => 'OneToOne' } }, columns => { customer => 'customer_no' } }, qr{/spec/fields/customer/relation} ],
	[ 'a made table' => { fields => { tag => { type => 'ref', target => 'Tag' } }, columns => { tag => 'customer_no' } }, qr{/spec/fields/tag.*not the application's}s ],
	[ 'of another owner' => { table => 'shop.foreign_view', key => 'id', fields => {} }, qr/belongs to rival/ ])
{
	my ($name, $change, $said) = @$case;
	my %spec = (%placed, %$change);

	delete $spec{key} if !defined $spec{key};
	declared(Entity => Placed => \%spec);
	like($cluster->try_apply($folder)->{err}, $said, "refused: $name");
}
declared(Entity => Placed => \%placed);
declared(Entity => Order => { table => 'shop.orders', key => 'order_no', columns => { of => 'order_no' }, fields => { of => { type => 'ref', target => 'Placed' } }, %read });
like($cluster->try_apply($folder)->{err}, qr{/spec/fields/of.*shop\.placed, a view, to which there is no foreign key}s, 'refused: a table that refers to a view');
unlink "$folder/Order.json";
$cluster->psql('revoke select on shop.placed from shop_web');
like($cluster->try_apply($folder)->{err}, qr/shop_web may not do what "read" takes/, 'refused: a view that the role may not read');
$cluster->psql('grant select on shop.placed to shop_web');

# --- what can be ------------------------------------------------------------

declared(Entity => Customer => { %customer, fields => { %{ $customer{fields} }, placed => { type => 'ref', target => 'Placed', relation => 'OneToMany', mappedBy => 'customer' } },
	permissions => { Reader => ['read'], Editor => \@all } });
declared(Entity => Placed => { %placed, plural => 'placed', columns => { customer => 'customer_no', number => 'order_no' }, fields => { total => { type => 'decimal', precision => 10, scale => 2 },
	placed => { type => 'date' }, number => { type => 'integer' }, customer => { type => 'ref', target => 'Customer' } } });
declared(Entity => Turnover => { table => 'shop.turnover', key => 'customer_no', plural => 'turnovers', fields => { name => { type => 'text' }, city => { type => 'text' },
	orders => { type => 'long' }, total => { type => 'decimal', precision => 12, scale => 2 }, last => { type => 'date' } }, %read });
declared(Entity => Planned => { table => 'shop.planned', key => 'customer_no', plural => 'planned', fields => { scans => { type => 'text' }, orders => { type => 'long' } }, %read });
declared(Entity => Best => { table => 'shop.best', key => 'customer_no', plural => 'bests', fields => { total => { type => 'decimal', precision => 12, scale => 2 } }, %read });
declared(Entity => Rate => { table => 'shop.rate', key => 'code', fields => { rate => { type => 'decimal', precision => 6, scale => 2 } }, %read });
declared(Entity => Look => { table => 'shop.look', key => 'id', plural => 'looks', fields => { seen => { type => 'text' }, attack => { type => 'text' } }, %read });
declared(Entity => Queue => { table => 'shop.queues', key => 'id', fields => {}, %read });
declared(Entity => Pair => { table => 'shop.pairs', key => 'id', columns => { customer => 'customer_no' }, fields => { note => { type => 'text' }, customer => { type => 'ref', target => 'Customer' } }, %read });
declared(Entity => Hidden => { table => 'shop.hidden', key => 'customer_no', plural => 'hiddens', fields => { name => { type => 'text' } }, %read });
declared(Entity => Plain => { table => 'shop.plain', key => 'order_no', plural => 'plains', columns => { customer => 'customer_no' },
	fields => { placed => { type => 'date' }, customer => { type => 'ref', target => 'Customer' } }, %read });

my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($cluster->try_apply($folder)->{out} =~ /ALTER|CREATE/ ? 'changes' : 'nothing', 'nothing', 'and again, with nothing to do');
is($dump->(), $before, 'their schema is as it was');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', [ 'Editor', 'Reader' ]), '/api/v1');
my $root = EntityApi::Test::Cases->new($shim, $shim->superadmin, '/api/v1');

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub ids { return join ' ', map { $_->{id} } @{ $_[0]{json}{data} } }
sub total { return $_[0]{json}{meta}{pagination}{totalRecords} }
sub differences { return $cluster->psql(q{select coalesce(string_agg(message, '; '), '') from entityapi.list_differences() where kind = 'difference'}) }

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

$cluster->psql(<<'SQL');
insert into shop.customer select i, 'name ' || i, case when i % 2 = 0 then 'Bern' end from generate_series(1, 12) i;
insert into shop.orders select i, case when i % 7 > 0 then i % 7 end, i, date '2026-01-01' + i from generate_series(1, 25) i;
refresh materialized view shop.best;
SQL

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "reads, direct ways $way" => sub {
		my $one = $ann->good(200, GET => '/turnovers/3')->{json}{data};
		is_deeply($one->{attributes}, { name => 'name 3', city => undef, orders => 4, total => 54, last => '2026-01-25' }, 'a row of a view') or diag explain $one;
		is($ann->good(200, GET => '/placed/7')->{json}{data}{attributes}{number}, 7, 'the key as a field');
		is($ann->good(200, GET => '/plains/7')->{json}{data}{attributes}{placed}, '2026-01-08', 'of a simple one');
		is($ann->good(200, GET => '/planned/3')->{json}{data}{attributes}{scans}, 'on', 'its tables are read as the planner likes');
		$ann->refused("$_ names none", 404, 'NOT_FOUND', undef, GET => $_) for '/turnovers/13', '/turnovers/03', '/plains/26', '/rates/XXX';
		is(ids($ann->good(200, GET => '/turnovers?sort=id&page[size]=5')), '1 2 3 4 5', 'a list');
		is(total($ann->good(200, GET => '/turnovers?page[size]=2&page[totals]=true')), 12, 'counted');
		is(total($ann->good(200, GET => '/plains?page[size]=2&page[totals]=true&filter=id=gt=20')), 5, 'with a filter');
		is(ids($ann->good(200, GET => '/turnovers?filter=city==Bern;orders=gt=3&sort=-total')), '4 2', 'filtered and sorted');
		is(ids($ann->good(200, GET => '/turnovers?filter=id=in=(3,9,99)&sort=-id')), '9 3', 'by ids');
		is(all_pages('/api/v1/turnovers?sort=id&page[after]=start&page[size]=5'), join(' ', 1 .. 12), 'by cursors');
		is(all_pages('/api/v1/plains?sort=-placed&page[after]=start&page[size]=7'), join(' ', reverse 1 .. 25), 'by those of another order');
		is(ids($ann->good(200, GET => '/bests?sort=id')), '1 2 3 4 5 6', 'a materialized view');
		is($ann->good(200, GET => '/bests/4')->{json}{data}{attributes}{total}, 58, 'one of it');
		is(ids($ann->good(200, GET => '/rates?sort=id&page[totals]=true')), 'EUR USD', 'a foreign table');
		is($ann->good(200, GET => '/rates/USD')->{json}{data}{attributes}{rate}, 1.1, 'one of it');
		is($ann->good(200, GET => '/hiddens/4')->{json}{data}{attributes}{name}, 'name 4', 'one that asks for the role\'s own rights');
		is($ann->good(200, GET => '/placed/8')->{json}{data}{relationships}{customer}{data}{id}, 1, 'linkage without a foreign key');
		is($ann->good(200, GET => '/placed/7')->{json}{data}{relationships}{customer}{data}, undef, 'of nobody');
		is(ids($ann->good(200, GET => '/placed?filter=customer.name==\'name%203\'&sort=id')), '3 10 17 24', 'by a path');
		is(join(' ', sort map { $_->{id} } @{ $ann->good(200, GET => '/placed?include=customer&sort=id&page[size]=9')->{json}{included} }), '1 2 3 4 5 6', 'included');
		is(join(' ', map { $_->{id} } @{ $ann->good(200, GET => '/customers/3?include=placed')->{json}{included} }), '3 10 17 24', 'from the other side');
		is(ids($ann->good(200, GET => '/customers/3/placed?sort=-id')), '24 17 10 3', 'related');
		is($ann->good(200, GET => '/placed/3/customer')->{json}{data}{id}, 3, 'related to one');

		# a row whose target goes meanwhile, as the view says
		$cluster->psql('alter table shop.orders drop constraint orders_customer_no_fkey; update shop.orders set customer_no = 99 where order_no = 1');
		is_deeply($ann->good(200, GET => '/placed/1')->{json}{data}{relationships}{customer}{data}, undef, 'linkage to what is not there is null');
		is_deeply([ map { $_->{relationships}{customer}{data}{id} } @{ $ann->good(200, GET => '/placed?filter=id=le=2&sort=id&include=customer')->{json}{data} } ], [ undef, 2 ], 'in lists, too');
		is($ann->good(200, GET => '/placed/1/relationships/customer')->{json}{data}, undef, 'and alone');
		is($ann->good(200, GET => '/placed/1/customer')->{json}{data}, undef, 'and related');
		$cluster->psql('update shop.orders set customer_no = 1 where order_no = 1; set role shop_owner; alter table shop.orders add foreign key (customer_no) references shop.customer');
	};

	attack "rows without a key, and with one of another, direct ways $way" => sub {
		$cluster->psql(q{truncate shop.pair; insert into shop.pair select 'p' || i, 1 + i % 3, 'n' || i from generate_series(1, 9) i; insert into shop.pair values (null, 1, 'null'), (null, 2, 'null')});
		is(ids($ann->good(200, GET => '/pairs?sort=id&page[totals]=true')), join(' ', map { "p$_" } 1 .. 9), 'a row without a key is none');
		is(total($ann->good(200, GET => '/pairs?sort=id&page[totals]=true')), 9, 'nor counted');
		$cluster->psql(q{insert into shop.pair values ('p5', 2, 'another')});
		my $from = length EntityApi::Test::slurp($cluster->log);
		for my $path ('/pairs/p5', '/pairs', '/pairs?sort=id&page[size]=6', '/pairs?sort=id&page[size]=5', '/pairs?sort=id&page[after]=start&page[size]=5', '/pairs?sort=note&page[size]=20&include=customer',
			'/pairs/p5/customer', '/pairs/p5/relationships/customer', '/pairs?filter=id==p5')
		{
			is($ann->call(GET => $path)->{status}, 500, "two rows of one id: $path");
		}
		my $log = substr EntityApi::Test::slurp($cluster->log), $from;
		my $named = () = $log =~ /the view shop\.pairs has several rows of one id: entity "Pair", id p5/g;
		is($named, 9, 'each with a line that names it');
		is(ids($ann->good(200, GET => '/pairs?sort=id&page[size]=4')), 'p1 p2 p3 p4', 'pages without them are served');
		is($ann->call(GET => '/pairs/p4')->{status}, 200, 'and the others');
	};
}

attack 'an include of rows of one id' => sub {
	$cluster->psql('set role shop_owner; create or replace view shop.placed as select order_no, customer_no + 0 as customer_no, total, placed from shop.orders union all select 3, 3, 1::numeric(10,2), null');
	is($ann->call(GET => $_)->{status}, 500, $_) for '/customers/3?include=placed', '/customers?include=placed&sort=id', '/customers/3', '/customers/3/relationships/placed', '/customers/3/placed';
	is($ann->call(GET => '/customers/4?include=placed')->{status}, 200, 'without them it is served');
	$cluster->psql('set role shop_owner; create or replace view shop.placed as select order_no, customer_no + 0 as customer_no, total, placed from shop.orders');
	is($ann->call(GET => '/customers/3?include=placed')->{status}, 200, 'mended');
};

attack 'nothing is written' => sub {
	my $data = { type => 'turnovers', id => '3', attributes => { name => 'x' } };

	for my $who ($ann, $root)
	{
		$who->refused('made', 403, 'FORBIDDEN', undef, POST => '/turnovers', data => { type => 'turnovers', attributes => { name => 'x' } });
		$who->refused('changed', 403, 'FORBIDDEN', undef, PATCH => '/turnovers/3', data => $data);
		$who->refused('deleted', 403, 'FORBIDDEN', undef, DELETE => '/turnovers/3');
		$who->refused('linked', 403, 'FORBIDDEN', undef, PATCH => '/placed/3/relationships/customer', json => { data => undef });
		$who->refused('its history', 403, 'FORBIDDEN', undef, GET => '/turnovers/3/history');
		$who->refused('as it was', 403, 'FORBIDDEN', undef, GET => '/turnovers/3?asOf=2026-01-01T00:00:00Z');
	}
	my $answer = $ann->call(POST => '/customers/3/relationships/placed', json => { data => [ { type => 'placed', id => '4' } ] });
	is($answer->{status}, 403, 'linked from the other side') or diag $answer->{body};
	$answer = $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => [ { op => 'update', data => $data } ] }));
	is($answer->{status}, 403, 'in one of several operations') or diag $answer->{body};

	# what the view shows goes as ever
	$cluster->psql('insert into shop.customer values (50, \'fifty\'); insert into shop.orders values (50, 50, 1)');
	$ann->refused('what a foreign key of theirs keeps', 409, undef, undef, DELETE => '/customers/50');
	$cluster->psql('delete from shop.orders where order_no = 50');
	is($ann->call(DELETE => '/customers/50')->{status}, 204, 'what no row of a table refers to');
};

attack 'code in a view' => sub {
	my $look = $ann->good(200, GET => '/looks/1')->{json}{data}{attributes};

	like($look->{seen}, qr/^shop_web .* -$/, 'runs as the role');
	is($look->{attack}, '', 'and has nothing of the service\'s');
	is(ids($ann->good(200, GET => '/queues')), '1', 'one that writes');
	is($cluster->psql('select distinct who from shop.told'), 'shop_web "$user", public', 'what it lets wait runs as the role, with its settings') or diag $cluster->psql('select * from shop.told');
	is($ann->good(200, GET => '/placed/7')->{json}{data}{attributes}{placed}, '2026-01-08', 'its settings stay in it');
	$cluster->psql('create view shop.ours as select 1 as id, count(*) as n from entityapi.account; alter view shop.ours owner to postgres; grant select on shop.ours to shop_web');
	declared(Entity => Ours => { table => 'shop.ours', key => 'id', plural => 'ours', fields => { n => { type => 'long' } }, %read });
	my $run = $cluster->try_apply($folder);
	is($ann->call(GET => '/ours/1')->{status}, 500, 'a view over tables of the service') if $run->{status} == 0;
	unlink "$folder/Ours.json";
	is($cluster->try_apply($folder)->{status}, 0, 'gone');
};

attack 'explain' => sub {
	my $principal = $encoder->encode({ kind => 'USER', tenantId => $tenant, userId => $cluster->psql(q{select id from entityapi.account where username = 'ann'}), roles => ['Reader'] });
	my $run = $cluster->try_psql("select * from entityapi.explain('GET', '/api/v1/turnovers?filter=city==Bern&sort=name', '$principal')");
	is($run->{status}, 0, 'of a list') or diag $run->{err};
	like($run->{out}, qr/shop\.turnover|on customer/, 'shows the plan');
};

# A migration that holds what a view is over
attack 'a table beneath a view that is locked' => sub {
	$cluster->set('deadlock_timeout', '60s');
	my $few = EntityApi::Test->shim($cluster, pool_size => 3, pool_wait_ms => 60000, statement_timeout_ms => 60000);
	my $migration = EntityApi::Test::Session->new($cluster);

	# kept plans, and none
	for my $path ('/api/v1/hiddens/4', '/api/v1/hiddens?filter=name==x')
	{
		my $known = $path =~ /filter/ ? 'not known' : 'known';

		$few->http(GET => $path, { token => $ann->{token} }) if $known eq 'known';
		$migration->must('begin');
		$migration->must('lock table shop.customer in access exclusive mode');
		my $client = EntityApi::Test::Client::connected($few);
		print {$client} "GET $path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $ann->{token}{accessToken}\r\n\r\n";
		EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_locks where not granted and locktype = 'relation'}) > 0 }) or fail('the request waits');
		is($few->http(GET => $path, { token => $ann->{token} })->{status}, 503, "$known: the next one is refused at once");
		is($few->http(GET => '/api/v1/rates', { token => $ann->{token} })->{status}, 200, 'others are served');
		$migration->must('rollback');
		is(EntityApi::Test::Client::answer($client)->{status}, 200, 'the one that waited, too');
	}
	$few->stop;
	$cluster->set('deadlock_timeout', '1s');
};

attack 'what becomes of a view' => sub {
	my $path = '/turnovers/4';

	is(differences(), '', 'no difference');
	$cluster->psql(q{set role shop_owner; create or replace view shop.turnover as select c.customer_no, c.name, 'Basel' as city, 1::bigint as orders, 2::numeric(12,2) as total, null::date as last from shop.customer c});
	is($ann->good(200, GET => $path)->{json}{data}{attributes}{city}, 'Basel', 'replaced, it is the new one');
	$cluster->psql(q{set role shop_owner; create or replace view shop.turnover as select c.customer_no, c.name, 'Basel' as city, 1::bigint as orders, 2::numeric(12,2) as total, null::date as last, 1 as more from shop.customer c});
	is($ann->call(GET => $path)->{status}, 200, 'with one column more');
	$cluster->psql('truncate shop.orders; refresh materialized view shop.best');
	is(ids($ann->good(200, GET => '/bests')), '', 'refreshed, it is the new state');

	for my $change (
		[ 'gone' => 'drop view shop.turnover', qr/the table shop\.turnover does not exist/ ],
		[ 'a table by now' => 'create table shop.turnover (customer_no integer primary key, name text, city text, orders bigint, total numeric(12,2), last date)', qr/no view/ ],
		[ 'without a column' => 'drop table shop.turnover; create view shop.turnover as select customer_no, name, city from shop.customer', qr/column "orders"/ ],
		[ 'of another key' => q{drop view shop.turnover; create view shop.turnover as select customer_no::text as customer_no, name, city, 1::bigint as orders, 2::numeric(12,2) as total, null::date as last from shop.customer}, qr/customer_no/ ],
		[ 'of another owner' => q{drop view shop.turnover; create view shop.turnover as select customer_no, name, city, 1::bigint as orders, 2::numeric(12,2) as total, null::date as last from shop.customer; reset role; alter view shop.turnover owner to rival}, qr/belongs to rival/ ],
		[ 'that entityapi_owner may write' => q{reset role; alter view shop.turnover owner to shop_owner; grant insert on shop.turnover to entityapi_owner}, qr/entityapi_owner may write it/ ])
	{
		my ($name, $sql, $said) = @$change;
		my $from = length EntityApi::Test::slurp($cluster->log);

		$cluster->psql("set role shop_owner; $sql");
		$cluster->psql('grant select on shop.turnover to shop_web') if $name ne 'gone';
		is($ann->call(GET => $path)->{status}, 500, "no request: $name");
		like(differences(), $said, 'but a line in the drift');
		like(substr(EntityApi::Test::slurp($cluster->log), $from), qr/entityapi request \S+ failed: .*(?:turnover|last|does not exist)/, 'and in the log');
		is($ann->call(GET => '/customers/4')->{status}, 200, 'all else is served');
	}
	$cluster->psql('revoke insert on shop.turnover from entityapi_owner');
	is($ann->good(200, GET => $path)->{json}{data}{attributes}{name}, 'name 4', 'mended');
	is(differences(), '', 'no difference');

	$cluster->psql('set role shop_owner; drop view shop.turnover; create table shop.turnover (customer_no integer primary key, name text, city text, orders bigint, total numeric(12,2), last date)');
	$cluster->psql(q{grant select on shop.turnover to shop_web; insert into shop.turnover values (4, 'table')});
	my $run = $cluster->try_apply($folder);
	is($run->{status}, 0, 'a table by now is applied as one') or diag $run->{err};
	is($ann->good(200, GET => $path)->{json}{data}{attributes}{name}, 'table', 'and served');
};

attack 'OpenAPI' => sub {
	my $api = $ann->call(GET => '/api/v1/openapi.json', plain => 1);
	my $paths = $api->{json}{paths};
	my ($path) = grep { m{/bests/\{} && !m{\}/} } keys %$paths;

	is($api->{status}, 200, 'there is one');
	is(join(' ', grep { $paths->{$path // ''}{$_} } qw(get post patch delete)), 'get', 'only reads are offered') or diag join "\n", sort keys %$paths;
};

done_testing;
