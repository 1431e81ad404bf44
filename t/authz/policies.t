# Policies where they count: what is read, what is written, and that what is
# hidden answers as what does not exist.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/policies');
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);

sub caller_of
{
	my ($tenant, $name, $roles, $attributes) = @_;
	my $user = $shim->user($tenant, $name, $roles, securityAttributes => $attributes);

	return (EntityApi::Test::Cases->new($shim, $user, '/api/v1'), $user);
}

my ($north, $ann) = caller_of($ours, 'ann', ['Clerk'], { region => 'north', level => 3 });
my ($low) = caller_of($ours, 'low', ['Clerk'], { region => 'north', level => 1 });
my ($south) = caller_of($ours, 'sue', ['Clerk'], { region => 'south', level => 3 });
my ($bare) = caller_of($ours, 'bare', ['Clerk'], {});
my ($auditor) = caller_of($ours, 'aud', ['Auditor'], { region => 'north', level => 9 });
my ($foreign) = caller_of($theirs, 'tom', ['Clerk'], { region => 'north', level => 3 });
my $admin_user = $shim->user($ours, 'admin', []);
$cluster->psql("insert into entityapi.tenant_admin values ('$ours', '$admin_user->{id}')");
my $admin = EntityApi::Test::Cases->new($shim, $shim->login('admin', $admin_user->{password}), '/api/v1');

sub made
{
	my ($cases, $type, $attributes, $relationships) = @_;

	return $cases->good(201, POST => "/$type",
		data => { type => $type, attributes => $attributes,
			$relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub id_of { return { type => $_[0]{type}, id => $_[0]{id} } }

sub status_of
{
	my ($cases, $method, $target, %options) = @_;
	return $cases->call($method, $target, %options)->{status};
}

sub change
{
	my ($data, $attributes, $version) = @_;

	return (PATCH => "/$data->{type}/$data->{id}",
		data => { type => $data->{type}, id => $data->{id}, attributes => $attributes },
		headers => { 'If-Match' => qq("$version") });
}

my $desk = made($north, desks => { name => 'one' });
my $open = made($north, cases => { title => 'open', region => 'north', level => 2 }, { desk => { data => id_of($desk) } });
my $hard = made($admin, cases => { title => 'hard', region => 'north', level => 5 }, { desk => { data => id_of($desk) } });
my $away = made($south, cases => { title => 'away', region => 'south', level => 2 }, { desk => { data => id_of($desk) } });
my $none = made($admin, cases => { title => 'none' }, { desk => { data => id_of($desk) } });
my $label = made($north, labels => { name => 'seen' });
my $veiled = made($admin, labels => { name => 'veiled', hidden => JSON::PP::true });
$admin->good(204, POST => "/cases/$open->{id}/relationships/labels", data => [ id_of($label), id_of($veiled) ]);

sub titles
{
	my ($cases, $query) = @_;
	my $answer = $cases->good(200, GET => '/cases?sort=title' . ($query // ''))->{json};

	return join ' ', $answer->{meta}{pagination}{totalRecords}, map { $_->{attributes}{title} } @{ $answer->{data} };
}

# -------- reading --------

is(titles($north), '2 hard open', 'a list and its total');
is(titles($south), '1 away', 'of another region');
is(titles($bare), '0', 'without the attribute nothing');
is(titles($admin), '4 away hard none open', 'a TenantAdmin passes policies');
is(titles($foreign), '0', 'another tenant');
is(titles($north, '&filter=level=gt=2'), '1 hard', 'with a filter');
is(titles($north, '&filter=desk.cases.title==away'), '0', 'a path crosses visible rows only');
is(titles($south, '&filter=desk.cases.title==away'), '1 away', 'that is, those of the caller');
is(titles($north, '&page[size]=1'), '2 hard', 'the count of a full page');

my $answer = $north->good(200, GET => "/desks/$desk->{id}?include=cases")->{json};
is(join(' ', sort map { $_->{attributes}{title} } @{ $answer->{included} }), 'hard open', 'includes');
is(scalar @{ $answer->{data}{relationships}{cases}{data} }, 2, 'and linkage');
is(scalar @{ $south->good(200, GET => "/desks/$desk->{id}/relationships/cases")->{json}{data} }, 1, 'linkage by itself');
is($south->good(200, GET => "/desks/$desk->{id}/cases")->{json}{meta}{pagination}{totalRecords}, 1, 'related resources');
is(scalar @{ $north->good(200, GET => "/cases/$open->{id}?include=labels")->{json}{included} }, 1, 'many-to-many');
is(scalar @{ $north->good(200, GET => "/cases/$open->{id}")->{json}{data}{relationships}{labels}{data} }, 1, 'and its linkage');

my $note = made($south, notes => { text => 'of away' }, { case => { data => id_of($away) } });
is(status_of($north, GET => "/notes/$note->{id}"), 404, 'a path in a policy sees what the caller may');
is(status_of($south, GET => "/notes/$note->{id}"), 200, 'and no less');

# -------- hidden, foreign, absent: one answer --------

my $nobody = '01980000-0000-7000-8000-000000000000';
my %about = (
	GET => {}, HEAD => {}, DELETE => { headers => { 'If-Match' => '"0"' } },
	PATCH => { headers => { 'If-Match' => '"0"' } });

sub bare_answer
{
	my ($answer) = @_;
	my %headers = %{ $answer->{headers} };

	delete @headers{qw(x-request-id date)};
	(my $body = $answer->{body}) =~ s/"id":"[^"]*"/"id":""/;
	return join "\n", $answer->{status}, $body, map { "$_: " . (ref $headers{$_} ? join ', ', @{ $headers{$_} } : $headers{$_}) } sort grep { !/length/ || $answer->{status} != 404 || 1 } keys %headers;
}

for my $method (sort keys %about)
{
	for my $suffix ('', '/relationships/desk', '/desk', '/relationships/labels')
	{
		next if $suffix =~ m{^/desk} && $method !~ /GET|HEAD/ || $suffix =~ /desk/ && $method eq 'DELETE';
		my %seen;

		for my $id ($away->{id}, $nobody)
		{
			my %options = %{ $about{$method} };

			$options{data} = $suffix eq '' ? { type => 'cases', id => $id, attributes => { level => 1 } }
			  : $suffix =~ /labels/ ? [] : undef if $method eq 'PATCH';
			$options{data} = [] if $method eq 'DELETE' && $suffix;
			$seen{ bare_answer($north->call($method, "/cases/$id$suffix", %options)) }++;
			$seen{ bare_answer($foreign->call($method, "/cases/$id$suffix", %options)) }++;
		}
		is(scalar keys %seen, 1, "$method $suffix: hidden, foreign and absent answer alike") or diag explain \%seen;
		like((keys %seen)[0], qr/^404/, 'with 404');
	}
}
is(status_of($north, PATCH => "/notes/$nobody", data => { type => 'notes', id => $nobody }), 404, 'a note that is not there');
is(status_of($north, PATCH => "/cases/$open->{id}/relationships/desk", data => { type => 'desks', id => $nobody },
	headers => { 'If-Match' => '"1"' }), 404, 'a target that is not there');

# -------- writing --------

sub make_status
{
	my ($cases, $attributes) = @_;
	return status_of($cases, POST => '/cases', data => { type => 'cases', attributes => { title => 'x' . rand, %$attributes } });
}

is(make_status($north, { region => 'north', level => 3 }), 201, 'a create that the policy allows');
is(make_status($north, { region => 'north', level => 4 }), 403, 'one it does not');
is(make_status($north, { region => 'south', level => 1 }), 403, 'not(!=) with another value');
is(make_status($north, { level => 1 }), 403, 'not(!=) with null');
is(make_status($north, { region => 'north' }), 403, 'a comparison with null');
is(make_status($bare, { region => 'north', level => 1 }), 403, 'without the attribute');
is(make_status($bare, { bad => 1 }), 403, 'which comes before the values');
is(make_status($north, { bad => 1 }), 400, 'an unsound input is not judged');
is(make_status($auditor, { region => 'north', level => 1 }), 403, 'no role');

is(status_of($north, change($hard, { title => 'mine' }, 0)), 403, 'visible, but not to be changed');
is(status_of($north, change($hard, { title => 'mine' }, 7)), 412, 'the precondition comes before');
is(status_of($north, change($hard, { bad => 1 }, 0)), 403, 'and validation after');
is(status_of($south, change($hard, { title => 'mine' }, 0)), 404, 'what is hidden is not there');
is(status_of($north, change($open, { level => 4 }, 1)), 403, 'no move out of the update policy');
is(status_of($north, change($open, { level => undef }, 1)), 403, 'by null neither');
is(status_of($north, change($open, { level => 3 }, 1)), 200, 'a move within it');
is(status_of($north, change($open, { title => 'open 2' }, 2)), 200, 'an update that leaves the status');
is(status_of($north, change($open, { status => 'GONE' }, 3)), 403, 'a step that is not allowed');
is(status_of($north, DELETE => "/cases/$open->{id}", headers => { 'If-Match' => '"3"' }), 403, 'a delete that is not allowed');
is(status_of($north, change($open, { status => 'CLOSED' }, 3)), 200, 'a step that is');
is(status_of($north, change($open, { status => 'OPEN' }, 4)), 403, 'and no way back');
is(status_of($low, change($open, { title => 'low' }, 4)), 403, 'a lower level');
is(status_of($north, change($open, { secret => 'x' }, 4)), 400, 'what is neither read nor written is unknown');
is(status_of($auditor, change($open, { secret => 'x' }, 4)), 200, 'who has the role sets it');
is($auditor->good(200, GET => "/cases/$open->{id}")->{json}{data}{attributes}{secret}, 'x', 'and reads it');
ok(!exists $north->good(200, GET => "/cases/$open->{id}")->{json}{data}{attributes}{secret}, 'others do not');
is(status_of($north, GET => '/cases?filter=secret==x'), 400, 'nor filter by it');
is(status_of($north, GET => '/cases?sort=secret'), 400, 'nor sort');
is(status_of($north, GET => '/desks?filter=cases.secret==x'), 400, 'nor by a path');
is(status_of($admin, change($hard, { status => 'GONE' }, 0)), 200, 'a TenantAdmin passes');

# relationships
is(status_of($north, PATCH => "/cases/$hard->{id}/relationships/desk", data => undef, headers => { 'If-Match' => '"1"' }), 403,
	'a to-one of a row that may not be changed');
is(status_of($north, POST => "/cases/$hard->{id}/relationships/labels", data => [ id_of($label) ]), 403, 'a to-many');
is(status_of($north, POST => "/labels/$label->{id}/relationships/cases", data => [ id_of($hard) ]), 403, 'the same from its other side');
is(status_of($north, POST => "/desks/$desk->{id}/relationships/cases", data => [ id_of($away) ]), 404, 'a hidden target');
$north->good(204, PATCH => "/cases/$open->{id}/relationships/labels", data => [], headers => { 'If-Match' => '"5"' });
is(scalar @{ $admin->good(200, GET => "/cases/$open->{id}/relationships/labels")->{json}{data} }, 1, 'hidden members stay');

my $other = made($north, desks => { name => 'two' });
is(status_of($north, POST => "/desks/$other->{id}/relationships/cases", data => [ id_of($hard) ]), 403,
	'the column of a row that may not be changed');
is(status_of($north, PATCH => "/desks/$desk->{id}/relationships/cases", data => []), 403, 'nor be cleared');

# -------- atomic --------

sub atomic
{
	my ($cases, @operations) = @_;
	my $media = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

	return $cases->call(POST => '/operations', json => { 'atomic:operations' => \@operations },
		headers => { 'Content-Type' => $media, Accept => $media });
}

my $good = { op => 'add', data => { type => 'cases', attributes => { title => 'a1', region => 'north', level => 1 } } };
my $bad = { op => 'add', data => { type => 'cases', attributes => { title => 'a2', region => 'south', level => 1 } } };
my $refused = atomic($north, $good, $bad);
is($refused->{status}, 403, 'an operation that a policy refuses');
like($refused->{json}{errors}[0]{source}{pointer}, qr{^/atomic:operations/1}, 'is named');
is(titles($north, '&filter=title==a1'), '0', 'and nothing is left of the others');
is(atomic($north, $good)->{status}, 200, 'alone it is allowed');
is(atomic($north, { op => 'update', data => { type => 'cases', id => $hard->{id}, attributes => { title => 'b' } } })->{status}, 403, 'update');
is(atomic($north, { op => 'remove', ref => { type => 'cases', id => $hard->{id} } })->{status}, 200, 'remove');
is(atomic($north, { op => 'update', data => { type => 'cases', id => $away->{id}, attributes => { title => 'b' } } })->{status}, 404, 'hidden');

# -------- #row --------

subtest 'one rule for all operations' => sub {
	my ($northern, $southern) = map { made($admin, desks => { name => $_, region => $_ }) } qw(north south);
	my $memo = made($north, memos => { region => 'north', text => 'a' });
	my $path = "/memos/$memo->{id}";
	my $patch = sub { (PATCH => $path, data => { %{ id_of($memo) }, attributes => { @_ } }) };
	my $new = sub { (POST => "/$_[0]", data => { type => $_[0], $_[2] ? (relationships => { desk => { data => id_of($_[2]) } }) : (attributes => $_[1]) }) };

	is(status_of($north, $new->(memos => { region => 'south' })), 403, 'create: what comes in');
	is(status_of($north, $new->(memos => { text => 'no region' })), 403, 'or does not');
	is(status_of($north, $new->(reminders => {}, $northern)), 201, 'along a path');
	is(status_of($north, $new->(reminders => {}, $southern)), 403, 'to a row that it is false for');
	is($south->good(200, GET => '/reminders')->{json}{meta}{pagination}{totalRecords}, 0, 'read: what is stored');
	is(status_of($south, GET => $path), 404, 'alone, too');
	is($north->good(200, GET => '/memos')->{json}{meta}{pagination}{totalRecords}, 1, 'by whom it may be');
	is(status_of($north, $patch->(text => 'b')), 200, 'update');
	is(status_of($north, $patch->(region => 'south')), 403, 'not out of what it allows');
	$admin->good(200, $patch->(region => 'south'));
	is(status_of($north, $patch->(region => 'north')), 404, 'nor into it');
	is(status_of($north, DELETE => $path), 404, 'delete');
	is(status_of($south, DELETE => $path), 204, 'by whom it may be');
};

# -------- a false policy costs nothing --------

my $own = made($north, notes => { text => 'own', author => $ann->{id} }, { case => { data => id_of($open) } });
is(status_of($north, PATCH => "/notes/$own->{id}", data => { type => 'notes', id => $own->{id}, attributes => { text => 'x' } }), 200,
	'a uuid against the id of the caller');
is(status_of($low, PATCH => "/notes/$own->{id}", data => { type => 'notes', id => $own->{id}, attributes => { text => 'y' } }), 403,
	'of somebody else');
is(status_of($north, PATCH => "/notes/$own->{id}", data => { type => 'notes', id => $own->{id}, attributes => { author => undef } }), 403,
	'who may not give it away');

done_testing;
