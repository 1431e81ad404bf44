# Requests that are refused before the database hears of them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use JSON::PP;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster, body_timeout_ms => 600_000);
my $hasty = EntityApi::Test->shim($cluster, body_timeout_ms => 1000);

my $get = "GET /api/v1/x HTTP/1.1\r\n";
my $post = "POST /api/v1/x HTTP/1.1\r\n";
my $host = "Host: a\r\n";
my $body = "Content-Length: 3\r\n\r\nabc";

# A second request right behind a refused one must never be executed.
my $smuggled = "GET /api/v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

my @refused = (
	[ 'length and coding', 400, $post . $host . "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" ],
	[ 'coding and length', 400, $post . $host . "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" ],
	[ 'two lengths', 400, $post . $host . "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd" ],
	[ 'the same length twice', 400, $post . $host . "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc" ],
	[ 'length +3', 400, $post . $host . "Content-Length: +3\r\n\r\nabc" ],
	[ 'length 3abc', 400, $post . $host . "Content-Length: 3abc\r\n\r\nabc" ],
	[ 'length 3, 3', 400, $post . $host . "Content-Length: 3, 3\r\n\r\nabc" ],
	[ 'length 0x3', 400, $post . $host . "Content-Length: 0x3\r\n\r\nabc" ],
	[ 'an endless length', 400, $post . $host . "Content-Length: 99999999999999999999999\r\n\r\nabc" ],
	[ 'coding identity', 400, $post . $host . "Transfer-Encoding: identity\r\n\r\nabc" ],
	[ 'coding gzip, chunked', 400, $post . $host . "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" ],
	[ 'two codings', 400, $post . $host . "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" ],
	[ 'a line that hides all headers', 400, "GET /actuator/health HTTP/1.0\r\n  :\r\nX-A: 1\r\n\r\n" ],
	[ 'a line of tabs that does', 400, "GET /actuator/health HTTP/1.0\r\n\t\t\t\t:\r\nX-A: 1\r\n\r\n" ],
	[ 'one that hides a length', 400, "POST /api/v1/x HTTP/1.0\r\n     :\r\nContent-Length: 3\r\n\r\nabc" ],
	[ 'one that hides a credential', 400, "GET /api/v1/x HTTP/1.1\r\n     :\r\n${host}Authorization: Bearer abcdefghijklmn\r\n\r\n" ],
	[ 'line feeds alone, without headers', 400, "GET /api/v1/x HTTP/1.0\n\n" ],
	[ 'chunks in HTTP/1.0', 400, "POST /x HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" ],
	[ 'no length', 411, $post . $host . "\r\n" ],
	[ 'no host', 400, $get . "\r\n" ],
	[ 'two hosts', 400, $get . $host . "Host: b\r\n\r\n" ],
	[ 'the same host twice', 400, $get . $host . $host . "\r\n" ],
	[ 'an empty host', 400, $get . "Host: \r\n\r\n" ],
	[ 'a host with a path', 400, $get . "Host: a/b\r\n\r\n" ],
	[ 'two Authorization', 400, $get . $host . "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" ],
	[ 'two X-API-Key', 400, $get . $host . "X-API-Key: a\r\nx-api-key: b\r\n\r\n" ],
	[ 'two If-Match', 400, $get . $host . "If-Match: a\r\nIf-Match: b\r\n\r\n" ],
	[ 'two Content-Type', 400, $post . $host . "Content-Type: a/b\r\nContent-Type: a/b\r\n$body" ],
	[ 'upgrade to websocket', 400, $get . $host . "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n\r\n" ],
	[ 'upgrade to h2c', 400, $get . $host . "Upgrade: h2c\r\n\r\n" ],
	[ 'another expectation', 400, $post . $host . "Expect: junk\r\n$body" ],
	[ 'space before the colon', 400, $get . $host . "X-A : 1\r\n\r\n" ],
	[ 'length with such a space', 400, $post . $host . "Content-Length : 3\r\n\r\nabc" ],
	[ 'a folded line', 400, $get . $host . "X-A: 1\r\n  2\r\nX-B: 3\r\n\r\n" ],
	[ 'a folded line that hides a length', 400, $get . $host . "X-A: 1\r\n\x{20}2\r\nContent-Length: 3\r\n\r\nabc" ],
	[ 'a space before the first header', 400, $get . " $host\r\n" ],
	[ 'a bare line feed', 400, $get . "Host: a\nX-A: 1\r\n\r\n" ],
	[ 'bare line feeds only', 400, "GET /x HTTP/1.1\nHost: a\n\n" ],
	[ 'a request line ended by LF CR', 400, "GET /api/v1/x HTTP/1.1\n\r$host\r\n" ],
	[ 'a request line ended by CR CR', 400, "GET /api/v1/x HTTP/1.1\r\r$host\r\n" ],
	[ 'a request line ended by CR SP', 400, "GET /api/v1/x HTTP/1.1\r $host\r\n" ],
	[ 'a request line ended by LF SP', 400, "GET /api/v1/x HTTP/1.1\n $host\r\n" ],
	[ 'a head ended by LF LF before CR NUL', 400, $post . "Content-Length: 2\r\nHost: a\n\n\r\0" ],
	[ 'the same without a body', 400, $get . "Host: a\n\n\r\0" ],
	[ 'a line feed alone before the request', 400, "\n$get$host\r\n" ],
	[ 'a line without a colon', 400, $get . $host . "nonsense\r\n\r\n" ],
	[ 'a strange header name', 400, $get . $host . "X(A): 1\r\n\r\n" ],
	[ 'a header that is not UTF-8', 400, $get . $host . "X-A: \xc3\x28\r\n\r\n" ],
	[ 'a target that is not UTF-8', 400, "GET /\xff HTTP/1.1\r\n$host\r\n" ],
	[ 'a query that is not UTF-8', 400, "GET /x?a=\xc0\xaf HTTP/1.1\r\n$host\r\n" ],
	[ 'an overlong header', 400, $get . $host . "X-A: \xc0\xaf\r\n\r\n" ],
	[ 'a control character', 400, $get . $host . "X-A: a\x01b\r\n\r\n" ],
	[ 'a NUL', 400, $get . $host . "X-A: a\x00b\r\n\r\n" ],
	[ 'two spaces in the request line', 400, "GET  /x HTTP/1.1\r\n$host\r\n" ],
	[ 'a fragment', 400, "GET /x#y HTTP/1.1\r\n$host\r\n" ],
	[ 'method CONNECT', 400, "CONNECT a:1 HTTP/1.1\r\n$host\r\n" ],
	[ 'HTTP/2.0', 505, "GET /x HTTP/2.0\r\n$host\r\n" ],
	[ '64 headers', 431, $get . $host . join('', map { "X-$_: 1\r\n" } 1 .. 63) . "\r\n" ],
	[ '100 headers, the key last', 431, $get . $host . join('', map { "X-$_: 1\r\n" } 1 .. 98) . "X-API-Key: a\r\n\r\n" ],
	[ '61 headers', 431, $get . $host . join('', map { "X-$_: 1\r\n" } 1 .. 60) . "\r\n" ],
	[ '17 KiB of headers', 431, $get . $host . 'X-A: ' . 'a' x 17_000 . "\r\n\r\n" ],
	[ '70 KiB of headers', 431, $get . $host . 'X-A: ' . 'a' x 70_000 . "\r\n\r\n" ],
	[ '200 KiB of headers', 431, $get . $host . 'X-A: ' . 'a' x 200_000 . "\r\n\r\n" ],
	[ '9 KiB of target', 414, 'GET /api/v1/' . 'a' x 9_000 . " HTTP/1.1\r\n$host\r\n" ],
	[ '9 KiB of query', 414, 'GET /api/v1/x?' . 'a' x 9_000 . " HTTP/1.1\r\n$host\r\n" ],
	[ 'absolute form of another host', 400, "GET http://b/api/v1/x HTTP/1.1\r\n$host\r\n" ],
	[ 'absolute form without a host', 400, "GET http:///api/v1/x HTTP/1.1\r\n$host\r\n" ],
	[ 'absolute form in HTTP/1.0 without a host', 400, "GET http://a/x HTTP/1.0\r\n\r\n" ],
	[ 'absolute form with a user', 400, "GET http://u\@a/x HTTP/1.1\r\n$host\r\n" ],
	[ 'absolute form with a port', 400, "GET http://a:80/api/v1/x HTTP/1.1\r\n$host\r\n" ],
	[ 'absolute form with a body', 400, "POST http://b/api/v1/x HTTP/1.1\r\n$host$body" ],
	[ 'another scheme', 400, "GET ftp://a/ HTTP/1.1\r\n$host\r\n" ],
	[ 'the target *', 400, "OPTIONS * HTTP/1.1\r\n$host\r\n" ],
	[ 'GET *', 400, "GET * HTTP/1.1\r\n$host\r\n" ],
	[ 'a target without a slash', 400, "GET x HTTP/1.1\r\n$host\r\n" ],
	[ 'no target', 400, "GET HTTP/1.1\r\n$host\r\n" ],
	[ 'HTTP/0.9', 400, "GET /x\r\n\r\n" ],
	[ 'no protocol', 400, "GET /x \r\n$host\r\n" ],
	[ 'another protocol', 400, "GET /x HTCPCP/1.0\r\n$host\r\n" ],
	[ 'HTTP/1.2', 505, "GET /x HTTP/1.2\r\n$host\r\n" ],
	[ 'the preface of HTTP/2', 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" ],
	[ 'a tab in the request line', 400, "GET\t/x HTTP/1.1\r\n$host\r\n" ],
	[ 'a space in the target', 400, "GET /x y HTTP/1.1\r\n$host\r\n" ],
	[ 'a method in small letters', 400, "get /x HTTP/1.1\r\n$host\r\n" ],
	[ 'a tab before the colon', 400, $get . $host . "X-A\t: 1\r\n\r\n" ],
	[ 'a line folded by a tab', 400, $get . $host . "X-A: 1\r\n\t2\r\nX-B: 3\r\n\r\n" ],
	[ 'a folded last line', 400, $get . $host . "X-A: 1\r\n 2\r\n\r\n" ],
	[ 'a folded coding', 400, $post . $host . "Transfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n\r\nabc" ],
	[ 'a folded length', 400, $post . $host . "Content-Length:\r\n 3\r\n\r\nabc" ],
	[ 'a header without a name', 400, $get . $host . ": 1\r\n\r\n" ],
	[ 'a bare carriage return', 400, $get . $host . "X-A: 1\rX-B: 2\r\n\r\n" ],
	[ 'a length behind a bare carriage return', 400, $post . $host . "X-A: 1\rContent-Length: 3\r\n\r\nabc" ],
	[ 'a length of nothing', 400, $post . $host . "Content-Length: \r\n\r\nabc" ],
	[ 'length -3', 400, $post . $host . "Content-Length: -3\r\n\r\nabc" ],
	[ 'length 3.0', 400, $post . $host . "Content-Length: 3.0\r\n\r\nabc" ],
	[ 'length "3"', 400, $post . $host . "Content-Length: \"3\"\r\n\r\nabc" ],
	[ 'lengths that differ in case of their names', 400, $post . $host . "Content-Length: 3\r\ncontent-length: 30\r\n\r\nabc" ],
	[ 'coding xchunked', 400, $post . $host . "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" ],
	[ 'coding "chunked"', 400, $post . $host . "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" ],
	[ 'coding chunked, chunked', 400, $post . $host . "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" ],
	[ 'coding chunked, identity', 400, $post . $host . "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" ],
	[ 'coding with a vertical tab', 400, $post . $host . "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" ],
	[ 'an empty coding', 400, $post . $host . "Transfer-Encoding: \r\nContent-Length: 3\r\n\r\nabc" ],
	[ 'a coding of a GET', 400, $get . $host . "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" ],
	[ 'two expectations', 400, $post . $host . "Expect: 100-continue\r\nExpect: 100-continue\r\n$body" ],
	[ 'a host with a user', 400, $get . "Host: u\@a\r\n\r\n" ],
	[ 'two hosts in one', 400, $get . "Host: a, b\r\n\r\n" ],
	[ '70 KiB of target', 431, 'GET /api/v1/' . 'a' x 70_000 . " HTTP/1.1\r\n$host\r\n" ],
	[ 'a body over its limit', 413, $post . $host . "Content-Length: 1048577\r\n\r\n" ],
	[ 'a body of 9 GB', 413, $post . $host . "Content-Length: 9999999999\r\n\r\n" ],
	[ 'a body over the limit of /auth', 413, "POST /auth/x HTTP/1.1\r\n${host}Content-Length: 65537\r\n\r\n" ],
	[ 'the same, encoded', 413, "POST /%61uth/x HTTP/1.1\r\n${host}Content-Length: 65537\r\n\r\n" ],
	[ 'a body over the limit of /manage', 413, "POST /manage/x HTTP/1.1\r\n${host}Content-Length: 65537\r\n\r\n" ],
	[ 'expectation over the limit', 413, $post . $host . "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n" ],
	[ 'a coding of the body', 415, $post . $host . "Content-Encoding: gzip\r\n$body" ],
	[ 'two of them', 415, $post . $host . "Content-Encoding: gzip, identity\r\n$body" ],
	[ 'two headers of that', 400, $post . $host . "Content-Encoding: identity\r\nContent-Encoding: identity\r\n$body" ],
	[ 'a bad chunk size', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n" ],
	[ 'a negative chunk size', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n" ],
	[ 'a huge chunk size', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\nabc\r\n0\r\n\r\n" ],
	[ 'chunk extensions beyond 1 KiB', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n3;" . 'a' x 1100 . "\r\nabc\r\n0\r\n\r\n" ],
	[ 'three empty lines before', 400, "\r\n\r\n\r\n$get$host\r\n" ],
	[ 'a space before the method', 400, " $get$host\r\n" ],
	[ 'a tab before the method', 400, "\t$get$host\r\n" ],
	[ 'a method with a dot', 400, "GE.T /x HTTP/1.1\r\n$host\r\n" ],
	[ 'a chunk size with a sign', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n" ],
	[ 'a chunk size 0x3', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n" ],
	[ 'a chunk size with a space', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n" ],
	[ 'no chunk size', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n" ],
	[ 'a chunk size ended by a line feed', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n" ],
	[ 'a chunk size as large as a number gets', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n" ],
	[ 'a chunk shorter than said', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n5\r\nabc\r\n0\r\n\r\n" ],
	[ 'an endless chunk', 413, $post . $host . "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n" . 'a' x 1_100_000 ],
	[ 'a chunk longer than said', 400, $post . $host . "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n" ]);

my $before = $cluster->calls;

for my $case (@refused)
{
	my ($name, $status, $request) = @$case;

	subtest $name => sub {
		my $answer = $shim->raw($request =~ s/PORT/@{[ $shim->port ]}/gr . $smuggled);
		my ($head, $document) = split /\r\n\r\n/, $answer, 2;

		like($answer, qr/^HTTP\/1.1 $status /, "status $status");
		like($head, qr/^Connection: close\r?$/m, 'closed');
		like($head, qr/^X-Content-Type-Options: nosniff\r?$/m, 'nosniff');
		like($head, qr/^Content-Type: application\/(vnd\.api\+)?json\r?$/m, 'JSON');
		my ($length) = $head =~ /^Content-Length: (\d+)/m;
		my $error = eval { decode_json(substr $document, 0, $length)->{errors}[0] } // {};
		is_deeply([ sort keys %$error ], [qw(code detail id status title)], 'error document');
		is($error->{status}, $status, 'its status');
		like($head, qr/^X-Request-Id: \Q$error->{id}\E\r?$/m, 'its id');
		is(length $document, $length, 'and nothing after it');
	};
}

subtest 'bodies that do not arrive' => sub {
	my $answer = $hasty->raw($post . $host . "Content-Length: 10\r\n\r\nabc", half_close => 1);
	like($answer, qr/^HTTP\/1.1 40[08] /, 'cut off');

	$answer = $hasty->raw($post . $host . "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", half_close => 1);
	like($answer, qr/^HTTP\/1.1 40[08] /, 'cut off in a chunk');

	$answer = $hasty->raw($post . $host . "Content-Length: 10\r\n\r\nabc", timeout => 60);
	like($answer, qr/^HTTP\/1.1 40[08] /, 'silent');

	# One byte each 0.3 s resets no clock: else it would go on for 1000 bytes.
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $hasty->port);
	local $SIG{PIPE} = 'IGNORE';
	$socket->autoflush(1);
	print $socket $post . $host . "Content-Length: 1000\r\n\r\n";
	my $bytes = 0;
	while (++$bytes < 300)
	{
		my $ready = '';

		vec($ready, fileno $socket, 1) = 1;
		last if select $ready, undef, undef, 0.3;
		print $socket 'x';
	}
	sysread $socket, $answer, 1000;
	like($answer, qr/^HTTP\/1.1 408 /, 'dripping');
	cmp_ok($bytes, '<', 300, 'cut');
};

is($cluster->calls, $before, 'the database heard of none of them');

subtest 'what looks odd and is allowed' => sub {
	for my $case (
		[ 'exactly 60 headers', $get . $host . "Connection: close\r\n" . join('', map { "X-$_: 1\r\n" } 1 .. 58) . "\r\n" ],
		[ 'an empty header', $get . $host . "Connection: close\r\nX-A:\r\n\r\n" ],
		[ 'an empty last header with spaces', $get . "Connection: close\r\n${host}X-A:   \r\n\r\n" ],
		[ 'empty lines before', "\r\n$get${host}Connection: close\r\n\r\n" ],
		[ 'HTTP/1.0 without headers', "GET /x HTTP/1.0\r\n\r\n" ],
		[ 'after empty lines', "\r\n\r\nGET /x HTTP/1.0\r\n\r\n" ],
		[ 'an expectation', $post . $host . "Connection: close\r\nExpect: 100-continue\r\n$body" ],
		[ 'DELETE without a length', "DELETE /x HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'an unusual method', "REPORT /x HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'TRACE', "TRACE /x HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'a method that nobody knows', "FOO /x HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'two empty lines before', "\r\n\r\n$get${host}Connection: close\r\n\r\n" ],
		[ 'a body that is not coded', $post . $host . "Content-Encoding: Identity\r\nConnection: close\r\n$body" ],
		[ 'tabs around a value', $get . "Host:\ta\t\r\nConnection: \tclose \t\r\n\r\n" ],
		[ 'a tab in a value', $get . $host . "X-A: a\tb\r\nConnection: close\r\n\r\n" ],
		[ 'a length behind a tab', $post . $host . "Connection: close\r\nContent-Length:\t3\r\n\r\nabc" ],
		[ 'a chunk extension', $post . $host . "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n" ],
		[ 'absolute form', "GET http://a/api/v1/x HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'absolute form of this server', "GET http://LOCALHOST:1/x HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n" ],
		[ 'absolute form without a path', "GET http://a HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'absolute form with a query only', "GET http://a?b HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ],
		[ 'absolute form, https', "GET https://a/ HTTP/1.1\r\n${host}Connection: close\r\n\r\n" ])
	{
		my ($name, $request) = @$case;
		my $answer = $shim->raw($request);

		like($answer, qr/^HTTP\/1.1 200 /m, $name);
	}
	like($shim->raw($post . $host . "Content-Encoding: br\r\n$body"), qr/^Accept-Encoding: identity\r$/m, 'which codings there are');
	for my $case ([ 'http://a/api/v1/x?b' => '/api/v1/x?b' ], [ 'http://a' => '/' ], [ 'http://a?b' => '/?b' ])
	{
		my ($sent, $target) = @$case;

		like($shim->raw("GET $sent HTTP/1.1\r\n${host}Connection: close\r\n\r\n"), qr/"target": "\Q$target\E"/, "the target of $sent");
	}
	like($shim->raw($post . $host . "Connection: close\r\nExpect: 100-continue\r\n$body"),
		qr/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /, '100 comes first');
};

subtest 'line ends on a connection that is kept' => sub {
	my $kept = EntityApi::Test->shim($cluster, keep_alive => 'yes');
	my $good = $post . $host . "Content-Length: 6\r\n\r\n\n\r\r\n\r\0";
	my $last = $get . $host . "Connection: close\r\n\r\n";
	my $statuses = sub { join ' ', $_[0] =~ /HTTP\/1\.1 (\d+)/g };

	is($statuses->($kept->raw("$good$good\r\n$good$last")), '200 200 200 200', 'bodies may be anything');
	is($statuses->($kept->raw($good . $_ . $smuggled)), '200 400', 'a bad one behind a good one: ' . s/\r/CR/gr =~ s/\n/LF/gr =~ s/\0/NUL/gr)
	  for "GET /x HTTP/1.1\n\r$host\r\n", "GET /x HTTP/1.1\r\r$host\r\n", $get . "Host: a\n\n\r\0", "\n$get$host\r\n";

	# wherever the network cuts them
	my $both = "$good$last";
	my $bad = "${good}GET /x HTTP/1.1\n\r$host\r\n$smuggled";
	my @wrong;
	for my $cut (1 .. length($both) - 1)
	{
		last if @wrong > 3;
		push @wrong, "good at $cut" if $statuses->(in_two($kept, substr($both, 0, $cut), substr $both, $cut)) ne '200 200';
		push @wrong, "bad at $cut" if $statuses->(in_two($kept, substr($bad, 0, $cut), substr $bad, $cut)) ne '200 400';
	}
	is_deeply(\@wrong, [], 'in two pieces');
	is($kept->stop, 0, 'ends with 0');
};

# Both parts, the second when the first has most likely been read
sub in_two
{
	my ($shim, @parts) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
	  or die "cannot connect: $@\n";
	my $answer = '';

	local $SIG{PIPE} = 'IGNORE';
	setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
	$socket->autoflush(1);
	for my $part (@parts)
	{
		print $socket $part;
		select undef, undef, undef, 0.003;
	}
	for (;;)
	{
		my $ready = '';

		vec($ready, fileno($socket), 1) = 1;
		last unless select $ready, undef, undef, 60;
		last unless sysread $socket, $answer, 65536, length $answer;
	}
	return $answer;
}

subtest 'no CORS' => sub {
	my $answer = $shim->raw("OPTIONS /api/v1/x HTTP/1.1\r\n${host}Connection: close\r\n"
		  . "Origin: http://evil.example\r\nAccess-Control-Request-Method: PATCH\r\n\r\n");

	unlike($answer, qr/^Access-Control/im, 'a preflight gets no permission');
	like($answer, qr/"method": "OPTIONS"/, 'it is a request like others');
};

subtest 'the log of refusals' => sub {
	my @lines = map { decode_json($_) }
	  grep { /"status":4/ } split /\n/, EntityApi::Test::slurp($shim->log);

	cmp_ok(scalar @lines, '>', 50, 'they are in the access log');
	is(scalar(grep { defined $_->{route} } @lines), 0, 'without a route');
	is($shim->stop, 0, 'ends with 0');
};

done_testing;
