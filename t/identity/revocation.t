# What is taken away is gone with the next request, whatever the credential:
# every event by every kind of credential, before and after it.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $soon = '2099-01-01T00:00:00Z';
my $made = 0;

# Passwords take their time: all users have that of the first one.
my $model = $shim->user($shim->tenant('model')->{id}, 'model', []);

sub user
{
	my ($tenant, $name, @roles) = @_;
	my $id = $cluster->psql("insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile,"
		. " security_attributes, password_hash, password_change_required, is_super_admin, created_at)"
		. " select gen_random_uuid(), '$tenant', kind, '$name', '$name', status, '{@roles}', profile, security_attributes, password_hash,"
		. " false, false, now() from entityapi.account where id = '$model->{id}' returning id");
	return { %{ $shim->login($name, $model->{password}) }, id => $id =~ s/\s.*//sr, username => $name, password => $model->{password} };
}

# A tenant of its own with somebody in it, and all that opens it
sub scene
{
	my $name = 'scene' . ++$made;
	my $tenant = $shim->tenant($name)->{id};
	my $path = "/manage/tenants/$tenant";
	my $user = user($tenant, "$name-user", 'Accountant');
	my $boss = user($tenant, "$name-boss");
	$shim->must(204, POST => "$path/tenant-admins/$boss->{id}", { token => $root });
	my $robot = $shim->must(201, POST => "$path/service-accounts", { token => $root, json => { name => 'r', roles => ['Accountant'] } });
	my @secret = (clientId => $robot->{clientId}, clientSecret => $robot->{clientSecret});
	my %scene = (
		tenant => $tenant, path => $path, name => $name, user => $user, boss => $boss, robot => { @secret, id => $robot->{id} },
		service => $shim->must(200, POST => '/auth/token', { json => {@secret} }),
		refresh => $shim->login($user->{username}, $user->{password})->{refreshToken},
		boss_key => $shim->must(201, POST => '/auth/me/api-keys', { token => $boss, json => { name => 'k', expiresAt => $soon } }),
		key => $shim->must(201, POST => '/auth/me/api-keys',
			{ token => $user, json => { name => 'k', domainRoles => ['Accountant'], expiresAt => $soon } }),
		bare_key => $shim->must(201, POST => '/auth/me/api-keys', { token => $user, json => { name => 'b', expiresAt => $soon } }),
		invite => $shim->must(201, POST => "$path/invites",
			{ token => $root, json => { email => 'a@b.example', username => "$name-guest", roles => ['Viewer'] } }));
	return \%scene;
}

sub by_key { my ($key, $path) = @_; return $shim->http(GET => $path, { headers => { 'x-api-key' => $key->{key} } })->{status} }

my $entities = '/api/v1/invoices?page[size]=1';

# Each credential, tried: a status.  Those that are used up by it come last.
my @credentials = (
	[ 'access token' => sub { $shim->http(GET => $entities, { token => $_[0]{user} })->{status} }, 200 ],
	[ 'access token, /auth/me' => sub { $shim->http(GET => '/auth/me', { token => $_[0]{user} })->{status} }, 200 ],
	[ 'personal key' => sub { by_key($_[0]{key}, $entities) }, 200 ],
	[ 'personal key without roles' => sub { by_key($_[0]{bare_key}, '/auth/me') }, 200 ],
	[ 'service account token' => sub { $shim->http(GET => $entities, { token => $_[0]{service} })->{status} }, 200 ],
	[ 'service secret' => sub { $shim->http(POST => '/auth/token',
				{ json => { clientId => $_[0]{robot}{clientId}, clientSecret => $_[0]{robot}{clientSecret} } })->{status} }, 200 ],
	[ 'TenantAdmin' => sub { $shim->http(GET => "$_[0]{path}/users", { token => $_[0]{boss} })->{status} }, 200 ],
	[ 'TenantAdmin, entities' => sub { $shim->http(GET => $entities, { token => $_[0]{boss} })->{status} }, 200 ],
	[ 'TenantAdmin, log' => sub { $shim->http(GET => '/manage/audit?page[size]=1', { token => $_[0]{boss} })->{status} }, 200 ],
	[ 'key of the TenantAdmin' => sub { by_key($_[0]{boss_key}, '/auth/me') }, 200 ],
	[ 'password' => sub { $shim->http(POST => '/auth/login',
				{ json => { username => $_[0]{user}{username}, password => $_[0]{user}{password} } })->{status} }, 200 ],
	[ 'refresh token' => sub { my $answer = $shim->http(POST => '/auth/refresh', { json => { refreshToken => $_[0]{refresh} } });
			$_[0]{refresh} = $answer->{json}{refreshToken} if $answer->{status} == 200; $answer->{status} }, 200 ],
	[ 'what a refresh gives' => sub { my ($s) = @_; my $answer = $shim->http(POST => '/auth/refresh', { json => { refreshToken => $s->{refresh} } });
			return $answer->{status} if $answer->{status} != 200;
			$s->{refresh} = $answer->{json}{refreshToken};
			$shim->http(GET => $entities, { token => $answer->{json} })->{status} }, 200 ],
	[ 'invite' => sub { my $s = $_[0]; $shim->http(POST => '/auth/accept-invite', { json => { token => $s->{invite}{token},
					username => "$s->{name}-guest", password => 'plainly-for-a-test-5' } })->{status} }, 201 ]);

# What each event makes of them; what is not named stays as it was
my @of_user = ('access token', 'access token, /auth/me', 'personal key', 'personal key without roles', 'password', 'refresh token',
	'what a refresh gives');
my @of_boss = ('TenantAdmin', 'TenantAdmin, entities', 'TenantAdmin, log', 'key of the TenantAdmin');
my @of_robot = ('service account token', 'service secret');
my %gone = map { $_ => 401 } @of_user, @of_boss, @of_robot;
my $must = sub { my ($status, $method, $path, $json) = @_; $shim->must($status, $method => $path, { token => $root, $json ? (json => $json) : () }) };

my @events = (
	[ 'tenant suspended' => sub { $must->(200, PATCH => $_[0]{path}, { status => 'SUSPENDED' }) }, { %gone, invite => 400 },
		sub { $must->(200, PATCH => $_[0]{path}, { status => 'ACTIVE' }) }, {} ],
	[ 'tenant deleted' => sub { $must->(204, DELETE => $_[0]{path}) }, { %gone, invite => 400 },
		sub { $cluster->psql('select entityapi.sweep()') for 1 .. 4 }, { %gone, invite => 400 } ],
	[ 'user disabled' => sub { $must->(200, PATCH => "$_[0]{path}/users/$_[0]{user}{id}", { status => 'DISABLED' }) },
		{ map { $_ => 401 } @of_user },
		sub { $must->(200, PATCH => "$_[0]{path}/users/$_[0]{user}{id}", { status => 'ACTIVE' }) },
		# sessions are over, the rest comes back
		{ map { $_ => 401 } 'access token', 'access token, /auth/me', 'refresh token', 'what a refresh gives' } ],
	[ 'user deleted' => sub { $must->(204, DELETE => "$_[0]{path}/users/$_[0]{user}{id}") }, { map { $_ => 401 } @of_user } ],
	[ 'role taken' => sub { $must->(200, PUT => "$_[0]{path}/users/$_[0]{user}{id}/roles", { roles => [] }) },
		{ 'access token' => 403, 'personal key' => 401, 'what a refresh gives' => 403 },
		sub { $must->(200, PUT => "$_[0]{path}/users/$_[0]{user}{id}/roles", { roles => ['Accountant'] }) }, {} ],
	[ 'temporary password' => sub { $must->(200, PATCH => "$_[0]{path}/users/$_[0]{user}{id}", { temporaryPassword => 'temporary-word-9' }) },
		{ (map { $_ => 401 } @of_user), map { $_ => 403 } 'personal key', 'personal key without roles' } ],
	[ 'TenantAdmin no more' => sub { $must->(204, DELETE => "$_[0]{path}/tenant-admins/$_[0]{boss}{id}") },
		{ 'TenantAdmin' => 403, 'TenantAdmin, entities' => 403, 'TenantAdmin, log' => 403 },
		sub { $must->(204, POST => "$_[0]{path}/tenant-admins/$_[0]{boss}{id}") }, {} ],
	[ 'service account disabled' => sub { $must->(200, POST => "$_[0]{path}/service-accounts/$_[0]{robot}{id}/disable") },
		{ map { $_ => 401 } @of_robot } ],
	[ 'secret rotated' => sub { $must->(200, POST => "$_[0]{path}/service-accounts/$_[0]{robot}{id}/rotate-secret") },
		{ map { $_ => 401 } @of_robot } ],
	[ 'key disabled' => sub { $shim->must(200, POST => "/auth/me/api-keys/$_[0]{key}{id}/disable", { token => $_[0]{user} }) },
		{ 'personal key' => 401 } ],
	[ 'key revoked' => sub { $must->(200, POST => "$_[0]{path}/personal-api-keys/$_[0]{key}{id}/revoke") }, { 'personal key' => 401 } ],
	[ 'keys switched off' => sub { $must->(200, PUT => "$_[0]{path}/settings/personal-api-keys", { enabled => \0 }) },
		{ map { $_ => 401 } 'personal key', 'personal key without roles', 'key of the TenantAdmin' },
		sub { $must->(200, PUT => "$_[0]{path}/settings/personal-api-keys", { enabled => undef }) }, {} ],
	[ 'invite deleted' => sub { $must->(204, DELETE => "$_[0]{path}/invites/$_[0]{invite}{id}") }, { invite => 400 } ],
	[ 'logout' => sub { $shim->must(204, POST => '/auth/logout', { json => { refreshToken => $_[0]{refresh} } }) },
		{ map { $_ => 401 } 'refresh token', 'what a refresh gives' } ]);

my %known = map { $_->[0] => 1 } @credentials;

# Each credential once, on every connection that may have seen it before
sub try_all
{
	my ($scene, $expected, $when, $invites) = @_;

	for my $credential (@credentials)
	{
		my ($name, $try, $well) = @$credential;
		next if $name eq 'invite' && !$invites;
		my $status = $try->($scene);

		is($status, $expected->{$name} // $well, "$when: $name");
	}
	return;
}

for my $event (@events)
{
	my ($name, $do, $expected, $undo, $afterwards) = @$event;

	subtest $name => sub {
		my $scene = scene();
		is_deeply([ grep { !$known{$_} } keys %$expected, keys %{ $afterwards // {} } ], [], 'all are credentials');
		try_all($scene, {}, 'before', 0);
		$do->($scene);
		try_all($scene, $expected, 'after', !$undo || $name =~ /deleted/);
		return if !$undo;
		$undo->($scene);
		try_all($scene, $afterwards, 'undone', 1);
	};
}

done_testing;
