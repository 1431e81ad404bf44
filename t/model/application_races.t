# Made tables and those of an application, while others write, alter and attack: no
# link of the service's leads to what the service has deleted, no request fails
# because a plan became invalid, and a path that code leaves behind means nothing.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster(conf => ['deadlock_timeout = 100s']);
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my @all = qw(create read update delete);

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

$cluster->psql(<<'SQL');
create role shop_app;
create role shop_web;
create schema shop authorization shop_app;
grant usage on schema shop to shop_web;
set role shop_app;
create table shop.customer (id uuid primary key default gen_random_uuid(), name varchar(100), region text);
create table shop.orders (id uuid primary key default gen_random_uuid(), customer_id uuid not null references shop.customer on delete cascade);
grant select, insert, update, delete on all tables in schema shop to shop_web;
create function shop.fine() returns boolean stable parallel safe language plpgsql as $$ begin raise log 'TOLD % fine', current_user; return true; end $$;
alter table shop.customer enable row level security;
create policy p on shop.customer using (true) with check (true);
reset role;
SQL
my %rights = (permissions => { Editor => \@all });
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Editor => {} } });
declared(Policy => North => { expression => q{#row.customer.region == 'north'} });
declared(Entity => Customer => { table => 'shop.customer', rowSecurity => $true, fields => { name => { type => 'string', maxLength => 100 }, region => { type => 'text' } }, %rights });
declared(Entity => Order => { table => 'shop.orders', fields => { customer => { type => 'ref', target => 'Customer', required => $true, onDelete => 'cascade' } }, %rights });
declared(Entity => Note => { fields => { text => { type => 'text' }, customer => { type => 'ref', target => 'Customer', required => $true, onDelete => 'cascade' } }, %rights });
declared(Entity => Bill => { fields => { text => { type => 'text' }, customer => { type => 'ref', target => 'Customer' } }, %rights });
declared(Entity => Guarded => { plural => 'guardeds', fields => { text => { type => 'text' }, customer => { type => 'ref', target => 'Customer', required => $true } },
	policies => { North => [qw(create read update delete)] }, %rights });
$cluster->apply($folder);

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $token = $ann->{token}{accessToken};

sub made
{
	my ($type, $attributes, $customer) = @_;

	return $ann->good(201, POST => "/$type", data => { type => $type, attributes => $attributes,
		$customer ? (relationships => { customer => { data => { type => 'customers', id => $customer->{id} } } }) : () })->{json}{data};
}
sub sent
{
	my ($method, $path, $data) = @_;
	my $client = EntityApi::Test::Client::connected($shim);
	my $body = defined $data ? $encoder->encode({ data => $data }) : '';

	print {$client} "$method /api/v1$path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $token\r\n",
	  $body eq '' ? "\r\n" : "Content-Type: application/vnd.api+json\r\nContent-Length: @{[ length $body ]}\r\n\r\n$body";
	return $client;
}
my $heard = 0;
sub told
{
	my $log = EntityApi::Test::slurp($cluster->log);
	my %said = map { $_ => 1 } substr($log, $heard) =~ /LOG:  TOLD (.*)/g;

	$heard = length $log;
	return join '; ', sort keys %said;
}

# Whatever comes first, what is left is whole
subtest 'references and deletions at once' => sub {
	my %answers;

	for my $round (1 .. 40)
	{
		my $customer = made(customers => { name => "c$round" });
		my $to = { customer => { data => { type => 'customers', id => $customer->{id} } } };
		my @clients = map { $_->[0] eq 'DELETE' ? sent(DELETE => "/customers/$customer->{id}") : sent(POST => "/$_->[1]", { type => $_->[1], attributes => {}, relationships => $to }) }
		  sort { $a->[2] <=> $b->[2] } map { [ @$_, rand ] } [ POST => 'notes' ], [ POST => 'bills' ], [ POST => 'orders' ], [ DELETE => '' ], [ POST => 'notes' ];

		$answers{ EntityApi::Test::Client::answer($_)->{status} }++ for @clients;
	}
	diag join ' ', map { "$_: $answers{$_}" } sort keys %answers;
	is(join(' ', grep { !/^(?:201|204|404|409)$/ } keys %answers), '', 'all are answered well');
	cmp_ok($answers{204} // 0, '>', 0, 'some deletions came first');
	for my $table (qw(note bill))
	{
		is($cluster->psql("select count(*) from app.$table x where not exists (select from shop.customer c where c.id = x.customer_id)"), 0, "no $table leads nowhere");
	}
	is($cluster->psql(q{select count(*) from entityapi.audit a where a.action = 'ENTITY_CREATE' and a.outcome = 'SUCCESS' and a.target_type in ('notes', 'orders', 'customers')
		and not exists (select from entityapi.audit d where d.target_id = a.target_id and d.action = 'ENTITY_DELETE' and d.outcome = 'SUCCESS')
		and not exists (select from app.note n where n.id::text = a.target_id) and not exists (select from shop.orders o where o.id::text = a.target_id)
		and not exists (select from shop.customer c where c.id::text = a.target_id)}), 0, 'nothing went without a record');
};

my $north = made(customers => { name => 'ann', region => 'north' });
my $south = made(customers => { name => 'bob', region => 'south' });
my $note = made(notes => { text => 'one' }, $north);
my $guarded = made(guardeds => { text => 'mine' }, $north);
my @paths = ('/notes?filter=customer.name==ann', "/guardeds/$guarded->{id}", '/guardeds?page[totals]=true', "/notes/$note->{id}?include=customer", '/notes?sort=customer.name');

subtest 'an application that changes' => sub {
	my %answers;
	my $session = EntityApi::Test::Session->new($cluster);
	my @changes = ('analyze shop.customer', 'alter table shop.customer add more text', 'alter table shop.customer drop more', 'create or replace function shop.fine() returns boolean stable parallel safe language plpgsql as '
		  . q{$$ begin raise log 'TOLD % fine', current_user; return true; end $$}, 'grant select on shop.orders to public', 'revoke select on shop.orders from public',
		'create index i on shop.customer (region)', 'drop index shop.i', 'alter policy p on shop.customer using (shop.fine())', 'alter policy p on shop.customer using (true)');

	$session->must('set role shop_app');
	for my $round (1 .. 60)
	{
		my @clients = map { sent(GET => $_) } @paths;

		$session->must($changes[ $round % @changes ]);
		$answers{ EntityApi::Test::Client::answer($_)->{status} }++ for @clients;
	}
	diag join ' ', map { "$_: $answers{$_}" } sort keys %answers;
	is(join(' ', grep { !/^(?:200|503)$/ } keys %answers), '', 'all is read, or was locked for too many');
	cmp_ok($answers{200}, '>', 200, 'mostly it is read');
	unlike(EntityApi::Test::slurp($cluster->log), qr/permission denied/, 'no plan is made anew by the rights of the role alone');
};

# News of the declarations' own tables reaches a request that waits as the role,
# which may see none of them
subtest 'news of the service' => sub {
	my $session = EntityApi::Test::Session->new($cluster);
	my %news = (
		'one table' => ['alter table entityapi.entity set (fillfactor = 90)'],
		'all of them' => [ 'alter table entityapi.entity reset (fillfactor)', 'alter table entityapi.service set (fillfactor = 90)' ],
		'too much to be told apart' =>
		  [q{do $$ begin for i in 1 .. 3000 loop create table public.passes (i integer); drop table public.passes; commit; end loop; end $$}],
	);

	for my $kind (sort keys %news)
	{
		# the last takes seconds
		for my $path (grep { $kind ne 'too much to be told apart' || /include/ } '/customers', '/customers?page[totals]=true', "/customers/$north->{id}", '/orders?include=customer', @paths)
		{
			is($ann->call(GET => $path)->{status}, 200, "$path: as ever");
			$session->must('begin');
			$session->must('lock table shop.customer, shop.orders in access exclusive mode');
			my $client = sent(GET => $path);
			EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_locks where not granted and relation in ('shop.customer'::regclass, 'shop.orders'::regclass)}) > 0 });
			$cluster->psql($_) for @{ $news{$kind} };
			$session->must('commit');
			is(EntityApi::Test::Client::answer($client)->{status}, 200, "$path: $kind");
		}
	}
	unlike(EntityApi::Test::slurp($cluster->log), qr/permission denied/, 'none is read by the rights of the role');
};

# Other processes read, by the rights of the same role
subtest 'in parallel' => sub {
	$cluster->psql(q{set role shop_app; alter policy p on shop.customer using (shop.fine())});
	my ($parallel) = grep { $cluster->psql("select count(*) from pg_settings where name = '$_'") == 1 } qw(debug_parallel_query force_parallel_mode);
	$cluster->psql("alter role entityapi_shim set $_") for "$parallel = on", 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0';
	my $second = EntityApi::Test->shim($cluster);
	told();
	is($second->http(GET => "/api/v1$_", { token => $token })->{status}, 200, $_) for @paths;
	is(told(), 'shop_web fine', 'code ran as the role');
	$cluster->psql("alter role entityapi_shim reset $_") for $parallel, qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size);
	$second->stop;
};

# A path of theirs, left by what runs while a statement is planned, or executed
subtest 'a path that is left' => sub {
	$cluster->psql(<<~'SQL');
		set role shop_app;
		create function shop.same(uuid, uuid) returns boolean language plpgsql as $$ begin raise log 'TOLD % leak', current_user; return true; end $$;
		create operator shop.= (leftarg = uuid, rightarg = uuid, function = shop.same);
		create function shop.same(text, text) returns boolean language plpgsql as $$ begin raise log 'TOLD % leak', current_user; return true; end $$;
		create operator shop.= (leftarg = text, rightarg = text, function = shop.same);
		create function shop.leaves() returns boolean volatile language plpgsql as $$
		begin
			perform set_config('search_path', 'shop, pg_catalog', false), set_config('plan_cache_mode', 'force_custom_plan', false);
			return true;
		end $$;
		create function shop.leaves_early() returns boolean immutable language plpgsql as $$ begin return shop.leaves(); end $$;
		SQL
	for my $code ('shop.leaves()', 'shop.leaves_early()')
	{
		$cluster->psql("set role shop_app; alter policy p on shop.customer using ($code)");
		told();
		for my $round (1 .. 4)
		{
			my @statuses = map { $ann->call(GET => $_)->{status} } @paths;

			is(join(' ', grep { $_ != 200 && $_ != 500 } @statuses), '', "$code: read, or not");
			is_deeply([ map { $_->{attributes}{text} } @{ $ann->call(GET => '/notes?filter=customer.name==bob')->{json}{data} // [] } ], [], 'no wrong row');
			$cluster->psql('analyze shop.customer') if $round == 2;
		}
		is(told(), '', "$code: no operator of theirs was asked");
		is($ann->call(GET => "/guardeds/$guarded->{id}")->{json}{data}{attributes}{text} // 'mine', 'mine', 'the right row');
	}
	$cluster->psql('set role shop_app; alter policy p on shop.customer using (true)');
	is($ann->call(GET => $_)->{status}, 200, "$_: goes on") for @paths;
};

$shim->stop;
done_testing;
