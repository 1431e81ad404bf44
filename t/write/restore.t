# What was deleted softly comes back, with all that went with it, or not at all.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('trash');
my ($cluster, $shim) = ($editor->cluster, $editor->shim);
my $other = $editor->other;
my $nobody = $EntityApi::Test::Conformance::nobody;
my ($writer, $keeper) = map { $editor->as($shim->user($editor->{tenant}, lc $_, [$_])) } qw(Writer Keeper);

*ids = \&EntityApi::Test::Conformance::ids;

sub deleted
{
	my (@resources) = @_;

	for (@resources)
	{
		my $answer = $editor->call(DELETE => $editor->path($_), headers => { 'If-Match' => '*' });
		is($answer->{status}, 204, "$_->{type} deleted") or diag $answer->{body};
	}
	return;
}

sub restore
{
	my ($resource, %options) = @_;
	my $who = delete $options{as} // $editor;

	return $who->call(POST => $who->path($resource, 'restore') . (delete $options{query} // ''), %options);
}

sub restored
{
	my ($name, $resource, %options) = @_;
	my $answer = restore($resource, %options);

	is($answer->{status}, 200, $name) or diag $answer->{body};
	is($answer->{json}{data}{id}, $resource->{id}, 'the answer is the resource');
	ok(!exists(($answer->{json}{data}{meta} // {})->{deletedAt}), 'which is not deleted');
	return $answer;
}

sub refused
{
	my ($name, $status, $code, $resource, %options) = @_;
	my $who = delete $options{as} // $editor;

	return $who->refused($name, $status, $code, undef, POST => $who->path($resource, 'restore'), %options);
}

# All rows, live and deleted, as one text
sub state
{
	return join "\n", map { $cluster->psql("select to_jsonb(t) from app.$_ t order by 1") } qw(cabinet folder note pin badge tag folder_tags diary page clip);
}

sub tree
{
	my ($name) = @_;
	my $folder = $editor->made(folders => { name => $name });
	my $child = $editor->made(folders => { name => "$name/sub" }, { parent => $folder });
	my @notes = map { $editor->made(notes => { text => "$name $_" }, { folder => $_ == 3 ? $child : $folder }) } 1 .. 3;
	my $pin = $editor->made(pins => { colour => 'red' }, { thing => $notes[2] });
	my $badge = $editor->made(badges => { label => $name }, { folder => $child });

	return ($folder, $child, @notes, $pin, $badge);
}

subtest 'a resource and what went with it' => sub {
	my @tree = tree('all');
	my @before = map { $editor->current($_) } @tree;

	deleted($tree[3], $tree[0]);
	my $answer = restored('the whole', $tree[0]);
	is($answer->{json}{data}{attributes}{name}, 'all', 'with its attributes');
	is($answer->{headers}{etag}, '"2"', 'two versions on');
	is($answer->{json}{data}{meta}{version}, 2, 'in meta, too');
	ok(!$editor->gone($_), "$_->{type} is there") for @tree[ 0 .. 2, 4 .. 6 ];
	ok($editor->gone($tree[3]), 'what was deleted before is not');
	is_deeply($editor->current($tree[5])->{relationships}, $before[5]{relationships}, 'what was linked is');
	is($editor->linked($tree[0], 'notes'), ids($tree[2]), 'members of a to-many');
	is($editor->linked($tree[1], 'badge'), $tree[6]{id}, 'one-to-one');
	is($editor->linked($tree[5], 'thing'), $tree[4]{id}, 'one-of');
	is($cluster->psql('select count(*) from app.folder where deletion_id is not null'), 0, 'nothing is left of the deletion');
	restored('the part', $tree[3]);
	refused('which is there now', 404, 'NOT_FOUND', $tree[3]);

	deleted($tree[0]);
	restored('again', $tree[0]);
	ok(!$editor->gone($_), "$_->{type} is there again") for @tree;
	is($editor->version($tree[0]), 4, 'a version each time');
};

subtest 'the answer' => sub {
	my ($folder, undef, @notes) = tree('answer');

	deleted($folder);
	my $answer = restored('with what it is shown with', $folder, query => '?include=notes&fields[folders]=name,notes');
	is_deeply([ sort keys %{ $answer->{json}{data}{attributes} } ], ['name'], 'fields');
	is(ids(@{ $answer->{json}{included} }), ids(@notes[ 0, 1 ]), 'include');
	deleted($folder);
	$editor->refused('no such parameter', 400, 'UNKNOWN_PARAMETER', undef, POST => $editor->path($folder, 'restore') . '?show[deleted]=with');
	refused('a body', 400, 'INVALID_DOCUMENT', $folder, body => '{}');
	refused('a document', 400, 'INVALID_DOCUMENT', $folder, data => $editor->identifier($folder));
	refused('another version', 412, 'PRECONDITION_FAILED', $folder, headers => { 'If-Match' => '"0"' });
	refused('no version', 400, 'INVALID_HEADER', $folder, headers => { 'If-Match' => 'x' });
	restored('this version', $folder, headers => { 'If-Match' => '"3"' });
	for my $method (qw(GET PATCH DELETE))
	{
		my $denied = $editor->refused($method, 405, 'METHOD_NOT_ALLOWED', undef, $method => $editor->path($folder, 'restore'), $method eq 'GET' ? () : (data => {}));
		is($denied->{headers}{allow}, 'POST', 'only POST');
	}
	$editor->refused('what is deleted for good', 404, 'NOT_FOUND', undef, POST => $editor->path($editor->made(tags => { word => 'w' }), 'restore'));
};

subtest 'who may' => sub {
	my $folder = $editor->made(folders => { name => 'may' });
	my $foreign = $other->made(folders => { name => 'abroad' });
	my $live = $editor->made(folders => { name => 'lives' });

	deleted($folder);
	$other->call(DELETE => $other->path($foreign), headers => { 'If-Match' => '*' });
	my $before = state();
	refused('a Writer', 403, 'FORBIDDEN', $folder, as => $writer);
	refused('a Reader', 403, 'FORBIDDEN', $folder, as => $editor->reader);
	$editor->refused('anybody', 401, 'UNAUTHENTICATED', undef, POST => $editor->path($folder, 'restore'), plain => 1);
	my @bodies = map { refused("$_->{id}", 404, 'NOT_FOUND', $_, headers => { 'X-Request-Id' => 'same' })->{body} } $foreign, $live, { type => 'folders', id => $nobody }, { type => 'folders', id => 'x' };
	is((grep { $_ ne $bodies[0] } @bodies), 0, 'absent, live, foreign: all alike');
	is(state(), $before, 'nothing has changed');

	my $answer = restored('who restores and does not read', $folder, as => $keeper);
	is_deeply([ sort keys %{ $answer->{json}{data} } ], [qw(id links meta type)], 'is told what it was, and no more');
	deleted($folder);
	$keeper->refused('include', 403, 'FORBIDDEN', undef, POST => $keeper->path($folder, 'restore') . '?include=notes');
	my $admin = $shim->user($editor->{tenant}, 'admin', []);
	$cluster->psql("insert into entityapi.tenant_admin values ('$editor->{tenant}', '$admin->{id}')");
	restored('a TenantAdmin', $folder, as => $editor->as($admin));

	my $norm = $cluster->psql(q{insert into app.norm (id, title, created_at, updated_at, deleted_at) values (gen_random_uuid(), 'n', now(), now(), now()) returning id});
	refused('what all tenants share', 403, 'FORBIDDEN', { type => 'norms', id => $norm }, as => $editor->as($admin));
	is($shim->http(POST => "/api/v1/norms/$norm/restore", { token => $shim->superadmin })->{status}, 200, 'but by a SuperAdmin');
};

subtest 'read policies' => sub {
	my $mine = $editor->made(diaries => { owner => 'editor' });
	my @pages = map { $editor->made(pages => { owner => 'editor' }, { diary => $mine }) } 1 .. 2;
	my $theirs = $cluster->psql("insert into app.diary (tenant_id, id, owner, created_at, updated_at, deleted_at) values ('$editor->{tenant}', gen_random_uuid(), 'writer', now(), now(), now()) returning id");

	$cluster->psql("update app.page set owner = 'writer' where id = '$pages[1]{id}'");
	deleted($mine);
	refused('what is hidden is not there', 404, 'NOT_FOUND', { type => 'diaries', id => $theirs });
	restored('what is not, is', $mine);
	is($cluster->psql("select count(*) from app.page where diary_id = '$mine->{id}' and deleted_at is null"), 2, 'what went with it comes back, seen or not');
};

subtest 'what is needed is still deleted' => sub {
	my @tree = tree('needs');
	my $before;

	deleted($tree[0]);
	$before = state();
	for my $part (@tree[ 1 .. 6 ])
	{
		my $answer = refused("$part->{type} alone", 409, 'STILL_DELETED', $part);
		unlike($answer->{body}, qr/"source"/, 'which points to nothing, as nothing was sent');
	}
	like(refused('says what', 409, 'STILL_DELETED', $tree[2])->{json}{errors}[0]{detail}, qr/"folder"/, 'by the field');
	unlike(refused('who may not read the field', 409, 'STILL_DELETED', $tree[2], as => $keeper)->{body}, qr/folder\\"/, 'is not told of it');
	is(state(), $before, 'nothing has changed');
	restored('with its parent', $tree[0]);

	# a part that went by itself, and then its parent
	deleted($tree[2], $tree[0]);
	refused('the part', 409, 'STILL_DELETED', $tree[2]);
	restored('first the parent', $tree[0]);
	ok($editor->gone($tree[2]), 'the part is not of that deletion');
	restored('then the part', $tree[2]);

	# restrict: the referring row was deleted first
	my $cabinet = $editor->made(cabinets => { name => 'c' });
	my $folder = $editor->made(folders => { name => 'in a cabinet' }, { cabinet => $cabinet });
	deleted($folder, $cabinet);
	refused('its cabinet is gone', 409, 'STILL_DELETED', $folder);
	restored('the cabinet', $cabinet);
	restored('and then the folder', $folder);
	is($editor->linked($folder, 'cabinet'), $cabinet->{id}, 'which is in it');
};

subtest 'what is common to all tenants' => sub {
	my $admin = $shim->superadmin;
	my $norm = $shim->http(POST => '/api/v1/norms', { token => $admin, json => { data => { type => 'norms', attributes => { title => 'n' } } } })->{json}{data};
	my $rule = $editor->made(rules => {}, { norm => $norm });
	my $remove = sub { my $answer = $shim->http(DELETE => "/api/v1/norms/$norm->{id}", { token => $admin }); return "$answer->{status} " . ($answer->{json}{errors}[0]{code} // '') };

	is($remove->(), '409 STILL_REFERENCED', 'is not hidden from who refers to it');
	is($editor->linked($rule, 'norm'), $norm->{id}, 'nothing has changed');
	deleted($rule);
	is($remove->(), '204 ', 'but from who is hidden himself');
	refused('who stays so', 409, 'STILL_DELETED', $rule);
	is($shim->http(POST => "/api/v1/norms/$norm->{id}/restore", { token => $admin })->{status}, 200, 'until it is back');
	restored('and then is not', $rule);
};

subtest 'setNull' => sub {
	my $folder = $editor->made(folders => { name => 'null' });
	my $source = $editor->made(notes => { text => 'source' }, { folder => $folder });
	my ($live, $gone) = map { $editor->made(notes => { text => $_ }, { folder => $folder, source => $source }) } qw(live gone);

	deleted($gone, $source);
	is($editor->linked($live, 'source'), '', 'a live one lets go');
	restored('one that was deleted before', $gone);
	is($editor->linked($gone, 'source'), '', 'does so when it comes back');
	restored('what they referred to', $source);
	is($editor->linked($_, 'source'), '', 'and nobody refers to it again') for $live, $gone;

	my $self = $editor->made(notes => { text => 'self' }, { folder => $folder });
	my $near = $editor->made(notes => { text => 'near' }, { folder => $folder, source => $self });
	$editor->relate(PATCH => $self, 'source', $self);
	$editor->update($folder, {}, { cover => $near });
	deleted($folder);
	restored('what goes together', $folder);
	is(join(' ', $editor->linked($self, 'source'), $editor->linked($near, 'source'), $editor->linked($folder, 'cover')), "$self->{id} $self->{id} $near->{id}", 'keeps what it refers to among itself');
	deleted($self);
	is($editor->linked($near, 'source'), '', 'others let go');
	restored('one that refers to itself', $self);
	is($editor->linked($self, 'source'), $self->{id}, 'still does');
};

subtest 'links' => sub {
	my @tags = map { $editor->made(tags => { word => "t$_" }) } 1 .. 3;
	my $folder = $editor->made(folders => { name => 'linked' }, { tags => \@tags });

	deleted($folder);
	is($editor->call(DELETE => $editor->path($tags[2]))->{status}, 204, 'one tag goes for good');
	restored('a folder with tags', $folder);
	is($editor->linked($folder, 'tags'), ids(@tags[ 0, 1 ]), 'its links are back');
	is($editor->linked($tags[0], 'folders'), $folder->{id}, 'on both sides');
	my $favourite = $editor->made(tags => { word => 'f' }, { favourite => $folder });
	deleted($folder);
	restored('what was let go of', $folder);
	is($editor->linked($favourite, 'favourite'), '', 'stays so');
};

subtest 'unique values' => sub {
	my $folder = $editor->made(folders => { name => 'unique', code => 'k1' });
	my $note = $editor->made(notes => { text => 'n', slug => 's1' }, { folder => $folder });
	my $elsewhere = $editor->made(folders => { name => 'elsewhere' });

	deleted($folder);
	my $taken = $editor->made(folders => { name => 'unique' });
	my $before = state();
	my $answer = refused('a live one has the name', 409, 'UNIQUE_VIOLATION', $folder);
	like($answer->{json}{errors}[0]{detail}, qr/"name"/, 'and says which');
	unlike($answer->{body}, qr/"source"/, 'which points to nothing');
	is(state(), $before, 'nothing has changed');
	$editor->update($taken, { name => 'other', code => 'k1' });
	my $half = $editor->as($shim->user($editor->{tenant}, 'half', [qw(Keeper Reader)]));
	my $hidden = refused('one of a field for others', 409, 'UNIQUE_VIOLATION', $folder, as => $half);
	unlike($hidden->{json}{errors}[0]{detail}, qr/"code"/, 'is not told by name');
	deleted($taken);

	my $other = $editor->made(notes => { text => 'x', slug => 's1' }, { folder => $elsewhere });
	refused('a value of what went with it', 409, 'UNIQUE_VIOLATION', $folder);
	ok($editor->gone($folder), 'all of it stays deleted');
	deleted($other);
	restored('nobody has them', $folder);
	refused('now it is the other one', 409, 'UNIQUE_VIOLATION', $other);
	refused('and that', 409, 'UNIQUE_VIOLATION', $taken);

	# one-to-one
	my $badge = $editor->made(badges => { label => 'first' }, { folder => $elsewhere });
	deleted($badge);
	my $second = $editor->made(badges => { label => 'second' }, { folder => $elsewhere });
	refused('its folder has another badge', 409, 'UNIQUE_VIOLATION', $badge);
	deleted($second);
	restored('not any more', $badge);
};

subtest 'circles' => sub {
	my @ring = map { $editor->made(folders => { name => "ring $_" }) } 1 .. 3;

	$editor->update($ring[$_], {}, { parent => $ring[ ($_ + 1) % 3 ] }) for 0 .. 2;
	deleted($ring[1]);
	ok($editor->gone($_), 'all are gone') for @ring;
	restored('any of them', $ring[0]);
	ok(!$editor->gone($_), 'all are back') for @ring;

	my $self = $editor->made(folders => { name => 'own parent' });
	$editor->update($self, {}, { parent => $self });
	deleted($self);
	restored('its own parent', $self);
};

subtest 'many' => sub {
	my $folder = $editor->made(folders => { name => 'many' });

	$cluster->psql("insert into app.note (tenant_id, id, text, folder_id, created_at, updated_at) select '$editor->{tenant}', gen_random_uuid(), 'm' || i, '$folder->{id}', now(), now() from generate_series(1, 3000) i");
	my $parent = $folder;
	for my $depth (1 .. 60)
	{
		$parent = $editor->made(folders => { name => "deep $depth" }, { parent => $parent });
	}
	deleted($folder);
	restored('a broad and deep tree', $folder, query => '?fields[folders]=name');
	is($cluster->psql("select count(*) from app.note where folder_id = '$folder->{id}' and deleted_at is null"), 3000, 'all rows');
	ok(!$editor->gone($parent), 'down to the last');
};

subtest 'rows of before there were ids' => sub {
	my @tree = tree('old');

	deleted($tree[3], $tree[0]);
	$cluster->psql("update app.$_ set deletion_id = null") for qw(folder note pin badge);
	restored('by their time', $tree[0]);
	ok(!$editor->gone($_), "$_->{type} is there") for @tree[ 0 .. 2, 4 .. 6 ];
	ok($editor->gone($tree[3]), 'not of another time');
};

subtest 'a batch' => sub {
	my ($folder, $child) = tree('batch');
	my $answer = $editor->batch({ op => 'remove', ref => { %{ $editor->identifier($child) }, meta => { version => 0 } } },
		{ op => 'remove', ref => { %{ $editor->identifier($folder) }, meta => { version => 0 } } });

	is($answer->{status}, 200, 'two deletions at one time') or diag $answer->{body};
	restored('one of them', $folder);
	ok($editor->gone($child), 'leaves the other');
	$editor->batch_refused('no operation', 400, 'INVALID_DOCUMENT', '/atomic:operations/0/op', { op => 'restore', ref => $editor->identifier($child) });
	restored('it comes by itself', $child);
};

subtest 'the audit log' => sub {
	my ($folder, $child, $note) = tree('audited');

	deleted($folder);
	restored('a tree', $folder, headers => { 'X-Request-Id' => 'restoring' });
	my $log = $shim->http(GET => '/manage/audit?filter=requestId==restoring&page[size]=50', { token => $shim->superadmin })->{json}{data};
	is(join(' ', sort map { "$_->{action}/$_->{target}{type}/$_->{outcome}" } @$log), join(' ', map { "ENTITY_RESTORE/$_/SUCCESS" } qw(badges folders folders notes notes notes pins)), 'a record each');
	my ($record) = grep { $_->{target}{id} eq $note->{id} } @$log;
	is_deeply($record->{changes}, {}, 'without what it kept, and has again');
	my ($deletion) = @{ $shim->http(GET => "/manage/audit?filter=targetId==$note->{id};action==ENTITY_DELETE", { token => $shim->superadmin })->{json}{data} };
	like($record->{detail}, qr/^deletion [0-9a-f-]{36}$/, 'but which deletion it was');
	is($deletion->{detail}, $record->{detail}, 'as that says itself');
	is($record->{actor}{username}, 'editor', 'by whom');
	refused('denied', 403, 'FORBIDDEN', $folder, as => $writer, headers => { 'X-Request-Id' => 'denied-restore' });
	$log = $shim->http(GET => '/manage/audit?filter=requestId==denied-restore', { token => $shim->superadmin })->{json}{data};
	is(join(' ', map { "$_->{action}/$_->{outcome}/$_->{target}{id}" } @$log), "ENTITY_RESTORE/DENIED/$folder->{id}", 'so is one that is refused');
};

subtest 'at once' => sub {
	my $seen = '';

	for my $round (1 .. 10)
	{
		my ($folder, $child, @rest) = tree("race $round");

		$editor->call(DELETE => $editor->path($rest[0]), headers => { 'If-Match' => '*' });
		$editor->call(DELETE => $editor->path($folder), headers => { 'If-Match' => '*' });
		my @statuses = EntityApi::Test::Conformance::at_once(
			(sub { restore($folder)->{status} }) x 2,
			sub { restore($rest[0])->{status} },
			sub { $editor->call(DELETE => $editor->path($folder), headers => { 'If-Match' => '*' })->{status} });
		$seen .= "@statuses\n";
	}
	unlike($seen, qr/\b5\d\d\b/, 'nothing fails') or diag $seen;
	is($cluster->psql('select count(*) from app.note n join app.folder f on f.tenant_id = n.tenant_id and f.id = n.folder_id where n.deleted_at is null and f.deleted_at is not null'), 0, 'no row lives without its parent');
	is($cluster->psql('select count(*) from (select from app.folder f join app.folder c on c.tenant_id = f.tenant_id and c.parent_id = f.id where f.deleted_at is null and c.deletion_id is not null) x'), 0, 'and none is left behind');
};

done_testing;
