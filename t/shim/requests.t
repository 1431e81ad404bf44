# What reaches entityapi.handle(), what comes back, and the access log.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use JSON::PP;
use MIME::Base64;
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster, trusted_proxies => '127.0.0.1,10.0.0.0/8,fd00::/9',
	keep_alive => 'yes', statement_timeout_ms => 600_000);
my $uuid = qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

sub header_of
{
	my ($answer, $name) = @_;
	return $answer =~ /^\Q$name\E: (.*?)\r$/m ? $1 : undef;
}

subtest 'a request as it was sent' => sub {
	my $target = '/api/v1/x%2Fy/%41?filter=a%3D%3Db+c&q=1&&';
	my $got = $shim->http(GET => $target,
		{ headers => { 'X-Thing' => [ 'one', 'tw"o\\' ], 'X-Odd' => 'gr\xc3\xbcn' } })->{json};

	is($got->{target}, $target, 'target undecoded');
	is($got->{method}, 'GET', 'method');
	is_deeply($got->{headers}{'x-thing'}, [ 'one', 'tw"o\\' ], 'repeated header');
	is($got->{remote}, '127.0.0.1', 'peer address');
	like($got->{headers}{'x-request-id'}, $uuid, 'new request id');
	cmp_ok($shim->http(GET => '/api/v1/x')->{json}{headers}{'x-request-id'}, 'gt',
		$got->{headers}{'x-request-id'}, 'the next one comes behind it');
	is_deeply($got->{settings}, {
			statement_timeout => '10min',
			timezone          => 'UTC',
			application_name  => 'entityapi-shim' }, 'session settings');
};

subtest 'bytes of a body' => sub {
	my $bytes = join '', map { chr } 0 .. 255;

	for my $length (0, 1, 15, 16, 17, 255, 70_000)
	{
		my $body = substr $bytes x 300, 0, $length;
		my $got = $shim->http(POST => '/api/v1/x', { body => $body })->{json};

		ok(decode_base64($got->{body}) eq $body, "$length bytes");
	}
};

subtest 'chunks' => sub {
	my $head = "POST /api/v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	my $answer = $shim->raw($head . "5\r\nhello\r\n11\r\n, wonderful world\r\n0\r\n\r\n");
	my ($body) = $answer =~ /\r\n\r\n(.*)/s;

	is(decode_base64(decode_json($body)->{body}), 'hello, wonderful world', 'joined');
	is(header_of($answer, 'Connection'), 'close', 'and the connection closed');
};

subtest 'request ids' => sub {
	for my $good ('a', 'A-b_c.9', 'x' x 64)
	{
		my $answer = $shim->http(GET => '/api/v1/x', { headers => { 'X-Request-Id' => $good } });

		is($answer->{headers}{'x-request-id'}, $good, "kept: $good");
	}
	for my $bad ('x' x 65, 'a b', 'a/b', 'caf\xc3\xa9', [ 'a', 'b' ])
	{
		my $answer = $shim->http(GET => '/api/v1/x', { headers => { 'X-Request-Id' => $bad } });

		like($answer->{headers}{'x-request-id'}, $uuid, 'replaced');
		is(ref $answer->{json}{headers}{'x-request-id'}, '', 'sent once');
	}
};

subtest 'client addresses' => sub {
	my @cases = (
		[ undef,                              '127.0.0.1' ],
		[ '203.0.113.9',                      '203.0.113.9' ],
		[ '203.0.113.9, 10.1.2.3',            '203.0.113.9' ],
		[ '198.51.100.1, 203.0.113.9',        '203.0.113.9' ],
		[ [ '198.51.100.1', '203.0.113.9, 10.0.0.1' ], '203.0.113.9' ],
		[ '203.0.113.9:4711',                 '203.0.113.9' ],
		[ '[2001:db8::1]:80, fd00::7',        '2001:db8::1' ],
		[ '203.0.113.9, nonsense, 10.1.2.3',  '10.1.2.3' ],
		[ '::ffff:203.0.113.9',               '203.0.113.9' ],
		[ '[::FFFF:203.0.113.9]:80, ::ffff:10.1.2.3', '203.0.113.9' ],
		[ '2001:DB8:0:0::1',                  '2001:db8::1' ],
		[ 'fe80::1%eth0, 10.1.2.3',           '10.1.2.3' ],
		[ '10.0.0.9',                         '10.0.0.9' ]);

	for my $case (@cases)
	{
		my ($value, $expected) = @$case;
		my $answer = $shim->http(GET => '/x',
			{ headers => defined $value ? { 'X-Forwarded-For' => $value } : {} });
		my $name = ref $value ? join '; ', @$value : $value // 'none';

		is($answer->{json}{remote}, $expected, $name);
	}
	my $plain = EntityApi::Test->shim($cluster);
	is($plain->http(GET => '/x', { headers => { 'X-Forwarded-For' => '203.0.113.9' } })
		->{json}{remote}, '127.0.0.1', 'not believed from others');
};

subtest 'answers' => sub {
	my $get = $shim->raw("GET /big/100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	my $head = $shim->raw("HEAD /big/100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

	like($get, qr/\r\n\r\nx{100}$/, 'GET has a body');
	like($head, qr/^HTTP\/1.1 200 OK\r\n/, 'HEAD');
	like($head, qr/\r\n\r\n$/, 'has none');
	is(header_of($head, 'Content-Length'), 100, 'but its length');
	is(header_of($head, 'Content-Type'), 'application/vnd.api+json', 'and its headers');
	like(header_of($get, 'Date'), qr/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'Date');
	unlike($get, qr/x-entityapi/i, 'what is for the log stays here');

	for my $status (204, 304)
	{
		my $answer = $shim->raw("GET /status/$status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

		like($answer, qr/^HTTP\/1.1 $status .*\r\n\r\n$/s, "$status without a body");
		is(header_of($answer, 'Content-Length'), undef, 'and without a length');
	}
	is(length $shim->http(GET => '/big/5000000')->{body}, 5_000_000, 'a large body');
};

subtest 'many requests on a connection' => sub {
	my $one = "GET /big/10 HTTP/1.1\r\nHost: a\r\n\r\n";
	my $post = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
	my $last = "GET /big/20 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	my $answer = $shim->raw($one . $post . $one . $last . $one);
	my @statuses = $answer =~ m{HTTP/1\.1 (\d+) }g;

	is_deeply(\@statuses, [ 200, 200, 200, 200 ], 'pipelined, up to the close');
	like($answer, qr/\r\n\r\nx{20}$/, 'nothing after it');
	my $old = $shim->raw("GET /big/1 HTTP/1.0\r\n\r\nGET /big/1 HTTP/1.0\r\n\r\n");
	is(scalar(() = $old =~ m{HTTP/1\.1 }g), 1, 'HTTP/1.0 closes');
};

subtest 'the access log' => sub {
	my $id = 'log-test-1';

	$shim->http(GET => '/api/v1/x?token=hush', {
			headers => { 'X-Request-Id' => $id, Authorization => 'Bearer hush' } });
	my $record = decode_json($shim->logged(qr/"$id"/));

	is_deeply([ sort keys %$record ], [ qw(bytes databaseMicros method principalId
			principalKind requestId route status time totalMicros waitMicros) ], 'members');
	is($record->{route}, '/api/v{n}/stand-in', 'route template');
	is_deeply([ @$record{qw(method status principalId principalKind)} ],
		[ 'GET', 200, '42', 'USER' ], 'values');
	like($record->{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/, 'time');
	cmp_ok($record->{databaseMicros}, '>', 0, 'time in the database');
	cmp_ok($record->{totalMicros}, '>=', $record->{databaseMicros} + $record->{waitMicros},
		'is part of the whole');
	unlike(EntityApi::Test::slurp($shim->log), qr/hush/, 'no secret, no query');
};

is(EntityApi::Test::slurp($shim->err) =~ /secret|hush/ ? 1 : 0, 0, 'nothing secret in stderr');
is($shim->stop, 0, 'ends with 0');

done_testing;
