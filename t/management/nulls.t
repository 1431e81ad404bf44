# Members of a change that cannot be empty are not null, nor of a wrong type.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', []);
my $admin = $shim->superadmin;
my $base = "/manage/tenants/$tenant->{id}";

sub refused
{
	my ($method, $target, $body, $pointer, $token) = @_;
	my $answer = $shim->http($method => $target, { token => $token // $admin, json => $body });

	is($answer->{status}, 400, "$method $target " . JSON::PP->new->canonical->encode($body));
	is($answer->{json}{errors}[0]{source}{pointer}, $pointer, 'there');
	return;
}

for my $member (qw(name status attributes))
{
	refused(PATCH => $base, { $member => $_ }, "/$member") for undef, 1, JSON::PP::true(), ['x'];
}
for my $member (qw(status securityAttributes profile temporaryPassword))
{
	refused(PATCH => "$base/users/$ann->{id}", { $member => $_ }, "/$member") for undef, 1, ['x'];
}
refused(PATCH => "$base/users/$ann->{id}", { email => $_ }, '/email') for 1, {}, ['x'];
refused(PUT => "$base/users/$ann->{id}/roles", { roles => undef }, '/roles');
refused(PATCH => '/auth/me', { profile => undef }, '/profile', $ann);
refused(POST => '/auth/change-password', { currentPassword => undef, newPassword => 'x' x 12 }, '/currentPassword', $ann);
refused(POST => '/auth/me/api-keys', { name => undef }, '/name', $ann);
refused(POST => "$base/service-accounts", { name => undef }, '/name');
refused(POST => "$base/invites", { email => undef, username => 'x', roles => [] }, '/email');
refused(POST => "$base/users", { username => undef }, '/username');
refused(POST => '/manage/tenants', { name => undef, slug => 'x' }, '/name');
refused(POST => '/auth/login', { username => undef, password => 'x' }, '/username');
refused(POST => '/auth/refresh', { refreshToken => undef }, '/refreshToken');

my $user = $shim->http(PATCH => "$base/users/$ann->{id}", { token => $admin, json => { email => undef } });
is($user->{status}, 200, 'an address can be empty');
is($user->{json}{status}, 'ACTIVE', 'and nothing has changed');

done_testing();
