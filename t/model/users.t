# The accounts of a tenant as resources of the entity User: what is shown, to
# whom, what refers to them, and how they follow the accounts.

use strict;
use warnings;
use utf8;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;

sub entity
{
	my ($name, %spec) = @_;

	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => \%spec };
}

my %all = (Editor => [qw(create read update delete)]);

sub documents
{
	my (%user) = @_;

	return [
		{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {}, Reader => {}, Blind => {} } } },
		entity('User', accounts => $true, permissions => { Editor => ['read'], Reader => ['read'] },
			fields => { email => { readRoles => ['Editor'] }, %user }),
		entity('Desk', permissions => { %all, Reader => ['read'], Blind => ['create', 'read'] }, fields => {
				name   => { type => 'string' },
				owner  => { type => 'ref', target => 'User', onDelete => 'restrict' },
				helper => { type => 'ref', target => 'User', onDelete => 'setNull' },
				maker  => { type => 'ref', target => 'User', onDelete => 'setNull', default => { caller => 'id' }, readOnly => $true } }),
		entity('Locker', permissions => {%all}, fields => {
				keeper => { type => 'ref', target => 'User', relation => 'OneToOne', onDelete => 'cascade' } }) ];
}

sub apply
{
	my ($documents) = @_;

	open my $out, '>', "$folder/m.json" or die "m.json: $!\n";
	print $out JSON::PP->new->canonical->encode($documents);
	close $out or die "m.json: $!\n";
	return $cluster->apply("$folder/m.json");
}

# -------- accounts that were there before --------

my @before = @{ documents() };
apply([ $before[0] ]);
my $shim = EntityApi::Test->shim($cluster);
my $here = $shim->tenant('here')->{id};
my $there = $shim->tenant('there')->{id};
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($here, 'ed', ['Editor']), '/api/v1');
my $reader = $editor->as($shim->user($here, 'rea', ['Reader']));
my $blind = $editor->as($shim->user($here, 'bli', ['Blind']));
my $stranger = $editor->as($shim->user($there, 'stranger', ['Editor']));
my $super = $editor->as($shim->superadmin);

apply(documents(
		timezone => { type => 'string', maxLength => 10, from => 'profile.zone' },
		floor    => { type => 'integer', from => 'profile.floor', readRoles => ['Editor'] },
		since    => { type => 'date', from => 'profile.since' }));

sub users
{
	my ($who, $query) = @_;

	return $who->good(200, GET => '/users' . ($query // ''))->{json}{data};
}

my %id = map { $_->{attributes}{username} => $_->{id} } @{ users($editor) };
is_deeply([ sort grep { !/admin/ } keys %id ], [qw(bli ed rea)], 'those of the tenant');
my $me = $editor->good(200, GET => '/auth/me')->{json};
is($id{ed}, $me->{userId} // $me->{id}, 'the id is that of the account');
is_deeply([ map { $_->{attributes}{username} } @{ users($stranger, '?filter=kind==USER&sort=username') } ],
	[ sort map { $_->{attributes}{username} } @{ users($stranger) } ], 'of the other tenant its own');
ok(!grep({ $_->{id} eq $id{ed} } @{ users($stranger) }), 'and none of ours');
$stranger->refused('nor by its id', 404, 'NOT_FOUND', undef, GET => "/users/$id{ed}");
$blind->refused('who may not read them', 403, 'FORBIDDEN', undef, GET => '/users');

# -------- what is shown --------

my $one = $editor->good(200, GET => "/users/$id{ed}")->{json}{data};
is_deeply([ sort keys %{ $one->{attributes} } ], [qw(createdAt displayName email floor kind since timezone username)], 'to whom readRoles name');
is($one->{type}, 'users', 'the type');
like($one->{attributes}{createdAt}, qr/^\d{4}-.*Z$/, 'since when');
is_deeply([ sort keys %{ $reader->good(200, GET => "/users/$id{ed}")->{json}{data}{attributes} } ],
	[qw(createdAt displayName kind since timezone username)], 'to others');
$reader->refused('what is hidden is no field', 400, 'INVALID_FILTER', undef, GET => '/users?filter=email==a');
$editor->refused('nor is the status', 400, 'INVALID_SORT', undef, GET => '/users?sort=status');
my $admin = $super->call(GET => "/users/$id{ed}", headers => { 'X-Tenant-Id' => $here });
is($admin->{json}{data}{attributes}{status}, 'ACTIVE', 'an administrator sees it');

# -------- nothing is written there --------

for my $call ([ POST => '/users' ], [ PATCH => "/users/$id{ed}" ], [ DELETE => "/users/$id{ed}" ])
{
	my $answer = $editor->refused("@$call", 405, 'METHOD_NOT_ALLOWED', undef, @$call,
		$call->[0] eq 'DELETE' ? () : (data => { type => 'users', id => $id{ed}, attributes => { username => 'x' } }));
	is($answer->{headers}{allow}, 'GET, HEAD', 'only read');
	is($super->call(@$call, headers => { 'X-Tenant-Id' => $here })->{status}, 405, 'by nobody') if $call->[0] eq 'DELETE';
}
my $operation = $editor->call(POST => '/operations',
	headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"', Accept => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
	json => { 'atomic:operations' => [ { op => 'remove', ref => { type => 'users', id => $id{rea} } } ] });
is("$operation->{status} $operation->{json}{errors}[0]{code}", '403 FORBIDDEN', 'nor by an operation');

# -------- they follow the accounts --------

my $rename = $reader->good(200, PATCH => '/auth/me', json => { profile => { displayName => 'Réa', zone => 'UTC', floor => 3, since => '2024-02-29' } });
is_deeply([ map { $editor->good(200, GET => "/users/$id{rea}")->{json}{data}{attributes}{$_} } qw(displayName timezone floor since) ],
	[ 'Réa', 'UTC', 3, '2024-02-29' ], 'a profile');
$reader->good(200, PATCH => '/auth/me', json => { profile => { displayName => 5, zone => 'x' x 11, floor => 1.5, since => '2024-02-30' } });
is_deeply([ map { $editor->good(200, GET => "/users/$id{rea}")->{json}{data}{attributes}{$_} } qw(displayName timezone floor since) ],
	[ (undef) x 4 ], 'what is of another type, or too long, is not there');
$shim->http(PATCH => "/manage/tenants/$here/users/$id{rea}", { token => $shim->superadmin, json => { email => 'r@e.example', status => 'DISABLED' } });
is($editor->good(200, GET => "/users/$id{rea}")->{json}{data}{attributes}{email}, 'r@e.example', 'an address');
is($super->call(GET => '/users?filter=status==DISABLED', headers => { 'X-Tenant-Id' => $here })->{json}{data}[0]{id}, $id{rea}, 'a status');
$cluster->psql("update entityapi.account set username = 'rea2', username_key = 'rea2' where id = '$id{rea}'");
is($editor->good(200, GET => "/users/$id{rea}")->{json}{data}{attributes}{username}, 'rea2', 'plain SQL');
my $service = $shim->http(POST => "/manage/tenants/$here/service-accounts", { token => $shim->superadmin, json => { name => 'robot', roles => ['Editor'] } });
is(scalar @{ users($editor, '?filter=kind==SERVICE_ACCOUNT') }, $service->{status} == 201 ? 1 : 'no service account', 'a service account')
  or diag $service->{body};

# -------- references --------

my $desk = $editor->good(201, POST => '/desks', data => { type => 'desks', attributes => { name => 'a' }, relationships => {
			owner => { data => { type => 'users', id => $id{rea} } }, helper => { data => { type => 'users', id => $id{bli} } } } })->{json}{data};
is($desk->{relationships}{maker}{data}{id}, $id{ed}, 'the caller is the default');
$editor->refused('whom nobody else sets', 400, 'READ_ONLY', [ pointer => '/data/relationships/maker' ], POST => '/desks',
	data => { type => 'desks', attributes => { name => 'a' }, relationships => { maker => { data => { type => 'users', id => $id{rea} } } } });
my ($foreign) = map { $_->{id} } @{ users($stranger) };
$editor->refused('a user of another tenant', 404, 'RELATED_NOT_FOUND', undef, POST => '/desks',
	data => { type => 'desks', relationships => { owner => { data => { type => 'users', id => $foreign } } } });
is($blind->good(201, POST => '/desks', data => { type => 'desks', attributes => { name => 'b' } })->{json}{data}{relationships}{maker}, undef,
	'who sees no users sees no linkage to them');
is($cluster->psql("select maker_id from app.desk where name = 'b'"), $id{bli}, 'and is its maker all the same');
is_deeply([ sort map { $_->{attributes}{username} } @{ $editor->good(200, GET => "/desks/$desk->{id}?include=owner,maker")->{json}{included} } ],
	[qw(ed rea2)], 'included');
is(scalar @{ $editor->good(200, GET => '/desks?filter=owner.username==rea2&sort=maker.username')->{json}{data} }, 1, 'filtered and sorted by');
$super->call(POST => '/desks', headers => { 'X-Tenant-Id' => $here }, data => { type => 'desks', attributes => { name => 'c' } });
is($cluster->psql("select count(*) from app.desk where name = 'c' and maker_id is null"), 1, 'a SuperAdmin is no user of a tenant');

# -------- users who go --------

sub leave { my ($who) = @_; return $shim->http(DELETE => "/manage/tenants/$here/users/$id{$who}", { token => $shim->superadmin }) }

my $held = leave('rea');
is("$held->{status} $held->{json}{errors}[0]{code}", '409 STILL_REFERENCED', 'restrict holds a user');
is($editor->good(200, GET => "/users/$id{rea}")->{json}{data}{id}, $id{rea}, 'who is there still');
my $locker = $editor->good(201, POST => '/lockers', data => { type => 'lockers', relationships => { keeper => { data => { type => 'users', id => $id{bli} } } } })->{json}{data};
is(leave('bli')->{status}, 204, 'another one goes');
$editor->refused('is no resource any more', 404, 'NOT_FOUND', undef, GET => "/users/$id{bli}");
is($editor->good(200, GET => "/desks/$desk->{id}")->{json}{data}{relationships}{helper}{data}, undef, 'setNull lets go of him');
$editor->refused('cascade takes along', 404, 'NOT_FOUND', undef, GET => "/lockers/$locker->{id}");
my $log = $shim->http(GET => '/manage/audit?page[size]=10', { token => $shim->superadmin, headers => { 'X-Tenant-Id' => $here } })->{json}{data};
my %seen = map { ($_->{attributes} // $_)->{action} => 1 } @$log;
is_deeply([ map { $seen{$_} ? 1 : 0 } qw(USER_DELETED ENTITY_DELETE) ], [ 1, 1 ], 'both are in the log') or diag join ' ', sort keys %seen;
is($cluster->psql('select count(*) from app."user"'), $cluster->psql('select count(*) from entityapi.account where tenant_id is not null'), 'a row for each account');

# -------- fields that come and go --------

apply(documents(nick => { type => 'text', from => 'profile.displayName' }));
is_deeply([ sort keys %{ $editor->good(200, GET => "/users/$id{ed}")->{json}{data}{attributes} } ],
	[qw(createdAt displayName email kind nick username)], 'nothing is lost with a copy, so nothing is asked');
$editor->good(200, PATCH => '/auth/me', json => { profile => { displayName => 'Ed' } });
is($editor->good(200, GET => "/users/$id{ed}")->{json}{data}{attributes}{nick}, 'Ed', 'a new one');

# -------- readers of plain SQL --------

$cluster->psql("create role ann login in role entityapi_reader; select entityapi.map_role('ann', 'ed')");
sub as_ann { return EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo . ' user=ann', '-c', $_[0] ]) }
is(as_ann(q{select count(*) from app."user" where display_name = 'Ed'})->{out}, "1\n", 'see them') or diag as_ann('select 1')->{err};
like(as_ann('select email from app."user"')->{err}, qr/permission denied/, 'but no column that only some read');

# -------- the end of a tenant --------

is($shim->http(DELETE => "/manage/tenants/$here", { token => $shim->superadmin })->{status}, 204, 'a tenant goes');
$cluster->psql('select entityapi.sweep();' x 40);
is($cluster->psql(qq{select count(*) from app."user" where tenant_id = '$here'}), 0, 'and its users');

done_testing();
