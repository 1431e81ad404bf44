# Identity over HTTP: what needs several connections, a restart, or the log.

use strict;
use warnings;
use utf8;

use IO::Socket::INET;
use POSIX ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(
	conf => [ 'log_min_duration_statement = 0', 'log_connections = on' ]);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');

# Everything that must not be found in a log
my @secrets;

sub login
{
	my ($username, $password) = @_;
	my $pair = $shim->login($username, $password);

	push @secrets, $password, @$pair{qw(accessToken refreshToken)};
	return $pair;
}

sub me
{
	my ($pair) = @_;
	return $shim->http(GET => '/auth/me', { token => $pair })->{status};
}

sub refresh
{
	my ($pair) = @_;
	return $shim->http(POST => '/auth/refresh',
		{ json => { refreshToken => $pair->{refreshToken} } });
}

my $ann = $shim->user($tenant->{id}, 'Änn', [], email => 'ann@acme.example');
push @secrets, $ann->{password}, @$ann{qw(accessToken refreshToken)};

subtest 'answers' => sub {
	my $answer = $shim->http(GET => '/auth/me', { token => $ann });

	is($answer->{status}, 200, 'who am I');
	is_deeply(
		$answer->{json},
		{   userId             => $ann->{id},
			username           => 'Änn',
			email              => 'ann@acme.example',
			tenantId           => $tenant->{id},
			roles              => [],
			profile            => {},
			securityAttributes => {},
			accountKind        => 'USER',
			isSuperAdmin       => JSON::PP::false,
			isTenantAdmin      => JSON::PP::false,
			scope              => [],
		},
		'all of it');
	is($answer->{headers}{'cache-control'}, 'no-store', 'not to be stored');
	is($answer->{headers}{'content-type'}, 'application/json', 'JSON');

	my $head = $shim->http(HEAD => '/auth/me', { token => $ann });
	is($head->{status}, 200, 'HEAD');
	is($head->{body}, '', 'has no body');

	$answer = $shim->http(GET => '/auth/me');
	is($answer->{status}, 401, 'no credential');
	is($answer->{headers}{'www-authenticate'}, 'Bearer realm="entityapi"', 'how to send one');

	$answer = $shim->http(POST => '/auth/login', { body => 'username=x&password=y' });
	is($answer->{status}, 415, 'a form is no login');

	$answer = $shim->http(POST => '/auth/login', { json => { username => 'x' } });
	is($answer->{status}, 400, 'nor is a name alone');
};

subtest 'one credential at most' => sub {
	my $line = "Authorization: Bearer $ann->{accessToken}\r\n";
	my $host = "Host: 127.0.0.1\r\nConnection: close\r\n";

	like($shim->raw("GET /auth/me HTTP/1.1\r\n$host$line\r\n"), qr{^HTTP/1\.1 200 }, 'one');
	like($shim->raw("GET /auth/me HTTP/1.1\r\n$host$line$line\r\n"), qr{^HTTP/1\.1 400 }, 'twice the same');
	like($shim->raw("GET /auth/me HTTP/1.1\r\n$host${line}X-API-Key: eap_x\r\n\r\n"),
		qr{^HTTP/1\.1 400 }, 'a token and a key');
};

subtest 'failed logins look alike' => sub {
	my %bodies;

	$shim->user($tenant->{id}, 'gone', []);
	$cluster->psql("update entityapi.account set status = 'DISABLED' where username = 'gone'");
	for my $try ([ 'nobody', 'plainly-for-a-test-2' ], [ 'Änn', 'wrong' ], [ 'Änn', '' ],
		[ 'gone', 'plainly-for-a-test-2' ], [ 'x' x 200, 'y' x 200 ])
	{
		my $answer = $shim->http(POST => '/auth/login',
			{   headers => { 'x-request-id' => 'same' },
				json    => { username => $try->[0], password => $try->[1] } });

		$bodies{"$answer->{status} $answer->{body}"}++;
	}
	is(scalar keys %bodies, 1, 'byte by byte');
	like((keys %bodies)[0], qr/^401 /, 'all 401');
};

subtest 'parallel refreshes of one token' => sub {
	# no time passes: for some seconds a token may be sent again
	$cluster->set('entityapi.clock' => $cluster->psql('select now()'));
	my $pair = login('änn', $ann->{password});
	my $body = "{\"refreshToken\":\"$pair->{refreshToken}\"}";
	my @sockets = map {
		IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
		  or die "cannot connect: $@\n"
	} 1 .. 20;

	$_->autoflush(1) for @sockets;
	print $_ "POST /auth/refresh HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
	  . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body"
	  for @sockets;

	my @answers = map { local $/; scalar readline $_ } @sockets;
	my %statuses;
	$statuses{ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++ for @answers;

	cmp_ok($statuses{200}, '>=', 1, 'they succeed') or diag explain \%statuses;
	is($statuses{200} + ($statuses{503} // 0), 20, 'where the service is not busy, and nothing breaks')
	  or diag explain \%statuses;
	is( $cluster->psql(
			'select count(*) filter (where used_at is null) from entityapi.refresh_token'
			  . ' where session_id = (select session_id from entityapi.refresh_token'
			  . " where id = '" . substr($pair->{refreshToken}, 4, 22) . "')"),
		1, 'there is one successor');
	$cluster->set('entityapi.clock' => undef);
};

subtest 'reuse is noticed after a restart' => sub {
	my $first = login('änn', $ann->{password});
	my $second = refresh($first);

	is($second->{status}, 200, 'refreshed');
	my $third = refresh($second->{json});
	push @secrets, map { @{ $_->{json} }{qw(accessToken refreshToken)} } $second, $third;
	$cluster->restart;
	EntityApi::Test::wait_until(30, sub { me($third->{json}) == 200 });
	is(me($third->{json}), 200, 'sessions survive');
	is(refresh($first)->{status}, 401, 'the old token again');
	is(me($_->{json}), 401, 'the session has ended') for $second, $third;
	is(refresh($third->{json})->{status}, 401, 'its last token too');
};

subtest 'changes count from the next request on, on every connection' => sub {
	my @pairs = map { login('änn', $ann->{password}) } 1 .. 3;
	my $old_key = $cluster->psql("select kid from entityapi.signing_key where state = 'ACTIVE'");

	is(join(' ', map { me($_) } @pairs), '200 200 200', 'logged in');
	$cluster->psql('select entityapi.rotate_signing_key()');
	is(join(' ', map { me($_) } @pairs), '200 200 200', 'the old key still verifies');
	my $new = login('änn', $ann->{password});
	is(me($new), 200, 'the new one signs');
	$cluster->psql("update entityapi.signing_key set state = 'REVOKED' where kid = '$old_key'");
	is(join(' ', map { me($_) } @pairs), '401 401 401', 'a revoked key does not verify');
	is(me($new), 200, 'the new one does');

	$cluster->psql("update entityapi.tenant set status = 'SUSPENDED'");
	is(me($new), 401, 'a suspended tenant');
	$cluster->psql("update entityapi.tenant set status = 'ACTIVE'");
	is(me($new), 200, 'and back');
	is($shim->http(POST => '/auth/logout', { token => $new })->{status}, 204, 'logout');
	is(me($new), 401, 'is at once');
};

subtest 'no secret in a log' => sub {
	my $wrong = 'a-wrong-password-to-look-for';

	$shim->http(POST => '/auth/login', { json => { username => 'änn', password => $wrong } });
	$shim->http(POST => '/auth/login',
		{ headers => { 'content-type' => 'application/json' }, body => "{\"password\": \"$wrong" });
	$shim->stop;

	my $text = join '', map { EntityApi::Test::slurp($_) } $cluster->log, $shim->log, $shim->err;
	like($text, qr/entityapi\.handle/, 'statements are logged');
	# bytea parameters would be logged in hexadecimal digits
	my @found = grep { index($text, $_) >= 0 || index($text, unpack 'H*', $_) >= 0 }
	  @secrets, $wrong;
	is(scalar @found, 0, 'but none of ' . @secrets . ' secrets') or diag explain \@found;
};

done_testing();
