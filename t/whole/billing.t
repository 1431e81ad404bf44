# The example: its manifests apply, its data loads through the API, and what its
# README shows is there.

use strict;
use warnings;
use utf8;

use IO::Socket::INET;
use List::Util qw(sum0);
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $checkout = EntityApi::Test::checkout();

$cluster->apply("$checkout/examples/billing");
like($cluster->apply("$checkout/examples/billing"), qr/\S/, 'applying again is harmless');

my $shim = EntityApi::Test->shim($cluster);
my $password = 'plainly-for-a-test-3';
my $superadmin = $cluster->superadmin;

sub load
{
	my ($url) = @_;

	return EntityApi::Test::run(
		["$checkout/scripts/service/demo"],
		env => {
			ENTITYAPI_URL                 => $url // $shim->url,
			ENTITYAPI_SUPERADMIN_USERNAME => $superadmin->{username},
			ENTITYAPI_SUPERADMIN_PASSWORD => $superadmin->{password},
			DEMO_PASSWORD                 => $password });
}

my $load = load();
is($load->{status}, 0, 'the data loads') or BAIL_OUT($load->{err});
is(() = $load->{out} =~ /^Loaded/mg, 2, 'for two tenants');
is(load()->{out}, '', 'and only once');

# A service that is too busy for the first request, and then answers 404
sub busy_once
{
	my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $@\n";
	my $pid = fork // die "fork: $!\n";

	if ($pid == 0)
	{
		for my $head ("503 Service Unavailable\r\nRetry-After: 1", '404 Not Found')
		{
			my $client = $listener->accept;
			my $request = '';

			# the head, and after that the body
			while ($request !~ /password/)
			{
				sysread $client, $request, 65536, length $request or last;
			}
			print $client "HTTP/1.1 $head\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
			close $client;
		}
		exec 'true';
	}
	return ('http://127.0.0.1:' . $listener->sockport, $pid);
}

my ($busy, $pid) = busy_once();
my $asked = load($busy);
like($asked->{err}, qr{^demo: POST /auth/login: 404$}m, 'a service that is busy is asked again');
kill KILL => $pid;
waitpid $pid, 0;

my %token = map { $_ => $shim->login($_, $password) }
  qw(acme-admin acme-accountant acme-sales globex-accountant globex-viewer);

sub get
{
	my ($user, $target) = @_;

	return $shim->must(200, GET => $target, { token => $token{$user} });
}

# Each tenant has its own, and the countries are shared.
my %count = (
	'acme-accountant'   => { invoices => 8, customers => 6, lineItems => 16, countries => 9 },
	'globex-accountant' => { invoices => 4, customers => 3, lineItems => 7, countries => 9 },
);

for my $user (sort keys %count)
{
	for my $collection (sort keys %{ $count{$user} })
	{
		is(get($user, "/api/v1/$collection?page[size]=1")->{meta}{pagination}{totalRecords},
			$count{$user}{$collection}, "$user sees $collection");
	}
}

my $invoices = get('acme-accountant', '/api/v1/invoices?include=lineItems&page[size]=100');
my %line = map { $_->{id} => $_->{attributes} }
  grep { $_->{type} eq 'lineitems' } @{ $invoices->{included} };
my @wrong = grep {
	my $sum = sum0 map { $line{ $_->{id} }{quantity} * $line{ $_->{id} }{unitPrice} }
	  @{ $_->{relationships}{lineItems}{data} };
	abs($sum - $_->{attributes}{total}) > 0.001
} @{ $invoices->{data} };
is_deeply([ map { $_->{attributes}{number} } @wrong ], [],
	'the total of every invoice is the sum of its lines');

my $lines = get('acme-accountant',
	'/api/v1/lineItems?include=billable,invoice.customer&page[size]=100');
my %billed = map { $_->{relationships}{billable}{data}{type} => 1 } @{ $lines->{data} };
is_deeply([ sort keys %billed ], [qw(products servicepackages)],
	'lines bill products and service packages');
my %included = map { $_->{type} => 1 } @{ $lines->{included} };
is_deeply([ sort keys %included ], [qw(customers invoices products servicepackages)],
	'which are included together');

my $dear = get('acme-accountant',
	'/api/v1/invoices?filter=lineItems.quantity=ge=10&sort=-total&fields[invoices]=number,total');
is_deeply([ map { $_->{attributes}{number} } @{ $dear->{data} } ],
	[qw(2026-0001 2026-0006 2026-0005)], 'a filter through a to-many path, sorted');

my $owed = get('acme-accountant', '/api/v1/invoices?filter=status==OVERDUE&include=customer');
is($owed->{included}[0]{attributes}{name}, 'Hansen & Søn', 'the customer who owes');

# Roles
my %customer = map { $_ => get($_, '/api/v1/customers?page[size]=1')->{data}[0] }
  qw(acme-accountant acme-sales);
ok(exists $customer{'acme-accountant'}{attributes}{creditLimit}, 'accountants see the credit limit');
ok(!exists $customer{'acme-sales'}{attributes}{creditLimit}, 'sales do not');

my %may = map { $_ => get($_, '/auth/me/permissions')->{customers} } qw(acme-accountant acme-sales);
is_deeply([ map { scalar grep { $_ eq 'creditLimit' } @{ $may{'acme-accountant'}{$_} } } qw(readable writable) ], [ 1, 1 ],
	'and are told that they may');
is_deeply([ map { scalar grep { $_ eq 'creditLimit' } @{ $may{'acme-sales'}{$_} } } qw(readable writable) ], [ 0, 0 ],
	'who may not is told of others');
is_deeply($may{'acme-sales'}{operations}, [qw(create read update)], 'and what can be done');
my $links = get('acme-sales', '/auth/me/permissions')->{invoices};
is_deeply([ map { scalar grep { $_ eq 'payments' } @{ $links->{$_} } } qw(readable writable) ], [ 0, 0 ],
	'a relationship to what nobody may see is neither read nor set');

my $foreign = $shim->http(GET => "/api/v1/customers/$customer{'acme-sales'}{id}",
	{ token => $token{'globex-accountant'} });
is($foreign->{status}, 404, 'the other tenant does not see the customer');

my $denied = $shim->http(POST => '/api/v1/tags',
	{   token => $token{'globex-viewer'},
		json  => { data => { type => 'tags', attributes => { name => 'mine' } } } });
is($denied->{status}, 403, 'a viewer only reads');

# Policies
my $tenant = get('acme-accountant', '/auth/me')->{tenantId};
my $colleague = $shim->user($tenant, 'acme-books', ['Accountant'], securityAttributes => { department => 'sales' });
my ($sent) = grep { $_->{attributes}{status} eq 'SENT' } @{ $invoices->{data} };
my $payment = {
	data => {
		type          => 'payments',
		attributes    => { amount => 1, method => 'CASH', paidOn => '2026-11-20' },
		relationships => { invoice => { data => { type => 'invoices', id => $sent->{id} } } } } };
my %said = map { $_->[0] => $shim->http(POST => '/api/v1/payments', { token => $_->[1], json => $payment })->{status} }
  [ finance => $token{'acme-accountant'} ], [ sales => $colleague ];
is_deeply(\%said, { finance => 201, sales => 403 }, 'money is booked by the finance department');

my $issued = $shim->http(DELETE => "/api/v1/invoices/$sent->{id}",
	{ token => $token{'acme-accountant'}, headers => { 'If-Match' => '*' } });
is($issued->{status}, 403, 'an issued invoice does not go');
my $draft = $shim->must(201, POST => '/api/v1/invoices',
	{   token => $token{'acme-accountant'},
		json  => {
			data => {
				type          => 'invoices',
				attributes    => { number => 'draft' },
				relationships => { customer => { data => $sent->{relationships}{customer}{data} } } } } });
is($shim->http(DELETE => "/api/v1/invoices/$draft->{data}{id}",
		{ token => $token{'acme-accountant'}, headers => { 'If-Match' => '*' } })->{status}, 204, 'a draft does');

done_testing;
