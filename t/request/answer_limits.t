# An answer, and what a request keeps for it, has a limit that holds while it
# is made: 400 with a place, and a write is undone.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/examples/billing');
my $usual = EntityApi::Test->shim($cluster);
my $tenant = $usual->tenant('acme')->{id};
my $ann = $usual->user($tenant, 'ann', ['Accountant']);
my $super = $usual->superadmin;
my $customer = '01900000-0000-7000-8000-000000000001';
my $invoice = '01900000-0000-7001-8000-000000000001';

$cluster->psql(<<"SQL");
insert into app.customer (tenant_id, id, name, active, created_at, updated_at)
select '$tenant', ('01900000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'c' || i, true, now(), now() from generate_series(1, 3) i;
insert into app.invoice (tenant_id, id, number, status, currency, total, note, customer_id, version, created_at, updated_at)
select '$tenant', ('01900000-0000-7001-8000-' || lpad(i::text, 12, '0'))::uuid, 'n' || i, 'DRAFT', 'EUR', i, repeat('a "note" ', 2000), '$customer', 0, now(), now() from generate_series(1, 100) i;
update app.invoice set note = repeat(chr(1), 150000), customer_id = '01900000-0000-7000-8000-000000000002' where number = 'n100';
insert into app.tag (tenant_id, id, name, created_at, updated_at)
select '$tenant', gen_random_uuid(), 't' || i, now(), now() from generate_series(1, 3000) i;
insert into app.invoice_tags (tenant_id, invoice_id, tag_id) select '$tenant', '$invoice', id from app.tag;
insert into entityapi.audit (at, id, tenant_id, action, outcome, changes, request_id)
select now(), gen_random_uuid(), '$tenant', 'UPDATE', 'SUCCESS', json_build_object('note', json_build_array(repeat('x', 5000), null)), 'large' from generate_series(1, 100);
SQL

my %limits;

sub limited
{
	my (%settings) = @_;

	$cluster->psql(join ';', map { "alter role entityapi_shim reset entityapi.$_" } keys %limits) if %limits;
	%limits = %settings;
	$cluster->psql(join ';', map { "alter role entityapi_shim set entityapi.$_ = '$settings{$_}'" } keys %settings);
	return EntityApi::Test->shim($cluster);
}

sub refused
{
	my ($answer, $place, $name) = @_;
	my $error = $answer->{json}{errors}[0];

	is($answer->{status}, 400, "$name: 400");
	is($error->{code}, 'ANSWER_TOO_LARGE', "$name: its code");
	is_deeply($error->{source}, $place, "$name: its place");
	return;
}

my $shim = limited(max_answer => '256kB');
my $page = { parameter => 'page[size]' };

sub get
{
	my ($path, $as) = @_;
	return $shim->http(GET => $path =~ m{^/} ? $path : "/api/v1/$path", { token => $as // $ann });
}

subtest 'reads' => sub {
	is($usual->http(GET => '/api/v1/invoices?page[size]=100', { token => $ann })->{status}, 200, 'by default there is room');
	is(get('invoices?page[size]=10')->{status}, 200, 'a small page');
	refused(get('invoices?page[size]=99'), $page, 'a page');
	refused(get('invoices?page[size]=50&page[after]=start'), $page, 'a page by cursor');
	refused(get("customers/$customer/invoices?page[size]=50"), $page, 'related resources');
	refused(get("customers/$customer?include=invoices"), { parameter => 'include' }, 'an include');
	refused(get('customers?include=invoices&fields[customers]=name'), { parameter => 'include' }, 'an include on a list');
	refused(get('invoices/01900000-0000-7001-8000-000000000100'), { parameter => 'fields[invoices]' }, 'one resource, escapes counted');
	is(get('invoices/01900000-0000-7001-8000-000000000100?fields[invoices]=number')->{status}, 200, 'with less of it');
	is(get('invoices?page[size]=99&fields[invoices]=number,customer')->{status}, 200, 'a page with less of each');
	is(get("invoices/$invoice/relationships/tags")->{status}, 200, '3000 identifiers');
	$cluster->psql("insert into app.tag (tenant_id, id, name, created_at, updated_at) select '$tenant', gen_random_uuid(), 'u' || i, now(), now() from generate_series(1, 3000) i; insert into app.invoice_tags (tenant_id, invoice_id, tag_id) select '$tenant', '$invoice', id from app.tag on conflict do nothing");
	refused(get("invoices/$invoice/relationships/tags"), undef, '6000 identifiers');
	refused(get('/manage/audit?page[size]=100&filter=requestId==large', $super), $page, 'audit records');
	is(get('/manage/audit?page[size]=20&filter=requestId==large', $super)->{status}, 200, 'fewer of them');
	is(get('/api/v1/openapi.json')->{status}, 200, 'the description is as large as the service');
	is($shim->http(HEAD => '/api/v1/invoices?page[size]=99', { token => $ann })->{status}, 400, 'HEAD as GET');
};

my $json = JSON::PP->new->canonical;

subtest 'writes are undone' => sub {
	my $id = '01900000-0000-7001-8000-000000000100';
	my $version = "select version from app.invoice where id = '$id'";
	my $before = $cluster->psql($version);
	my $data = { type => 'invoices', id => $id, attributes => { currency => 'USD' } };
	my $answer = $shim->http(PATCH => "/api/v1/invoices/$id", { token => $ann, headers => { 'if-match' => '*' }, json => { data => $data } });

	refused($answer, { parameter => 'fields[invoices]' }, 'PATCH');
	is($cluster->psql($version), $before, 'nothing was written');
	$answer = $shim->http(PATCH => "/api/v1/invoices/$id?fields[invoices]=number", { token => $ann, headers => { 'if-match' => '*' }, json => { data => $data } });
	is($answer->{status}, 200, 'but with less in the answer');

	my $type = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
	my @operations = map { { op => 'update', data => { type => 'invoices', id => sprintf('01900000-0000-7001-8000-%012d', $_), attributes => { currency => 'CHF' } } } } 1 .. 60;
	$answer = $shim->http(POST => '/api/v1/operations', { token => $ann, body => $json->encode({ 'atomic:operations' => \@operations }), headers => { 'content-type' => $type, accept => $type } });
	is($answer->{status}, 400, 'operations: 400');
	is($answer->{json}{errors}[0]{code}, 'ANSWER_TOO_LARGE', 'their code');
	like($answer->{json}{errors}[0]{source}{pointer}, qr{^/atomic:operations/\d+$}, 'the one that was too much');
	is($cluster->psql(q{select count(*) from app.invoice where currency = 'CHF'}), 0, 'none was carried out');
};

subtest 'memory' => sub {
	$shim = limited(max_memory => '1MB');
	is(get('invoices?page[size]=10')->{status}, 200, 'a page');
	refused(get('invoices?page[size]=99'), $page, 'a larger one');
	my $answer = get("invoices/$invoice?include=tags.invoices.tags");
	refused($answer, { parameter => 'include' }, 'many included');
	like($answer->{json}{errors}[0]{detail}, qr/memory/, 'what there is too much of');
	$shim = limited(max_memory => '64MB');
	is(get("invoices/$invoice?include=tags.invoices.tags")->{status}, 200, 'with more memory');
};

done_testing;
