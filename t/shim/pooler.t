# PgBouncer between the shim and the server.  Pooling by sessions is served as
# the server itself; any other is found, named, and answered with 503.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

use EntityApi::Test;

my ($pgbouncer) = grep { -x } qw(/usr/sbin/pgbouncer /usr/local/sbin/pgbouncer /usr/local/bin/pgbouncer /usr/bin/pgbouncer);
plan skip_all => 'pgbouncer is not installed' unless $pgbouncer;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $folder = EntityApi::Test::folder();
my $port = EntityApi::Test::free_port();
my $database = "host=127.0.0.1 port=$port user=entityapi_shim dbname=entityapi";
my %down = (status => 'DOWN', reason => 'SESSION_POOLING_NEEDED');
my $owner = $$;
my $pooler;

sub write_file { my ($name, $text) = @_; return EntityApi::Test::write_file("$folder/$name", $text) }

sub configured
{
	my ($mode, $size) = @_;
	my $users = write_file('users.txt', qq("entityapi_shim" ""\n));

	return write_file('pgbouncer.ini', <<~"INI");
		[databases]
		entityapi = host=@{[ $cluster->host ]} port=@{[ $cluster->port ]} dbname=@{[ $cluster->{database} ]}
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = $port
		unix_socket_dir =
		auth_type = trust
		auth_file = $users
		logfile = $folder/pgbouncer.log
		pool_mode = $mode
		default_pool_size = $size
		INI
}

sub begin_pooler
{
	my ($mode, $size) = @_;

	$pooler = EntityApi::Test::start([ $pgbouncer, configured($mode, $size // 20) ], service => 1, err => "$folder/pgbouncer.err");
	EntityApi::Test::wait_until(60, sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) })
	  or die EntityApi::Test::slurp("$folder/pgbouncer.err");
	return;
}

sub end_pooler
{
	if ($pooler && $$ == $owner)
	{
		kill INT => $pooler;
		kill TERM => $pooler;
		waitpid $pooler, 0;
	}
	$pooler = undef;
	return;
}

END
{
	my $status = $?;

	end_pooler();
	$? = $status;
}

# Statuses of so many writes at the same time, which the service itself refuses with 401
sub statuses
{
	my ($shim, $count) = @_;

	return map { /^HTTP\/1\.1 (\d+)/ ? $1 : $_ } $shim->at_once($count, '/api/v1/items', '{}');
}

sub is_down
{
	my ($shim) = @_;
	my $health;

	ok(EntityApi::Test::wait_until(60, sub {
				$health = $shim->http(GET => '/actuator/health');
				$health->{json}{components}{db}{reason} }), 'health has a reason') or diag $health->{body};
	is($health->{status}, 503, 'and is 503');
	is_deeply($health->{json}, { status => 'DOWN', components => { db => \%down } }, 'which is that');
	is_deeply($shim->http(GET => '/actuator/health/readiness')->{json}, \%down, 'so is readiness');
	return;
}

sub serves
{
	my ($shim) = @_;

	ok(EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/actuator/health/readiness')->{status} == 200 }), 'it serves')
	  or diag EntityApi::Test::slurp($shim->err);
	return;
}

for my $mode (qw(transaction statement))
{
	subtest "by $mode" => sub {
		begin_pooler($mode);
		my $shim = EntityApi::Test->shim($cluster, wait => 0, database => $database, pool_size => 4);

		$shim->said(qr/listening on/);
		is_down($shim);
		ok($shim->said(qr/cannot use a session: its backend is not its own \(a pooler gives the backend of a session to others: have it pool by sessions, /), 'the log')
		  or diag EntityApi::Test::slurp($shim->err);
		is(join(' ', grep { $_ != 503 } map { statuses($shim, 16) } 1 .. 3), '', 'writes are 503');
		is($shim->http(GET => '/api/v1/items')->{status}, 503, 'reads as well');
		end_pooler();
		begin_pooler('session');
		serves($shim);
		is(join(' ', grep { $_ != 401 } statuses($shim, 16)), '', 'by sessions then');
		is($shim->stop, 0, 'ends with 0');
		end_pooler();
	};
}

subtest 'by session' => sub {
	begin_pooler('session');
	my $shim = EntityApi::Test->shim($cluster, database => $database, pool_size => 4);
	my $user = $shim->user($shim->tenant('acme')->{id}, 'ed', ['Editor']);
	my %write = (token => $user, headers => { 'Content-Type' => 'application/vnd.api+json' });

	is(join(' ', grep { $_ != 401 } map { statuses($shim, 16) } 1 .. 5), '', 'many at once');
	my $made = $shim->http(POST => '/api/v1/items', { %write, json => { data => { type => 'items', attributes => { name => 'a' } } } });
	is($made->{status}, 201, 'a write') or diag $made->{body};
	is($shim->http(GET => "/api/v1/items/$made->{json}{data}{id}", { token => $user })->{status}, 200, 'a read');

	# a session that ends leaves nothing to the next one
	my $old = EntityApi::Test::slurp($shim->err);
	$shim->stop;
	my $next = EntityApi::Test->shim($cluster, database => $database, pool_size => 4);
	is(join(' ', grep { $_ != 401 } map { statuses($next, 16) } 1 .. 3), '', 'the next shim finds nothing of it');
	unlike($old . EntityApi::Test::slurp($next->err), qr/"level":"error"/, 'nothing to report');
	$next->stop;
	end_pooler();
};

subtest 'by session, with one backend' => sub {
	begin_pooler('session', 1);
	my $shim = EntityApi::Test->shim($cluster, database => $database, pool_size => 1, pool_writes => 0, login_pool_share => 1);

	serves($shim);
	is(join(' ', grep { $_ != 401 } statuses($shim, 16)), '', 'in turns');
	$shim->stop;
	end_pooler();
};

# The pooler is told to pool otherwise while it is used: each backend then has what each session needs, and none its own
subtest 'changed under way' => sub {
	begin_pooler('session');
	my $shim = EntityApi::Test->shim($cluster, database => $database, pool_size => 4);
	my %seen;

	is(join(' ', grep { $_ != 401 } map { statuses($shim, 16) } 1 .. 3), '', 'it serves');
	configured('transaction', 20);
	kill HUP => $pooler;
	ok(EntityApi::Test::wait_until(120, sub {
				$seen{$_}++ for statuses($shim, 16);
				($shim->http(GET => '/actuator/health/readiness')->{json} // {})->{reason} }), 'it is noticed')
	  or diag EntityApi::Test::slurp($shim->err);
	is_down($shim);
	is(join(' ', grep { !/^(?:401|503)$/ } sort keys %seen), '', 'answers meanwhile')
	  or diag explain(\%seen), EntityApi::Test::slurp($shim->err);
	ok($shim->said(qr/a session has not kept its backend \(a pooler gives|cannot prepare entityapi\.handle: [^"]*\\"handle\\" already exists \(a pooler gives/), 'the log')
	  or diag EntityApi::Test::slurp($shim->err);
	configured('session', 20);
	kill HUP => $pooler;
	serves($shim);
	$shim->stop;
	end_pooler();
};

done_testing;
