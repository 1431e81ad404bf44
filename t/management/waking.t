# Who holds a role that only a SuperAdmin assigns is not let in by others.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $file = EntityApi::Test::folder() . '/roles.json';

open my $out, '>', $file or die "$file: $!\n";
print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Viewer => undef, Platform => { assignableBy => 'superAdmin' } } } },
	{ kind => 'Entity', metadata => { name => 'Note' }, spec => { tenantScoped => JSON::PP::false, fields => { text => { type => 'string' } },
		permissions => { '*' => ['read'], Platform => ['create'] } } } ]);
close $out or die "$file: $!\n";
$cluster->apply($file);
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $boss = $shim->user($tenant, 'boss', []);
my $holder = $shim->user($tenant, 'holder', [qw(Platform Viewer)]);
my $viewer = $shim->user($tenant, 'viewer', ['Viewer']);

$shim->must(204, POST => "/manage/tenants/$tenant/tenant-admins/$boss->{id}", { token => $root });
my $key = $shim->must(201, POST => '/auth/me/api-keys',
	{ token => $holder->{accessToken}, json => { name => 'k', domainRoles => ['Platform'], expiresAt => '2099-01-01T00:00:00Z' } })->{key};

sub change
{
	my ($token, $user, %change) = @_;

	return $shim->http(PATCH => "/manage/tenants/$tenant/users/$user->{id}", { token => $token, json => {%change} });
}

sub writes
{
	return $shim->http(POST => '/api/v1/notes', { headers => { 'X-API-Key' => $key, 'Content-Type' => 'application/vnd.api+json' },
		body => '{"data":{"type":"notes"}}' })->{status};
}

sub status_of { return $cluster->psql("select status from entityapi.account where id = '$_[0]{id}'") }

my $token = $boss->{accessToken};
is(writes(), 201, 'the key of who holds the role writes what all share');
is(change($root, $holder, status => 'DISABLED')->{status}, 200, 'a SuperAdmin ends that');
is(writes(), 401, 'it does not');

my $answer = change($token, $holder, status => 'ACTIVE', email => 'a@b.example');
is($answer->{status}, 403, 'a TenantAdmin does not undo it');
is($answer->{json}{errors}[0]{source}{pointer}, '/status', 'where');
is(status_of($holder), 'DISABLED', 'it stays so');
is(writes(), 401, 'and with the key');
is(change($token, $holder, status => 'DISABLED')->{status}, 200, 'what changes nothing may be said');
is(change($token, $holder, email => 'a@b.example')->{status}, 200, 'what opens nothing may be changed');

is(change($root, $holder, status => 'ACTIVE')->{status}, 200, 'a SuperAdmin may');
is(writes(), 201, 'and it writes again');
is(change($token, $holder, status => 'ACTIVE')->{status}, 200, 'who is active may be told so by anybody');
is(change($token, $holder, status => 'DISABLED')->{status}, 200, 'a TenantAdmin may end it');
is(change($token, $holder, status => 'ACTIVE')->{status}, 403, 'but for good');
is($shim->http(PUT => "/manage/tenants/$tenant/users/$holder->{id}/roles", { token => $token, json => { roles => ['Viewer'] } })->{status}, 200, 'he takes the role away');
is(change($token, $holder, status => 'ACTIVE')->{status}, 200, 'and then lets him in');
is(writes(), 401, 'without it');

is(change($token, $viewer, status => $_)->{status}, 200, "others he makes $_") for qw(DISABLED ACTIVE);

done_testing;
