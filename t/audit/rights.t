# Who gave whom which rights stands in the audit log, also when the account,
# the invite or the key that they were given to has gone.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $canary = 'a temporary canary, never kept';
my $done = 0;

# A request, and the records that it left, by action.
sub done
{
	my ($status, $who, $method, $path, $json) = @_;
	my $id = 'audit-' . ++$done;
	my $answer = $shim->http($method, $path, { ($who ? (token => $who) : ()), headers => { 'X-Request-Id' => $id }, ($json ? (json => $json) : ()) });
	my $list = $shim->http(GET => "/manage/audit?filter=requestId==$id", { token => $root })->{json}{data};

	is($answer->{status}, $status, "$method $path") or diag $answer->{body};
	return ($answer->{json}, { map { $_->{action} => $_ } @$list }, $list);
}

sub new_values { my ($record) = @_; return { map { $_ => $record->{changes}{$_}[1] } keys %{ $record->{changes} // {} } } }
sub old_values { my ($record) = @_; return { map { $_ => $record->{changes}{$_}[0] } keys %{ $record->{changes} // {} } } }

sub holds
{
	my ($values, $what, %expected) = @_;

	is_deeply({ map { $_ => $values->{$_} } keys %expected }, \%expected, $what);
	return;
}

# -------- tenants, and their first administrators --------

my ($tenant, $records) = done(201, $root, POST => '/manage/tenants',
	{ name => 'Here', slug => 'here', admin => { username => 'boss', temporaryPassword => $canary } });
my $boss = $tenant->{admin};
my $at = "/manage/tenants/$tenant->{id}";
holds(new_values($records->{TENANT_CREATED}), 'a tenant', name => 'Here', slug => 'here', status => 'ACTIVE');
holds(new_values($records->{USER_CREATED}), 'its first user', username => 'boss', roles => ['Viewer']);
for my $action (qw(USER_CREATED TENANT_ADMIN_GRANTED))
{
	is_deeply([ @{ $records->{$action} }{qw(target tenantId outcome)} ], [ { type => 'user', id => $boss->{id} }, $tenant->{id}, 'SUCCESS' ], "$action: about whom");
	is($records->{$action}{actor}{username}, $records->{TENANT_CREATED}{actor}{username}, "$action: by whom");
}
(undef, $records) = done(409, $root, POST => '/manage/tenants', { name => 'Here', slug => 'here', admin => { username => 'other' } });
is_deeply([ sort keys %$records ], ['TENANT_CREATED'], 'nothing was made, and nothing else is told of');

# -------- users --------

(my $user, $records) = done(201, $root, POST => "$at/users", { username => 'ann', email => 'ann@here', roles => ['Sales'],
	securityAttributes => { department => 'finance' }, profile => { colour => 'red' }, temporaryPassword => $canary });
holds(new_values($records->{USER_CREATED}), 'a user', username => 'ann', email => 'ann@here', roles => ['Sales'],
	securityAttributes => { department => 'finance' }, profile => { colour => 'red' });
my $ann = $shim->user($tenant->{id}, 'eve', ['Sales']);
(undef, $records) = done(200, $ann->{accessToken}, PATCH => '/auth/me', { profile => { colour => 'green' } });
is_deeply($records->{PROFILE_UPDATED}{changes}, { profile => [ {}, { colour => 'green' } ] }, 'what policies may ask for');
(undef, $records) = done(200, $ann->{accessToken}, PATCH => '/auth/me', { profile => {} });
is_deeply($records->{PROFILE_UPDATED}{changes}, {}, 'nothing where nothing changed');
(undef, $records) = done(200, $root, PUT => "$at/users/$user->{id}/roles", { roles => ['Sales'] });
is_deeply($records->{ROLES_CHANGED}{changes}, {}, 'nor where the roles stay');
for my $case ([ POST => 'GRANTED', JSON::PP::false, JSON::PP::true ], [ DELETE => 'REVOKED', JSON::PP::true, JSON::PP::false ])
{
	my ($method, $action, @states) = @$case;
	(undef, $records) = done(204, $root, $method => "$at/tenant-admins/$user->{id}");
	is_deeply($records->{"TENANT_ADMIN_$action"}{changes}, { isTenantAdmin => \@states }, "authority: $action");
}
(undef, $records) = done(204, $root, DELETE => "$at/users/$user->{id}");
holds(old_values($records->{USER_DELETED}), 'who has gone', username => 'ann', roles => ['Sales'], securityAttributes => { department => 'finance' });
holds(new_values($records->{USER_DELETED}), 'is no more', username => undef, roles => undef);

# -------- invites --------

(my $invite, $records) = done(201, $root, POST => "$at/invites", { email => 'i@here', username => 'ivy', roles => ['Accountant'] });
holds(new_values($records->{INVITE_CREATED}), 'an invite', email => 'i@here', username => 'ivy', roles => ['Accountant'], expiresAt => $invite->{expiresAt});
(undef, $records) = done(201, undef, POST => '/auth/accept-invite', { token => $invite->{token}, username => 'ivy', password => $canary });
holds(new_values($records->{INVITE_ACCEPTED}), 'who came in by it', invite => $invite->{id}, username => 'ivy', roles => ['Accountant']);
($invite) = done(201, $root, POST => "$at/invites", { email => 'j@here', username => 'jo', roles => ['Sales'] });
(undef, $records) = done(204, $root, DELETE => "$at/invites/$invite->{id}");
holds(old_values($records->{INVITE_DELETED}), 'one taken back', email => 'j@here', roles => ['Sales']);

# -------- service accounts --------

(my $robot, $records) = done(201, $root, POST => "$at/service-accounts", { name => 'robot', roles => ['Viewer'], securityAttributes => { clearance => 2 } });
holds(new_values($records->{SERVICE_ACCOUNT_CREATED}), 'a service account', name => 'robot', roles => ['Viewer'], securityAttributes => { clearance => 2 });
(undef, $records) = done(200, $root, POST => "$at/service-accounts/$robot->{id}/disable");
is_deeply($records->{SERVICE_ACCOUNT_DISABLED}{changes}, { status => [qw(ACTIVE DISABLED)] }, 'switched off');
(undef, $records) = done(200, $root, POST => "$at/service-accounts/$robot->{id}/rotate-secret");
is_deeply($records->{SERVICE_ACCOUNT_SECRET_ROTATED}{changes}, { status => [qw(DISABLED ACTIVE)] }, 'on again, by a new secret');
(undef, $records) = done(404, $root, POST => "$at/service-accounts/$boss->{id}/disable");
is($records->{SERVICE_ACCOUNT_DISABLED}{outcome}, 'FAILURE', 'a user is none');

# -------- keys and their settings --------

(undef, $records) = done(200, $root, PUT => "$at/settings/personal-api-keys", { allowNonExpiring => JSON::PP::true });
is_deeply($records->{API_KEY_SETTINGS_CHANGED}{changes}, { allowNonExpiring => [ undef, JSON::PP::true ] }, 'settings of a tenant');
(undef, $records) = done(200, $root, PUT => "$at/settings/personal-api-keys", { enabled => JSON::PP::false });
is_deeply($records->{API_KEY_SETTINGS_CHANGED}{changes},
	{ enabled => [ undef, JSON::PP::false ], allowNonExpiring => [ JSON::PP::true, undef ] }, 'what is left out is inherited');
done(200, $root, PUT => "$at/settings/personal-api-keys", {});
(undef, $records) = done(200, $root, PUT => '/manage/settings/personal-api-keys', { allowNonExpiring => JSON::PP::true });
is_deeply($records->{API_KEY_SETTINGS_CHANGED}{changes}, { allowNonExpiring => [ undef, JSON::PP::true ] }, 'settings for all');
(my $key, $records) = done(201, $ann->{accessToken}, POST => '/auth/me/api-keys', { name => 'mine', domainRoles => ['Sales'] });
holds(new_values($records->{API_KEY_CREATED}), 'a key', name => 'mine', domainRoles => ['Sales'], status => 'ACTIVE');
(undef, $records) = done(200, $ann->{accessToken}, POST => "/auth/me/api-keys/$key->{id}/disable");
is_deeply($records->{API_KEY_DISABLED}{changes}, { status => [qw(ACTIVE DISABLED)] }, 'disabled by its owner');
(undef, $records) = done(200, $root, POST => "$at/personal-api-keys/$key->{id}/revoke");
is_deeply($records->{API_KEY_REVOKED}{changes}, { status => [qw(DISABLED REVOKED)] }, 'revoked for good');

# -------- two accounts, one logout --------

my $bob = $shim->user($tenant->{id}, 'bob', ['Viewer']);
my $there = $shim->tenant('there')->{id};
my $zoe = $shim->user($there, 'zoe', ['Viewer']);
(undef, undef, my $list) = done(204, $zoe->{accessToken}, POST => '/auth/logout', { refreshToken => $bob->{refreshToken} });
is_deeply([ sort map { "$_->{action} $_->{target}{id} in $_->{tenantId}" } @$list ],
	[ sort "LOGOUT $bob->{id} in $tenant->{id}", "LOGOUT $zoe->{id} in $there" ], 'each of them in its own tenant');
(undef, undef, $list) = done(204, $ann->{accessToken}, POST => '/auth/logout', { refreshToken => $ann->{refreshToken} });
is(scalar @$list, 1, 'one account, one record');

# -------- secrets --------

my $log = $cluster->psql('select string_agg(a::text, chr(10)) from entityapi.audit a');
unlike($log, qr/ea[rpsi]_[0-9A-Za-z]{10}|canary/, 'no secret is in it');
ok(index($log, $_) < 0, 'nor the one that was told') for $key->{key}, $robot->{clientSecret}, $invite->{token};

done_testing;
