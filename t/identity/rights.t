# What outlives what: keys and a change of the password, invites and those who
# made them; and what is said where users would decide about themselves.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $manage = "/manage/tenants/$tenant";

sub me { return $shim->http(GET => '/auth/me', {@_})->{status} }

subtest 'a change of the password' => sub {
	my $ann = $shim->user($tenant, 'ann', ['Viewer']);
	my $token = $shim->login('ann', $ann->{password});
	my $other = $shim->login('ann', $ann->{password});
	my $key = $shim->must(201, POST => '/auth/me/api-keys',
		{ token => $token, json => { name => 'k', expiresAt => '2099-01-01T00:00:00Z' } });
	my $pair = $shim->must(200, POST => '/auth/change-password',
		{ token => $token, json => { currentPassword => $ann->{password}, newPassword => 'quite another phrase' } });

	is(me(token => $token), 401, 'ends the session');
	is(me(token => $other), 401, 'and the others');
	is(me(token => $pair->{accessToken}), 200, 'begins a new one');
	is(me(headers => { 'x-api-key' => $key->{key} }), 200, 'and leaves personal keys');
	$shim->must(200, POST => "/auth/me/api-keys/$key->{id}/disable", { token => $pair->{accessToken} });
	is(me(headers => { 'x-api-key' => $key->{key} }), 401, 'which are ended one by one');
};

subtest 'an invite' => sub {
	my $boss = $shim->user($tenant, 'boss', []);
	$shim->must(204, POST => "$manage/tenant-admins/$boss->{id}", { token => $root });
	my $token = $shim->login('boss', $boss->{password});
	my ($kept, $ended) = map {
		$shim->must(201, POST => "$manage/invites",
			{ token => $token, json => { email => 'a@b.example', username => $_, roles => ['Viewer'] } })
	} qw(eve ivy);
	my $accept = sub {
		my ($invite, $name) = @_;
		return $shim->http(POST => '/auth/accept-invite',
			{ json => { token => $invite->{token}, username => $name, password => 'chosen by the invitee' } })->{status};
	};

	$shim->must(204, DELETE => "$manage/users/$boss->{id}", { token => $root });
	is($accept->($kept, 'eve'), 201, 'is of the tenant, and outlives who made it');
	$shim->must(204, DELETE => "$manage/invites/$ended->{id}", { token => $root });
	is($accept->($ended, 'ivy'), 400, 'until it is taken back');
};

subtest 'what users write themselves' => sub {
	my $said = sub { return $cluster->try_psql(@_)->{err} };
	my $check = sub { return $said->("select entityapi.check_expression('#user." . $_[0] . "[''team''] == ''a''')") };

	like($check->('profile'), qr/WARNING: .*#user\.profile, which users write themselves/, 'is told of in an expression');
	unlike($check->('securityAttributes'), qr/WARNING/, 'and nothing else is');
	for my $dry (qw(true false))
	{
		like($said->(<<"SQL"), qr/WARNING: .*policy "OwnTeam" asks for #user\.profile/, "and when a manifest is applied, dry run: $dry");
select count(*) from entityapi.apply_manifest(entityapi.export_manifest()::jsonb || '[
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "OwnTeam"}, "spec": {"expression": "#record.team == #user.profile[''team'']"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Chore"}, "spec": {"policies": {"OwnTeam": ["read"]}, "fields": {"team": {"type": "string"}}}}]', $dry)
SQL
	}
	my $asks = sub {
		my ($expression, $operations) = @_;
		return [ sort $said->(<<"SQL") =~ /WARNING: +policy "Reviewed" (.*)/g ];
select count(*) from entityapi.apply_manifest(entityapi.export_manifest()::jsonb || '[
	{"apiVersion": "entityapi/v1", "kind": "Policy", "metadata": {"name": "Reviewed"}, "spec": {"expression": "$expression"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "User"}, "spec": {"accounts": true, "fields": {"salary": {"type": "integer", "from": "profile.salary"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Report"}, "spec": {"policies": {"Reviewed": $operations},
		"fields": {"reviewer": {"type": "ref", "target": "User", "relation": "ManyToOne"}, "salary": {"type": "integer"}}}}]', true)
SQL
	};
	is_deeply($asks->('#row.reviewer.salary >= 3 and #row.reviewer.salary < 9', '["create", "read", "update", "delete"]'),
		['asks for User.salary, which users write themselves'], 'a path to a part of the profile is told of, once');
	is_deeply($asks->(q{#record.reviewer == #user.userId and (#record.reviewer.displayName != null or #record.reviewer.salary == null)}, '["read"]'),
		[ 'asks for User.displayName, which users write themselves', 'asks for User.salary, which users write themselves' ], 'so is the name shown');
	is_deeply($asks->(q{#record.reviewer.username == #user.username and #record.salary > 1}, '["read"]'), [], 'and nothing else');
};

done_testing();
