# The audit log shows an administrator no values that the API would not show
# him: it tells who did what.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/pay.json';
my %writes = map { $_ => [qw(create read update delete)] } qw(Payroll);

sub apply
{
	my ($bypass, $rates, @more) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => { tenantAdminBypass => $bypass } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Staff => {}, Payroll => { assignableBy => 'superAdmin' } } } },
		{ kind => 'Policy', metadata => { name => 'Own' }, spec => { expression => '#record.owner == #user.username' } },
		{ kind => 'Entity', metadata => { name => 'Salary' }, spec => { permissions => \%writes, fields => { amount => { type => 'integer' } } } },
		{ kind => 'Entity', metadata => { name => 'Person' }, spec => { plural => 'Persons', permissions => { %writes, Staff => ['read'] }, fields => {
			name => { type => 'string' },
			bonus => { type => 'integer', readRoles => ['Payroll'] },
			salary => { type => 'ref', target => 'Salary', relation => 'ManyToOne' },
			diary => { type => 'ref', target => 'Diary', relation => 'ManyToOne' } } } },
		{ kind => 'Entity', metadata => { name => 'Diary' }, spec => { permissions => { '*' => [qw(create read update delete)] }, policies => { Own => ['read'] },
			fields => { text => { type => 'string' }, owner => { type => 'string' } } } },
		($rates ? { kind => 'Entity', metadata => { name => 'Rate' }, spec => { tenantScoped => JSON::PP::false, permissions => \%writes,
			fields => { percent => { type => 'integer' } } } } : ()) ]);
	close $out or die "$manifests: $!\n";
	$cluster->apply($manifests, @more);
	return;
}

apply(JSON::PP::false, 1);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my $root = EntityApi::Test::Cases->new($shim, $shim->superadmin, '/api/v1');
my $clerk = $root->as($shim->user($tenant, 'clerk', ['Payroll']));
my $admin = $root->as($shim->user($tenant, 'admin', ['Staff']));
$root->good(204, POST => "/manage/tenants/$tenant/tenant-admins/" . $admin->good(200, GET => '/auth/me')->{json}{userId});

my %made;
sub make
{
	my ($type, $attributes, $relationships) = @_;

	$made{$type} = $clerk->good(201, POST => "/$type", data => { type => $type, attributes => $attributes,
		($relationships ? (relationships => $relationships) : ()) })->{json}{data}{id};
	return;
}

make(salaries => { amount => 4711 });
make(diaries => { text => 'dear diary', owner => 'clerk' });
make(persons => { name => 'Pat', bonus => 815 }, { map { $_->[0] => { data => { type => $_->[1], id => $made{$_->[1]} } } }
	[ salary => 'salaries' ], [ diary => 'diaries' ] });
make(rates => { percent => 42 });

sub seen
{
	my ($who, $type) = @_;
	my $list = $who->good(200, GET => "/manage/audit?filter=targetId==$made{$type};action==ENTITY_CREATE")->{json}{data};

	is(scalar @$list, 1, "$type: the record is there");
	return { map { $_ => $list->[0]{changes}{$_}[1] } keys %{ $list->[0]{changes} } };
}

my %all = (salaries => { amount => 4711 }, diaries => { text => 'dear diary', owner => 'clerk' }, rates => { percent => 42 },
	persons => { name => 'Pat', bonus => 815, salary => { type => 'salaries', id => $made{salaries} },
		diary => { type => 'diaries', id => $made{diaries} } });

$admin->refused("he cannot read them: $_", 403, undef, undef, GET => "/$_") for qw(salaries rates);
is_deeply(seen($admin, 'salaries'), {}, 'nor in the log');
is_deeply(seen($admin, 'rates'), {}, 'nor what is common to all tenants');
is_deeply(seen($admin, 'persons'), { name => 'Pat' }, 'of what he can read, the fields that are for him');
is_deeply(seen($admin, 'diaries'), {}, 'nothing of rows that a policy may hide');
is_deeply(seen($root, $_), $all{$_}, "a SuperAdmin sees all: $_") for sort keys %all;
like($admin->good(200, GET => '/manage/audit?filter=action==USER_CREATED')->{body}, qr/"roles":\[null,\["Payroll"\]\]/, 'accounts are his business');

apply(JSON::PP::true, 1);
is_deeply(seen($admin, $_), $all{$_}, "with the bypass: $_") for qw(salaries persons diaries);
is_deeply(seen($admin, 'rates'), {}, 'which ends at what is common to all');

# A session that knows nothing of the entities yet looks them up between rows
for my $direct ('on', 'off')
{
	my $answer = $cluster->psql("set entityapi.direct_scans = $direct; select status, body from entityapi.handle('GET', '/manage/audit',"
		. " jsonb_build_object('authorization', 'Bearer $admin->{token}{accessToken}'), null, null)");
	like($answer, qr/^200\|.*"amount":\[null,4711\]/s, "direct scans $direct: a list in a new session");
}

apply(JSON::PP::true, 0, '--allow-data-loss', 'Rate');
is_deeply(seen($admin, 'rates'), {}, 'nor does he when they are declared no more');
is_deeply(seen($root, 'rates'), $all{rates}, 'though a SuperAdmin does');

done_testing;
