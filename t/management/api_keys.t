# Personal API keys: what may be made, what they open, and when they stop.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme');
my $other = $shim->tenant('other');
my $manage = "/manage/tenants/$tenant->{id}";
my $soon = '2099-01-01T00:00:00Z';
my %attributes = (department => 'finance', clearance => 2);
my $ann = $shim->user($tenant->{id}, 'ann', [ 'Viewer', 'Accountant' ],
	securityAttributes => \%attributes);
my $boss = $shim->user($tenant->{id}, 'boss', ['Viewer']);
$cluster->psql("insert into entityapi.tenant_admin values ('$tenant->{id}', '$boss->{id}')");

sub create
{
	my ($token, %members) = @_;
	return $shim->http(POST => '/auth/me/api-keys',
		{ token => $token, json => { name => 'k', expiresAt => $soon, %members } });
}

sub with_key
{
	my ($key, $method, $target, %options) = @_;
	return $shim->http($method => $target,
		{ %options, headers => { 'x-api-key' => ref $key ? $key->{key} : $key } });
}

sub use_key { return with_key(shift, GET => '/api/v1/products')->{status} }

sub faults
{
	my ($answer) = @_;
	return join ' ', $answer->{status},
	  map { $_->{source}{pointer} // $_->{code} } @{ $answer->{json}{errors} // [] };
}

my $key = create($ann, name => ' laptop ', domainRoles => ['Viewer'],
	securityAttributes => { department => 'finance' });

subtest 'made' => sub {
	is($key->{status}, 201, 'created') or diag $key->{body};
	$key = $key->{json};
	like($key->{key}, qr/^eap_[0-9A-Za-z]{71}$/, 'the key');
	is_deeply([ sort keys %$key ], [ sort qw(id name status expiresAt createdAt lastUsedAt
			  domainRoles securityAttributes key) ], 'the record');
	is_deeply([ @$key{qw(name status expiresAt lastUsedAt)} ],
		[ 'laptop', 'ACTIVE', $soon, undef ], 'its members');

	my $list = $shim->must(200, GET => '/auth/me/api-keys', { token => $ann });
	is(scalar @{ $list->{data} }, 1, 'listed');
	is_deeply($list->{meta}{pagination},
		{ number => 1, size => 20, totalPages => 1, totalRecords => 1 }, 'with totals');
	ok(!exists $list->{data}[0]{key}, 'without the key');
	is($cluster->psql("select count(*) from entityapi.personal_api_key k where k::text like '%"
			  . substr($key->{key}, 26, 43) . "%'"), 0, 'which is not stored');
};

subtest 'refused' => sub {
	is(faults(create($ann, domainRoles => ['Sales'])), '400 /domainRoles/0', 'a foreign role');
	is(faults(create($ann, domainRoles => [ 'Viewer', 'Viewer', 1 ])),
		'400 /domainRoles/1 /domainRoles/2', 'a role twice, no role');
	is(faults(create($ann, securityAttributes => { department => 'sales', clearance => 2 })),
		'400 /securityAttributes/department', 'another value');
	is(faults(create($ann, securityAttributes => { region => 'north' })),
		'400 /securityAttributes/region', 'a foreign attribute');
	is(faults(create($ann, expiresAt => undef)), '400 ', 'no end');
	is(faults(create($ann, expiresAt => $_)), '400 /expiresAt', "end $_")
	  for '2020-01-01T00:00:00Z', '2099-01-01', '2099-01-01T00:00:00', 'infinity',
	  '9999-12-31T00:00:00Z';
	is(faults(create($ann, name => '')), '400 /name', 'no name');
	is(faults(create($ann, tenantId => 'x')), '400 /tenantId', 'a further member');
};

subtest 'what it opens' => sub {
	is(use_key($key), 200, 'what its role may read');
	my $me = with_key($key, GET => '/auth/me')->{json};
	is_deeply([ @$me{qw(userId accountKind roles)}, $me->{securityAttributes}{department} ],
		[ $ann->{id}, 'PERSONAL_API_KEY', ['Viewer'], 'finance' ], 'who it is');
	my $body = { data => { type => 'products', attributes => {} } };
	is(with_key($key, POST => '/api/v1/products', json => $body)->{status}, 403, 'no more than that');
	is(with_key($key, POST => '/auth/me/api-keys',
			json => { name => 'x', expiresAt => $soon })->{status}, 403, 'no further key');
	is(with_key($key, POST => '/auth/change-password',
			json => { currentPassword => 'x', newPassword => 'y' })->{status}, 403, 'no password');
	is(with_key($key, PATCH => '/auth/me', json => { profile => {} })->{status}, 403, 'no profile');
	is(with_key($key, GET => '/auth/me/api-keys')->{status}, 200, 'the list of keys');

	my $bad = $key->{key};
	substr($bad, 40, 1) = substr($bad, 40, 1) eq 'a' ? 'b' : 'a';
	is(use_key($_), 401, "not $_") for $bad, 'eap_x', 'x', $ann->{refreshToken};
	is($shim->http(GET => '/auth/me', { token => $key->{key} })->{status}, 401, 'not as a token');

	for my $admin ($boss, $root)
	{
		my $made = create($admin)->{json};
		is(with_key($made, GET => "$manage/invites")->{status}, 403, 'no platform authority');
		is(with_key($made, GET => '/manage/settings/personal-api-keys')->{status}, 403, 'anywhere');
		is(use_key($made), 403, 'nor by bypass');
	}
};

subtest 'rights taken and given back' => sub {
	my $roles = sub {
		$shim->must(200, PUT => "$manage/users/$ann->{id}/roles",
			{ token => $root, json => { roles => [@_] } });
	};
	my $attribute = sub {
		$cluster->psql('update entityapi.account set security_attributes ='
			  . " jsonb_build_object('department', '$_[0]', 'clearance', 2) where id = '$ann->{id}'");
	};

	$roles->('Accountant');
	is(use_key($key), 401, 'without the role');
	$roles->('Viewer', 'Accountant');
	is(use_key($key), 200, 'and back');
	$attribute->('sales');
	is(use_key($key), 401, 'with another value');
	$attribute->('finance');
	is(use_key($key), 200, 'and back');
	$cluster->psql("update entityapi.account set password_change_required = true where id = '$ann->{id}'");
	is(use_key($key), 403, 'during a forced change');
	is(with_key($key, POST => '/auth/change-password', json => {})->{status}, 403, 'which it cannot make');
	$cluster->psql("update entityapi.account set password_change_required = false, status = 'DISABLED'"
		  . " where id = '$ann->{id}'");
	is(use_key($key), 401, 'of a disabled owner');
	$cluster->psql("update entityapi.account set status = 'ACTIVE' where id = '$ann->{id}'");
	$cluster->psql("update entityapi.tenant set status = 'SUSPENDED' where id = '$tenant->{id}'");
	is(use_key($key), 401, 'in a suspended tenant');
	$cluster->psql("update entityapi.tenant set status = 'ACTIVE' where id = '$tenant->{id}'");
	is(use_key($key), 200, 'and back');
};

subtest 'last use' => sub {
	my $seen = sub {
		return $shim->must(200, GET => '/auth/me/api-keys', { token => $ann })->{data}[0]{lastUsedAt};
	};

	$cluster->psql('update entityapi.personal_api_key set last_used_at = null');
	use_key($key);
	my $first = $seen->();
	ok(defined $first, 'noted');
	use_key($key);
	is($seen->(), $first, 'not again within a minute');
	$cluster->psql("update entityapi.personal_api_key set last_used_at = now() - interval '61 s'");
	use_key($key);
	isnt($seen->(), $first, 'but later');

	$cluster->psql("update entityapi.personal_api_key set last_used_at = now() - interval '1 day'");
	my $before = $seen->();
	$cluster->set(default_transaction_read_only => 'on');
	is(use_key($key), 200, 'a read-only database still answers');
	$cluster->set('default_transaction_read_only');
	is($seen->(), $before, 'and notes nothing');
};

subtest 'settings' => sub {
	my $put = sub {
		my ($target, $json, $token) = @_;
		return $shim->http(PUT => $target, { token => $token // $root, json => $json });
	};
	my ($own, $global) = ("$manage/settings/personal-api-keys", '/manage/settings/personal-api-keys');
	my $false = JSON::PP::false;
	my $true = JSON::PP::true;

	is_deeply($shim->must(200, GET => $global, { token => $root }),
		{ enabled => $true, allowNonExpiring => $false }, 'defaults');
	is_deeply(
		$shim->must(200, GET => $own, { token => $boss }),
		{   enabled => undef, allowNonExpiring => undef,
			effective => { enabled => $true, allowNonExpiring => $false } }, 'inherited');

	is($put->($global, { enabled => $false })->{status}, 200, 'off for all');
	is(use_key($key), 401, 'use');
	is(create($ann)->{status}, 403, 'issue');
	is_deeply(
		$put->($own, { enabled => $true, allowNonExpiring => undef }, $boss)->{json},
		{   enabled => $true, allowNonExpiring => undef,
			effective => { enabled => $true, allowNonExpiring => $false } }, 'on for the tenant');
	is(use_key($key), 200, 'use');
	is($put->($global, { allowNonExpiring => $true })->{json}{enabled}, $true, 'PUT replaces');
	my $endless = create($ann, expiresAt => undef);
	is($endless->{status}, 201, 'without an end');
	is($endless->{json}{expiresAt}, undef, 'which is null');
	$put->($own, { enabled => $false });
	is(use_key($key), 401, 'off for the tenant');
	$put->($own, {});
	is(use_key($key), 200, 'inherited again');

	is($put->($own, { enabled => 1 })->{status}, 400, 'no boolean');
	is($put->($own, { on => $true })->{status}, 400, 'an unknown member');
	is($put->($global, {}, $boss)->{status}, 403, 'global ones are the SuperAdmin\'s');
	is($put->("/manage/tenants/$other->{id}/settings/personal-api-keys", {}, $boss)->{status},
		403, 'and another tenant\'s are not his');
};

subtest 'limit' => sub {
	my $bob = $shim->user($tenant->{id}, 'bob', []);
	my @made = map { create($bob)->{json} } 1 .. 48;
	my %statuses;

	is(scalar(grep { defined $_->{key} } @made), 48, 'many');
	$statuses{$_}++ for map { create($bob)->{status} } 1 .. 4;
	is_deeply(\%statuses, { 201 => 2, 400 => 2 }, '50 at most');
	$shim->must(200, POST => "/auth/me/api-keys/$made[0]{id}/disable", { token => $bob });
	is(create($bob)->{status}, 201, 'active ones');
};

subtest 'lists of the tenant' => sub {
	my $get = sub {
		my ($query) = @_;
		my $answer = $shim->http(GET => "$manage/personal-api-keys?$query", { token => $boss });
		return $answer->{status} if $answer->{status} != 200;
		return join ' ', $answer->{json}{meta}{pagination}{totalRecords},
		  map { $_->{name} } @{ $answer->{json}{data} };
	};

	is($get->('filter=ownerUsername==ann;name==laptop'), '1 laptop', 'by owner and name');
	is($get->('filter=domainRoles==Viewer;ownerUsername==ann'), '1 laptop', 'by role');
	is($get->('filter=domainRoles=in=(Sales,Viewer)'), '1 laptop', 'by roles');
	is($get->('filter=domainRoles!=Viewer;ownerUsername==ann'), '1 k', 'by another');
	is($get->("filter=id==$key->{id}"), '1 laptop', 'by id');
	is($get->("filter=ownerId==$ann->{id}&sort=-name"), '2 laptop k', 'sorted');
	is($get->("filter=ownerId==$ann->{id}&sort=name&page[size]=1&page[number]=2"), '2 laptop', 'paged');
	is($get->('filter=expiresAt=isnull=true'), '1 k', 'null');
	is($get->('filter=expiresAt=gt=2098-01-01;name=like=lap%25'), '1 laptop', 'by time and pattern');
	is($get->('filter=status==DISABLED'), '1 k', 'by state');
	my $typo = $shim->http(GET => "$manage/personal-api-keys?filter=name==k;status=in=(ACTIVE,DISABELD)", { token => $boss });
	is_deeply([ @{ $typo->{json}{errors}[0] }{qw(status code detail)} ], [ '400', 'INVALID_FILTER',
		'The filter is wrong at position 27: the value of "status" must be one of ACTIVE, DISABLED, REVOKED, EXPIRED (did you mean "DISABLED"?).' ], 'a mistyped one');
	is($get->($_), 400, $_)
	  for 'filter=key==x', 'filter=secretHash=isnull=true', 'filter=name==', 'filter=id==x',
	  'filter=status=gt', 'filter=securityAttributes==x', 'filter=name=like=%5C', 'sort=token_id',
	  'sort=domainRoles', 'page[size]=101', 'where=x', 'filter=expiresAt==infinity',
	  'filter=name.x==y';
	is($shim->http(GET => "$manage/personal-api-keys", { token => $ann })->{status}, 403, 'for admins');
};

subtest 'ends' => sub {
	my $make = sub { create($ann, domainRoles => ['Viewer'], @_)->{json} };
	my $disable = sub {
		$shim->http(POST => "/auth/me/api-keys/$_[0]{id}/disable", { token => $_[1] // $ann });
	};
	my $revoke = sub {
		$shim->http(POST => "$manage/personal-api-keys/$_[0]{id}/revoke", { token => $_[1] // $boss });
	};
	my ($one, $two) = ($make->(), $make->());

	is($disable->($one, $boss)->{status}, 404, 'of somebody else');
	is($disable->($one)->{json}{status}, 'DISABLED', 'disabled');
	is(use_key($one), 401, 'is out');
	is($disable->($one)->{json}{status}, 'DISABLED', 'again');
	my $revoked = $revoke->($two);
	is($revoked->{json}{status}, 'REVOKED', 'revoked') or diag $revoked->{body};
	is($revoked->{json}{ownerUsername}, 'ann', 'with its owner');
	is(use_key($two), 401, 'is out');
	is($disable->($two)->{json}{status}, 'REVOKED', 'for good');
	is($revoke->($one, $ann)->{status}, 403, 'by an administrator only');
	is($shim->http(POST => "/manage/tenants/$other->{id}/personal-api-keys/$one->{id}/revoke",
			{ token => $root })->{status}, 404, 'of the tenant');
	is($revoke->($_)->{status}, 404, 'there is none')
	  for { id => 'x' }, { id => '00000000-0000-7000-8000-000000000000' };

	my $short = $make->(expiresAt => '2090-01-01T00:00:00Z');
	is(use_key($short), 200, 'before its end');
	$cluster->set('entityapi.clock' => '2090-01-01 00:00:00Z');
	is(use_key($short), 401, 'at its end');
	is(use_key($key), 200, 'not that of another');
	$cluster->set('entityapi.clock');
	$cluster->psql("update entityapi.personal_api_key set expires_at = now() where id = '$short->{id}'");
	my $list = $shim->must(200, GET => '/auth/me/api-keys?filter=status==EXPIRED', { token => $ann });
	is_deeply([ map { $_->{id} } @{ $list->{data} } ], [ $short->{id} ], 'is EXPIRED');
};

done_testing();
