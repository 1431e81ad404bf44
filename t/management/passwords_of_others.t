# Administrators who make passwords have the connections of logins, and leave
# the others to everybody.

use strict;
use warnings;

use IO::Socket::INET;
use JSON::PP;
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster, pool_size => 4, login_pool_share => 1);
my $root = $shim->superadmin;
my ($here, $there) = map { $shim->tenant($_)->{id} } qw(here there);
my $ann = $shim->user($there, 'ann', ['Viewer']);
my $bob = $shim->user($here, 'bob', ['Viewer']);

# Hold a tenant while something is done.
sub holding
{
	my ($work) = @_;
	my $pid = EntityApi::Test::start(
		[ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
		in => "begin;\nselect 1 from entityapi.tenant where id = '$here' for update;\nselect pg_sleep(300);\n");

	EntityApi::Test::wait_until(30, sub {
			$cluster->psql("select count(*) from pg_stat_activity where query like 'select pg_sleep(300)%'") > 0;
		}) or die "nothing is held\n";
	$work->();
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'select pg_sleep(300)%'");
	waitpid $pid, 0;
	return;
}

# Send, and do not wait for the answer.
sub sent
{
	my ($method, $path, $body) = @_;
	my $text = ref $body ? JSON::PP->new->canonical->encode($body) : $body;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60) or die "cannot connect: $@\n";

	$socket->autoflush(1);
	print $socket join("\r\n", "$method $path HTTP/1.1", 'Host: a', 'Connection: close', "Authorization: Bearer $root->{accessToken}",
		'Content-Type: application/json', 'Content-Length: ' . length $text, '', $text);
	return $socket;
}

sub answered { my ($socket) = @_; local $/; return (<$socket> // '') =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'nothing' }

sub waiting
{
	return $cluster->psql("select count(*) from pg_stat_activity where usename = 'entityapi_shim' and wait_event_type = 'Lock'");
}

my $n = 0;
my %requests = (
	'a new user'              => sub { return (POST => "/manage/tenants/$here/users", { username => 'u' . ++$n }) },
	'a path with escapes'     => sub { return (POST => "/manage/%74enants/$here/%75sers", { username => 'u' . ++$n }) },
	'a number beyond doubles' => sub { return (POST => "/manage/tenants/$here/users", '{"username": "u' . ++$n . '", "profile": {"n": 99999999999999999999}}') },
	'a temporary password'    => sub { return (PATCH => "/manage/tenants/$here/users/$bob->{id}", { temporaryPassword => 'a pass phrase of some length' }) },
);

for my $what (sort keys %requests)
{
	my @sockets;

	# their tenant is held, so each keeps its connection
	holding(sub {
			@sockets = map { sent($requests{$what}->()) } 1 .. 6;
			ok(EntityApi::Test::wait_until(10, sub { return waiting() >= 1 }), "$what: under way");
			select undef, undef, undef, 0.5;
			is(waiting(), 1, "$what: as many as may log in");
			is($shim->http(GET => '/api/v1/customers', { token => $ann->{accessToken} })->{status}, 200, "$what: data are left alone");
			is($shim->http(PATCH => "/manage/tenants/$there/users/$ann->{id}", { token => $root, json => { status => 'ACTIVE' } })->{status},
				200, "$what: and what ends an account");
		});
	like(join(' ', map { answered($_) } @sockets), qr/^(?:20[01]|503)(?: (?:20[01]|503)){5}$/, "$what: all get an answer");
}

done_testing;
