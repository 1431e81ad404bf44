# What every row knows, if its entity says so: when it was made and changed,
# and by whom; and what a new one gets of the caller.

use strict;
use warnings;

use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;
my @all = qw(createdAt updatedAt createdBy updatedBy);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

sub entity
{
	my ($name, %spec) = @_;

	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name },
		spec => { permissions => { '*' => [qw(create read update delete)] }, %spec } };
}

sub to { my ($target, $relation, %more) = @_; return { type => 'ref', target => $target, relation => $relation, %more } }

sub documents
{
	my ($system, @more) = @_;

	return [
		{ apiVersion => 'entityapi/v1', kind => 'SecurityAttributes', metadata => { name => 's' }, spec => { attributes => {
					department => { type => 'string' }, level => { type => 'integer' }, night => { type => 'boolean' } } } },
		entity('User', accounts => $true, permissions => { '*' => ['read'] }),
		entity('Task', @$system ? (system => $system, indexes => [ ['createdAt'] ]) : (), softDelete => $true, fields => {
				title      => { type => 'string' },
				department => { type => 'string', maxLength => 10, default => { caller => 'securityAttributes.department' }, readOnly => $true },
				level      => { type => 'long', default => { caller => 'securityAttributes.level' } },
				night      => { type => 'boolean', default => { caller => 'securityAttributes.night' } },
				by         => { type => 'text', default => { caller => 'username' } },
				assignee   => to('User', 'ManyToOne', default => { caller => 'id' }, required => $true, onDelete => 'restrict'),
				notes      => to('Note', 'OneToMany', mappedBy => 'task'),
				tags       => to('Tag', 'ManyToMany') }),
		entity('Note', @$system ? (system => $system) : (), optimisticLocking => $true, fields => { task => to('Task', 'ManyToOne') }),
		{ apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => 'Own' }, spec => {
				expression => '#record.createdBy == #user.userId and #record.createdAt <= #now' } },
		entity('Memo', fields => { text => { type => 'text' } }, system => [qw(createdAt createdBy)],
			policies => { Own => [qw(read update)] }),
		entity('Tag', fields => { tasks => to('Task', 'ManyToMany', mappedBy => 'tags') }), @more ];
}

sub apply
{
	my ($documents) = @_;

	open my $out, '>', "$folder/m.json" or die "m.json: $!\n";
	print $out JSON::PP->new->canonical->encode($documents);
	close $out or die "m.json: $!\n";
	return $cluster->apply("$folder/m.json");
}

apply(documents([]));
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', [], securityAttributes => { department => 'design', level => 3, night => $true }), '/api/v1');
my $ben = $ann->as($shim->user($tenant, 'ben'));
my %id = map { $_->{attributes}{username} => $_->{id} } @{ $ann->good(200, GET => '/users')->{json}{data} };

sub task
{
	my ($who, $attributes, $relationships) = @_;

	return $who->good(201, POST => '/tasks', data => { type => 'tasks', attributes => $attributes // {}, relationships => $relationships // {} })->{json}{data};
}

sub now { return $ann->good(200, GET => "/tasks/$_[0]")->{json}{data} }
sub author { my ($row, $name) = @_; return $row->{relationships}{$name}{data}{id} // 'nobody' }

# Written after the other: the digits of a fraction that are zero are left out.
sub later { my ($one, $other, $name) = @_; return cmp_ok($one->{attributes}{updatedAt} =~ s/Z$//r, 'gt', $other->{attributes}{updatedAt} =~ s/Z$//r, $name) }

# -------- rows of before --------

my $old = task($ann, { title => 'old' });
is($old->{attributes}{createdAt}, undef, 'nothing that was not asked for');
my ($made) = $cluster->psql(q{select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') from app.task});
apply(documents(\@all));
is($cluster->psql('select count(*) from entityapi.pending_steps'), 0, 'turned on');
like(apply(documents(\@all)), qr/\S/, 'again');
is($cluster->psql('select max(cardinality(statements)) filter (where revision = (select max(revision) from entityapi.revision)) > 0 from entityapi.revision'), 't',
	'which changes nothing');
$old = now($old->{id});
like($old->{attributes}{createdAt} . '00', qr/^\Q$made\E/, 'they have the time they were made') if $made !~ /0$/;
is(author($old, $_), 'nobody', "and no $_") for qw(createdBy updatedBy);

# -------- who and when --------

my $task = task($ann, { title => 'new' });
is(author($task, $_), $id{ann}, $_) for qw(createdBy updatedBy assignee);
is($task->{attributes}{createdAt}, $task->{attributes}{updatedAt}, 'at one time');
is_deeply({ map { $_ => $task->{attributes}{$_} } qw(department level night by) }, { department => 'design', level => 3, night => $true, by => 'ann' },
	'what the caller has');
$ben->good(200, PATCH => "/tasks/$task->{id}", data => { type => 'tasks', id => $task->{id}, attributes => { title => 'changed' } });
my $changed = now($task->{id});
is_deeply([ map { author($changed, $_) } qw(createdBy updatedBy) ], [ $id{ann}, $id{ben} ], 'a change');
is($changed->{attributes}{createdAt}, $task->{attributes}{createdAt}, 'leaves when it was made');
later($changed, $task, 'and tells when it was');
my $other = task($ben, {}, { assignee => { data => { type => 'users', id => $id{ann} } } });
is(author($other, 'assignee'), $id{ann}, 'a default is one: what is sent counts');
is($other->{attributes}{department}, undef, 'who has no such attribute');

# A relationship write is an update of the resource whose address was used
my $note = $ann->good(201, POST => '/notes', data => { type => 'notes' })->{json}{data};
my $before = now($task->{id});
$ann->good(204, POST => "/tasks/$task->{id}/relationships/notes", data => [ { type => 'notes', id => $note->{id} } ]);
is(author(now($task->{id}), 'updatedBy'), $id{ann}, 'members kept elsewhere');
later(now($task->{id}), $before, 'at a time');
my $tag = $ben->good(201, POST => '/tags', data => { type => 'tags' })->{json}{data};
$ben->good(204, PATCH => "/tasks/$task->{id}/relationships/tags", data => [ { type => 'tags', id => $tag->{id} } ]);
is(author(now($task->{id}), 'updatedBy'), $id{ben}, 'and links');
$ann->good(204, PATCH => "/tasks/$task->{id}/relationships/assignee", data => { type => 'users', id => $id{ben} });
is(author(now($task->{id}), 'updatedBy'), $id{ann}, 'and one in the row');
my $batch = $ben->good(200, POST => '/operations', headers => { 'Content-Type' => $atomic, Accept => $atomic }, json => { 'atomic:operations' => [
			(map { { op => 'add', data => { type => 'tasks', lid => "t$_", attributes => { title => "batch $_" } } } } 1 .. 3),
			{ op => 'update', data => { type => 'tasks', id => $task->{id}, attributes => { title => 'batch' } } } ] });
is_deeply([ map { author($_->{data}, 'updatedBy') } @{ $batch->{json}{'atomic:results'} } ], [ ($id{ben}) x 4 ], 'operations');
is_deeply([ map { author($_->{data}, 'createdBy') } @{ $batch->{json}{'atomic:results'} } ], [ ($id{ben}) x 3, $id{ann} ], 'of whom each is');

# -------- nobody else sets them --------

for my $name (qw(createdAt updatedAt))
{
	$ann->refused("$name of a new one", 400, 'READ_ONLY', [ pointer => "/data/attributes/$name" ], POST => '/tasks',
		data => { type => 'tasks', attributes => { $name => '2020-01-01T00:00:00Z' } });
	$ann->refused("$name of one that is there", 400, 'READ_ONLY', [ pointer => "/data/attributes/$name" ], PATCH => "/tasks/$task->{id}",
		data => { type => 'tasks', id => $task->{id}, attributes => { $name => undef } });
}
for my $name (qw(createdBy updatedBy))
{
	$ann->refused("$name of a new one", 400, 'READ_ONLY', [ pointer => "/data/relationships/$name" ], POST => '/tasks',
		data => { type => 'tasks', relationships => { $name => { data => { type => 'users', id => $id{ben} } } } });
	$ann->refused("$name by its own address", 400, 'READ_ONLY', undef, PATCH => "/tasks/$task->{id}/relationships/$name",
		data => { type => 'users', id => $id{ben} });
}
$ann->refused('a read-only default', 400, 'READ_ONLY', [ pointer => '/data/attributes/department' ], POST => '/tasks',
	data => { type => 'tasks', attributes => { department => 'other' } });

# -------- they are fields like others --------

sub titles { my ($query) = @_; return [ map { $_->{attributes}{title} } @{ $ann->good(200, GET => "/tasks?$query")->{json}{data} } ] }
is_deeply(titles("filter=createdBy.username==ben;title=like='batch%20%25'&sort=title"), [ map { "batch $_" } 1 .. 3 ], 'a filter over the author');
like(titles('sort=-createdAt&page[size]=1')->[0], qr/^batch \d$/, 'sorted by time');
is_deeply(titles("filter=updatedAt=lt=$task->{attributes}{createdAt}"), ['old'], 'filtered by time');
is_deeply([ map { $_->{attributes}{username} } @{ $ann->good(200, GET => "/tasks/$task->{id}?include=createdBy,updatedBy&fields[users]=username")->{json}{included} } ],
	[qw(ann ben)], 'included');
is($ann->good(200, GET => "/tasks/$task->{id}/updatedBy")->{json}{data}{attributes}{username}, 'ben', 'a related resource');
is_deeply([ sort keys %{ $ann->good(200, GET => "/tasks/$task->{id}?fields[tasks]=createdAt,updatedBy")->{json}{data}{attributes} } ], ['createdAt'], 'sparse');

# -------- and policies ask for them --------

my $memo = $ann->good(201, POST => '/memos', data => { type => 'memos', attributes => { text => 'mine' } })->{json}{data};
$ben->refused('those of others', 404, 'NOT_FOUND', undef, GET => "/memos/$memo->{id}");
$ann->good(200, PATCH => "/memos/$memo->{id}", data => { type => 'memos', id => $memo->{id}, attributes => { text => 'still' } });
is(scalar @{ $ben->good(200, GET => '/memos')->{json}{data} }, 0, 'in lists, too');

# -------- plain SQL, SuperAdmins, those who go --------

$cluster->psql("insert into app.task (tenant_id, id, assignee_id, title, created_at, updated_at) values ('$tenant', gen_random_uuid(), '$id{ann}', 'sql', now(), now())");
is($cluster->psql("select count(*) from app.task where title = 'sql' and created_by is null"), 1, 'plain SQL has no author');
my $super = $ann->as($shim->superadmin);
my $theirs = $super->call(PATCH => "/tasks/$task->{id}", headers => { 'X-Tenant-Id' => $tenant },
	data => { type => 'tasks', id => $task->{id}, attributes => { title => 'by the platform' } });
is(author($theirs->{json}{data}, 'updatedBy'), 'nobody', 'a SuperAdmin is no user of the tenant');
is(author($theirs->{json}{data}, 'createdBy'), $id{ann}, 'and takes nothing from who is');
is($super->call(POST => '/tasks', headers => { 'X-Tenant-Id' => $tenant }, data => { type => 'tasks' })->{json}{errors}[0]{code}, 'REQUIRED', 'and is no default');

$cluster->psql("update app.task set assignee_id = '$id{ann}'");
my $version = $cluster->psql("select updated_at from app.task where id = '$other->{id}'");
is($shim->http(DELETE => "/manage/tenants/$tenant/users/$id{ben}", { token => $shim->superadmin })->{status}, 204, 'an author goes');
is(author(now($other->{id}), $_), 'nobody', "$_ is null then") for qw(createdBy updatedBy);
is($cluster->psql("select updated_at from app.task where id = '$other->{id}'"), $version, 'and that is no update');

# -------- turned off --------

apply(documents([qw(createdAt createdBy updatedBy)]));
is_deeply([ sort grep { /^(created|updated)/ } keys %{ now($task->{id})->{attributes} } ], ['createdAt'], 'nothing is lost with a time');
open my $out, '>', "$folder/m.json" or die "m.json: $!\n";
print $out JSON::PP->new->canonical->encode(documents([]));
close $out;
like($cluster->try_apply("$folder/m.json")->{err}, qr/the values of Task.createdBy would be lost/, 'but authors are');

done_testing();
