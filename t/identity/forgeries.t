# Access tokens that are not ours, or not ours any more: all 401.

use strict;
use warnings;

use Digest::SHA ();
use JSON::PP ();
use MIME::Base64 ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', []);
my $ben = $shim->user($tenant->{id}, 'ben', []);
my $json = JSON::PP->new->utf8->canonical->allow_nonref;

sub encode { return MIME::Base64::encode_base64($_[0], '') =~ tr{+/}{-_}r =~ s/=+$//r }
sub decode { return MIME::Base64::decode_base64($_[0] =~ tr{-_}{+/}r) }

my ($header64, $claims64, $signature64) = split /\./, $ann->{accessToken};
my $header = $json->decode(decode($header64));
my $claims = $json->decode(decode($claims64));
my $secret = pack 'H*', $cluster->psql(
	"select encode(secret, 'hex') from entityapi.signing_key where kid = '$header->{kid}'");

sub sign_text
{
	my ($text, $hash, $key) = @_;
	$hash //= \&Digest::SHA::hmac_sha256;
	return "$text." . encode($hash->($text, $key // $secret));
}

# A token with members replaced, or left out where they are undef
sub forge
{
	my ($header_change, $claims_change, @how) = @_;
	my @parts = ({ %$header, %$header_change }, { %$claims, %$claims_change });

	for my $part (@parts)
	{
		delete @$part{ grep { !defined $part->{$_} } keys %$part };
	}
	return sign_text(join('.', map { encode($json->encode($_)) } @parts), @how);
}

sub status_of
{
	my ($token) = @_;
	return $shim->http(GET => '/auth/me', { headers => { authorization => "Bearer $token" } })->{status};
}

is(status_of(forge({}, {})), 200, 'signed with the right key it would be believed');

my %headers = (
	'alg none'      => { alg => 'none' },
	'alg None'      => { alg => 'None' },
	'alg NONE'      => { alg => 'NONE' },
	'alg RS256'     => { alg => 'RS256' },
	'alg ES256'     => { alg => 'ES256' },
	'alg hs256'     => { alg => 'hs256' },
	'no alg'        => { alg => undef },
	'alg a number'  => { alg => 256 },
	'alg an array'  => { alg => ['HS256'] },
	'no kid'        => { kid => undef },
	'kid unknown'   => { kid => 'x' },
	'kid an array'  => { kid => [ $header->{kid} ] },
	'kid a path'    => { kid => '../../dev/null' },
	'kid SQL'       => { kid => "' or '1'='1" },
	'kid long'      => { kid => 'x' x 5000 },
	'typ JWT'       => { typ => 'JWT' },
	'no typ'        => { typ => undef },
	(map { ("with $_" => { $_ => 'https://example.com/keys' }) } qw(jku x5u)),
	'with jwk'  => { jwk  => { kty => 'oct', k => encode('x') } },
	'with crit' => { crit => ['b64'] },
	'with zip'  => { zip  => 'DEF' },
	'with b64'  => { b64  => JSON::PP::false });
my %claims = (
	'exp past'     => { exp => time - 1 },
	'no exp'       => { exp => undef },
	'exp a string' => { exp => '' . (time + 100) },
	'exp huge'     => { exp => 1e308 },
	'nbf to come'  => { nbf => time + 1000 },
	'iat to come'  => { iat => time + 1000 },
	'no aud'       => { aud => undef },
	'aud array'    => { aud => ['entityapi'] },
	'aud wrong'    => { aud => 'other' },
	'no iss'       => { iss => undef },
	'iss wrong'    => { iss => 'other' },
	'no sid'       => { sid => undef },
	'sid unknown'  => { sid => '00000000-0000-7000-8000-000000000000' },
	'sid no uuid'  => { sid => 'x' },
	'another sub'  => { sub => $ben->{id} },
	'no sub'       => { sub => undef });

is(status_of(forge($headers{$_}, {})), 401, $_) for sort keys %headers;
is(status_of(forge({}, $claims{$_})), 401, $_) for sort keys %claims;
is(status_of(forge({ alg => 'HS384' }, {}, \&Digest::SHA::hmac_sha384)), 401, 'HS384 with the key');
is(status_of(forge({ alg => 'HS512' }, {}, \&Digest::SHA::hmac_sha512)), 401, 'HS512 with the key');
is(status_of(forge({}, {}, undef, 'guess')), 401, 'another key');
is(status_of(forge({}, {}, undef, '')), 401, 'an empty key');
is(status_of(sign_text("$header64." . encode('{"exp":' . (time + 9) . ',' . substr decode($claims64), 1))),
	401, 'a claim twice');
is(status_of(sign_text("$header64." . encode("[$claims->{exp}]"))), 401, 'no object');
is(status_of(sign_text("$header64." . encode('{'))), 401, 'no JSON');

my $last = substr $signature64, -1;
my %texts = (
	'no signature'         => "$header64.$claims64.",
	'two segments'         => "$header64.$claims64",
	'four segments'        => "$ann->{accessToken}.x",
	'another signature'    => "$header64.$claims64." . (split /\./, $ben->{accessToken})[2],
	'another payload'      => join('.', $header64, (split /\./, $ben->{accessToken})[1], $signature64),
	'padding'              => "$ann->{accessToken}=",
	'white space inside'   => "$header64. $claims64.$signature64",
	'other last bits'      => substr($ann->{accessToken}, 0, -1) . chr(ord($last) + 1),
	'the other alphabet'   => "$header64+.$claims64.$signature64",
	'nothing'              => '',
	'more than 8 KiB'      => 'x' x 8200,
	'the refresh token'    => $ann->{refreshToken},
	'letters'              => 'garbage');
is(status_of($texts{$_}), 401, $_) for sort keys %texts;

is($shim->http(POST => '/auth/refresh', { json => { refreshToken => $ann->{accessToken} } })->{status},
	401, 'an access token does not refresh');
is($shim->http(GET => '/auth/me', { headers => { 'x-api-key' => $ann->{accessToken} } })->{status},
	401, 'and is no key');

my $answer = $shim->http(GET => '/auth/me', { token => 'garbage' });
is($answer->{headers}{'www-authenticate'}, 'Bearer realm="entityapi", error="invalid_token"', 'how it is said');

# Signing keys, for every connection there is
is($cluster->psql("select entityapi.revoke_signing_key('none')"), 'f', 'no such key');
my $new = do { $cluster->psql('select entityapi.rotate_signing_key()'); $shim->login('ann', $ann->{password}) };
is(status_of($_->{accessToken}), 200, 'after a rotation both verify') for $ann, $new;
is($cluster->psql("select entityapi.revoke_signing_key('$header->{kid}')"), 't', 'the emergency');
is(status_of($ann->{accessToken}), 401, 'ends what the key has signed');
is(status_of($new->{accessToken}), 200, 'and nothing else');
my $kid = $json->decode(decode((split /\./, $new->{accessToken})[0]))->{kid};
$cluster->psql("select entityapi.revoke_signing_key('$kid')");
is(status_of($new->{accessToken}), 401, 'the last one, too');
is(status_of($shim->login('ann', $ann->{password})->{accessToken}), 200, 'and a login makes another');

done_testing();
