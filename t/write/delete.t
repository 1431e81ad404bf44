# Deletion: what restricts it, what goes with it, what is cleared, and rows that
# only seem to go.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $other = $editor->other;
my $cluster = $editor->cluster;
my $nobody = $EntityApi::Test::Conformance::nobody;

*ids = \&EntityApi::Test::Conformance::ids;

sub deleted
{
	my ($name, $resource) = @_;
	my $answer = $editor->call(DELETE => $editor->path($resource), headers => { 'If-Match' => '*' });

	is($answer->{status}, 204, $name) or diag $answer->{body};
	is($answer->{body}, '', 'without a body');
	ok($editor->gone($resource), 'it is gone');
	return;
}

my $ann = $editor->made(authors => { name => 'Ann' });

subtest 'once' => sub {
	my $author = $editor->made(authors => { name => 'x' });
	my $foreign = $other->made(authors => { name => 'o' });

	deleted('a row', $author);
	$editor->refused('twice', 404, 'NOT_FOUND', undef, DELETE => $editor->path($author));
	$editor->refused('nobody', 404, 'NOT_FOUND', undef, DELETE => "/authors/$nobody");
	$editor->refused('no uuid', 404, 'NOT_FOUND', undef, DELETE => '/authors/x');
	my ($absent, $abroad) = map {
		$editor->refused('absent or abroad', 404, 'NOT_FOUND', undef, DELETE => $_,
			headers => { 'X-Request-Id' => 'same' })->{body}
	} "/authors/$nobody", $editor->path($foreign);
	is($abroad, $absent, 'the same answer');
	is($other->current($foreign)->{attributes}{name}, 'o', "another tenant's stays");
	$editor->reader->refused('no authority', 403, 'FORBIDDEN', undef, DELETE => $editor->path($ann));
};

subtest 'restrict' => sub {
	my $author = $editor->made(authors => { name => 'Busy' });
	my $desk = $editor->made(desks => { number => 1 }, { holder => $author });
	my $pupil = $editor->made(authors => { name => 'Pupil' }, { mentor => $author });
	my $work = $editor->made(works => { title => 'Held' }, { author => $author });

	$editor->refused('still referred to', 409, 'STILL_REFERENCED', undef, DELETE => $editor->path($author));
	is($editor->linked($pupil, 'mentor') . $editor->linked($desk, 'holder'), $author->{id} x 2, 'nothing else was cleared');
	is($editor->version($desk), 0, 'or written');
	$editor->relate(PATCH => $work, 'author', $ann);
	deleted('no longer', $author);
	is($editor->linked($pupil, 'mentor') . $editor->linked($desk, 'holder'), '', 'now cleared');

	my $vault = $editor->made(vaults => { place => 'x' });
	my $keeper = $editor->made(works => { title => 'x' }, { author => $ann, vault => $vault });
	$editor->refused('restrict is the default', 409, 'STILL_REFERENCED', undef, DELETE => $editor->path($vault));
	deleted('the one that refers may go', $keeper);
	deleted('and then the other', $vault);
};

subtest 'setNull' => sub {
	my $editing = $editor->made(authors => { name => 'Editing' });
	my @works = map { $editor->made(works => { title => "w$_" }, { author => $ann, editor => $editing }) } 1 .. 3;
	my @pupils = map { $editor->made(authors => { name => "p$_" }, { mentor => $editing }) } 1 .. 2;
	my $own = $editor->update($editing, {}, { mentor => $editing });
	my $bystander = $editor->made(works => { title => 'other' }, { author => $ann, editor => $ann });

	is($own->{status}, 200, 'its own mentor, too');
	deleted('the one referred to', $editing);
	is($editor->current($_)->{relationships}{editor}{data}, undef, 'cleared') for @works;
	is_deeply([ map { $editor->version($_) } @works ], [ 1, 1, 1 ], 'each is a write of that row');
	is($editor->linked($_, 'mentor'), '', 'cleared, of one type') for @pupils;
	is_deeply([ $editor->linked($bystander, 'editor'), $editor->version($bystander) ], [ $ann->{id}, 0 ], 'others are left alone');

	my $work = $editor->made(works => { title => 'noted' }, { author => $ann });
	my @notes = map { $editor->made(notes => { text => "n$_" }, { work => $work }) } 1 .. 2;
	deleted('the many side', $work);
	is_deeply([ map { ($editor->linked($_, 'work'), $editor->version($_)) } @notes ], [ '', 1, '', 1 ], 'notes outlive their work');
};

subtest 'cascade' => sub {
	my $work = $editor->made(works => { title => 'deep' }, { author => $ann });
	my $stays = $editor->made(works => { title => 'stays' }, { author => $ann });
	my (@chapters, @paragraphs);

	for my $c (1 .. 3)
	{
		push @chapters, $editor->made(chapters => { heading => "c$c" }, { work => $work });
		push @paragraphs, map { $editor->made(paragraphs => { text => "p$c.$_" }, { chapter => $chapters[-1] }) } 1 .. 3;
	}
	my $chapter = $editor->made(chapters => { heading => 's' }, { work => $stays });
	my $paragraph = $editor->made(paragraphs => { text => 's' }, { chapter => $chapter });

	deleted('one child', $chapters[0]);
	ok($editor->gone($_), 'with its own children') for @paragraphs[ 0 .. 2 ];
	ok(!$editor->gone($_), 'and no others') for $work, @chapters[ 1, 2 ], @paragraphs[ 3 .. 8 ];
	deleted('the parent', $work);
	ok($editor->gone($_), 'with all that is left') for @chapters[ 1, 2 ], @paragraphs[ 3 .. 8 ];
	ok(!$editor->gone($_), 'and nothing of another') for $stays, $chapter, $paragraph;

	my $owner = $editor->made(authors => { name => 'Owner' });
	my $passport = $editor->made(passports => { number => 'A1' }, { owner => $owner });
	deleted('one side of a one-to-one', $passport);
	ok(!$editor->gone($owner), 'the other stays');
	$passport = $editor->made(passports => { number => 'A1' }, { owner => $owner });
	deleted('the other', $owner);
	ok($editor->gone($passport), 'takes it along');

	# A cascade that meets something that restricts is undone as a whole.
	my $place = $editor->made(places => { name => 'p' });
	my $ticket = $editor->made(tickets => {}, { admits => $place });
	my $poster = $editor->made(posters => {}, { shows => $place });
	$editor->refused('restricted elsewhere', 409, 'STILL_REFERENCED', undef, DELETE => $editor->path($place), headers => { 'If-Match' => '*' });
	ok(!$editor->gone($_), 'all is there') for $place, $ticket, $poster;
};

subtest 'links of a many-to-many' => sub {
	my @genres = map { $editor->made(genres => { name => "g$_" }) } 1 .. 3;
	my @works = map { $editor->made(works => { title => "m$_" }, { author => $ann, genres => \@genres }) } 1 .. 2;
	my @friends = map { $editor->made(authors => { name => "f$_" }) } 1 .. 3;

	$editor->relate(POST => $friends[0], 'friends', [@friends]);
	$editor->relate(POST => $friends[1], 'friends', [ $friends[0] ]);
	deleted('from the other side', $genres[0]);
	is($editor->linked($_, 'genres'), ids(@genres[ 1, 2 ]), 'the link is gone') for @works;
	deleted('from the side of the join table', $works[0]);
	is($editor->linked($_, 'works'), $works[1]{id}, 'the link is gone') for @genres[ 1, 2 ];
	deleted('of one type, with a link to itself', $friends[0]);
	is($editor->linked($friends[1], 'friends') . $editor->linked($friends[2], 'admirers'), '', 'in both directions');
	is($cluster->psql("select count(*) from app.work_genres g where not exists (select from app.work w where w.tenant_id = g.tenant_id and w.id = g.work_id)"), 0,
		'none is left over');
};

subtest 'hidden rows' => sub {
	my $memo = $editor->made(memos => { subject => 'Hidden' });
	my $answer = $editor->made(memos => { subject => 'Shown' });
	my $label = $editor->made(labels => { word => 'urgent' }, { memos => [ $memo, $answer ] });
	my $sticker = $editor->made(stickers => { colour => 'red' }, { memo => $memo });
	my $rows = sub { $cluster->psql("select count(*) from app.memo where subject = 'Hidden'") };

	$editor->update($label, {}, { favourite => $memo });
	my $reply = $editor->made(memos => { subject => 'Reply' }, { reply => $memo });
	$editor->refused('still referred to', 409, 'STILL_REFERENCED', undef, DELETE => $editor->path($memo), headers => { 'If-Match' => '*' });
	$editor->relate(PATCH => $reply, 'reply', $answer);
	is($editor->linked($label, 'memos'), ids($memo, $answer), 'seen before');
	deleted('hides it', $memo);
	is($rows->(), 1, 'the row is still there');
	ok($editor->gone($sticker), 'cascade works');
	is($cluster->psql(q{select count(*) from app.sticker where colour = 'red' and deleted_at is not null}), 1, 'and only hides, too');
	is($editor->linked($label, 'favourite'), '', 'so does setNull');

	$editor->refused("$_ of it", 404, 'NOT_FOUND', undef, $_ => $editor->path($memo), headers => { 'If-Match' => '*' },
		$_ eq 'PATCH' ? (data => $editor->identifier($memo)) : ())
	  for qw(GET PATCH DELETE);
	$editor->refused("$_ of its relationship", 404, 'NOT_FOUND', undef, $_ => $editor->path($memo, 'relationships', 'labels'),
		headers => { 'If-Match' => '*' }, $_ eq 'GET' ? () : (data => []))
	  for qw(GET POST PATCH DELETE);
	$editor->refused('what is related to it', 404, 'NOT_FOUND', undef, GET => $editor->path($memo, 'replies'));
	my $list = $editor->good(200, GET => '/memos')->{json};
	is(ids(@{ $list->{data} }), ids($answer, $reply), 'not in lists');
	is($list->{meta}{pagination}{totalRecords}, 2, 'nor in their totals');
	is_deeply($editor->good(200, GET => '/memos?filter=subject==Hidden')->{json}{data}, [], 'not by filter');
	is_deeply($editor->good(200, GET => "/memos?filter=id==$memo->{id}")->{json}{data}, [], 'nor by id');
	is($editor->linked($label, 'memos'), $answer->{id}, 'not in linkage');
	is(ids(@{ $editor->good(200, GET => $editor->path($label) . '?include=memos')->{json}{included} }), $answer->{id}, 'nor included');
	is(ids(@{ $editor->good(200, GET => $editor->path($label, 'memos'))->{json}{data} }), $answer->{id}, 'nor related');
	is_deeply($editor->good(200, GET => '/labels?filter=memos.subject==Hidden')->{json}{data}, [], 'nor on a path');

	for my $case (
		[ 'created with it',        sub { $editor->call(POST => '/memos', data => $editor->document(memos => { subject => 'n' }, { reply => $memo })) } ],
		[ 'updated to it',          sub { $editor->update($answer, {}, { reply => $memo }) } ],
		[ 'related to it',          sub { $editor->relate(PATCH => $answer, 'reply', $memo) } ],
		[ 'added to a to-many',     sub { $editor->relate(POST => $answer, 'replies', [$memo]) } ],
		[ 'added to a many-to-many', sub { $editor->relate(POST => $label, 'memos', [$memo]) } ],
		[ 'in a batch',             sub { $editor->batch({ op => 'update', ref => { %{ $editor->identifier($answer) }, relationship => 'reply' }, data => $editor->identifier($memo) }) } ])
	{
		my ($name, $request) = @$case;
		my $result = $request->();
		is("$result->{status} $result->{json}{errors}[0]{code}", '404 RELATED_NOT_FOUND', $name);
	}
	is($editor->linked($answer, 'reply'), '', 'none of it happened');

	my $again = $editor->made(memos => { subject => 'Hidden' });
	is($rows->(), 2, 'its unique value is free');
	my $taken = $editor->call(POST => '/memos', data => $editor->document(memos => { subject => 'Hidden' }));
	is("$taken->{status} $taken->{json}{errors}[0]{code}", '409 UNIQUE_VIOLATION', 'for one other only');
	deleted('that, too', $again);
	deleted('and again', $editor->made(memos => { subject => 'Hidden' }));
	is($rows->(), 3, 'all are kept');
};

subtest 'in a batch' => sub {
	my $author = $editor->made(authors => { name => 'Batch' });
	my $work = $editor->made(works => { title => 'b' }, { author => $author });
	my $chapter = $editor->made(chapters => { heading => 'b' }, { work => $work });
	my @remove = map { { op => 'remove', ref => $editor->identifier($_) } } $work, $author;

	is($editor->batch(reverse @remove)->{status}, 409, 'the order matters');
	ok(!$editor->gone($work), 'nothing was removed');
	is($editor->batch(@remove)->{status}, 200, 'first what refers, then what it refers to');
	ok($editor->gone($_), 'all are gone') for $author, $work, $chapter;
};

done_testing;
