# Web pages of other origins: nobody by default, exactly those that are named.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $program = EntityApi::Test::private_program('entityapi-shim');
my ($app, $local) = ('https://app.example.com', 'http://localhost:3000');
my $shim = EntityApi::Test->shim($cluster, cors_origins => "$app, $local", cors_max_age_s => 300, server_timing => 'true');
my $plain = EntityApi::Test->shim($cluster);

sub lines_of
{
	my ($answer, $name) = @_;
	my $value = $answer->{headers}{$name};

	return ref $value ? @$value : defined $value ? $value : ();
}

sub allowed { return join '|', lines_of($_[0], 'access-control-allow-origin') }

sub cors_headers
{
	my ($answer) = @_;
	return grep { /^(?:access-control|timing-allow)/ } sort keys %{ $answer->{headers} };
}

sub preflight
{
	my ($to, $origin, $target, %headers) = @_;
	return $to->http(OPTIONS => $target // '/api/v1/x',
		{ headers => { Origin => $origin, 'Access-Control-Request-Method' => 'PATCH', %headers } });
}

subtest 'off by default' => sub {
	for my $origin ($app, 'null', 'https://evil.example', '*')
	{
		my $answer = $plain->http(GET => '/api/v1/x', { headers => { Origin => $origin } });

		is_deeply([ cors_headers($answer) ], [], "GET from $origin");
		unlike(join(',', lines_of($answer, 'vary')), qr/Origin/, 'answers do not vary by it');
		my $before = $cluster->calls;
		is_deeply([ cors_headers(preflight($plain, $origin)) ], [], 'nor has a preflight any header');
		is($cluster->calls, $before + 1, 'it is a request like others');
	}
};

subtest 'requests of allowed origins' => sub {
	for my $origin ($app, $local)
	{
		my $answer = $shim->http(GET => '/api/v1/x', { headers => { Origin => $origin } });

		is(allowed($answer), $origin, "$origin: named back");
		like(join(',', lines_of($answer, 'vary')), qr/\bOrigin\b/, 'varies by it');
		my %exposed = map { $_ => 1 } split /, /, $answer->{headers}{'access-control-expose-headers'};
		is_deeply([ grep { !$exposed{$_} } qw(ETag Location X-Request-Id Deprecation Sunset Retry-After) ], [],
			'what scripts may read');
		is($answer->{headers}{'access-control-allow-credentials'}, undef, 'no cookies');
		is($answer->{headers}{'timing-allow-origin'}, $origin, 'timing, too');
	}
	for my $case ([ 503 => GET => '/fail/57014' ], [ 500 => GET => '/fail/22012' ], [ 413 => POST => '/x' ])
	{
		my ($status, $method, $target) = @$case;
		my $answer = $shim->http($method => $target, {
				headers => { Origin => $app }, $method eq 'POST' ? (body => 'x' x 2_000_000) : () });

		is($answer->{status}, $status, "an error, $status");
		is(allowed($answer), $app, 'has the headers, so that scripts see it');
	}
	my $raw = $shim->raw("POST /x HTTP/1.1\r\nHost: a\r\nOrigin: $app\r\n\r\n");
	like($raw, qr/^HTTP\/1.1 411 .*^Access-Control-Allow-Origin: \Q$app\E\r$/ms, 'a refusal of the shim as well');
};

subtest 'preflights' => sub {
	my $before = $cluster->calls;
	for my $target ('/api/v1/x', '/auth/login', '/manage/tenants')
	{
		my $answer = preflight($shim, $app, $target,
			'Access-Control-Request-Headers' => 'authorization,content-type,if-match,x-api-key');

		is($answer->{status}, 204, "$target: 204");
		is($answer->{body}, '', 'without a body');
		is(allowed($answer), $app, 'origin');
		is_deeply([ split /, /, $answer->{headers}{'access-control-allow-methods'} ],
			[ qw(GET HEAD POST PATCH PUT DELETE) ], 'methods');
		my %may = map { lc $_ => 1 } split /, /, $answer->{headers}{'access-control-allow-headers'};
		is_deeply([ grep { !$may{$_} } qw(authorization content-type accept if-match if-none-match x-api-key
				x-request-id x-tenant-id) ], [], 'headers');
		is($answer->{headers}{'access-control-max-age'}, 300, 'max age');
		like(join(',', lines_of($answer, 'vary')), qr/\bOrigin\b/, 'varies');
		is($answer->{headers}{'access-control-allow-credentials'}, undef, 'no cookies');
	}
	is($cluster->calls, $before, 'the database is not asked');

	my $options = $shim->http(OPTIONS => '/x', { headers => { Origin => $app } });
	is($options->{json}{method}, 'OPTIONS', 'without a method asked for it is a request like others');
	is(allowed($options), $app, 'with its headers');
	is($shim->http(GET => '/x', { headers => { Origin => $app, 'Access-Control-Request-Method' => 'GET' } })
		->{json}{method}, 'GET', 'as is one by another method');
};

subtest 'others get nothing' => sub {
	my @bad = ('https://evil.example', 'null', '*', 'https://app.example.com.evil.example', 'https://app.example.co',
		'http://app.example.com', 'https://app.example.com:443', 'https://app.example.com:8443', 'HTTPS://APP.EXAMPLE.COM',
		'https://app.example.com/', 'https://user@app.example.com', 'https://xapp.example.com', "$app, $local",
		"$app $local", 'app.example.com', '//app.example.com', 'https://app.example.com%00', "https://app.example.com\x{e9}",
		',', 'https://app.example.com,', 'a' x 5000);

	for my $origin (@bad)
	{
		my $bytes = EntityApi::Test::utf8_bytes("$origin");
		my $get = $shim->raw("GET /x HTTP/1.1\r\nHost: a\r\nOrigin: $bytes\r\nConnection: close\r\n\r\n");
		my $options = $shim->raw("OPTIONS /x HTTP/1.1\r\nHost: a\r\nOrigin: $bytes\r\n"
			. "Access-Control-Request-Method: PATCH\r\nConnection: close\r\n\r\n");
		my $name = substr $bytes, 0, 40;

		unlike($get . $options, qr/^Access-Control|^Timing-Allow/mi, $name);
		unlike($options, qr/^HTTP\/1.1 204/, 'nor is its preflight answered');
	}
	my $two = $shim->raw("GET /x HTTP/1.1\r\nHost: a\r\nOrigin: $app\r\nOrigin: $app\r\nConnection: close\r\n\r\n");
	unlike($two, qr/^Access-Control/mi, 'two origins are none');
	my $none = $shim->http(GET => '/x');
	is_deeply([ cors_headers($none) ], [], 'without an origin no header');
	like(join(',', lines_of($none, 'vary')), qr/\bOrigin\b/, 'but it varies, for the sake of caches');
};

subtest 'settings' => sub {
	for my $bad ('*', 'null', 'https://app.example.com/', 'app.example.com', 'https://App.example.com', 'https://',
		'https://*.example.com', 'https://app.example.com:443', 'http://a:80', 'https://a:0', 'https://a:99999', 'https://a:',
		'https://a?b', 'https://[::1', "$app,*", 'https://user@a')
	{
		my $result = EntityApi::Test::run([ $program, 'serve', "--cors-origins=$bad", '--print-config' ]);

		isnt($result->{status}, 0, "$bad: refused");
		like($result->{err}, qr/cors_origins: ".+" is not an origin/, 'with a clear line');
	}
	for my $good ($app, $local, 'https://[::1]:8443', 'capacitor://localhost', "$app,$local", '')
	{
		is(EntityApi::Test::run([ $program, 'serve', "--cors-origins=$good", '--print-config' ])->{status}, 0,
			$good || 'nothing');
	}

	my $file = EntityApi::Test::folder() . '/config.json';
	my $write = sub {
		open my $out, '>', $file or die "$file: $!\n";
		print $out $_[0];
		close $out;
		chmod 0644, $file;
	};
	$write->('{}');
	my $changing = EntityApi::Test->shim($cluster, config => $file);
	is(allowed($changing->http(GET => '/x', { headers => { Origin => $app } })), '', 'not yet');
	$write->("{\"cors_origins\": \"$app\"}");
	kill HUP => $changing->pid;
	ok(EntityApi::Test::wait_until(5, sub {
				allowed($changing->http(GET => '/x', { headers => { Origin => $app } })) eq $app }), 'SIGHUP');
};

done_testing;
