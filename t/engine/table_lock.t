# A table that others hold as a whole takes its own requests only: a quarter of
# the pool waits for it, the rest is refused at once, and nobody else notices.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Test::More;

use EntityApi::Test;

use constant { POOL => 4, BESIDE => 100 };

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
$cluster->psql("alter role entityapi_shim set lock_timeout = '1s'");
my $shim = EntityApi::Test->shim($cluster, pool_size => POOL, pool_wait_ms => 60000, statement_timeout_ms => 60000);
my $tenant = $shim->tenant('acme');
my $user = $shim->user($tenant->{id}, 'ann', ['Accountant']);
my $ann = $user->{accessToken};

sub document
{
	my ($type, $attributes, %relationships) = @_;
	return { data => { type => lc $type, attributes => $attributes,
			relationships => { map { $_ => { data => $relationships{$_} } } keys %relationships } } };
}

sub made
{
	my ($collection, @document) = @_;
	return $shim->must(201, POST => "/api/v1/$collection", { token => $ann, json => document($collection, @document) })->{data}{id};
}

my $customer = made(customers => { name => 'Held' });
my $product = made(products => { name => 'Free', sku => 'P-1', unitPrice => 1 });
my %invoice = (number => 'A-1');

# --- who holds it -----------------------------------------------------------

# Statements of a transaction that stays open while something is done.
sub holding
{
	my ($statement, $work, $behind) = @_;
	my $begin = sub {
		return EntityApi::Test::start(
			[ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ], in => $_[0]);
	};
	my $until = sub {
		my ($what) = @_;
		EntityApi::Test::wait_until(60, sub { $cluster->psql("select count(*) from pg_stat_activity where $what") > 0 })
		  or die "nothing is held\n";
	};
	my @sessions = $begin->("begin;\n$statement;\nselect pg_sleep(300);\n");

	$until->("query like 'select pg_sleep(300)%'");
	if ($behind)
	{
		push @sessions, $begin->("set application_name = 'behind';\n$behind;\n");
		$until->("application_name = 'behind' and wait_event_type = 'Lock'");
	}
	my @result = $work->();
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'select pg_sleep(300)%' or application_name = 'behind'");
	waitpid $_, 0 for @sessions;
	return @result;
}

# --- many requests at once --------------------------------------------------

sub bytes
{
	my ($method, $target, $document) = @_;
	my $body = $document ? JSON::PP::encode_json($document) : '';

	return "$method $target HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer $ann\r\n"
	  . ($document ? "Content-Type: application/vnd.api+json\r\nContent-Length: " . length($body) . "\r\n" : '') . "\r\n$body";
}

sub begun
{
	my ($request) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

	$socket->autoflush(1);
	print $socket $request;
	return $socket;
}

sub answer { my ($socket) = @_; local $/; return scalar(readline $socket) // '' }

# Sessions that wait for a table or an index, counted while requests run
sub waiting
{
	return $cluster->psql("select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
		where not granted and locktype = 'relation' and application_name = 'entityapi-shim'");
}

sub retries { return $shim->http(GET => '/actuator/prometheus')->{body} =~ /^entityapi_\w*retries\w* (\d+)/m ? $1 : 0 }

# All of them, and what others get meanwhile: until each has an answer.
sub with_others
{
	my ($name, $n, @request) = @_;
	my $retries = retries();
	my @sockets = map { begun(bytes(@request)) } 1 .. $n;
	my $left = IO::Select->new(@sockets);
	my (%status, %others, @odd);
	my $most = 0;

	my $look = sub {
		for my $socket ($left->can_read(0))
		{
			my $text = answer($socket);
			my ($status) = $text =~ m{^HTTP/1\.1 (\d+)};

			$left->remove($socket);
			$status{ $status // 'none' }++;
			push @odd, $text if ($status // '') eq '503' && ($text !~ /^Retry-After: 1\r$/m || $text !~ /"UNAVAILABLE"/);
		}
		$most = $_ > $most ? $_ : $most for waiting();
		$others{ $shim->http(GET => "/api/v1/tags", { token => $ann })->{status} }++;
		return $left->count == 0;
	};

	ok(EntityApi::Test::wait_until(60, $look), "$name: answers come");
	is($most, POOL / 4, "$name: a quarter of the pool waits");
	is_deeply([ keys %others ], [200], "$name: others are served") or diag explain \%others;
	is_deeply(\@odd, [], "$name: who is refused is told when to come again");
	is(retries(), $retries, "$name: no request is repeated");
	is($shim->http(POST => '/auth/login', { json => { username => 'ann', password => $user->{password} } })->{status}, 200, "$name: logins, too");
	is_deeply(\%status, { 503 => $n }, "$name: nobody gets it");
	return;
}

subtest 'ALTER TABLE' => sub {
	holding('lock table app.customer in access exclusive mode', sub {
			with_others('a list', POOL + BESIDE, GET => '/api/v1/customers');
			with_others('one', POOL + 2, GET => "/api/v1/customers/$customer");
			with_others('a change', POOL + 2, PATCH => "/api/v1/customers/$customer",
					{ data => { type => 'customers', id => $customer, attributes => { city => 'Aarhus' } } });
			with_others('a create', POOL + 2, POST => '/api/v1/invoices',
					document(invoices => \%invoice, customer => { type => 'customers', id => $customer }));
		});
};

subtest 'a table that is free, and referred to' => sub {
	holding('lock table app.line_item in access exclusive mode', sub {
			with_others('a deletion', POOL + 2, DELETE => "/api/v1/products/$product");
		});
};

subtest 'REINDEX' => sub {
	holding('reindex table app.customer', sub {
			with_others('one', POOL + 2, GET => "/api/v1/customers/$customer");
		});
};

subtest 'ALTER TABLE that waits behind a reader' => sub {
	holding('select count(*) from app.customer', sub {
			with_others('a list', POOL + 2, GET => '/api/v1/customers');
		}, 'alter table app.customer alter column name set not null');
};

subtest 'afterwards' => sub {
	for my $request ([ 200, GET => '/api/v1/customers' ], [ 200, GET => "/api/v1/customers/$customer" ],
		[ 204, DELETE => "/api/v1/products/$product" ])
	{
		my ($status, @request) = @$request;
		is($shim->http(@request, { token => $ann })->{status}, $status, "@request");
	}
};

subtest 'a wait that ends in time' => sub {
	my $socket;

	$cluster->psql("alter role entityapi_shim set lock_timeout = '10min'");
	$shim->stop;
	$shim->begin;

	holding('lock table app.customer in access exclusive mode', sub {
			$socket = begun(bytes(GET => '/api/v1/customers'));
			ok(EntityApi::Test::wait_until(60, sub { waiting() > 0 }), 'it waits');
		});
	like(answer($socket), qr{^HTTP/1\.1 200 }, 'and has its answer');
};

done_testing();
