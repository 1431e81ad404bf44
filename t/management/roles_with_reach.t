# Roles that only a SuperAdmin assigns: no TenantAdmin gets at one, and nobody
# else writes what all tenants share.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $files = 0;

sub documents
{
	my (%change) = @_;

	return [
		{ kind => 'Service', metadata => { name => 's' }, spec => { tenantAdminBypass => JSON::PP::true, %{ $change{service} // {} } } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => $change{roles} // {
			Viewer => undef, Editor => { assignableBy => 'tenantAdmin' }, PlatformEditor => { description => 'Writes what all share', assignableBy => 'superAdmin' } } } },
		{ kind => 'Entity', metadata => { name => 'Country' }, spec => { plural => 'Countries', tenantScoped => JSON::PP::false,
			fields => $change{fields} // { name => { type => 'string' } },
			permissions => $change{permissions} // { '*' => ['read'], PlatformEditor => [qw(create update delete)] } } },
		{ kind => 'Entity', metadata => { name => 'Note' }, spec => { fields => { text => { type => 'string', writeRoles => ['Editor'] } },
			permissions => { '*' => [qw(create read update delete)] } } },
	];
}

sub file
{
	my $name = "$folder/" . ++$files . '.json';

	open my $out, '>', $name or die "$name: $!\n";
	print $out $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } } @{ documents(@_) } ]);
	close $out;
	return $name;
}

# A fault of the manifests, and where
sub faulty
{
	my ($name, $change, $place, $message) = @_;
	my $result = $cluster->try_apply('--dry-run', file(%$change));

	is($result->{status}, 1, "$name: refused");
	like($result->{err}, qr/: \Q$place\E: .*$message/, "$name: where and why");
}

my $off = JSON::PP::false;
subtest 'what the manifests may say' => sub {
	is($cluster->try_apply('--dry-run', file())->{status}, 0, 'as it should be');
	for my $operation (qw(create update delete))
	{
		faulty("everybody, $operation", { permissions => { '*' => [ 'read', $operation ] } }, '/spec/permissions/*', 'would write what all tenants share.*assignableBy: superAdmin');
		faulty("a role of tenants, $operation", { permissions => { Editor => [$operation] } }, '/spec/permissions/Editor', '"Editor" would write what all tenants share.*assignableBy: superAdmin');
	}
	faulty('a field', { fields => { name => { type => 'string', writeRoles => [qw(PlatformEditor Editor)] } } }, '/spec/fields/name/writeRoles/1', '"Editor" would write');
	faulty('a default role', { service => { defaultRoles => [qw(Viewer PlatformEditor)] } }, '/spec/defaultRoles/1', '"PlatformEditor" is assigned by the SuperAdmin only');
	faulty('somebody else', { roles => { PlatformEditor => { assignableBy => 'owner' } } }, '/spec/roles/PlatformEditor/assignableBy', 'tenantAdmin');
	is($cluster->try_apply('--dry-run', file(permissions => { '*' => ['read'], Editor => ['read'] }))->{status}, 0, 'reading is for all');
};

$cluster->apply(file());
my ($exported) = grep { $_->{kind} eq 'Roles' } @{ $json->decode($cluster->psql('select entityapi.export_manifest()')) };
is($exported->{spec}{roles}{PlatformEditor}{assignableBy}, 'superAdmin', 'exported');

my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $acme = $shim->tenant('acme')->{id};
my $globex = $shim->tenant('globex')->{id};
my $admin = $shim->user($acme, 'admin', ['Viewer']);
$cluster->psql("insert into entityapi.tenant_admin values ('$acme', '$admin->{id}')");
my $editor = $shim->user($acme, 'editor', ['PlatformEditor']);
my $viewer = $shim->user($acme, 'viewer', ['Viewer']);

sub manage
{
	my ($who, $method, $path, $body) = @_;

	return $shim->http($method => "/manage/tenants/$acme$path", { token => $who->{accessToken}, $body ? (json => $body) : () });
}

sub refused
{
	my ($name, $pointer, $answer) = @_;

	is($answer->{status}, 403, "$name: refused") or diag explain $answer;
	is($answer->{json}{errors}[0]{source}{pointer}, $pointer, "$name: where");
}

sub roles_of
{
	my ($user) = @_;

	return $cluster->psql("select roles from entityapi.account where id = '$user->{id}'");
}

sub put_roles { my ($who, $user, @roles) = @_; return manage($who, PUT => "/users/$user->{id}/roles", { roles => \@roles }) }

sub country
{
	my ($who) = @_;

	return $shim->http(POST => '/api/v1/countries', { token => $who->{accessToken},
		headers => { 'Content-Type' => 'application/vnd.api+json' }, body => '{"data":{"type":"countries","attributes":{"name":"x"}}}' })->{status};
}

subtest 'who writes what all share' => sub {
	is(country($root), 201, 'the SuperAdmin');
	is(country($editor), 201, 'whom he made an editor');
	is(country($viewer), 403, 'nobody else');
	is(country($admin), 403, 'no TenantAdmin, whatever he bypasses');
	is($shim->http(GET => '/auth/me', { token => $editor->{accessToken} })->{json}{roles}[0], 'PlatformEditor', 'he knows');
};

subtest 'assigning' => sub {
	refused('to oneself', '/roles/1', put_roles($admin, $admin, 'Viewer', 'PlatformEditor'));
	refused('to another', '/roles/0', put_roles($admin, $viewer, 'PlatformEditor'));
	refused('to a new user', '/roles/0', manage($admin, POST => '/users', { username => 'new', roles => ['PlatformEditor'] }));
	refused('by an invite', '/roles/1', manage($admin, POST => '/invites', { username => 'new', email => 'a@b', roles => [ 'Viewer', 'PlatformEditor' ] }));
	refused('to a service account', '/roles/0', manage($admin, POST => '/service-accounts', { name => 'robot', roles => ['PlatformEditor'] }));
	is(roles_of($admin), '{Viewer}', 'nothing was assigned');
	is($cluster->psql("select count(*) from entityapi.invite"), 0, 'nobody was invited');
	is(put_roles($admin, $viewer, 'Editor', 'Viewer')->{status}, 200, 'other roles are his to assign');
	is(country($admin), 403, 'he did not get there');
};

subtest 'whoever holds one' => sub {
	is(put_roles($admin, $editor, 'PlatformEditor', 'Viewer')->{status}, 200, 'keeps it while others come');
	is(country($editor), 201, 'and can still write');
	is(put_roles($admin, $editor, 'Viewer')->{status}, 200, 'it may be taken away');
	is(country($editor), 403, 'then he cannot');
	refused('given back', '/roles/0', put_roles($admin, $editor, 'PlatformEditor'));
	is(put_roles($root, $editor, 'PlatformEditor')->{status}, 200, 'but by a SuperAdmin');
};

subtest 'taking an account over' => sub {
	my %password = (temporaryPassword => 'a pass phrase known to the admin');

	refused('a password', '/temporaryPassword', manage($admin, PATCH => "/users/$editor->{id}", {%password}));
	refused('among other things', '/temporaryPassword', manage($admin, PATCH => "/users/$editor->{id}", { email => 'x@y', %password }));
	is($shim->http(POST => '/auth/login', { json => { username => 'editor', password => $password{temporaryPassword} } })->{status}, 401, 'it does not open');
	is($cluster->psql("select email from entityapi.account where id = '$editor->{id}'"), '', 'nothing was changed');
	is(country($editor), 201, 'nor was he logged out');
	is(manage($admin, PATCH => "/users/$viewer->{id}", {%password})->{status}, 200, 'of other users it is his to give');
	is(manage($admin, PATCH => "/users/$editor->{id}", { email => 'x@y' })->{status}, 200, 'what opens nothing may be changed');
	is(manage($root, PATCH => "/users/$editor->{id}", {%password})->{status}, 200, 'a SuperAdmin may');

	my $robot = manage($root, POST => '/service-accounts', { name => 'robot', roles => ['PlatformEditor'] })->{json};
	my $helper = manage($admin, POST => '/service-accounts', { name => 'helper', roles => ['Editor'] })->{json};
	my $rotated = manage($admin, POST => "/service-accounts/$robot->{id}/rotate-secret");
	refused('the secret of a service account', undef, $rotated);
	ok(!exists $rotated->{json}{clientSecret}, 'none is shown');
	is($shim->http(POST => '/auth/token', { json => { clientId => $robot->{clientId}, clientSecret => $robot->{clientSecret} } })->{status}, 200, 'the old one holds');
	is(manage($admin, POST => "/service-accounts/$helper->{id}/rotate-secret")->{status}, 200, 'of others it is his to make');
	is(manage($admin, POST => "/service-accounts/$robot->{id}/disable")->{status}, 200, 'he may end it');
	refused('and not wake it', undef, manage($admin, POST => "/service-accounts/$robot->{id}/rotate-secret"));
	is($cluster->psql("select status from entityapi.account where id = '$robot->{id}'"), 'DISABLED', 'it stays so');
	is(manage($root, POST => "/service-accounts/$robot->{id}/rotate-secret")->{status}, 200, 'a SuperAdmin may');
};

subtest 'a role that gets reach' => sub {
	my %roles = (roles => { Viewer => undef, Editor => { assignableBy => 'superAdmin' }, PlatformEditor => { assignableBy => 'superAdmin' } });

	is(put_roles($admin, $viewer, 'Editor')->{status}, 200, 'before');
	$cluster->apply(file(%roles));
	is(roles_of($viewer), '{Editor}', 'who has it keeps it');
	refused('no longer', '/roles/0', put_roles($admin, $admin, 'Editor'));
	refused('nor by his password', '/temporaryPassword', manage($admin, PATCH => "/users/$viewer->{id}", { temporaryPassword => 'a pass phrase known to the admin' }));
	$cluster->apply(file());
	is(put_roles($admin, $admin, 'Editor')->{status}, 200, 'and as it was');
};

subtest 'tenantAdminBypass' => sub {
	my $note = sub { return $shim->http(POST => '/api/v1/notes', { token => $admin->{accessToken}, json => { data => { type => 'notes', attributes => { text => 'x' } } } })->{status} };

	is(put_roles($root, $admin, 'Viewer')->{status}, 200, 'without the role that writes');
	is($note->(), 201, 'true: passes');
	$cluster->apply(file(service => { tenantAdminBypass => JSON::PP::false }));
	is($note->(), 403, 'false: does not');
	$cluster->apply(file());
	is(put_roles($root, $admin, 'Editor')->{status}, 200, 'as it was');
};

subtest 'declared before there was reach' => sub {
	# as an older version left it
	$cluster->psql(q{update entityapi.entity set definition = replace(definition, '"PlatformEditor":[', '"Editor":[') where name = 'Country';
		update entityapi.service set definition = replace(definition, ',"superRoles":["PlatformEditor"]', '')});
	$cluster->restart;
	is(country($admin), 201, 'works as it did');
	is($cluster->try_apply('--dry-run', file(permissions => { Editor => ['create'] }))->{status}, 1, 'until the next application, which tells');
};

done_testing;
