# Every route of every entity, by every kind of caller, on rows of the own and
# of another tenant: the answers follow from the manifests.
#
# ENTITYAPI_SEED repeats a run; a failure prints its seed.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
srand $seed;

my @roles = qw(R0 R1 R2);
my %entity;

for my $i (0 .. 11)
{
	my %permissions;

	for my $role (rand() < 0.3 ? '*' : (), grep { rand() < 0.7 } @roles)
	{
		# what is common to all tenants is written by roles that only a
		# SuperAdmin assigns, and by nobody else
		my @operations = grep { rand() < 0.5 } $role eq '*' && $i % 4 == 3 ? qw(read history) : (qw(create read update delete history), $i % 2 ? 'restore' : ());
		$permissions{$role} = \@operations if @operations;
	}
	$entity{"Thing$i"} = { plural => "Things$i", type => "things$i", tenantScoped => $i % 4 != 3, softDelete => $i % 2, permissions => \%permissions };
}

my $manifest = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => { assignableBy => 'superAdmin' } } @roles } } },
	map { {
		kind => 'Entity', metadata => { name => $_ }, spec => {
			plural => $entity{$_}{plural}, permissions => $entity{$_}{permissions},
			tenantScoped => $entity{$_}{tenantScoped} ? JSON::PP::true : JSON::PP::false,
			softDelete => $entity{$_}{softDelete} ? JSON::PP::true : JSON::PP::false,
			fields => { name => { type => 'string' }, next => { type => 'ref', target => $_, relation => 'ManyToOne' } } } } } sort keys %entity ]);

my $cluster = EntityApi::Test->cluster;
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);

# -------- callers --------

my %caller = (
	anonymous => { roles => [] },
	none => { roles => [], token => $shim->user($ours, 'none', [])->{accessToken}, tenant => $ours },
	other => { roles => [@roles], token => $shim->user($theirs, 'other', [@roles])->{accessToken}, tenant => $theirs },
	super => { roles => [], super => 1, token => $shim->superadmin->{accessToken}, tenant => $ours, headers => { 'X-Tenant-Id' => $ours } },
	placeless => { roles => [], super => 1, token => $shim->superadmin->{accessToken} } );
$caller{$_} = { roles => [$_], token => $shim->user($ours, lc $_, [$_])->{accessToken}, tenant => $ours } for @roles;
my $admin = $shim->user($ours, 'admin', []);
$cluster->psql("insert into entityapi.tenant_admin values ('$ours', '$admin->{id}')");
$caller{admin} = { roles => [], admin => 1, token => $admin->{accessToken}, tenant => $ours };

# A service account stands for itself; a personal key for no more of its owner
# than the roles it carries, and never for a platform authority.
my $account = $shim->http(POST => "/manage/tenants/$ours/service-accounts",
	{ token => $shim->superadmin->{accessToken}, json => { name => 'robot', roles => ['R0'] } })->{json};
my $granted = $shim->http(POST => '/auth/token',
	{ json => { clientId => $account->{clientId}, clientSecret => $account->{clientSecret} } })->{json};
$caller{service} = { roles => ['R0'], token => $granted->{accessToken}, tenant => $ours };

sub key_of
{
	my ($token, @carried) = @_;

	return $shim->http(POST => '/auth/me/api-keys',
		{ token => $token, json => { name => 'key', domainRoles => \@carried, expiresAt => '2099-01-01T00:00:00Z' } })->{json}{key};
}

$caller{key} = { roles => ['R1'], key => key_of($caller{R1}{token}, 'R1'), tenant => $ours };
$caller{admin_key} = { roles => [], key => key_of($admin->{accessToken}), tenant => $ours };
for my $who (qw(key admin_key))
{
	like($caller{$who}{key}, qr/^eap_/, "$who is there");
	$caller{$who}{headers} = { 'X-API-Key' => $caller{$who}{key} };
}
ok($caller{service}{token}, 'service account is there');

sub allows
{
	my ($caller, $entity, $operation) = @_;

	return 1 if $caller->{super} || $caller->{admin} && $entity->{tenantScoped};
	for my $role ('*', @{ $caller->{roles} })
	{
		return 1 if grep { $_ eq $operation } @{ $entity->{permissions}{$role} // [] };
	}
	return 0;
}

# -------- what callers are told --------

# Sorted, as operations have an order of their own and fields that of a hash
sub said
{
	my ($entity, @operations) = @_;
	my %may = map { $_ => 1 } @operations;

	return {
		operations => [ sort @operations ],
		readable => $may{read} ? [qw(name next)] : [],
		writable => $may{create} || $may{update} ? [ 'name', $may{read} ? 'next' : () ] : [] };
}

for my $who (sort grep { $_ ne 'anonymous' } keys %caller)
{
	my $caller = $caller{$who};
	my %wanted;

	for my $entity (values %entity)
	{
		my @operations = grep { ($_ ne 'restore' || $entity->{softDelete}) && allows($caller, $entity, $_) }
		  qw(create read update delete restore history);
		$wanted{ $entity->{type} } = said($entity, @operations) if @operations;
	}
	my $told = $shim->must(200, GET => '/auth/me/permissions', { token => $caller->{token}, headers => $caller->{headers} });
	@$_ = sort @$_ for map { @$_{qw(operations readable writable)} } values %$told;
	is_deeply($told, \%wanted, "$who is told what roles allow") or diag "seed $seed";
}
is($shim->http(GET => '/auth/me/permissions')->{status}, 401, 'nobody is told nothing');

# -------- rows: made anew for each request that may end one --------

my $number = 0;
my $absent = '01980000-0000-7000-8000-000000000000';
my $inserted = '';

sub row
{
	my ($name, $tenant, $deleted) = @_;
	my $id = sprintf '018f0000-0000-7000-8000-%012d', ++$number;
	my $table = 'app.' . lc $name;

	$inserted .= $entity{$name}{tenantScoped}
	  ? "insert into $table (tenant_id, id, created_at, updated_at) values ('$tenant', '$id', now(), now());"
	  : "insert into $table (id, created_at, updated_at) values ('$id', now(), now());";
	$inserted .= "update $table set deleted_at = now() where id = '$id';" if $deleted;
	return $id;
}

# [ what, method, path, operation, body, answer when all is well ]
sub requests
{
	my ($type, $id) = @_;
	my $resource = { data => { type => $type, id => $id, attributes => { name => 'x' } } };

	return (
		[ 'get', GET => "/$id", 'read', undef, 200 ],
		[ 'head', HEAD => "/$id", 'read', undef, 200 ],
		[ 'history', GET => "/$id/history", 'history', undef, 200 ],
		[ 'history at a time', GET => "/$id/history?asOf=2099-01-01T00:00:00Z", 'read history', undef, 200 ],
		[ 'what was', GET => "/$id?asOf=2099-01-01T00:00:00Z", 'read history', undef, 200 ],
		[ 'linkage', GET => "/$id/relationships/next", 'read', undef, 200 ],
		[ 'related', GET => "/$id/next", 'read', undef, 200 ],
		[ 'patch', PATCH => "/$id", 'update', $resource, 200 ],
		[ 'relate', PATCH => "/$id/relationships/next", 'update', { data => undef }, 204 ],
		[ 'delete', DELETE => "/$id", 'delete', undef, 204 ],
		[ 'get deleted', GET => "/$id?show[deleted]=with", 'read restore', undef, 200 ],
		[ 'restore', POST => "/$id/restore", 'restore', undef, 200 ] );
}

my @cases;

sub expect
{
	my ($name, $caller, $operation, $scope, $well) = @_;
	my $entity = $entity{$name};

	return 401 unless $caller->{token} || $caller->{key};
	return 403 if grep { !allows($caller, $entity, $_) } split ' ', $operation;
	return 400 if $caller->{super} && !$caller->{tenant} && $entity->{tenantScoped};

	# a relationship whose target may not be read is not there
	return 404 if $scope eq 'related' && !allows($caller, $entity, 'read');
	return 404 if $scope eq 'absent';
	return $well;
}

for my $name (sort keys %entity)
{
	my ($entity, $type) = ($entity{$name}, $entity{$name}{type});

	for my $who (sort keys %caller)
	{
		my $caller = $caller{$who};

		push @cases, [ "$who lists what was deleted of $name", $who, GET => "/$type?show[deleted]=only", undef, expect($name, $caller, 'read restore', '', 200) ]
		  if $entity->{softDelete};
		push @cases, [ "$who lists $name", $who, GET => "/$type", undef, expect($name, $caller, 'read', '', 200) ],
		  [ "$who makes $name", $who, POST => "/$type", { data => { type => $type } }, expect($name, $caller, 'create', '', 201) ];
		for my $owner ($ours, $theirs, undef)
		{
			for my $n (0 .. ($entity->{softDelete} ? 11 : 9))
			{
				my $id = defined $owner ? row($name, $owner, $n > 9) : $absent;
				my ($what, $method, $path, $operation, $body, $well) = @{ (requests($type, $id))[$n] };
				my $visible = defined $owner && (!$entity->{tenantScoped} || ($caller->{tenant} // '') eq $owner);
				my $status = expect($name, $caller, $operation, '', $well);

				$status = 404 if $status == $well && $what =~ /relate|linkage/ && !allows($caller, $entity, 'read');
				$status = 404 if $status == $well && !$visible;
				push @cases, [ "$who: $what of $name in " . (!defined $owner ? 'nowhere' : $owner eq $ours ? 'ours' : 'theirs'),
					$who, $method, "/$type$path", $body, $status ];
			}
		}
	}
}
$cluster->psql($inserted);

my (@wrong, %seen);

for my $case (@cases)
{
	my ($what, $who, $method, $path, $body, $expected) = @$case;
	my $caller = $caller{$who};
	my $answer = $shim->http($method, "/api/v1$path",
		{ token => $caller->{token}, headers => { %{ $caller->{headers} // {} } }, $body ? (json => $body) : () });

	$seen{$expected}++;
	push @wrong, "$what ($method $path): $answer->{status}, not $expected" if $answer->{status} != $expected;
}
cmp_ok(scalar @cases, '>', 2000, 'cases');
cmp_ok($seen{$_} // 0, '>', 20, "some answer $_") for 200, 204, 401, 403, 404;
is(scalar @wrong, 0, "all of them answer as the manifests say (seed $seed)") or diag join "\n", @wrong[ 0 .. ($#wrong > 20 ? 20 : $#wrong) ];

done_testing;
