# The files of the console, as the shim serves them.

use strict;
use warnings;

use Encode ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $plain = EntityApi::Test->shim($cluster);
my $shim = EntityApi::Test->shim($cluster, console => 'true');
my $compact = EntityApi::Test->shim($cluster, console => 'true', compression_min => 1, cors_origins => 'https://app.example.com');

is($plain->http(GET => $_)->{status}, 404, "$_ without the setting") for '/', '/console/', '/console/main.js';

my %type = (html => 'text/html; charset=utf-8', css => 'text/css; charset=utf-8', js => 'text/javascript; charset=utf-8', svg => 'image/svg+xml');
my $policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
  . "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

for my $path ('/', '/console', '/?a=b', '/console?a')
{
	my $answer = $shim->http(GET => $path);
	is("$answer->{status} $answer->{headers}{location}", '302 console/', "$path leads to the console");
	is($answer->{headers}{'content-security-policy'}, $policy, 'with the policy');
}
is($shim->http(POST => '/', { json => {} })->{status}, 404, 'but who does not read');

my @files = sort map { s{.*/}{}r } grep { !/\.md$/ } glob "$checkout/shim/console/*";
my %tag;
cmp_ok(scalar @files, '>', 20, 'there are files');
for my $name (@files)
{
	my $answer = $shim->http(GET => "/console/$name");
	my $bytes = EntityApi::Test::slurp("$checkout/shim/console/$name");

	is($answer->{status}, 200, $name);
	ok($answer->{body} eq $bytes, 'as it stands in the sources') if ($answer->{headers}{'content-encoding'} // '') eq '';
	is($answer->{headers}{'content-type'}, $type{ ($name =~ /\.(\w+)$/)[0] }, 'its type');
	is($answer->{headers}{'content-security-policy'}, $policy, 'its policy');
	is($answer->{headers}{'referrer-policy'}, 'no-referrer', 'no referrer');
	is($answer->{headers}{'x-content-type-options'}, 'nosniff', 'nosniff');
	like($answer->{headers}{etag}, qr/^"[0-9a-f]{16}"$/, 'a strong ETag');
	$tag{ $answer->{headers}{etag} }++;
	cmp_ok(($bytes =~ tr/\n//), '<', 400, 'below 400 lines');
	is(join(' ', grep { length > 120 } split /\n/, Encode::decode("UTF-8", $bytes)), '', 'no line longer than 120') if $name =~ /\.js$/;
}
is(scalar keys %tag, scalar @files, 'each has an ETag of its own');
ok($shim->http(GET => '/console/')->{body} eq EntityApi::Test::slurp("$checkout/shim/console/index.html"), 'the folder is its page');

my $main = $shim->http(GET => '/console/main.js');
for my $said ($main->{headers}{etag}, '*', qq("x", W/$main->{headers}{etag}))
{
	my $answer = $shim->http(GET => '/console/main.js', { headers => { 'If-None-Match' => $said } });
	is("$answer->{status} $answer->{headers}{etag} $answer->{body}", "304 $main->{headers}{etag} ", "If-None-Match: $said");
}
is($shim->http(GET => '/console/main.js', { headers => { 'If-None-Match' => '"x"' } })->{status}, 200, 'another version');
my $head = $shim->http(HEAD => '/console/main.js');
is("$head->{status} $head->{headers}{'content-length'}", '200 ' . length $main->{body}, 'HEAD has the length');

for my $path ('/console/none.js', '/console/main.js/', '/console/main.jsx', '/console/../main.js', '/console/..%2fmain.js', '/console//main.js',
	'/console/console/main.js', '/console/README.md', '/console/%00', '/consoles')
{
	is($shim->http(GET => $path)->{status}, 404, "$path is nothing");
}
for my $method (qw(POST PUT DELETE PATCH OPTIONS))
{
	my $answer = $shim->http($method => '/console/main.js', { body => 'x' });
	is("$answer->{status} $answer->{headers}{allow}", '405 GET, HEAD', $method);
}

my $small = $compact->http(GET => '/console/style.css', { headers => { 'Accept-Encoding' => 'gzip', Origin => 'https://app.example.com' } });
is($small->{headers}{'content-encoding'}, 'gzip', 'in gzip for who asks');
cmp_ok(length $small->{body}, '<', length(EntityApi::Test::slurp("$checkout/shim/console/style.css")) / 2, 'which is smaller');
my $plain_tag = $compact->http(GET => '/console/style.css')->{headers};
is($plain_tag->{'content-encoding'}, undef, 'as it is for others');
like($small->{headers}{etag}, qr/^"[0-9a-f]{16}-gzip"$/, 'a strong ETag of its own, as the bytes are others');
isnt($small->{headers}{etag}, $plain_tag->{etag}, 'than of the file as it is');
for my $case ([ gzip => $small->{headers}{etag}, 304 ], [ gzip => $plain_tag->{etag}, 200 ],
	[ identity => $plain_tag->{etag}, 304 ], [ identity => $small->{headers}{etag}, 200 ])
{
	my ($coding, $said, $status) = @$case;
	my $answer = $compact->http(GET => '/console/style.css', { headers => { 'Accept-Encoding' => $coding, 'If-None-Match' => $said } });

	is("$answer->{status} $answer->{headers}{etag}", "$status " . ($coding eq 'gzip' ? $small : { headers => $plain_tag })->{headers}{etag},
		"$coding, If-None-Match: $said");
}

# What the sources promise
my $all = '';
my $small_all = 0;
for my $name (@files)
{
	my $answer = $compact->http(GET => "/console/$name", { headers => { 'Accept-Encoding' => 'gzip' } });
	$small_all += length $answer->{body};
	$all .= EntityApi::Test::slurp("$checkout/shim/console/$name");
}
cmp_ok($small_all, '<', 100 * 1024, 'all of it together, as it is sent');
unlike($all, qr/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc=|DOMParser/, 'nothing is read as markup or script');
unlike($all, qr{<(?:script|style)>|\sstyle="|\son\w+="}, 'nothing inline');
unlike($all, qr{(?:href|src|from|import\()\s*=?\s*['"]https?:}, 'nothing from elsewhere');
is(join(' ', grep { $_ ne 'api.js' && EntityApi::Test::slurp("$checkout/shim/console/$_") =~ /\bfetch\(|XMLHttpRequest|WebSocket|EventSource/ } @files),
	'', 'one place talks to the service');
is(join(' ', grep { $_ ne 'element.js' && EntityApi::Test::slurp("$checkout/shim/console/$_") =~ /createElement/ } @files), '', 'one makes elements');

done_testing;
