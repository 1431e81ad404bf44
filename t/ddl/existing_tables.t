# Entities on tables that others made and go on using.  That everything else
# works on them as on made ones is shown by running other tests over them.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

my %specs;

sub declared
{
	my ($name, $kind, $spec) = @_;

	$specs{$name} = $spec;
	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec });
	close $file;
	return;
}

# An order system: numbers, times and a total that the database makes, limits
# that no document tells of, a trigger
my $schema = <<'SQL';
create schema "Sales" authorization entityapi_owner;
set role entityapi_owner;
create table "Sales"."Customer" (
	company_id uuid not null,
	customer_no uuid not null default gen_random_uuid(),
	"E-Mail" varchar(80) not null,
	"user" text,
	rating int check (rating between 1 and 5),
	secret text not null default 'secret',
	primary key (company_id, customer_no),
	constraint "one e-mail" unique (company_id, "E-Mail"),
	constraint "no one" check ("user" is distinct from 'nobody' or rating is null)
);
create table "Sales"."Order" (
	company_id uuid not null,
	"Order Id" uuid not null default gen_random_uuid(),
	number int not null generated always as identity,
	net numeric(12,2) not null,
	gross numeric(12,2) generated always as (net * 1.2) stored,
	customer uuid not null,
	placed timestamptz not null default now(),
	touched timestamptz,
	lock bigint not null default 0,
	gone timestamptz,
	note text,
	primary key (company_id, "Order Id"),
	foreign key (company_id, customer) references "Sales"."Customer" (company_id, customer_no) deferrable
);
create unique index "one note" on "Sales"."Order" (company_id, note) where gone is null;
create function "Sales".stamp() returns trigger language plpgsql as $$
begin
	new.note := trim(new.note);
	return new;
end $$;
create trigger stamp before insert or update on "Sales"."Order" for each row execute function "Sales".stamp();
reset role;
grant usage on schema "Sales" to entityapi_reader;
create role shop login;
grant usage on schema "Sales" to shop;
grant select, insert, update, delete on all tables in schema "Sales" to shop;
SQL
$cluster->psql($schema);

my $all = { Editor => [qw(create read update delete)], Reader => ['read'] };
declared(Roles => 'Roles', { roles => { Editor => {}, Reader => {}, Boss => {} } });
declared(Subject => 'OneOf', { members => [qw(Order Review)] });
declared(Customer => 'Entity', {
	table => 'Sales.Customer', columns => { tenantId => 'company_id', id => 'customer_no', email => 'E-Mail', name => 'user' },
	fields => {
		email   => { type => 'string', required => $true, unique => $true, maxLength => 80 },
		name    => { type => 'text' },
		rating  => { type => 'integer', readRoles => ['Boss'], writeRoles => ['Editor'] },
		orders  => { type => 'ref', target => 'Order', relation => 'OneToMany', mappedBy => 'customer' },
		reviews => { type => 'ref', target => 'Review', relation => 'OneToMany', mappedBy => 'writer' },
		likes   => { type => 'ref', target => 'Product', relation => 'ManyToMany' } },
	permissions => $all });
declared(Order => 'Entity', {
	table => '"Sales"."Order"', optimisticLocking => $true, softDelete => $true, purgeAfterDays => 10,
	columns => { tenantId => 'company_id', id => 'Order Id', version => 'lock', deletedAt => 'gone', createdAt => 'placed', customer => 'customer' },
	fields => {
		number   => { type => 'integer', readOnly => $true, required => $true },
		net      => { type => 'decimal', precision => 12, scale => 2, required => $true },
		gross    => { type => 'decimal', precision => 12, scale => 2, readOnly => $true },
		note     => { type => 'text' },
		customer => { type => 'ref', target => 'Customer', required => $true, onDelete => 'cascade' } },
	permissions => { Editor => [ @{ $all->{Editor} }, 'restore' ], Reader => ['read'] } });
declared(Product => 'Entity', { fields => { name => { type => 'string' } }, permissions => $all });
declared(Review => 'Entity', {
	fields => {
		text    => { type => 'string' },
		writer  => { type => 'ref', target => 'Customer', required => $true },
		subject => { type => 'oneof', target => 'Subject', onDelete => 'setNull' } },
	permissions => $all });
like($cluster->try_apply($folder)->{err}, qr/needs an index of deleted rows by their time.*CREATE INDEX "?order__gone_idx"? ON "Sales"\."Order" \(gone\) WHERE gone IS NOT NULL/i, 'what the sweep needs is asked for');
$cluster->psql('create index "by time" on "Sales"."Order" (gone) where gone is not null');
my $applied = $cluster->apply($folder);
unlike($applied, qr/(?:CREATE|DROP) TABLE "Sales"|TABLE "Sales"\.\S+ (?!ENABLE ROW)/, 'nothing is made of existing tables');
is(() = $cluster->apply($folder) =~ /\b(?:CREATE|ALTER|DROP)\b/g, 0, 'and once only');

my $shim = EntityApi::Test->shim($cluster);
my ($acme, $globex) = map { $shim->tenant($_)->{id} } qw(acme globex);
my $eve = EntityApi::Test::Cases->new($shim, $shim->user($acme, 'eve', [qw(Editor)]), '/api/v1');
my $boss = EntityApi::Test::Cases->new($shim, $shim->user($acme, 'boss', [qw(Boss Editor)]), '/api/v1');
my $other = EntityApi::Test::Cases->new($shim, $shim->user($globex, 'oz', ['Editor']), '/api/v1');

sub made
{
	my ($cases, $type, $attributes, $relationships) = @_;

	return $cases->good(201, POST => "/$type",
		data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to { return { data => { type => $_[0]{type}, id => $_[0]{id} } } }

my $ann = made($eve, customers => { email => 'ann@a.example', name => 'Ann' });
my $order = made($eve, orders => { net => 10, note => '  first ' }, { customer => to($ann) });
is_deeply($order->{attributes}, { number => 1, net => '10.00' + 0, gross => 12, note => 'first' }, 'what the table makes of a row');
is($order->{meta}{version}, 0, 'its version');

subtest 'what the table refuses' => sub {
	$eve->refused('its unique constraint', 409, 'UNIQUE_VIOLATION', [pointer => '/data/attributes/email'], POST => '/customers',
		data => { type => 'customers', attributes => { email => 'ann@a.example' } });
	$eve->refused('its unique index', 409, 'UNIQUE_VIOLATION', [pointer => '/data/attributes/note'], POST => '/orders',
		data => { type => 'orders', attributes => { net => 1, note => 'first ' }, relationships => { customer => to($ann) } });
	$boss->refused('its check of a field', 400, 'CHECK_FAILED', [pointer => '/data/attributes/rating'], POST => '/customers',
		data => { type => 'customers', attributes => { email => 'x@a.example', rating => 6 } });
	$boss->refused('its check of several', 400, 'CHECK_FAILED', undef, PATCH => "/customers/$ann->{id}",
		data => { type => 'customers', id => $ann->{id}, attributes => { name => 'nobody', rating => 1 } });
	$eve->refused('no column that it fills', 400, 'READ_ONLY', [pointer => '/data/attributes/number'], POST => '/orders',
		data => { type => 'orders', attributes => { net => 1, number => 7 }, relationships => { customer => to($ann) } });
	$cluster->psql('alter table "Sales"."Customer" rename constraint "one e-mail" to "another name"');
	$eve->refused('whatever its name is', 409, 'UNIQUE_VIOLATION', [pointer => '/data/attributes/email'], POST => '/customers',
		data => { type => 'customers', attributes => { email => 'ann@a.example' } });
	$cluster->psql('alter table "Sales"."Customer" alter "user" set not null');
	$eve->refused('made stricter meanwhile', 400, 'REQUIRED', [pointer => '/data/attributes'], POST => '/customers',
		data => { type => 'customers', attributes => { email => 'new@a.example' } });
	like($cluster->try_apply($folder)->{err}, qr/the column "user" takes no null/, 'which applying again tells');
	$cluster->psql('alter table "Sales"."Customer" alter "user" drop not null');
};

subtest 'others write as well' => sub {
	my $shop = sub { $cluster->psql($_[0], user => 'shop') };

	$shop->(qq{insert into "Sales"."Customer" (company_id, "E-Mail", "user") values ('$acme', 'bob\@a.example', 'Bob'), ('$globex', 'bob\@a.example', 'Their Bob')});
	is(join(' ', map { $_->{attributes}{name} } @{ $eve->good(200, GET => '/customers?sort=name')->{json}{data} }), 'Ann Bob', 'their rows are there');
	is($other->good(200, GET => '/customers')->{json}{data}[0]{attributes}{name}, 'Their Bob', 'for their tenant');
	my $page = $eve->good(200, GET => '/customers?sort=-name&page[after]=start&page[size]=1&page[totals]=true')->{json};
	is($page->{meta}{pagination}{totalRecords}, 2, 'counted');
	is(join(' ', map { $_->{attributes}{name} } @{ $page->{data} }, @{ $eve->good(200, GET => $page->{links}{next})->{json}{data} }),
		'Bob Ann', 'on pages by cursor');
	$shop->(qq{update "Sales"."Order" set net = 20, lock = lock + 1 where "Order Id" = '$order->{id}'});
	is($eve->good(200, GET => "/orders/$order->{id}")->{json}{data}{attributes}{gross}, 24, 'their changes too');
	$eve->refused('a version of before', 412, 'PRECONDITION_FAILED', undef, PATCH => "/orders/$order->{id}",
		headers => { 'If-Match' => '"0"' }, data => { type => 'orders', id => $order->{id}, attributes => { net => 1 } });
	$eve->good(200, PATCH => "/orders/$order->{id}", headers => { 'If-Match' => '"1"' },
		data => { type => 'orders', id => $order->{id}, attributes => {} });
	is($shop->(q{select secret from "Sales"."Customer" limit 1}), 'secret', 'they see all columns');
};

subtest 'together with made tables' => sub {
	my $product = made($eve, products => { name => 'Pen' });
	my $review = made($eve, reviews => { text => 'good' }, { writer => to($ann), subject => to($order) });

	$eve->good(204, POST => "/customers/$ann->{id}/relationships/likes", data => [ to($product)->{data} ]);
	my $document = $eve->good(200, GET => "/customers/$ann->{id}?include=orders,reviews.subject,likes")->{json};
	is(join(' ', sort map { $_->{type} } @{ $document->{included} }), 'orders products reviews', 'includes');
	is($eve->good(200, GET => "/reviews?filter=writer.email=='ann\@a.example'&sort=-writer.name,subject.id")->{json}{meta}{pagination}{totalRecords},
		1, 'a filter through a reference, and a sort');
	is($eve->good(200, GET => '/customers?filter=likes.name==Pen;orders.net=gt=5')->{json}{meta}{pagination}{totalRecords}, 1, 'through links');
	$other->refused('nothing of another tenant', 404, 'NOT_FOUND', undef, GET => "/customers/$ann->{id}");
	$eve->refused('held by a reference', 409, 'STILL_REFERENCED', undef, DELETE => "/customers/$ann->{id}");
	$eve->good(204, DELETE => "/orders/$order->{id}", headers => { 'If-Match' => '*' });
	is($eve->good(200, GET => "/reviews/$review->{id}")->{json}{data}{relationships}{subject}{data}, undef, 'a one-of is cleared');
	is($cluster->psql(q{select count(*) from "Sales"."Order" where gone is not null}), 1, 'a soft deletion');
	is($eve->good(200, GET => "/orders/$order->{id}?show[deleted]=only")->{json}{data}{id}, $order->{id}, 'is shown to who may restore it');
	$eve->good(200, POST => "/orders/$order->{id}/restore");
	is($cluster->psql(q{select count(*) from "Sales"."Order" where gone is not null}), 0, 'and undone');
	$eve->good(204, DELETE => "/orders/$order->{id}", headers => { 'If-Match' => '*' });
	$eve->good(204, DELETE => "/reviews/$review->{id}");
	$eve->good(204, DELETE => "/customers/$ann->{id}");
	is($cluster->psql(q{select count(*) from "Sales"."Order"}), 0, 'what it had goes with it');
	is($cluster->psql(q{select count(*) from app.customer_likes}), 0, 'links too');
};

subtest 'changed behind the back' => sub {
	my $status = sub { return $eve->call(GET => '/customers')->{status} };

	for my $change (
		[ 'drop constraint "no one", alter "user" type int using 7',      'alter "user" type text using \'Bob\'' ],
		[ 'rename rating to grade',             'rename grade to rating' ],
		[ 'rename to "Gone"',                   undef, 'alter table "Sales"."Gone" rename to "Customer"' ])
	{
		is($status->(), 200, 'before');
		$cluster->psql(qq{alter table "Sales"."Customer" $change->[0]});
		is($status->(), 500, "$change->[0]: no answer, and no crash");
		$cluster->psql($change->[2] // qq{alter table "Sales"."Customer" $change->[1]});
		is($status->(), 200, 'and back');
	}
	$cluster->psql('alter table "Sales"."Customer" add extra int, alter "user" type varchar');
	is($status->(), 200, 'what does no harm');
	unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal/, 'the server lives on');
};

subtest 'plain SQL' => sub {
	$cluster->psql(q{create role analyst login in role entityapi_reader; select entityapi.map_role('analyst', 'eve')});
	my $read = sub { $cluster->try_psql($_[0], user => 'analyst') };

	is($read->(q{select string_agg("user", ',') from "Sales"."Customer"})->{out}, 'Bob', 'rows of the tenant');
	like($read->(q{select secret from "Sales"."Customer"})->{err}, qr/permission denied/, 'no column without a field');
	like($read->(q{select rating from "Sales"."Customer"})->{err}, qr/permission denied/, 'nor one for some roles');
	like($read->(q{delete from "Sales"."Customer"})->{err}, qr/permission denied/, 'and no write');
};

subtest 'the end of a tenant' => sub {
	$shim->must(204, DELETE => "/manage/tenants/$globex", { token => $shim->superadmin });
	# a snapshot of somebody else's, as of autovacuum, makes it wait
	EntityApi::Test::wait_until(60, sub {
			$cluster->psql('select entityapi.sweep();' x 40);
			!$cluster->psql("select count(*) from entityapi.tenant where id = '$globex'") });
	is($cluster->psql(q{select string_agg("user", ',') from "Sales"."Customer"}), 'Bob', 'its rows go, and no others');
};

subtest 'nothing is left for later' => sub {
	$cluster->set('entityapi.online_rows', 1);
	declared(Customer => 'Entity', { %{ $specs{Customer} }, fields => { %{ $specs{Customer}{fields} },
		name => { type => 'text', required => $true }, rating => { type => 'integer', index => $true } } });
	declared(Order => 'Entity', { %{ $specs{Order} }, columns => { %{ $specs{Order}{columns} }, deletionId => 'went' } });
	my $told = $cluster->try_apply($folder);

	like($told->{err}, qr/"user" must be not null/, 'a required field is asked for');
	like($told->{err}, qr/needs an index/, 'and so is an index');
	like($told->{err}, qr/the column "went" does not exist/, 'and a column for ids of deletions, if it is named');
	is($cluster->psql('select count(*) from entityapi.pending_step'), 0, 'not promised');
	$cluster->set('entityapi.online_rows', undef);
};

subtest 'the entities go, the tables stay' => sub {
	unlink glob "$folder/{Customer,Order,Review,Subject}.json";
	$cluster->apply('--allow-data-loss', 'Review', '--allow-data-loss', 'Customer.likes', $folder);
	is($cluster->psql(q{select count(*) from "Sales"."Customer"}), 1, 'with their rows');
	is($cluster->psql(q{select count(*) from pg_policy where polrelid::regclass::text like '"Sales"%'}), 0, 'without policies');
	is($cluster->psql(q{select count(*) from pg_class where relrowsecurity and relnamespace = '"Sales"'::regnamespace}), 0, 'as they were');
	like($cluster->try_psql(q{select * from "Sales"."Customer"}, user => 'analyst')->{err}, qr/permission denied/, 'readers have no right any more');
};

# Tests of the service over tables that the library of tests has taken over
for my $test (qw(write/relationships write/locking write/delete write/deleted write/restore authz/policies authz/policies_random))
{
	local $ENV{ENTITYAPI_TEST_MAPPED} = 1;
	my $run = EntityApi::Test::run([ $^X, (map { "-I$_" } @INC), EntityApi::Test::checkout() . "/t/$test.t" ]);

	is($run->{status}, 0, $test) or diag $run->{err};
	like($run->{out}, qr/^1\.\.[1-9]/m, 'it ran');
}

done_testing();
