# Each row of the table of states and transitions, over HTTP.

use strict;
use warnings;

use MIME::Base64 ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme');
my $manage = "/manage/tenants/$tenant->{id}";
my $ann = $shim->user($tenant->{id}, 'ann', ['Viewer']);
my $boss = $shim->user($tenant->{id}, 'boss', []);
$cluster->psql("insert into entityapi.tenant_admin values ('$tenant->{id}', '$boss->{id}')");

sub post
{
	my ($target, $json, $token) = @_;
	return $shim->http(POST => $target, { json => $json, $token ? (token => $token) : () });
}

sub me { return $shim->http(GET => '/auth/me', { token => $_[0] })->{status} }
sub refresh { return post('/auth/refresh', { refreshToken => $_[0]{refreshToken} }) }

subtest 'refresh token: used, the old one is revoked when its successor is used' => sub {
	# no time passes: for some seconds a token may be sent again
	$cluster->set('entityapi.clock' => $cluster->psql('select now()'));
	my $old = $shim->login('ann', $ann->{password});
	my $new = refresh($old);

	is($new->{status}, 200, 'refreshed');
	isnt($new->{json}{$_}, $old->{$_}, "another $_") for qw(accessToken refreshToken);
	is(me($new->{json}), 200, 'which works');
	is(refresh($old)->{json}{refreshToken}, $new->{json}{refreshToken}, 'the old one gives the same again');
	my $third = refresh($new->{json});
	is($third->{status}, 200, 'the new one another');
	is(refresh($old)->{status}, 401, 'then the old one does not work');
	is(me($_), 401, 'and ends the family') for $new->{json}, $third->{json};
	$cluster->set('entityapi.clock' => undef);
};

subtest 'refresh token family: logout revokes all' => sub {
	my $first = $shim->login('ann', $ann->{password});
	my $second = refresh($first)->{json};
	my $other = $shim->login('ann', $ann->{password});

	is(post('/auth/logout', { refreshToken => $second->{refreshToken} })->{status}, 204, 'logout');
	is(refresh($_)->{status}, 401, 'no refresh') for $second, $first;
	is(me($_), 401, 'no access') for $first, $second;
	is(me($other), 200, 'another login stays');
	is(post('/auth/logout', { refreshToken => $second->{refreshToken} })->{status}, 204, 'again');
};

subtest 'temporary password: a limited session' => sub {
	$shim->must(201, POST => "$manage/users",
		{ token => $boss, json => { username => 'new', temporaryPassword => 'given-by-the-boss' } });
	my $session = $shim->login('new', 'given-by-the-boss');

	is($session->{forcePasswordChange}, JSON::PP::true, 'says so');
	my ($payload) = $session->{accessToken} =~ /\.(.*)\./;
	like(MIME::Base64::decode_base64($payload =~ tr{-_}{+/}r), qr/"scope":\["FORCE_CHANGE"\]/, 'in the token');
	for my $try ([ GET => '/auth/me' ], [ HEAD => '/auth/me' ], [ PATCH => '/auth/me' ], [ GET => '/api/v1/products' ],
		[ POST => '/api/v1/operations' ], [ GET => '/auth/me/api-keys' ], [ POST => '/auth/me/api-keys' ],
		[ GET => "$manage/invites" ], [ POST => '/manage/tenants' ])
	{
		my $body = $try->[0] =~ /^P/ ? { json => {} } : {};
		is($shim->http(@$try, { %$body, token => $session })->{status}, 403, "@$try");
	}
	my $refreshed = refresh($session)->{json};
	is(me($refreshed), 403, 'refreshing does not help');
	is(me($shim->login('new', 'given-by-the-boss')), 403, 'nor does another login');

	my $change = sub {
		return post('/auth/change-password',
			{ currentPassword => 'given-by-the-boss', newPassword => $_[0] }, $refreshed);
	};
	is($change->('given-by-the-boss')->{status}, 400, 'the same again is no change');
	my $changed = $change->('chosen-by-himself');
	is($changed->{status}, 200, 'changed');
	ok(!exists $changed->{json}{forcePasswordChange}, 'nothing is forced');
	is(me($changed->{json}), 200, 'access');
	is(me($refreshed), 401, 'the limited session is over');
	is(post('/auth/login', { username => 'new', password => 'given-by-the-boss' })->{status}, 401, 'the old password');
	is(me($shim->login('new', 'chosen-by-himself')), 200, 'the new one');
};

subtest 'invite: pending, consumed, removed' => sub {
	my $make = sub {
		$shim->must(201, POST => "$manage/invites",
			{ token => $boss, json => { email => 'a@b.example', username => 'i', roles => ['Sales'] } });
	};
	my $redeem = sub {
		post('/auth/accept-invite', { token => $_[0]{token}, username => $_[1], password => 'chosen-by-invitee' });
	};
	my ($one, $two) = ($make->(), $make->());

	is($one->{status}, 'PENDING', 'pending');
	is($redeem->($one, 'ida')->{status}, 201, 'redeemed');
	is_deeply($shim->must(200, GET => '/auth/me', { token => $shim->login('ida', 'chosen-by-invitee') })->{roles},
		['Sales'], 'with its roles');
	is($redeem->($one, 'ivo')->{status}, 400, 'consumed');
	is($shim->http(DELETE => "$manage/invites/$two->{id}", { token => $boss })->{status}, 204, 'removed');
	is($redeem->($two, 'ivo')->{status}, 400, 'gone');
};

subtest 'personal API key: disabled, revoked, refused while rights are missing' => sub {
	my $make = sub {
		$shim->must(201, POST => '/auth/me/api-keys', { token => $ann,
				json => { name => 'k', domainRoles => ['Viewer'], expiresAt => '2099-01-01T00:00:00Z' } });
	};
	my $use_key = sub { $shim->http(GET => '/api/v1/products', { headers => { 'x-api-key' => $_[0]{key} } })->{status} };
	my ($one, $two, $three) = map { $make->() } 1 .. 3;

	is($use_key->($_), 200, 'active') for $one, $two, $three;
	is(post("/auth/me/api-keys/$one->{id}/disable", {}, $ann)->{json}{status}, 'DISABLED', 'disabled');
	is($use_key->($one), 401, 'refused');
	is(post("$manage/personal-api-keys/$two->{id}/revoke", {}, $boss)->{json}{status}, 'REVOKED', 'revoked');
	is($use_key->($two), 401, 'refused');
	$shim->must(200, PUT => "$manage/users/$ann->{id}/roles", { token => $boss, json => { roles => [] } });
	is($use_key->($three), 401, 'a role lost');
	$shim->must(200, PUT => "$manage/users/$ann->{id}/roles", { token => $boss, json => { roles => ['Viewer'] } });
	is($use_key->($three), 200, 'and regained');
};

subtest 'service account: disabled, rotated' => sub {
	my $robot = $shim->must(201, POST => "$manage/service-accounts",
		{ token => $boss, json => { name => 'robot', roles => ['Viewer'] } });
	my $token = sub { post('/auth/token', { clientId => $robot->{clientId}, clientSecret => $_[0]{clientSecret} }) };
	my $issued = $token->($robot)->{json};

	is(me($issued), 200, 'active');
	is(post("$manage/service-accounts/$robot->{id}/disable", {}, $boss)->{json}{status}, 'DISABLED', 'disabled');
	is(me($issued), 401, 'its token');
	is($token->($robot)->{status}, 401, 'its secret');
	my $rotated = post("$manage/service-accounts/$robot->{id}/rotate-secret", {}, $boss)->{json};
	is($rotated->{status}, 'ACTIVE', 'active again');
	is($token->($robot)->{status}, 401, 'the old secret');
	is(me($token->($rotated)->{json}), 200, 'the new one');
	is(me($issued), 401, 'the old token');
};

subtest '50 parallel refreshes' => sub {
	$cluster->set('entityapi.clock' => $cluster->psql('select now()'));
	my $pair = $shim->login('ann', $ann->{password});
	my %statuses;

	m{^HTTP/1\.1 (\d+)} and $statuses{$1}++
	  for $shim->at_once(50, '/auth/refresh', "{\"refreshToken\":\"$pair->{refreshToken}\"}");
	cmp_ok($statuses{200}, '>=', 1, 'they succeed') or diag explain \%statuses;
	is($statuses{200} + ($statuses{503} // 0), 50, 'where the service is not busy') or diag explain \%statuses;
	is($cluster->psql('select count(*) filter (where used_at is null) from entityapi.refresh_token'
			  . ' where session_id = (select session_id from entityapi.refresh_token'
			  . " where id = '" . substr($pair->{refreshToken}, 4, 22) . "')"), 1, 'one lineage');
};

done_testing();
