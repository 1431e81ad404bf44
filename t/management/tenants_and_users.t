# Tenants, their users and administrators, and the state of migrations: each
# endpoint's answers, who may ask, and that what it does holds at once.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($acme, $other) = map { $shim->tenant($_)->{id} } qw(acme other);
my $users = "/manage/tenants/$acme/users";
my $nowhere = '00000000-0000-4000-8000-000000000000';
my ($ann, $boss) = map { $shim->user($acme, $_, ['Viewer']) } qw(ann boss);
my $stranger = $shim->user($other, 'stranger', []);
my $soon = '2099-01-01T00:00:00Z';

sub as
{
	my ($token, $method, $target, $json) = @_;
	return $shim->http($method => $target, { token => $token, $json ? (json => $json) : () });
}

sub super { return as($root, @_) }
sub me { return as($_[0], GET => '/auth/me')->{status} }
sub with_key { return $shim->http(GET => '/auth/me', { headers => { 'x-api-key' => $_[0]{key} } })->{status} }

sub key
{
	my ($token) = @_;
	return $shim->must(201, POST => '/auth/me/api-keys', { token => $token, json => { name => 'k', expiresAt => $soon } });
}

# The pointers, or parameters, of all faults
sub refused
{
	my ($name, $answer, $status, @places) = @_;
	is($answer->{status}, $status, $name) or diag $answer->{body};
	my @found = map { $_->{source}{pointer} // $_->{source}{parameter} // () } @{ $answer->{json}{errors} };
	is_deeply([ sort @found ], [ sort @places ], "$name: where") if @places;
	return;
}

sub audit
{
	my ($action) = @_;
	return $cluster->psql("select changes from entityapi.audit where action = '$action' and outcome = 'SUCCESS'"
		. ' order by at desc, id desc limit 1');
}

subtest 'TenantAdmin authority, given and taken' => sub {
	my $path = "/manage/tenants/$acme/tenant-admins/$boss->{id}";

	is(as($boss, GET => $users)->{status}, 403, 'not yet');
	is(super(POST => $path)->{status}, 204, 'granted');
	is(super(POST => $path)->{status}, 204, 'again');
	is(as($boss, GET => $users)->{status}, 200, 'on the next request');
	is(super(DELETE => $path)->{status}, 204, 'revoked');
	is(super(DELETE => $path)->{status}, 204, 'again');
	is(as($boss, GET => $users)->{status}, 403, 'on the next request');
	for my $id ($stranger->{id}, $nowhere, 'x')
	{
		refused("$_ of $id", super($_ => "/manage/tenants/$acme/tenant-admins/$id"), 404) for qw(POST DELETE);
	}
	is($cluster->psql('select count(*) from entityapi.tenant_admin'), 0, 'nobody is one');
	is(super(POST => $path)->{status}, 204, 'for what follows');
};

subtest 'who may do what' => sub {
	my $foreign = $shim->user($other, 'foreign', []);
	is(super(POST => "/manage/tenants/$other/tenant-admins/$foreign->{id}")->{status}, 204, 'a foreign TenantAdmin');
	my $robot = $shim->must(201, POST => "/manage/tenants/$acme/service-accounts",
		{ token => $root, json => { name => 'robot' } });
	my $token = $shim->must(200, POST => '/auth/token',
		{ json => { clientId => $robot->{clientId}, clientSecret => $robot->{clientSecret} } });

	# a personal key carries none of its owner's authority
	my %caller = (
		anonymous => {}, user => { token => $ann }, robot => { token => $token },
		own => { token => $boss }, foreign => { token => $foreign }, super => { token => $root },
		key => { headers => { 'x-api-key' => key($boss)->{key} } });
	my $victim = sub { $shim->must(201, POST => $users, { token => $root, json => { username => 'v' . rand() } })->{id} };

	# method, path, body, and whether a TenantAdmin may
	for my $route (
		[ GET => '/manage/tenants', undef, 0 ], [ GET => '/manage/tenants/T', undef, 0 ],
		[ PATCH => '/manage/tenants/T', {}, 0 ], [ GET => '/manage/migrations/status', undef, 0 ],
		[ GET => '/manage/tenants/T/users', undef, 1 ], [ PATCH => '/manage/tenants/T/users/U', {}, 1 ],
		[ DELETE => '/manage/tenants/T/users/U', undef, 1 ],
		[ POST => '/manage/tenants/T/tenant-admins/U', undef, 0 ], [ DELETE => '/manage/tenants/T/tenant-admins/U', undef, 0 ])
	{
		my ($method, $path, $json, $delegated) = @$route;
		my $success = qr/^20[04]$/;

		for my $who (sort keys %caller)
		{
			my $user = $path =~ /U/ ? $victim->() : '';
			my $target = $path =~ s/T/$acme/r =~ s/U$/$user/r;
			my $expected = $who eq 'anonymous' ? qr/^401$/
			  : $who eq 'super' || $delegated && $who eq 'own' ? $success : qr/^403$/;
			like($shim->http($method => $target, { %{ $caller{$who} }, $json ? (json => $json) : () })->{status},
				$expected, "$method $path by $who");
			next if $path !~ /T/;

			# an invented tenant answers as a foreign one does
			my ($theirs, $none) = map { $shim->http($method => $path =~ s/T/$_/r =~ s/U$/$user/r,
					{ %{ $caller{$who} }, $json ? (json => $json) : () })->{status} } $other, $nowhere;
			is($theirs, $none, "$method $path by $who: foreign and invented") if $who !~ /super|foreign/;
			is($none, 404, "$method $path: no such tenant") if $who eq 'super';
		}
	}
};

subtest 'tenants' => sub {
	my $made = $shim->must(201, POST => '/manage/tenants', { token => $root, json => { name => 'New One', slug => 'new-one',
				admin => { username => 'first', temporaryPassword => 'temporary-word-1' } } });
	my $path = "/manage/tenants/$made->{id}";
	is_deeply([ sort keys %$made ], [qw(admin attributes createdAt id name slug status)], 'made with an administrator');
	is_deeply([ @{ $made->{admin} }{qw(username isTenantAdmin)} ], [ 'first', JSON::PP::true ], 'who is in the answer');
	delete $made->{admin};
	is_deeply($shim->must(200, GET => $path, { token => $root }), $made, 'shown');

	my $patched = $shim->must(200, PATCH => $path,
		{ token => $root, json => { name => 'Other Name', attributes => { a => 1, b => { c => 'x', d => 2 } } } });
	is_deeply($patched, { %$made, name => 'Other Name', attributes => { a => 1, b => { c => 'x', d => 2 } } }, 'changed');
	$patched = $shim->must(200, PATCH => $path, { token => $root, json => { attributes => { a => undef, b => { d => 3 } } } });
	is_deeply($patched->{attributes}, { b => { c => 'x', d => 3 } }, 'attributes are merged');
	is(audit('TENANT_UPDATED'), '{"attributes":[{"a": 1, "b": {"c": "x", "d": 2}},{"b": {"c": "x", "d": 3}}]}', 'in the log');
	is_deeply($shim->must(200, PATCH => $path, { token => $root, json => {} }), $patched, 'nothing to change');
	is($shim->must(200, PATCH => $path, { token => $root, json => { name => 'Other Name' } })->{name}, 'Other Name', 'its own name');

	refused('a name that is taken', super(PATCH => $path, { name => 'Acme' }), 409, '/name');
	refused('the same on creation', super(POST => '/manage/tenants', { name => 'Acme', slug => 'acme' }), 409, '/name', '/slug');
	refused('unknown members', super(PATCH => $path, { slug => 'x', id => $nowhere }), 400, '/slug', '/id');
	refused('bad values', super(PATCH => $path, { name => '', status => 'GONE', attributes => { x => 'y' x 5000 } }), 400,
		'/name', '/status', '/attributes');
	refused('wrong types', super(PATCH => $path, { name => 1, attributes => [] }), 400, '/name', '/attributes');
	refused('no object', super(PATCH => $path, [1]), 400);
	refused('no uuid', super(GET => '/manage/tenants/x'), 404);
	is_deeply($shim->must(200, GET => $path, { token => $root }), $patched, 'no refusal left anything');
};

subtest 'lists' => sub {
	my $names = sub { my ($query) = @_; my $page = $shim->must(200, GET => "/manage/tenants?$query", { token => $root });
		return (join(' ', map { $_->{slug} } @{ $page->{data} }), $page->{meta}{pagination}) };
	my @meta = (totalPages => 2, totalRecords => 3);

	is_deeply([ $names->('sort=slug&page[size]=2') ], [ 'acme new-one', { number => 1, size => 2, @meta } ], 'first page');
	is_deeply([ $names->('sort=slug&page[size]=2&page[number]=2') ], [ 'other', { number => 2, size => 2, @meta } ], 'last');
	is_deeply([ $names->('sort=slug&page[size]=2&page[number]=3') ], [ '', { number => 3, size => 2, @meta } ], 'beyond');
	is_deeply([ $names->('sort=-slug&filter=slug=in=(acme,other)&page[size]=2') ],
		[ 'other acme', { number => 1, size => 2, totalPages => 1, totalRecords => 2 } ], 'a full page, filtered');
	is(($names->('filter=name==Nobody'))[0], '', 'none');
	refused($_, super(GET => "/manage/tenants?$_"), 400) for
	  qw(filter=secret==x filter=name=gt filter=attributes==x sort=attributes sort=nope page[size]=101 page[size]=0 page[number]=0 x=y);

	my $list = $shim->must(200, GET => "$users?filter=username=in=(ann,boss,stranger)&sort=username", { token => $boss });
	is(join(' ', map { $_->{username} } @{ $list->{data} }), 'ann boss', 'users of the tenant only');
	is_deeply([ sort keys %{ $list->{data}[0] } ], [ sort qw(id username email status roles profile securityAttributes
			  passwordChangeRequired isTenantAdmin createdAt lastLoginAt) ], 'the record, with no secret');
	my $admins = $shim->must(200, GET => "$users?filter=isTenantAdmin==true;username=in=(ann,boss)", { token => $boss });
	is(join(' ', map { $_->{username} } @{ $admins->{data} }), 'boss', 'by authority');
	is($shim->must(200, GET => "$users?filter=username=in=(ann,boss);roles==Viewer&page[size]=1&page[number]=2",
			{ token => $boss })->{meta}{pagination}{totalRecords}, 2, 'by role');
	refused("filter by $_", as($boss, GET => "$users?filter=$_==x"), 400) for qw(passwordHash username_key kind);
};

subtest 'users' => sub {
	my $eve = $shim->user($acme, 'eve', ['Viewer'], email => 'eve@example.com', profile => { a => 1, b => { c => 2 } },
		securityAttributes => { department => 'sales', region => 'north' });
	my $path = "$users/$eve->{id}";

	my $changed = $shim->must(200, PATCH => $path, { token => $boss, json => { email => 'e@example.com',
				profile => { a => undef, b => { d => 3 } }, securityAttributes => { region => undef, department => 'finance' } } });
	is_deeply([ @$changed{qw(email profile securityAttributes roles status)} ],
		[ 'e@example.com', { b => { c => 2, d => 3 } }, { department => 'finance' }, ['Viewer'], 'ACTIVE' ], 'changed, merged');
	is_deeply($shim->must(200, GET => '/auth/me', { token => $eve })->{securityAttributes}, { department => 'finance' }, 'at once');
	like(audit('USER_UPDATED'), qr/^\{"email":\["eve\@example.com","e\@example.com"\],"securityAttributes":\[/, 'in the log');
	is($shim->must(200, PATCH => $path, { token => $boss, json => { email => undef } })->{email}, undef, 'no e-mail any more');
	refused('bad values', as($boss, PATCH => $path, { email => 'x', status => 'GONE', temporaryPassword => 'short',
				securityAttributes => { department => 'kitchen', rank => 1 }, profile => { x => 'y' x 5000 } }), 400,
		qw(/email /status /temporaryPassword /securityAttributes/department /securityAttributes/rank /profile));
	refused('unknown members', as($boss, PATCH => $path, { username => 'x', roles => [], isTenantAdmin => JSON::PP::true }),
		400, qw(/username /roles /isTenantAdmin));
	for my $case (
		[ 'stauts', 'status', PATCH => $path, { stauts => 'ACTIVE' } ],
		[ 'secret', undef,    PATCH => $path, { secret => 'ACTIVE' } ],
		[ 'user_name', 'username', GET => "$users?sort=user_name" ],
		[ 'stats', 'status', GET => "$users?filter=stats==ACTIVE" ],
		[ 'secret', undef, GET => "$users?filter=secret==x" ])
	{
		my ($name, $meant, @request) = @$case;
		my ($hint) = as($boss, @request)->{json}{errors}[0]{detail} =~ /\(did you mean "(.*)"\?\)/;
		is($hint, $meant, "$request[0] with $name: what was meant");
	}
	refused('a user of another tenant', as($boss, $_ => "$users/$stranger->{id}", $_ eq 'PATCH' ? {} : ()), 404) for qw(PATCH DELETE);
	refused('nobody', as($boss, $_ => "$users/$nowhere", $_ eq 'PATCH' ? {} : ()), 404) for qw(PATCH DELETE);

	subtest 'disabled' => sub {
		my $key = key($eve);
		is(with_key($key), 200, 'a key works');
		is($shim->must(200, PATCH => $path, { token => $boss, json => { status => 'DISABLED' } })->{status}, 'DISABLED', 'disabled');
		is(me($eve), 401, 'no token');
		is(with_key($key), 401, 'no key');
		is($shim->http(POST => '/auth/refresh', { json => { refreshToken => $eve->{refreshToken} } })->{status}, 401, 'no refresh');
		is($shim->http(POST => '/auth/login', { json => { username => 'eve', password => $eve->{password} } })->{status}, 401, 'no login');
		$shim->must(200, PATCH => $path, { token => $boss, json => { status => 'ACTIVE' } });
		is(me($eve), 401, 'active again, the old session stays ended');
		is(me($shim->login('eve', $eve->{password})), 200, 'with a new one');
	};

	subtest 'a temporary password' => sub {
		my $session = $shim->login('eve', $eve->{password});
		my $answer = as($boss, PATCH => $path, { temporaryPassword => 'temporary-word-3' });
		is($answer->{json}{passwordChangeRequired}, JSON::PP::true, 'has to be changed');
		unlike($answer->{body}, qr/temporary-word/, 'is not shown');
		unlike(audit('USER_UPDATED'), qr/word-3|\$/, 'nor logged');
		is(me($session), 401, 'ends the session');
		is($shim->http(POST => '/auth/login', { json => { username => 'eve', password => $eve->{password} } })->{status}, 401,
			'the old one is gone');
		my $forced = $shim->login('eve', 'temporary-word-3');
		is(me($forced), 403, 'only to change it');
		my $tokens = $shim->must(200, POST => '/auth/change-password', { token => $forced,
				json => { currentPassword => 'temporary-word-3', newPassword => 'plainly-for-a-test-4' } });
		is(me($tokens), 200, 'then all is open');
		$eve = { %$eve, %$tokens };
	};

	subtest 'deleted' => sub {
		my $key = key($eve);
		is(as($boss, DELETE => $path)->{status}, 204, 'deleted');
		is(me($eve), 401, 'no token');
		is(with_key($key), 401, 'no key');
		refused('again', as($boss, DELETE => $path), 404);
		is($shim->must(200, GET => "$users?filter=username==eve", { token => $boss })->{meta}{pagination}{totalRecords}, 0, 'not listed');
		my $again = $shim->user($acme, 'eve', []);
		$shim->must(204, POST => "/manage/tenants/$acme/tenant-admins/$again->{id}", { token => $root });
		is(as($again, DELETE => "$users/$again->{id}")->{status}, 204, 'the name was free, and one may go');
		is(as($again, GET => $users)->{status}, 401, 'for good');
	};
};

subtest 'suspended' => sub {
	my $key = key($boss);
	my $path = "/manage/tenants/$acme";

	is($shim->must(200, PATCH => $path, { token => $root, json => { status => 'SUSPENDED' } })->{status}, 'SUSPENDED', 'suspended');
	is(audit('TENANT_UPDATED'), '{"status":["ACTIVE","SUSPENDED"]}', 'in the log');
	is(me($_), 401, 'no token') for $ann, $boss;
	is(with_key($key), 401, 'no key');
	is(me($stranger), 200, 'others go on');
	is(super(GET => $users)->{status}, 200, 'a SuperAdmin still looks after it');
	$shim->must(200, PATCH => $path, { token => $root, json => { status => 'ACTIVE' } });
	is(me($_), 200, 'active again') for $ann, $boss;
	is(with_key($key), 200, 'the key, too');
};

subtest 'renamed at once' => sub {
	my @ids = map { $shim->tenant("race$_")->{id} } 1 .. 4;
	my @pids = map {
		my $id = $_;
		my $pid = fork // die;
		if (!$pid)
		{
			my $status = super(PATCH => "/manage/tenants/$id", { name => 'Coveted' })->{status};
			require POSIX;
			POSIX::_exit($status == 200 ? 1 : $status == 409 ? 2 : 3);
		}
		$pid;
	} @ids;
	my %count;
	for (@pids) { waitpid $_, 0; $count{ $? >> 8 }++ }
	is_deeply(\%count, { 1 => 1, 2 => 3 }, 'one has the name, 409 for the others');
};

subtest 'migrations' => sub {
	my $status = $shim->must(200, GET => '/manage/migrations/status', { token => $root });
	my ($version, $revision, $checksum, $n) = split /\|/, $cluster->psql(
		'select e.extversion, r.revision, r.checksum, cardinality(r.statements) from entityapi.revision r, pg_extension e'
		  . " where extname = 'entityapi' order by revision desc limit 1");

	is_deeply([ @$status{qw(status extensionVersion manifestRevision applied pending)} ],
		[ 'UP_TO_DATE', $version, $revision + 0, $cluster->psql('select count(*) from entityapi.revision') + 0, [] ], 'all applied');
	is_deeply([ @{ $status->{revisions}[0] }{qw(revision checksum)}, scalar @{ $status->{revisions}[0]{statements} } ],
		[ $revision + 0, $checksum, $n + 0 ], 'the newest revision');
	cmp_ok($n, '>', 10, 'with its statements');
	like($status->{revisions}[0]{appliedAt}, qr/^20.*Z$/, 'and time');
	my @nodes = $cluster->nodes;
	$_->psql("update pg_extension set extversion = '0.9' where extname = 'entityapi'") for @nodes;
	$status = $shim->must(200, GET => '/manage/migrations/status', { token => $root });
	is_deeply([ @$status{qw(status extensionVersion)}, map { @$_{qw(status what statements)} } @{ $status->{pending} } ],
		[ 'PENDING', '0.9', 'PENDING', "extension 0.9 to $version", ['ALTER EXTENSION entityapi UPDATE'] ],
		'a library newer than the database');
	$_->psql("update pg_extension set extversion = '$version' where extname = 'entityapi'") for @nodes;
};

subtest 'one tenant only' => sub {
	my $single = EntityApi::Test->cluster;
	$single->psql("select count(*) from entityapi.apply_manifest('" . JSON::PP->new->canonical->encode([ {
				apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 's' },
				spec => { tenancy => 'SINGLE', schema => 'app' } } ]) . "')");
	my $alone = EntityApi::Test->shim($single);
	my $super = $alone->superadmin;
	my $id = $alone->must(200, GET => '/auth/me', { token => $super })->{tenantId};

	for my $route ([ GET => '' ], [ POST => '' ], [ GET => "/$id" ], [ PATCH => "/$id" ])
	{
		my ($method, $path) = @$route;
		is($alone->http($method => "/manage/tenants$path", { token => $super, $method eq 'GET' ? () : (json => {}) })->{status},
			404, "$method /manage/tenants" . ($path && '/{id}'));
	}
	my $user = $alone->user($id, 'only', []);
	is($alone->http(POST => "/manage/tenants/$id/tenant-admins/$user->{id}", { token => $super })->{status}, 204, 'an administrator');
	is($alone->must(200, GET => "/manage/tenants/$id/users", { token => $user })->{meta}{pagination}{totalRecords}, 1, 'of its users');
	is($alone->must(200, PATCH => "/manage/tenants/$id/users/$user->{id}", { token => $user, json => { email => 'a@b' } })->{email},
		'a@b', 'who may be changed');
	is($alone->http(GET => "/manage/tenants/$nowhere/users", { token => $super })->{status}, 404, 'there is no other');
	is($alone->must(200, GET => '/manage/migrations/status', { token => $super })->{status}, 'UP_TO_DATE', 'migrations');
};

done_testing;
