# What is deleted softly: what it takes along, what all of it carries, and who
# is shown it.

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

sub delete_it
{
	my ($who, $resource) = @_;

	return $who->call(DELETE => $who->path($resource), headers => { 'If-Match' => '*' });
}

# The deletions of rows, as letters in order of their first appearance
sub deletions
{
	my (@resources) = @_;
	my (%letter, $text);
	my $next = 'a';

	for (@resources)
	{
		my $table = { folders => 'folder', notes => 'note', pins => 'pin', badges => 'badge', cabinets => 'cabinet' }->{ $_->{type} };
		my $id = $cluster->psql("select deletion_id from app.$table where id = '$_->{id}' and deleted_at is not null");

		$letter{$id} //= $next++ if $id ne '';
		$text .= $letter{$id} // '-';
	}
	return $text;
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

subtest 'one deletion' => sub {
	my @tree = tree('one');

	is(delete_it($editor, $tree[3])->{status}, 204, 'a part by itself');
	is(delete_it($editor, $tree[0])->{status}, 204, 'and the whole');
	ok($editor->gone($_), "$_->{type} is gone") for @tree;
	is(deletions(@tree), 'aaabaaa', 'all that went together carry the same id');
	like($cluster->psql("select deletion_id from app.folder where id = '$tree[0]{id}'"), qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'a uuid');
	is($cluster->psql("select count(distinct deleted_at) from (select deleted_at, deletion_id from app.folder union all select deleted_at, deletion_id from app.pin) d
		where deletion_id = (select deletion_id from app.folder where id = '$tree[0]{id}')"), 1, 'and one time');
	is($cluster->psql(q{select count(*) from app.note where deletion_id is not null and deleted_at is null}), 0, 'live rows have none');
};

subtest 'each remove of a batch is one' => sub {
	my @first = tree('first');
	my @second = tree('second');
	my $answer = $editor->batch(map { { op => 'remove', ref => { %{ $editor->identifier($_) }, meta => { version => 0 } } } } $first[0], $second[0]);

	is($answer->{status}, 200, 'two of them') or diag $answer->{body};
	is(deletions(@first, @second), 'aaaaaaabbbbbbb', 'two ids');
	is($cluster->psql("select count(distinct deleted_at) from app.folder where id in ('$first[0]{id}', '$second[0]{id}')"), 1, 'at one time');
};

subtest 'links stay with the row' => sub {
	my @tags = map { $editor->made(tags => { word => "t$_" }) } 1 .. 2;
	my $folder = $editor->made(folders => { name => 'tagged' }, { tags => \@tags });
	my $live = $editor->made(folders => { name => 'tagged, too' }, { tags => \@tags });
	my $links = sub { $cluster->psql("select count(*) from app.folder_tags where folder_id = '$folder->{id}'") };

	delete_it($editor, $folder);
	is($links->(), 2, 'they are there');
	is($editor->linked($_, 'folders'), $live->{id}, 'and not seen from the other side') for @tags;
	is($editor->good(200, GET => $editor->path($tags[0]) . '?include=folders&fields[tags]=folders')->{json}{included}[0]{id}, $live->{id}, 'nor included');
	is($editor->good(200, GET => $editor->path($tags[0], 'folders'))->{json}{meta}{pagination}{totalRecords}, 1, 'nor related');
	is($editor->relate(PATCH => $tags[0], 'folders', [])->{status}, 204, 'all members of the other side are let go');
	is($links->(), 2, 'but those that nobody sees');
	is($editor->relate(PATCH => $tags[0], 'folders', [$live])->{status}, 204, 'some come back');
	is($editor->call(DELETE => $editor->path($tags[1]))->{status}, 204, 'the other side goes for good');
	is($links->(), 1, 'and its link with it');
};

subtest 'who is shown them' => sub {
	my ($folder, $child) = tree('shown');
	my $foreign = $other->made(folders => { name => 'foreign' });

	delete_it($editor, $folder);
	delete_it($other, $foreign);
	my $live = $editor->made(folders => { name => 'live' });
	for my $case ([ 'a list', '/folders', 200, 200 ], [ 'a deleted one', $editor->path($folder), 200, 200 ], [ 'a live one', $editor->path($live), 404, 200 ])
	{
		my ($name, $target, $only, $with) = @$case;

		is($editor->call(GET => "$target?show[deleted]=only")->{status}, $only, "$name, only");
		is($editor->call(GET => "$target?show[deleted]=with")->{status}, $with, "$name, with");
		$_->refused("$name, without leave", 403, 'FORBIDDEN', undef, GET => "$target?show[deleted]=with") for $writer, $editor->reader, $keeper;
	}
	$editor->refused('neither', 400, 'INVALID_PARAMETER', [ parameter => 'show[deleted]' ], GET => '/folders?show[deleted]=yes');
	$editor->refused('empty', 400, 'INVALID_PARAMETER', [ parameter => 'show[deleted]' ], GET => '/folders?show[deleted]=');
	$editor->refused('twice', 400, 'INVALID_PARAMETER', [ parameter => 'show[deleted]' ], GET => '/folders?show[deleted]=only&show[deleted]=only');
	$editor->refused('of what is deleted for good', 400, 'UNKNOWN_PARAMETER', [ parameter => 'show[deleted]' ], GET => '/tags?show[deleted]=only');
	$editor->refused('what is related', 400, 'UNKNOWN_PARAMETER', [ parameter => 'show[deleted]' ], GET => $editor->path($child, 'notes') . '?show[deleted]=only');
	$editor->refused('on a write', 400, 'UNKNOWN_PARAMETER', undef, DELETE => $editor->path($child) . '?show[deleted]=with', headers => { 'If-Match' => '*' });
	$editor->refused('another tenant', 404, 'NOT_FOUND', undef, GET => $editor->path($foreign) . '?show[deleted]=with');
	$editor->refused('nobody', 404, 'NOT_FOUND', undef, GET => "/folders/$nobody?show[deleted]=with");
	is((grep { $_->{id} eq $foreign->{id} } @{ $editor->good(200, GET => '/folders?show[deleted]=with&page[size]=100')->{json}{data} }), 0, 'nor in a list');
	like($editor->call(GET => '/folders?deleted=true')->{body}, qr/did you mean \\"show\[deleted\]\\"/, 'what it is called elsewhere');

	my $admin = $shim->superadmin;
	is($shim->http(GET => '/api/v1/folders?show[deleted]=only', { token => $admin, headers => { 'X-Tenant-Id' => $editor->{tenant} } })->{status}, 200, 'a SuperAdmin');
};

subtest 'what is shown' => sub {
	my $cabinet = $editor->made(cabinets => { name => 'c' });
	my $folder = $editor->made(folders => { name => 'seen', size => 4 }, { cabinet => $cabinet });
	my $note = $editor->made(notes => { text => 'n' }, { folder => $folder });
	my $answer = delete_it($editor, $folder);
	my $one = $editor->good(200, GET => $editor->path($folder) . '?show[deleted]=with&include=notes,cabinet');
	my $data = $one->{json}{data};
	my $at = $cluster->psql("select to_char(deleted_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS') from app.folder where id = '$folder->{id}'");

	is($data->{attributes}{size}, 4, 'its attributes');
	like($data->{meta}{deletedAt}, qr/^\Q$at\E(?:\.\d{1,6})?Z$/, 'when it was deleted');
	is($data->{meta}{version}, 1, 'the version that the deletion made');
	is($one->{headers}{etag}, '"1"', 'as the ETag');
	is($editor->call(GET => $editor->path($folder) . '?show[deleted]=with&fields[folders]=size', headers => { 'If-None-Match' => '"1"' })->{status}, 200,
		'which does not count beside show[deleted]');
	is($data->{relationships}{cabinet}{data}{id}, $cabinet->{id}, 'what it refers to');
	is_deeply($data->{relationships}{notes}{data}, [], 'of what is deleted, too, nothing is linked');
	is(join(' ', map { $_->{type} } @{ $one->{json}{included} }), 'cabinets', 'nor included');
	is($editor->good(200, GET => $data->{links}{self})->{json}{data}{id}, $folder->{id}, 'its link leads to it');
	is($editor->call(HEAD => $editor->path($folder) . '?show[deleted]=only')->{status}, 200, 'HEAD');

	my $gone = $editor->good(200, GET => $editor->path($note) . '?show[deleted]=only')->{json}{data};
	is($gone->{relationships}{folder}{data}, undef, 'what it refers to is deleted as well');
	ok(exists $gone->{meta}{deletedAt} && !exists $gone->{meta}{version}, 'meta without versions');
	is($editor->good(200, GET => $editor->path($cabinet) . '?show[deleted]=with')->{json}{data}{meta}, undef, 'a live one has no meta for it');
};

subtest 'lists' => sub {
	my $list = sub {
		my ($query, $who) = @_;
		my $answer = ($who // $editor)->good(200, GET => "/notes?$query")->{json};

		return join(' ', map { $_->{attributes}{text} . (exists $_->{meta}{deletedAt} ? '!' : '') } @{ $answer->{data} }) . ' /'
		  . ($answer->{meta}{pagination}{totalRecords} // '');
	};
	my $folder = $editor->made(folders => { name => 'list' });
	my @notes = map { $editor->made(notes => { text => "l$_" }, { folder => $folder }) } 1 .. 7;

	delete_it($editor, $_) for @notes[ 1, 3, 4 ];
	is($list->('filter=text=like=l_'), 'l1 l3 l6 l7 /4', 'live');
	is($list->('filter=text=like=l_&show[deleted]=only'), 'l2! l4! l5! /3', 'deleted');
	is($list->('filter=text=like=l_&show[deleted]=with'), 'l1 l2! l3 l4! l5! l6 l7 /7', 'both');
	is($list->('filter=text=like=l_;text>l3&show[deleted]=only&sort=-text'), 'l5! l4! /2', 'filter and sort');
	is($list->('filter=text=like=l_&show[deleted]=only&page[size]=2'), 'l2! l4! /3', 'totals');
	is($list->('filter=text=like=l_&show[deleted]=with&page[size]=3&page[number]=2'), 'l4! l5! l6 /7', 'a later page');
	is($list->('filter=text=like=l_&show[deleted]=with&sort=folder.name,-text&page[size]=2'), 'l7 l6 /7', 'sorted by what is related');
	is($list->("filter=folder.name==list&show[deleted]=only"), 'l2! l4! l5! /3', 'filter by what is related');

	my ($next, @seen) = ("/notes?filter=text=like=l_&show[deleted]=with&sort=-text&page[size]=3&page[after]=start&page[totals]=true");
	while (defined $next)
	{
		my $page = $editor->good(200, GET => $next)->{json};

		push @seen, map { $_->{attributes}{text} } @{ $page->{data} };
		is($page->{meta}{pagination}{totalRecords}, 7, 'totals of a page by cursor');
		$next = $page->{links}{next};
	}
	is("@seen", 'l7 l6 l5 l4 l3 l2 l1', 'by cursor');
	my $back = $editor->good(200, GET => "/notes?filter=text=like=l_&show[deleted]=only&page[size]=2&page[before]=end")->{json};
	is(join(' ', map { $_->{attributes}{text} } @{ $back->{data} }), 'l4 l5', 'from the end');

	delete_it($editor, $folder);
	is($list->("filter=text=like=l_;folder.name==list&show[deleted]=only"), ' /0', 'a path leads to what is live');
};

subtest 'policies and fields' => sub {
	my $mine = $editor->made(diaries => { owner => 'editor', text => 'mine' });
	my $page = $editor->made(pages => { owner => 'editor' }, { diary => $mine });
	my $theirs = $cluster->psql("insert into app.diary (tenant_id, id, owner, created_at, updated_at, deleted_at) values ('$editor->{tenant}', gen_random_uuid(), 'writer', now(), now(), now()) returning id");

	delete_it($editor, $mine);
	is(ids(@{ $editor->good(200, GET => '/diaries?show[deleted]=only')->{json}{data} }), $mine->{id}, 'a read policy holds for deleted rows');
	$editor->refused('the other one', 404, 'NOT_FOUND', undef, GET => "/diaries/$theirs?show[deleted]=only");
	is(ids(@{ $editor->good(200, GET => '/pages?show[deleted]=with')->{json}{data} }), $page->{id}, 'and for those taken along');

	# A policy's path leads to live rows only, so what went with them is not seen.
	my $folder = $editor->made(folders => { name => 'clips' });
	my @clips = map { $editor->made(clips => { text => "c$_" }, { folder => $folder }) } 1 .. 2;
	delete_it($editor, $clips[0]);
	is(ids(@{ $editor->good(200, GET => '/clips?show[deleted]=only')->{json}{data} }), $clips[0]{id}, 'its folder is live');
	delete_it($editor, $folder);
	is(ids(@{ $editor->good(200, GET => '/clips?show[deleted]=only')->{json}{data} }), '', 'and now it is not');

	my $coded = $editor->made(folders => { name => 'coded', code => 'x1' });
	my $half = $editor->as($shim->user($editor->{tenant}, 'half', [qw(Keeper Reader)]));
	delete_it($editor, $coded);
	my $shown = $half->good(200, GET => $editor->path($coded) . '?show[deleted]=with')->{json}{data}{attributes};
	ok(exists $shown->{name} && !exists $shown->{code}, 'fields of others stay hidden');
	$half->refused('and cannot be asked for', 400, 'INVALID_FILTER', undef, GET => '/folders?show[deleted]=only&filter=code==x1');
};

subtest 'readers of plain SQL' => sub {
	plan skip_all => 'tables are views' if $ENV{ENTITYAPI_TEST_MAPPED};
	$editor->made(notes => { text => 'live' }, { folder => $editor->made(folders => { name => 'of readers' }) });
	$cluster->psql("create role trash_reader login in role entityapi_reader; select entityapi.map_role('trash_reader', 'editor')");
	my $rows = $cluster->psql('select count(*), count(*) filter (where deleted_at is null), count(deletion_id) from app.note', user => 'trash_reader');
	my ($all, $live, $told) = split /\|/, $rows;

	cmp_ok($all, '>', 0, 'see rows');
	is("$live $told", "$all 0", 'that are live, and no others');
};

done_testing;
