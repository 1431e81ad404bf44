# An include visits each resource once for a step of a path, however many links
# lead to it: what a cycle costs is of the order of what it shows.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $ann = $shim->user($tenant, 'ann', ['Accountant']);
my $customer = '01900000-0000-7000-8000-000000000001';

$cluster->psql(<<"SQL");
insert into app.customer (tenant_id, id, name, active, created_at, updated_at) values ('$tenant', '$customer', 'Hot', true, now(), now());
insert into app.invoice (tenant_id, id, number, status, currency, total, customer_id, version, created_at, updated_at)
select '$tenant', ('01900000-0000-7001-8000-' || lpad(i::text, 12, '0'))::uuid, 'n' || i, 'DRAFT', 'EUR', i, '$customer', 0, now(), now() from generate_series(1, 800) i;
insert into app.tag (tenant_id, id, name, created_at, updated_at)
select '$tenant', ('01900000-0000-7002-8000-' || lpad(i::text, 12, '0'))::uuid, 't' || i, now(), now() from generate_series(1, 20) i;
insert into app.invoice_tags (tenant_id, invoice_id, tag_id) select tenant_id, i.id, t.id from app.invoice i join app.tag t using (tenant_id);
analyze;
SQL

sub get
{
	my ($path) = @_;
	return $shim->http(GET => "/api/v1/$path", { token => $ann });
}

# How many of each type are included, and whether one is there twice
sub included
{
	my ($answer) = @_;
	my (%types, %seen);

	for my $resource (@{ $answer->{json}{included} // [] })
	{
		$types{ $resource->{type} }++;
		$seen{"$resource->{type} $resource->{id}"}++;
	}
	return join ' ', (map { "$_ $types{$_}" } sort keys %types), grep { $seen{$_} > 1 } keys %seen;
}

my $shape = 'fields[invoices]=number,customer&fields[customers]=invoices&fields[tags]=name';
my $cycle = 'customer.invoices.customer.invoices';
my %cases = (
	"invoices?page[size]=100&$shape&include=$cycle.customer" => 'customers 1 invoices 700',
	"invoices?page[size]=100&$shape&include=$cycle.customer,$cycle.lineItems,$cycle.payments" => 'customers 1 invoices 700',
	"invoices?page[size]=100&$shape&include=tags.invoices.tags.invoices.tags" => 'invoices 700 tags 20',
	"invoices?page[size]=1&$shape&include=$cycle.tags" => 'customers 1 invoices 799 tags 20',
	"customers/$customer?$shape&include=invoices.customer.invoices.customer.invoices" => 'invoices 800',
	"customers/$customer?$shape&include=invoices.tags.invoices.tags.invoices" => 'invoices 800 tags 20',
	"tags?page[size]=20&$shape&include=invoices.tags.invoices.customer.invoices" => 'customers 1 invoices 800');

# The shim gives up after 8 s; what took 24 s and 1 GB takes a tenth of one
for my $path (sort keys %cases)
{
	my $answer = get($path);

	is($answer->{status}, 200, $path);
	is(included($answer), $cases{$path}, 'each resource once');
}
my $answer = $shim->http(PATCH => "/api/v1/customers/$customer?$shape&include=invoices.$cycle",
	{ token => $ann, json => { data => { type => 'customers', id => $customer, attributes => { city => 'X' } } } });
is($answer->{status}, 200, 'nor does a write keep its locks');

# What is asked for once and hidden is not asked for again
my $many = join ',', map { "$cycle." . ('customer', 'lineItems', 'payments', 'tags')[$_ % 4] . ' ' x 0 } 0 .. 3;
my $explained = $cluster->psql(q{select count(*) from entityapi.explain('GET', '/api/v1/invoices?page[size]=100&include=} . $many
	  . qq{', jsonb_build_object('kind', 'USER', 'userId', '$ann->{id}', 'tenantId', '$tenant', 'roles', '["Accountant"]'::jsonb, 'isSuperAdmin', false, 'isTenantAdmin', false)) line where line like 'SELECT%'});
cmp_ok($explained, '<=', 12, "a statement for each relationship, not for each step ($explained)");

# The number of paths has a limit
my @names = ('customer', 'lineItems', 'payments', 'tags', map { ("customer.invoices.$_", "tags.invoices.$_") } qw(customer lineItems payments tags));
my @paths = (@names) x 6;
is(get('invoices?include=' . join ',', @paths[ 0 .. 63 ])->{status}, 200, '64 paths');
$answer = get('invoices?include=' . join ',', @paths[ 0 .. 64 ]);
is($answer->{status}, 400, '65 are too many');
is($answer->{json}{errors}[0]{code}, 'INVALID_INCLUDE', 'its code');
is($answer->{json}{errors}[0]{source}{parameter}, 'include', 'its place');

done_testing;
