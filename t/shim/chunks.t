# Chunks are read by one rule: sizes, and extensions that are read over; nothing
# is looked at behind the last chunk.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use JSON::PP;
use IO::Socket::INET;
use MIME::Base64;
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

my $cluster = EntityApi::Test::StandIn->cluster;
# Whoever is answered before the end of his body is not answered for waiting.
my $shim = EntityApi::Test->shim($cluster, keep_alive => 'yes', max_body => 4096, max_body_auth => 4096,
	body_timeout_ms => 600_000, request_timeout_ms => 600_000);
my $head = "POST /api/v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

sub body_of
{
	my ($answer) = @_;
	my ($json) = $answer =~ /\r\n\r\n(\{.*\})/s or return "no answer: $answer";
	return decode_base64(decode_json($json)->{body} // '');
}

# The parts of a request, each sent when the one before has gone
sub in_parts
{
	my (@parts) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
	  or die "cannot connect: $@\n";
	my $answer = '';

	local $SIG{PIPE} = 'IGNORE';
	$socket->autoflush(1);
	for my $part (@parts)
	{
		print $socket $part;
		sleep 0.02;
	}
	while (1)
	{
		my $ready = '';
		vec($ready, fileno($socket), 1) = 1;
		last unless select $ready, undef, undef, 60;
		last unless sysread $socket, $answer, 65536, length $answer;
	}
	return $answer;
}

subtest 'bodies' => sub {
	my %bodies = (
		"5\r\nhello\r\n0\r\n\r\n"                      => 'hello',
		"0\r\n\r\n"                                    => '',
		"000\r\n\r\n"                                  => '',
		"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n" => '0123456789' x 2,
		"0000000000000003\r\na\r\n\r\n0\r\n\r\n"       => "a\r\n",
		sprintf("%x\r\n%s\r\n0\r\n\r\n", 4096, 'x' x 4096) => 'x' x 4096,
		"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"          => 'abc',
		"3\r\nabc\r\n0\r\nno trailer at all"           => 'abc',
		"3;a=b\r\nabc\r\n0\r\n\r\n"                    => 'abc',
		"3 \t; a = \"b\\\"\" ;c\r\nabc\r\n0;a\r\n\r\n"  => 'abc',
		'3;' . 'x' x 1021 . "\r\nabc\r\n0\r\n\r\n"      => 'abc',
		"3\r\nabc\r\n0\r\n\r\nPOST /api/v1/second HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" => 'abc');

	for my $sent (sort keys %bodies)
	{
		my $shown = substr $sent, 0, 40;

		is(body_of($shim->raw($head . $sent)), $bodies{$sent}, "at once: $shown");
		is(body_of(in_parts($head, split //, substr $sent, 0, 60)), $bodies{$sent}, "byte by byte: $shown")
		  if length $sent < 60;
		unlike($shim->raw($head . $sent), qr{second}, 'nothing behind it is a request');
	}
};

subtest 'after other requests of the connection' => sub {
	my $get = "GET /api/v1/first HTTP/1.1\r\nHost: a\r\n\r\n";
	my $post = "POST /api/v1/first HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";

	for my $before ($get, $post, $get . $post, $post . $get, "\r\n$get")
	{
		my $answer = $shim->raw($before . $head . "5\r\nhello\r\n0\r\n\r\n");
		like($answer, qr{/api/v1/x}, 'answered in a row');
		like($answer, qr/\Q${\ encode_base64('hello', '')}\E/, 'with its body');
		$answer = in_parts($before, $head, "5\r\n", "hello\r\n0\r\n\r\n");
		like($answer, qr/\Q${\ encode_base64('hello', '')}\E/, 'in parts, too');
	}
};

subtest 'what is none' => sub {
	my @bad = ('3;' . 'x' x 1024 . "\r\nabc\r\n0\r\n\r\n", "1;a\r\na\r\n" x 600 . "0\r\n\r\n", "3;a\nabc\r\n0\r\n\r\n",
		"3;\0\r\nabc\r\n0\r\n\r\n", "3 a\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "\r\n", "zz\r\n", "-1\r\n", "0x3\r\nabc\r\n0\r\n\r\n",
		"3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "0;a\n\r\n",
		"8000000000000000\r\n", "ffffffffffffffff\r\n", "10000000000000003\r\n", "00000000000000003\r\n", "\0", "3\r\r\n");

	for my $sent (@bad)
	{
		my $answer = $shim->raw($head . $sent, timeout => 60);
		my $shown = substr $sent =~ s/[^ -~]/./gr, 0, 40;

		like($answer, qr{^HTTP/1\.1 400 .*^Connection: close\r$}ms, "400 and the end: $shown");
	}
	for my $sent ("7fffffffffffffff\r\n", "1001\r\n", "fff\r\n" . 'x' x 4095 . "\r\n2\r\n")
	{
		my $answer = $shim->raw($head . $sent);
		like($answer, qr{^HTTP/1\.1 413 }, 'too large, before it has come');
	}
};

done_testing();
