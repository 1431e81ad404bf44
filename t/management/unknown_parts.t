# Every route outside of /api with a body that has a member, and a query that
# has a parameter, which the route does not know: the routes are those of the
# route table.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $user = $shim->user($tenant, 'ann', ['Viewer']);
my $base = "/manage/tenants/$tenant";

# What the segments of addresses name; nothing of it may change
my $made = sub { my ($path, $token, %members) = @_; $shim->must(201, POST => $path, { token => $token, json => \%members })->{id} };
my %thing = (
	id => $tenant,
	uid => $user->{id},
	inviteId => $made->("$base/invites", $root, email => 'a@b', username => 'x', roles => []),
	accountId => $made->("$base/service-accounts", $root, name => 'robot'),
	keyId => $made->('/auth/me/api-keys', $user, name => 'k', expiresAt => '2099-01-01T00:00:00Z'));

my $source = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/extension/entry/routes.c');
my ($prefix) = $source =~ /#define TENANT "([^"]+)"/ or die;
my @routes;
while ($source =~ /\.method = EA_(\w+),\s*\.pattern = (TENANT)?\s*(?:"([^"]*)")?\s*,/g)
{
	my ($method, $path) = ($1, ($2 ? $prefix : '') . ($3 // ''));

	push @routes, [ $method, $path ] if $path =~ m{^/(?:auth|manage|actuator)/};
}
cmp_ok(scalar @routes, '>', 20, 'routes are found');

sub state_of
{
	return $cluster->psql("select json_agg(t) from (select a::text from entityapi.account a union all select a::text from entityapi.tenant a"
		. " union all select a::text from entityapi.invite a union all select a::text from entityapi.personal_api_key a"
		. " union all select a::text from entityapi.tenant_admin a union all select a::text from entityapi.service_account a order by 1) t");
}

my $before = state_of();

for my $route (@routes)
{
	my ($method, $pattern) = @$route;
	my $path = $pattern =~ s/\{(\w+)\}/$thing{$1}/gr;

	# the shim answers it alone, whatever the query
	next if $pattern eq '/actuator/health/liveness';
	for my $case ([ 'nothing=1', 'UNKNOWN_PARAMETER', 'nothing' ], [ 'nothing', 'UNKNOWN_PARAMETER', 'nothing' ], [ 'a=%zz', 'INVALID_PARAMETER', 'a' ])
	{
		my ($query, $code, $name) = @$case;
		my $answer = $shim->http($method => "$path?$query", { token => $path =~ m{^/manage} ? $root : $user, $method eq 'GET' ? () : (json => {}) });
		my $error = $answer->{json}{errors}[0];

		is("$answer->{status} $error->{code} $error->{source}{parameter}", "400 $code $name", "$method $pattern?$query") or diag $answer->{body};
	}
}

for my $route (grep { $_->[0] ne 'GET' } @routes)
{
	my ($method, $pattern) = @$route;
	my $path = $pattern =~ s/\{(\w+)\}/$thing{$1}/gr;
	my $token = $path =~ m{^/manage} ? $root : $user;
	my $ask = sub { my ($json) = @_; $shim->http($method => $path, { token => $token, json => $json }) };

	# it would end the session that the others need
	if ($pattern eq '/auth/logout')
	{
		is($shim->http($method => $path, { json => { nothing => 1 } })->{status}, 204, "$method $pattern takes all");
		next;
	}
	my $answer = $ask->({ nothing => 1 });
	my ($error) = grep { $_->{code} eq 'UNKNOWN_FIELD' } @{ $answer->{json}{errors} // [] };

	is($answer->{status}, 400, "$method $pattern") or diag $answer->{body};
	is($error && $error->{source}{pointer}, '/nothing', 'names the member');
	is($ask->([])->{json}{errors}[0]{code}, 'INVALID_DOCUMENT', 'and takes no array');
}

# What the body has is wrong whether there is what the address names or not;
# values are looked at for what is there.
my $nowhere = '00000000-0000-4000-8000-000000000000';
my %required;

for my $route (grep { $_->[0] ne 'GET' && $_->[1] =~ /\{/ } @routes)
{
	my ($method, $pattern) = @$route;
	my $token = $pattern =~ m{^/manage} ? $root : $user;

	for my $nobody ($nowhere, 'nobody')
	{
		my %paths = (($pattern =~ m{^/auth} ? () : ('no tenant' => $pattern =~ s/\{(\w+)\}/$1 eq 'id' ? $nobody : $thing{$1}/egr)),
			($pattern =~ /\{(?!id\})/ ? ('nothing in it' => $pattern =~ s/\{(\w+)\}/$1 eq 'id' ? $tenant : $nobody/egr) : ()));

		for my $name (sort keys %paths)
		{
			my $ask = sub { my ($json) = @_; $shim->http($method => $paths{$name}, { token => $token, json => $json }) };
			my $answer = $ask->({ nothing => 1 });
			my $wrong = grep { $_->{status} ne '400' } @{ $answer->{json}{errors} };

			is("$answer->{status} $wrong " . ($answer->{json}{errors}[0]{source}{pointer} // 'nowhere'), '400 0 /nothing', "$method $pattern, $name ($nobody): the member");
			is($ask->([])->{json}{errors}[0]{code}, 'INVALID_DOCUMENT', 'an array');
			$answer = $ask->({});
			$required{"$method $pattern"} = 1 if $answer->{status} == 400;
			like("$answer->{status} $answer->{json}{errors}[0]{code}", qr/^(?:404 NOT_FOUND|400 REQUIRED)$/, 'no member');
		}
	}
}
is(join(', ', sort keys %required), join(', ', map { "POST /manage/tenants/{id}/$_" } qw(invites service-accounts users))
	. ', PUT /manage/tenants/{id}/users/{uid}/roles', 'members that have to be there are missed first');
for my $case (
	[ 400, PATCH => "/manage/tenants/$nowhere", { name => 1 } ], [ 404, PATCH => "/manage/tenants/$nowhere", { name => '' } ],
	[ 400, PATCH => "$base/users/$nowhere", { status => [] } ], [ 404, PATCH => "$base/users/$nowhere", { status => 'GONE' } ],
	[ 400, PUT => "/manage/tenants/$nowhere/settings/personal-api-keys", { enabled => 'yes' } ],
	[ 404, POST => "/manage/tenants/$nowhere/service-accounts", { name => '' } ])
{
	my ($status, $method, $path, $json) = @$case;
	my $answer = $shim->http($method => $path, { token => $root, json => $json });

	is("$answer->{status} " . scalar @{ $answer->{json}{errors} }, "$status 1", "$method $path with " . ($status == 400 ? 'another type' : 'a bad value'));
}

is(state_of(), $before, 'nothing has changed');

my $nested = $shim->http(POST => '/manage/tenants', { token => $root, json => { name => 'n', slug => 'n', admin => { username => 'n', nothing => 1 } } });
is("$nested->{status} $nested->{json}{errors}[0]{source}{pointer}", '400 /admin/nothing', 'a member of a member');

# A body without members says nothing
my $rotate = "$base/service-accounts/$thing{accountId}/rotate-secret";
is($shim->http(POST => $rotate, { token => $root, json => {} })->{status}, 200, 'an empty object where no body is needed');
is($shim->http(POST => $rotate, { token => $root })->{status}, 200, 'as none');

done_testing;
