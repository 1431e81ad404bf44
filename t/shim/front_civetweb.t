# The front that is the library civetweb: what it serves as the other one does,
# and, beside each other, what differs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::Client qw(connected answer);
use EntityApi::Test::StandIn;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;
use Test::More;

local $SIG{PIPE} = 'IGNORE';
my $cluster = EntityApi::Test::StandIn->cluster;
my $admin = EntityApi::Test::free_port();
my %settings = (pool_size => 2, keep_alive => 'yes', max_body => 1 << 20);
my $shim = EntityApi::Test->shim($cluster, %settings, front => 'civetweb', threads => 16, metrics => 'true',
	console => 'true', admin_listen => "127.0.0.1:$admin", request_timeout_ms => 1000, body_timeout_ms => 2000);
my $loop = EntityApi::Test->shim($cluster, %settings, front => 'loop', request_timeout_ms => 1000);

sub metric
{
	my ($port, $name) = @_;
	my $text = HTTP::Tiny->new->get("http://127.0.0.1:$port/actuator/prometheus")->{content};

	return ($text =~ /^\Q$name\E (\d+)$/m)[0];
}

subtest 'requests' => sub {
	my $got = $shim->http(GET => '/api/v1/x%2Fy?filter=a%3D%3Db', { headers => { 'X-Thing' => [ 'one', 'two' ] } })->{json};
	is($got->{target}, '/api/v1/x%2Fy?filter=a%3D%3Db', 'the target as it was sent');
	is_deeply($got->{headers}{'x-thing'}, [ 'one', 'two' ], 'a repeated header');
	is($got->{remote}, '127.0.0.1', 'whose it is');

	my $bytes = join '', map { chr } 0 .. 255;
	for my $length (0, 1, 255, 70_000, 1 << 20)
	{
		my $body = substr $bytes x 4097, 0, $length;
		my $answer = $shim->http(POST => '/api/v1/x', { body => $body });
		ok(decode_base64($answer->{json}{body}) eq $body, "a body of $length bytes");
	}
	is($shim->http(POST => '/api/v1/x', { body => 'x' x ((1 << 20) + 1) })->{status}, 413, 'one too long');
	is(length $shim->http(GET => '/big/5000000')->{body}, 5_000_000, 'a large answer');
	my $head = $shim->raw("HEAD /big/100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	like($head, qr/^HTTP\/1.1 200 OK\r\n(?:\S+: .*\r\n)*Content-Length: 100\r\n(?:\S+: .*\r\n)*\r\n\z/, 'HEAD');
	my $chunks = $shim->raw("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	my ($json) = $chunks =~ /\r\n\r\n(\{.*\})/s;
	is(decode_base64(decode_json($json // '{}')->{body} // ''), 'abcde', 'chunks');
	like($shim->raw("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
		qr/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /, '100 Continue');
};

subtest 'a connection that stays' => sub {
	my $client = connected($shim);

	for my $n (1 .. 3)
	{
		print $client "GET /x?$n HTTP/1.1\r\nHost: a\r\n\r\n";
		like(answer($client)->{body}, qr/"target": "\/x\?$n"/, "request $n");
	}
};

subtest 'what the shim answers by itself' => sub {
	is($shim->http(GET => '/actuator/health')->{status}, 200, 'health');
	like($shim->http(GET => '/actuator/prometheus')->{body}, qr/^entityapi_http_requests_total/m, 'metrics');
	is($shim->http(GET => '/console/')->{status}, 200, 'the console');
	my $operators = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $admin) or die "connect: $@\n";
	$operators->autoflush(1);
	print $operators "GET /actuator/health/readiness HTTP/1.1\r\nHost: a\r\n\r\n";
	is(answer($operators)->{status}, 200, 'operators');
	print $operators "GET /api/v1/x HTTP/1.1\r\nHost: a\r\n\r\n";
	is(answer($operators)->{status}, 404, 'have nothing else');
	$shim->http(GET => '/api/v1/x', { headers => { 'X-Request-Id' => 'logged-1' } });
	ok($shim->logged(qr/"logged-1"/), 'a line in the log');
};

subtest 'who is slow' => sub {
	my $head = connected($shim);
	my $body = connected($shim);

	print $head "GET /x HTTP/1.1\r\nHost: a\r\nX-A: ";
	print $body "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc";
	is(answer($body)->{status}, 408, 'a body: 408');
	like(answer($head)->{status}, qr/^(?:408|400|closed)$/, 'a head is given up');
	is($shim->http(GET => '/x')->{status}, 200, 'others go on');
};

# The name, the request, and what the loop and the library make of it
my $get = 'GET /x HTTP/1.1';
my @differ = (
	[ 'a method that the library does not know', "FOO /x HTTP/1.1\r\nHost: a\r\n\r\n", 200, 400 ],
	[ 'two empty lines before', "\r\n\r\n$get\r\nHost: a\r\n\r\n", 200, qr/^\d+$|closed/ ],
	[ 'a blank before the method', " $get\r\nHost: a\r\n\r\n", 400, qr/^\d+$|closed/ ],
	[ 'absolute form', "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", 200, qr/^\d+$|closed/ ],
	[ 'a tab in a value', "$get\r\nHost: a\r\nX-A: a\tb\r\n\r\n", 200, qr/^(?:200|400)$/ ],
	[ 'a chunk extension', "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n", 200, qr/^(?:200|400|408)$/ ],
	[ 'line feeds alone', "$get\nHost: a\n\n", 400, qr/^(?:200|400)$/ ],
	[ 'a folded line', "$get\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n", 400, qr/^(?:200|400)$/ ],
	[ 'an OPTIONS *', "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400, qr/^(?:200|400|closed)$/ ]);

subtest 'what differs' => sub {
	for my $case (@differ)
	{
		my ($name, $request, $by_loop, $by_library) = @$case;
		my %status = map {
			my $client = connected($_->[1]);

			print $client $request;
			($_->[0] => answer($client)->{status});
		} [ loop => $loop ], [ civetweb => $shim ];
		is($status{loop}, $by_loop, "$name: the loop");
		like($status{civetweb}, ref $by_library ? $by_library : qr/^$by_library$/, "the library: $status{civetweb}");
	}
};

subtest 'whose turn it is' => sub {
	my $port = EntityApi::Test::free_port();
	my $one = EntityApi::Test->shim($cluster, keep_alive => 'yes', front => 'civetweb', threads => 64, pool_size => 1,
		pool_writes => 0, admin_listen => "127.0.0.1:$port", reloaded => { pool_wait_ms => 60_000 });
	my ($holder, @waiting) = map { connected($one) } 0 .. 20;
	my $ask = sub { print { $_[0] } "GET $_[1] HTTP/1.1\r\nHost: a\r\nX-Request-Id: $_[2]\r\n\r\n" };
	my $in_line = sub {
		my ($count) = @_;
		EntityApi::Test::wait_until(60, sub { (metric($port, 'entityapi_pool_waiting') // 0) >= $count }) or die "$count do not wait\n";
	};

	# first come, first served, wherever they go
	$cluster->hold;
	$ask->($holder, '/hold', 'holder');
	$cluster->at_work(1);
	for my $n (0 .. $#waiting)
	{
		$ask->($waiting[$n], $n < $#waiting ? '/api/v1/x' : '/x', "turn-$n");
		$in_line->($n + 1);
	}
	my $alive = $one->http(GET => '/actuator/health/liveness');
	is($alive->{status}, 200, 'liveness waits for nobody');
	$cluster->release;
	is(answer($_)->{status}, 200, 'answered') for $holder, @waiting;
	$one->logged(qr/"turn-$#waiting"/);
	is_deeply([ EntityApi::Test::slurp($one->log) =~ /"turn-(\d+)"/g ], [ 0 .. $#waiting ], 'in the order in which they came');

	# and nobody waits for longer than one may
	$cluster->hold;
	$ask->($holder, '/hold', 'holder');
	$cluster->at_work(1);
	$one->reload(pool_wait_ms => 300);
	$ask->($_, '/api/v1/x', 'late') for @waiting;
	is_deeply([ map { answer($_)->{status} } @waiting ], [ (503) x @waiting ], 'who waits for too long is told so');
	ok(!IO::Select->new($holder)->can_read(0), 'while there is no room');
	$cluster->release;
	is(answer($holder)->{status}, 200, 'which comes');
	$one->stop;
};

subtest 'the end, while an answer is taken' => sub {
	my $ending = EntityApi::Test->shim($cluster, keep_alive => 'yes', front => 'civetweb', threads => 4, drain_timeout_ms => 60_000);
	my $client = connected($ending);

	print $client "GET /big/30000000 HTTP/1.1\r\nHost: a\r\n\r\n";
	IO::Select->new($client)->can_read(60);
	kill TERM => $ending->pid;
	$ending->said(qr/"event":"drain"/);
	my $taken = 0;
	while ($taken < 30_000_000)
	{
		$taken += sysread($client, my $some, 1 << 20) || last;
	}
	cmp_ok($taken, '>=', 30_000_000, 'it comes whole');
	is($ending->stop, 0, 'and it ends with 0');
};

subtest 'its threads' => sub {
	my @idle = map { connected($shim) } 1 .. 40;

	ok(EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/x')->{status} == 200 }), 'have clients that say nothing for a while');
};

subtest 'what it cannot listen on' => sub {
	my $folder = EntityApi::Test::folder();
	my $result = EntityApi::Test::run([ EntityApi::Test::private_program("entityapi-shim"), 'serve', '--front=civetweb', "--listen=unix:$folder/x" ]);

	is($result->{status}, 1, 'a Unix socket');
	like($result->{err}, qr/the front civetweb cannot listen on unix:/, 'is said at the start');
};

ok($shim->said(qr/listening on .* by civetweb/), 'the start says who reads HTTP');
is($shim->stop, 0, 'ends with 0');
$loop->stop;
done_testing;
