# The example of a proxy with TLS in front of the shim, as it is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use JSON::PP;
use MIME::Base64;
use Test::More;
use Time::HiRes qw(sleep);

my ($nginx) = grep { -x } qw(/usr/sbin/nginx /usr/local/sbin/nginx /usr/bin/nginx);
my ($openssl) = grep { -x } qw(/usr/bin/openssl /usr/local/bin/openssl);

plan skip_all => 'nginx is not installed' unless $nginx;
plan skip_all => 'openssl is not installed' unless $openssl;

my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster, trusted_proxies => '127.0.0.1');
my $port = EntityApi::Test::free_port();
my $example = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/examples/nginx/entityapi.conf');

sub write_file { my ($name, $text) = @_; return EntityApi::Test::write_file("$folder/$name", $text) }

my $made = EntityApi::Test::run([ $openssl, qw(req -x509 -newkey rsa:2048 -nodes -days 2
		-subj /CN=api.example.com), '-keyout', "$folder/key.pem", '-out', "$folder/certificate.pem" ]);
die $made->{err} if $made->{status} != 0;
EntityApi::Test::own("$folder/$_") for qw(key.pem certificate.pem);

my $shim_port = $shim->port;
$example =~ s{/etc/ssl/entityapi/}{$folder/}g;
$example =~ s{listen 443 ssl}{listen 127.0.0.1:$port ssl};
$example =~ s{127\.0\.0\.1:8080}{127.0.0.1:$shim_port};
write_file('site.conf', $example);
my $conf = write_file('nginx.conf', <<~"CONF");
	daemon off;
	pid $folder/nginx.pid;
	error_log $folder/nginx.log;
	events { worker_connections 256; }
	http {
		access_log off;
		keepalive_timeout 1s;
		client_body_temp_path $folder/body;
		proxy_temp_path $folder/proxy;
		fastcgi_temp_path $folder/fastcgi;
		uwsgi_temp_path $folder/uwsgi;
		scgi_temp_path $folder/scgi;
		include $folder/site.conf;
	}
	CONF

my $proxy = EntityApi::Test::start([ $nginx, '-p', $folder, '-c', $conf ], service => 1,
	err => "$folder/stderr");
my $owner = $$;

END
{
	my $status = $?;

	if ($proxy && $$ == $owner)
	{
		kill TERM => $proxy;
		waitpid $proxy, 0;
	}
	$? = $status;
}

# curl, since Perl's core has no TLS: the answer's head and its body.
sub ask
{
	my ($target, @more) = @_;
	my $result = EntityApi::Test::run([ qw(curl -sS -i -k --max-time 60 --path-as-is --http1.1
			--connect-to), "api.example.com:443:127.0.0.1:$port", @more,
			"https://api.example.com$target" ]);
	my $answer = $result->{out} =~ s/^HTTP\/1\.1 100 .*?\r\n\r\n//sr;
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;

	return { head => $head // '', body => $body // '', err => $result->{err},
		status => ($head // '') =~ /^HTTP\/\S+ (\d+)/ ? $1 : 0,
		json => scalar eval { decode_json($body) } };
}

# Bytes as they are, through TLS.  nginx ends a connection that it would keep
# after a second.
sub raw
{
	my ($bytes) = @_;
	my $result = EntityApi::Test::run([ qw(timeout 60), $openssl, qw(s_client -quiet -ign_eof -connect), "127.0.0.1:$port", qw(-servername api.example.com) ],
		in => $bytes);

	return $result->{out};
}

ok(EntityApi::Test::wait_until(60, sub { ask('/x')->{status} == 200 }), 'nginx serves')
  or die(EntityApi::Test::slurp("$folder/stderr"));

subtest 'requests' => sub {
	my $target = '/api/v1/x%2Fy/../%41//b?filter=a%3D%3Db+c&q=1&&';
	my $got = ask($target)->{json};

	is($got->{target}, $target, 'the target as it came');
	is($got->{headers}{host}, 'api.example.com', 'Host');
	is($got->{headers}{authorization}, undef, 'no credential');
	is(ask('/x', '-H', 'Authorization: Bearer abc')->{json}{headers}{authorization}, 'Bearer abc',
		'a credential');
	my $body = 'x' x 300_000;
	write_file('body.bin', $body);
	for my $form ([ 'a body' ], [ 'chunks', '-H', 'Transfer-Encoding: chunked' ])
	{
		my ($name, @more) = @$form;
		$got = ask('/x', @more, '--data-binary', "\@$folder/body.bin")->{json};
		ok(decode_base64($got->{body} // '') eq $body, $name);
		is($got->{headers}{'content-length'}, 300_000, 'its length known to the shim');
		is($got->{headers}{'transfer-encoding'}, undef, 'not chunked any more');
	}
};

subtest 'the address of the client' => sub {
	is(ask('/x', '--interface', '127.0.0.9')->{json}{remote}, '127.0.0.9', 'is known');
	is(ask('/x', '--interface', '127.0.0.9', '-H', 'X-Forwarded-For: 203.0.113.5')->{json}{remote},
		'127.0.0.9', 'cannot be forged');
};

subtest 'no connection to the shim is used twice' => sub {
	my $get = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
	my $answer = $shim->raw($get . $get);

	is(scalar(() = $answer =~ /HTTP\/1\.1 /g), 1, 'one answer');
	like($answer, qr/^Connection: close\r$/m, 'and the end');
};

subtest 'smuggling' => sub {
	my $smuggled = "GET /api/v1/smuggled HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
	my $host = "Host: api.example.com\r\n";

	$cluster->psql(<<~'SQL');
		create sequence smuggled;
		alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
		create function entityapi.handle(method text, target text, in_headers jsonb,
			in_body bytea, remote inet, out status int, out headers jsonb, out body text)
		language sql security definer set search_path = public as
		$$ select h.* from entityapi.stand_in(method, target, in_headers, in_body, remote) h
		where not target like '%smuggled%' or nextval('smuggled') > 0 $$;
		SQL
	my $length = length $smuggled;
	my %forms = (
		'length and coding' => "POST /x HTTP/1.1\r\n${host}Content-Length: $length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		'two lengths' => "POST /x HTTP/1.1\r\n${host}Content-Length: 0\r\nContent-Length: $length\r\n\r\n",
		'a hidden length' => "GET /x HTTP/1.1\r\n${host}X-A: 1\r\n Content-Length: 0\r\nContent-Length: $length\r\n\r\n",
		'a length with a space' => "GET /x HTTP/1.1\r\n${host}Content-Length : $length\r\n\r\n",
		'a body of a GET' => "GET /x HTTP/1.1\r\n${host}Content-Length: $length\r\n\r\n",
		'an odd coding' => "POST /x HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n");

	for my $name (sort keys %forms)
	{
		my $answer = raw($forms{$name} . $smuggled);
		my $answers = () = $answer =~ /HTTP\/1\.1 \d/g;

		cmp_ok($answers, '<=', 1, $name);
	}
	is($cluster->psql('select is_called from smuggled'), 'f', 'no second request ever ran');
};

subtest 'refusals' => sub {
	my $refused = ask('/x', '-H', 'X-A: ' . 'a' x 15_000, '-H', 'X-B: ' . 'b' x 15_000,
		'-H', 'X-C: ' . 'c' x 15_000, '-H', 'X-D: ' . 'd' x 15_000, '-H', 'X-E: ' . 'e' x 15_000);
	is($refused->{status}, 431, 'a head too large for nginx');
	is($refused->{json}{errors}[0]{status}, '431', 'its status');
	is($refused->{json}{errors}[0]{code}, 'HEADERS_TOO_LARGE', 'error document');
	write_file('large.bin', 'x' x 2_000_000);
	$refused = ask('/x', '--data-binary', "\@$folder/large.bin");
	is($refused->{status}, 413, 'a body too large for nginx');
	is($refused->{json}{errors}[0]{code}, "PAYLOAD_TOO_LARGE", "error document") or diag($refused->{head}, "\n", $refused->{body});
	like(raw("nonsense\r\n\r\n"), qr/MALFORMED_REQUEST/, 'no HTTP');
	$refused = ask('/x', '-H', 'X-A: ' . 'a' x 10_000, '-H', 'X-B: ' . 'b' x 10_000);
	is($refused->{status}, 431, 'too large for the shim');
	is($refused->{json}{errors}[0]{code}, 'HEADERS_TOO_LARGE', 'its own document');
	$shim->stop;
	my $away = ask('/x');
	is($away->{status}, 503, 'the shim is away');
	like($away->{head}, qr/^Retry-After: 1\r?$/m, 'Retry-After');
	is($away->{json}{errors}[0]{code}, 'UNAVAILABLE', 'error document');
	$shim->begin;
	is(ask('/x')->{status}, 200, 'and back');
};

done_testing;
