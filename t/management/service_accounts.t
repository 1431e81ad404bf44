# Service accounts: their life, and POST /auth/token in both its languages.

use strict;
use warnings;

use MIME::Base64 ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $other = $shim->tenant('other');
my $boss = $shim->user($tenant->{id}, 'boss', ['Viewer']);
$cluster->psql("insert into entityapi.tenant_admin values ('$tenant->{id}', '$boss->{id}')");
my $accounts = "/manage/tenants/$tenant->{id}/service-accounts";

sub create
{
	my (%members) = @_;
	return $shim->http(POST => $accounts, { token => $boss, json => {%members} });
}

sub token
{
	my ($account, $secret) = @_;
	return $shim->http(POST => '/auth/token',
		{ json => { clientId => $account->{clientId}, clientSecret => $secret // $account->{clientSecret} } });
}

sub form
{
	my ($body, %headers) = @_;
	return $shim->http(POST => '/auth/token',
		{ headers => { 'content-type' => 'application/x-www-form-urlencoded', %headers }, body => $body });
}

sub read_products { return $shim->http(GET => '/api/v1/products', { token => $_[0] })->{status} }

my $robot = create(name => 'robot', roles => ['Viewer'], securityAttributes => { department => 'sales' })->{json};

subtest 'made' => sub {
	is_deeply([ sort keys %$robot ], [ sort qw(id clientId name roles securityAttributes status
			  createdAt lastUsedAt clientSecret) ], 'the record');
	like($robot->{clientSecret}, qr/^eas_[0-9A-Za-z]{71}$/, 'the secret');
	is($robot->{status}, 'ACTIVE', 'active');
	is_deeply(create(name => 'plain')->{json}{roles}, [], 'no roles but those that are named');
	is(create(name => 'x', roles => ['TenantAdmin'])->{status}, 400, 'no platform authority');
	is(create(name => 'x', securityAttributes => { department => 1 })->{status}, 400, 'a wrong attribute');
	is(create()->{status}, 400, 'no name');
	is(create(name => 'x', username => 'x')->{status}, 400, 'an unknown member');

	my $list = $shim->must(200, GET => "$accounts?sort=-name&filter=name=in=(robot,plain)", { token => $boss });
	is(join(' ', map { $_->{name} } @{ $list->{data} }), 'robot plain', 'listed');
	is(scalar(grep { exists $_->{clientSecret} } @{ $list->{data} }), 0, 'without secrets');
	is($shim->http(GET => $accounts, { token => $shim->user($other->{id}, 'u', [], ) })->{status}, 403,
		'for administrators');
};

subtest 'token' => sub {
	my $answer = token($robot);
	is($answer->{status}, 200, 'given') or diag $answer->{body};
	is_deeply([ sort keys %{ $answer->{json} } ], [qw(accessToken expiresIn tokenType)], 'and no more');
	is(read_products($answer->{json}), 200, 'opens what the role may read');
	my $me = $shim->must(200, GET => '/auth/me', { token => $answer->{json} });
	is_deeply([ @$me{qw(accountKind userId roles tenantId)} ],
		[ 'SERVICE_ACCOUNT', $robot->{id}, ['Viewer'], $tenant->{id} ], 'who it is');
	is($shim->http(GET => $accounts, { token => $answer->{json} })->{status}, 403, 'no management');
	is($shim->http(POST => '/auth/me/api-keys', { token => $answer->{json}, json => { name => 'k' } })->{status},
		403, 'no keys');
	is($shim->http(POST => '/auth/login',
			{ json => { username => 'robot', password => $robot->{clientSecret} } })->{status}, 401, 'no login');
	isnt($shim->must(200, GET => "$accounts?filter=name==robot", { token => $boss })->{data}[0]{lastUsedAt},
		undef, 'its use is noted');

	my %bodies;
	my $bad = $robot->{clientSecret};
	substr($bad, 40, 1) = substr($bad, 40, 1) eq 'a' ? 'b' : 'a';
	for my $try ([ $robot, $bad ], [ $robot, '' ], [ { clientId => 'none' }, $robot->{clientSecret} ],
		[ { clientId => 'x' x 3000 }, 'y' ])
	{
		my $refused = $shim->http(POST => '/auth/token',
			{   headers => { 'x-request-id' => 'same' },
				json    => { clientId => $try->[0]{clientId}, clientSecret => $try->[1] } });
		$bodies{"$refused->{status} $refused->{body}"}++;
	}
	is(scalar keys %bodies, 1, 'refusals are alike');
	like((keys %bodies)[0], qr/^401 /, 'and 401');
	is($shim->http(POST => '/auth/token', { json => { clientId => 'x' } })->{status}, 400, 'a member missing');
};

subtest 'OAuth 2.0' => sub {
	my $client = "client_id=$robot->{clientId}&client_secret=$robot->{clientSecret}";
	my $basic = 'Basic ' . MIME::Base64::encode_base64("$robot->{clientId}:$robot->{clientSecret}", '');
	my $grant = 'grant_type=client_credentials';
	my $error = sub { "$_[0]{status} $_[0]{json}{error}" };

	for my $answer (form("$grant&$client"), form("$client&$grant&scope=a+b&foo=bar"),
		form($grant, authorization => $basic))
	{
		is_deeply([ $answer->{status}, sort keys %{ $answer->{json} } ],
			[qw(200 access_token expires_in token_type)], 'a token') or diag $answer->{body};
		is($answer->{headers}{'cache-control'}, 'no-store', 'not to be stored');
		is(read_products($answer->{json}{access_token}), 200, 'that works');
	}
	is($error->(form($client)), '400 invalid_request', 'no grant type');
	is($error->(form("grant_type=password&$client")), '400 unsupported_grant_type', 'another one');
	is($error->(form("$grant&$grant&$client")), '400 invalid_request', 'repeated');
	is($error->(form("$grant&client_id=%zz")), '400 invalid_request', 'badly encoded');
	is($error->(form("$grant&$client", authorization => $basic)), '400 invalid_request', 'both ways at once');
	is($error->(form($grant, authorization => 'Basic !')), '400 invalid_request', 'a malformed header');
	is($error->(form($grant)), '401 invalid_client', 'no client');
	is($error->(form("$grant&client_id=x&client_secret=y")), '401 invalid_client', 'an unknown one');
	my $refused = form($grant, authorization => 'Basic ' . MIME::Base64::encode_base64('x:y', ''));
	is($error->($refused), '401 invalid_client', 'in the header');
	like($refused->{headers}{'www-authenticate'}, qr/^Basic /, 'answered in kind');
	is($shim->http(POST => '/auth/login', { headers => { 'content-type' => 'application/x-www-form-urlencoded' },
				body => $grant })->{status}, 415, 'here only');
};

subtest 'ends' => sub {
	my $old = token($robot)->{json};
	my $rotated = $shim->must(200, POST => "$accounts/$robot->{id}/rotate-secret", { token => $boss });

	is(read_products($old), 401, 'tokens of before');
	is(token($robot)->{status}, 401, 'the old secret');
	is($rotated->{clientId}, $robot->{clientId}, 'the client stays');
	my $new = token($rotated);
	is($new->{status}, 200, 'the new one works');

	my $disabled = $shim->must(200, POST => "$accounts/$robot->{id}/disable", { token => $boss });
	is($disabled->{status}, 'DISABLED', 'disabled');
	ok(!exists $disabled->{clientSecret}, 'no secret');
	is(read_products($new->{json}), 401, 'its token');
	is(token($rotated)->{status}, 401, 'its secret');
	my $again = $shim->must(200, POST => "$accounts/$robot->{id}/rotate-secret", { token => $boss });
	is($again->{status}, 'ACTIVE', 'rotating makes it active');
	is(read_products($new->{json}), 401, 'not the token of before');
	is(token($again)->{status}, 200, 'with the newest secret');

	$cluster->psql("update entityapi.tenant set status = 'SUSPENDED' where id = '$tenant->{id}'");
	is(token($again)->{status}, 401, 'in a suspended tenant');
	$cluster->psql("update entityapi.tenant set status = 'ACTIVE' where id = '$tenant->{id}'");

	my $token = token($again)->{json};
	$cluster->set('entityapi.clock' => '2090-01-01 00:00:00Z');
	is(read_products($token), 401, 'after its time');
	$cluster->set('entityapi.clock');

	is($shim->http(POST => "$accounts/$_/disable", { token => $boss })->{status}, 404, "not $_")
	  for 'x', $boss->{id}, '00000000-0000-7000-8000-000000000000';
	is($shim->http(POST => "/manage/tenants/$other->{id}/service-accounts/$robot->{id}/disable",
			{ token => $shim->superadmin })->{status}, 404, 'of another tenant');
};

done_testing();
