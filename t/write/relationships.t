# Relationship endpoints and related resources, for every kind of relationship
# and from both its sides.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my ($reader, $other) = ($editor->reader, $editor->other);
my $nobody = $EntityApi::Test::Conformance::nobody;
my $number = 0;

*ids = \&EntityApi::Test::Conformance::ids;

# Something new of a type, with all that it must have
my %attribute = (
	authors => 'name', works => 'title', genres => 'name', notes => 'text', chapters => 'heading',
	places  => 'name', events => 'name', desks => 'number', passports => 'number');
my $ann = $editor->made(authors => { name => 'Ann' });

sub fresh
{
	my ($type, $by) = @_;
	my $cases = $by // $editor;
	my $author = $type eq 'works' && $by ? fresh('authors', $by) : $ann;
	my %needs = (works => { author => $author }, passports => { owner => $author });

	$needs{chapters} = { work => fresh('works', $by) } if $type eq 'chapters';
	$number++;
	return $cases->made($type, { $attribute{$type} => $type eq 'desks' ? $number : "$type $number" },
		$needs{$type});
}

# The relationships of each kind: whose, name, type of the members, and the name
# of the other side.
my @to_many = (
	[ 'many-to-many',                  'works',   'genres',     'genres',  'works' ],
	[ 'many-to-many, other side',      'genres',  'works',      'works',   'genres' ],
	[ 'many-to-many of one type',      'authors', 'friends',    'authors', 'admirers' ],
	[ 'its other side',                'authors', 'admirers',   'authors', 'friends' ],
	[ 'to-many',                       'works',   'notes',      'notes',   'work' ],
	[ 'to-many of one type',           'authors', 'pupils',     'authors', 'mentor' ],
	[ 'to-many that mirrors a one-of', 'places',  'depictions', 'works',   'subject' ]);
my @to_one = (
	[ 'to-one',                 'works',   'editor',  'authors', 'edits' ],
	[ 'to-one of one type',     'authors', 'mentor',  'authors', 'pupils' ],
	[ 'one-to-one',             'desks',   'holder',  'authors', 'desk' ],
	[ 'one-to-one, other side', 'authors', 'desk',    'desks',   'holder' ],
	[ 'one-of',                 'works',   'subject', 'places',  'depictions' ]);

for my $kind (@to_many)
{
	my ($name, $type, $relationship, $member_type, $inverse) = @$kind;

	subtest $name => sub {
		my $parent = fresh($type);
		my ($one, $two, $three) = map { fresh($member_type) } 1 .. 3;
		my $path = $editor->path($parent, 'relationships', $relationship);

		is($editor->call(GET => $path)->{body} =~ /"data":\[\]/ ? 1 : 0, 1, 'empty at first');
		for my $step (
			[ 'a first member',           POST   => [$one],                   [$one] ],
			[ 'the same again',           POST   => [$one],                   [$one] ],
			[ 'more, one named twice',    POST   => [ $two, $two, $three ],   [ $one, $two, $three ] ],
			[ 'adding nothing',           POST   => [],                       [ $one, $two, $three ] ],
			[ 'removing nothing',         DELETE => [],                       [ $one, $two, $three ] ],
			[ 'one less',                 DELETE => [$one],                   [ $two, $three ] ],
			[ 'the same less',            DELETE => [$one],                   [ $two, $three ] ],
			[ 'one that never was there', DELETE => [ { type => $member_type, id => $nobody } ], [ $two, $three ] ],
			[ 'no uuid at all',           DELETE => [ { type => $member_type, id => 'x' } ],     [ $two, $three ] ],
			[ 'replaced',                 PATCH  => [ $one, $two ],           [ $one, $two ] ],
			[ 'by the same',              PATCH  => [ $two, $one, $two ],     [ $one, $two ] ],
			[ 'by nothing',               PATCH  => [],                       [] ],
			[ 'two at once',              POST   => [ $three, $one ],         [ $one, $three ] ])
		{
			my ($step_name, $method, $value, $expected) = @$step;
			my $answer = $editor->relate($method, $parent, $relationship, $value);

			is($answer->{status}, 204, "$step_name: status") or diag $answer->{body};
			is($answer->{body}, '', "$step_name: no body");
			is($editor->linked($parent, $relationship), ids(@$expected), "$step_name: members");
		}

		like($editor->linked($one, $inverse), qr/$parent->{id}/, 'seen from the other side');
		is($editor->linked($two, $inverse), '', 'not from one that left');

		my $document = $editor->good(200, GET => $path)->{json};
		is($document->{links}{self}, "/api/v1$path", 'self');
		is($document->{links}{related}, '/api/v1' . $editor->path($parent, $relationship), 'related');
		is_deeply([ sort keys %{ $document->{data}[0] } ], [qw(id type)], 'identifiers only');
		is_deeply(
			[ sort map { $_->{id} } @{ $editor->current($parent)->{relationships}{$relationship}{data} } ],
			[ sort $one->{id}, $three->{id} ], 'the same linkage in the resource');

		# What is refused changes nothing.
		my $foreign = fresh($member_type, $other);
		my $wrong = fresh($member_type eq 'notes' ? 'authors' : 'notes');
		for my $method (qw(POST PATCH DELETE))
		{
			for my $case (
				[ 'no data',                     400, '',             {} ],
				[ 'null',                        400, '/data',        { data => undef } ],
				[ 'an object',                   400, '/data',        { data => $editor->identifier($one) } ],
				[ 'a string',                    400, '/data',        { data => 'x' } ],
				[ 'no identifier',               400, '/data/0',      { data => ['x'] } ],
				[ 'a null',                      400, '/data/0',      { data => [undef] } ],
				[ 'no id',                       400, '/data/0',      { data => [ { type => $member_type } ] } ],
				[ 'no type',                     400, '/data/0',      { data => [ { id => $one->{id} } ] } ],
				[ 'a numeric id',                400, undef,          { data => [ { type => $member_type, id => 7 } ] } ],
				[ 'another type',                400, '/data/1/type', { data => [ map { $editor->identifier($_) } $two, $wrong ] } ],
				[ 'unknown type',                400, '/data/0/type', { data => [ { type => 'nothings', id => $one->{id} } ] } ])
			{
				my ($case_name, $status, $pointer, $document) = @$case;

				$editor->refused("$method $case_name", $status, undef,
					defined $pointer && $pointer ne '' ? [ pointer => $pointer ] : undef,
					$method, $path, json => $document, headers => { 'If-Match' => '*' });
			}
			for my $case (
				[ 'blank',       ' ' ],   [ 'no JSON',       'x' ], [ 'broken JSON', '{"data":[' ],
				[ 'an array',    '[]' ],  [ 'null',          'null' ])
			{
				my ($case_name, $body) = @$case;

				$editor->refused("$method $case_name", 400, undef, undef, $method, $path,
					body => $body, headers => { 'If-Match' => '*' });
			}
			$editor->refused("$method no body", 400, undef, undef, $method, $path,
				headers => { 'If-Match' => '*', 'Content-Length' => 0 });
			next if $method eq 'DELETE';
			for my $case (
				[ 'nobody',                     { type => $member_type, id => $nobody } ],
				[ 'no uuid',                    { type => $member_type, id => 'x' } ],
				[ "another tenant's",           $foreign ],
				[ 'the id of something else',   { type => $member_type, id => $wrong->{id} } ])
			{
				my ($case_name, $member) = @$case;

				$editor->refused("$method $case_name", 404, 'RELATED_NOT_FOUND', undef, $method, $path,
					data => $editor->linkage([ $two, $member ]), headers => { 'If-Match' => '*' });
			}
		}
		is($editor->relate(DELETE => $parent, $relationship, [$foreign])->{status}, 204,
			"another tenant's is no member");
		is($editor->linked($parent, $relationship), ids($one, $three), 'nothing has changed');
	};
}

for my $kind (@to_one)
{
	my ($name, $type, $relationship, $member_type, $inverse) = @$kind;

	subtest $name => sub {
		my $parent = fresh($type);
		my ($one, $two) = map { fresh($member_type) } 1 .. 2;
		my $path = $editor->path($parent, 'relationships', $relationship);

		like($editor->good(200, GET => $path)->{body}, qr/"data":null/, 'empty at first');
		for my $step (
			[ 'set',       $one ], [ 'by the same', $one ], [ 'by another', $two ],
			[ 'cleared', undef ], [ 'and again', undef ], [ 'set again', $one ])
		{
			my ($step_name, $value) = @$step;
			my $answer = $editor->relate(PATCH => $parent, $relationship, $value);

			is($answer->{status}, 204, "$step_name: status") or diag $answer->{body};
			is($answer->{body}, '', "$step_name: no body");
			is($editor->linked($parent, $relationship), ids($value // ()), "$step_name: member");
		}
		is($editor->linked($one, $inverse), $parent->{id}, 'seen from the other side');
		is($editor->linked($two, $inverse), '', 'not from one that left');
		is_deeply($editor->current($parent)->{relationships}{$relationship}{data},
			$editor->identifier($one), 'the same linkage in the resource');

		for my $method (qw(POST DELETE))
		{
			for my $value ([], [$two], $two)
			{
				my $answer = $editor->relate($method, $parent, $relationship, $value);
				is("$answer->{status} $answer->{json}{errors}[0]{code}", '403 TO_ONE_RELATIONSHIP',
					"$method is not for a to-one");
			}
		}
		my $foreign = fresh($member_type, $other);
		my $wrong = fresh('notes');
		for my $case (
			[ 'no data',                   400, undef,        {} ],
			[ 'an array',                  400, '/data',      { data => [ $editor->identifier($two) ] } ],
			[ 'an empty array',            400, '/data',      { data => [] } ],
			[ 'a string',                  400, '/data',      { data => 'x' } ],
			[ 'false',                     400, '/data',      { data => JSON::PP::false() } ],
			[ 'no id',                     400, '/data',      { data => { type => $member_type } } ],
			[ 'no type',                   400, '/data',      { data => { id => $two->{id} } } ],
			[ 'a numeric id',              400, undef,        { data => { type => $member_type, id => 7 } } ],
			[ 'another type',              400, '/data/type', { data => $editor->identifier($wrong) } ],
			[ 'unknown type',              400, '/data/type', { data => { type => 'nothings', id => $two->{id} } } ],
			[ 'nobody',                    404, undef,        { data => { type => $member_type, id => $nobody } } ],
			[ 'no uuid',                   404, undef,        { data => { type => $member_type, id => 'x' } } ],
			[ "another tenant's",          404, undef,        { data => $editor->identifier($foreign) } ],
			[ 'the id of something else',  404, undef,        { data => { type => $member_type, id => $wrong->{id} } } ])
		{
			my ($case_name, $status, $pointer, $document) = @$case;

			$editor->refused("PATCH $case_name", $status, undef, defined $pointer ? [ pointer => $pointer ] : undef,
				PATCH => $path, json => $document, headers => { 'If-Match' => '*' });
		}
		$editor->refused('PATCH no body', 400, undef, undef, PATCH => $path,
			headers => { 'If-Match' => '*', 'Content-Length' => 0 });
		is($editor->linked($parent, $relationship), $one->{id}, 'nothing has changed');
	};
}

subtest 'what is required' => sub {
	my $work = fresh('works');
	my ($one, $two) = map { fresh('authors') } 1 .. 2;

	$editor->refused('a required to-one is not cleared', 400, 'REQUIRED', [ pointer => '/data' ],
		PATCH => $editor->path($work, 'relationships', 'author'), data => undef, headers => { 'If-Match' => '*' });
	is($editor->relate(PATCH => $work, 'author', $one)->{status}, 204, 'but set to another');
	is($editor->linked($one, 'works'), $work->{id}, 'which has it now');
	for my $case ([ PATCH => [] ], [ DELETE => [$work] ])
	{
		my $answer = $editor->relate(@$case[0], $one, 'works', $case->[1]);
		is("$answer->{status} $answer->{json}{errors}[0]{code}", '400 REQUIRED', "$case->[0]: a member cannot be left out");
	}
	is($editor->relate(DELETE => $one, 'works', [ fresh('works') ])->{status}, 204, 'one that is no member is not left out');
	is($editor->relate(POST => $two, 'works', [$work])->{status}, 204, 'a member moves');
	is(join('|', map { $editor->linked($_, 'works') } $one, $two), "|$work->{id}", 'from one to the other');

	my $passport = $editor->made(passports => { number => 'P1' }, { owner => $one });
	for my $value (undef, fresh('passports'))
	{
		# a second one cannot come while the first cannot go
		my $answer = $editor->relate(PATCH => $one, 'passport', $value);
		is("$answer->{status} $answer->{json}{errors}[0]{code}", '400 REQUIRED', 'the other side of a required one-to-one');
	}
	is($editor->linked($one, 'passport'), $passport->{id}, 'stays');
	is($editor->relate(PATCH => $two, 'passport', $passport)->{status}, 204, 'it moves');
	is(join('|', map { $editor->linked($_, 'passport') } $one, $two), "|$passport->{id}", 'to the other');
};

subtest 'one-to-one' => sub {
	my ($one, $two) = map { fresh('authors') } 1 .. 2;
	my ($desk, $second) = map { fresh('desks') } 1 .. 2;

	is($editor->relate(PATCH => $desk, 'holder', $one)->{status}, 204, 'a partner');
	my $answer = $editor->relate(PATCH => $second, 'holder', $one);
	is("$answer->{status} $answer->{json}{errors}[0]{code}", '409 UNIQUE_VIOLATION', 'has one partner only');
	is($answer->{json}{errors}[0]{source}{pointer}, '/data', 'where it was named');
	$editor->batch_refused('in a batch, too', 409, 'UNIQUE_VIOLATION', '/atomic:operations/0/data',
		{ op => 'update', ref => { %{ $editor->identifier($second) }, relationship => 'holder' }, data => $editor->identifier($one) });
	is($editor->relate(PATCH => $one, 'desk', $second)->{status}, 204, 'replaced from the other side');
	is(join('|', map { $editor->linked($_, 'holder') } $desk, $second), "|$one->{id}", 'the old one is free');
	is($editor->relate(PATCH => $two, 'desk', $second)->{status}, 204, 'and taken over from there');
	is(join('|', map { $editor->linked($_, 'desk') } $one, $two), "|$second->{id}", 'by the new one');
};

subtest 'nothing there' => sub {
	my $work = fresh('works');
	my $data = $editor->linkage($ann);

	for my $case (
		[ 'unknown parent',         $editor, "/works/$nobody" ],
		[ 'no uuid',                $editor, '/works/x' ],
		[ 'id of something else',   $editor, "/works/$ann->{id}" ],
		[ "another tenant's",       $other,  $editor->path($work) ])
	{
		my ($name, $by, $path) = @$case;

		for my $relationship (qw(editor genres))
		{
			my $value = $relationship eq 'genres' ? [] : undef;
			$by->refused("$name: GET $relationship", 404, 'NOT_FOUND', undef, GET => "$path/relationships/$relationship");
			$by->refused("$name: related $relationship", 404, 'NOT_FOUND', undef, GET => "$path/$relationship");
			$by->refused("$name: PATCH $relationship", 404, 'NOT_FOUND', undef, PATCH => "$path/relationships/$relationship",
				data => $value, headers => { 'If-Match' => '"0"' });
		}
		$by->refused("$name: $_", 404, 'NOT_FOUND', undef, $_ => "$path/relationships/genres",
			data => [], headers => { 'If-Match' => '"7"' })
		  for qw(POST DELETE);
	}
	for my $name (qw(nothing title id type Editor %20 editor%20))
	{
		my $path = $editor->path($work);
		$editor->refused("no relationship $name: $_", 404, 'NOT_FOUND', undef, $_ => "$path/relationships/$name", data => $data)
		  for qw(PATCH POST DELETE);
		$editor->refused("no relationship $name", 404, 'NOT_FOUND', undef, GET => "$path/relationships/$name");
		$editor->refused("nothing related by $name", 404, 'NOT_FOUND', undef, GET => "$path/$name");
	}
	$editor->refused('no relationship named', 404, 'NOT_FOUND', undef, GET => $editor->path($work, 'relationships'));
	$editor->refused('a trailing slash', 404, 'NOT_FOUND', undef, GET => $editor->path($work, 'relationships', 'editor', ''));
	$editor->refused('nothing below', 404, 'NOT_FOUND', undef, GET => $editor->path($work, 'editor', 'name'));
};

subtest 'who may' => sub {
	my $work = fresh('works');
	my $vault = $editor->made(vaults => { place => 'below' });

	is($editor->relate(PATCH => $work, 'vault', $vault)->{status}, 204, 'the editor sets the vault');
	$reader->refused("$_ needs the right to update", 403, 'FORBIDDEN', undef, $_ => $editor->path($work, 'relationships', 'genres'),
		data => [], headers => { 'If-Match' => '*' })
	  for qw(POST PATCH DELETE);
	$reader->good(200, GET => $editor->path($work, 'relationships', 'genres'));
	ok(!exists $reader->current($work)->{relationships}{vault}, 'what leads to the unreadable is left out');
	ok(exists $editor->current($work)->{relationships}{vault}, 'for readers only');
	$reader->refused('and unknown', 404, 'NOT_FOUND', undef, GET => $editor->path($work, 'relationships', 'vault'));
	$reader->refused('as a related resource, too', 404, 'NOT_FOUND', undef, GET => $editor->path($work, 'vault'));
	$editor->refused('without a credential', 401, undef, undef, GET => $editor->path($work, 'relationships', 'genres'), plain => 1);
};

subtest 'methods and parameters' => sub {
	my $work = fresh('works');

	for my $case (
		[ $editor->path($work, 'relationships', 'genres'), [qw(PUT)],                   [qw(DELETE GET HEAD PATCH POST)] ],
		[ $editor->path($work, 'relationships', 'author'), [qw(PUT)],                   [qw(DELETE GET HEAD PATCH POST)] ],
		[ $editor->path($work, 'genres'),                  [qw(POST PUT PATCH DELETE)], [qw(GET HEAD)] ])
	{
		my ($path, $methods, $allowed) = @$case;

		for my $method (@$methods)
		{
			my $answer = $editor->refused("$method $path", 405, 'METHOD_NOT_ALLOWED', undef, $method => $path, data => []);
			is_deeply([ sort split /,\s*/, $answer->{headers}{allow} // '' ], $allowed, 'Allow');
		}
		my ($get, $head) = map { $editor->call($_ => $path) } qw(GET HEAD);
		is($head->{status}, 200, 'HEAD');
		is($head->{body}, '', 'without a body');
		is($head->{headers}{'content-length'}, length $get->{body}, 'but its length');
	}
	for my $parameter (qw(include=genres filter=id==x sort=id page[size]=1 fields[works]=title x=1 include=))
	{
		my ($name) = split /=/, $parameter;
		$editor->refused("a relationship takes no $name", 400, undef, [ parameter => $name ],
			GET => $editor->path($work, 'relationships', 'genres') . "?$parameter");
	}
	for my $parameter (qw(filter=id==x sort=id page[size]=1))
	{
		my ($name) = split /=/, $parameter;
		$editor->refused("a related to-one takes no $name", 400, undef, [ parameter => $name ],
			GET => $editor->path($work, 'author') . "?$parameter");
	}
};

subtest 'related resources' => sub {
	my $author = $editor->made(authors => { name => 'Prolific' }, { mentor => $ann });
	my $genre = fresh('genres');
	my @works = map {
		$editor->made(works => { title => "Volume $_", price => $_ },
			{ author => $author, $_ % 2 ? (genres => [$genre], editor => $ann) : () })
	} 1 .. 5;
	my $path = $editor->path($author, 'works');
	my $titles = sub { [ map { $_->{attributes}{title} } @{ $_[0]{data} } ] };

	fresh('works');
	my $list = $editor->good(200, GET => "$path?filter=price=gt=1&sort=-price&page[size]=2&page[number]=2"
		  . '&include=genres&fields[works]=title,genres')->{json};
	is_deeply($titles->($list), [ 'Volume 3', 'Volume 2' ], 'filtered, sorted, paged');
	is_deeply($list->{meta}{pagination}, { number => 2, size => 2, totalPages => 2, totalRecords => 4 }, 'totals');
	is_deeply([ map { $_->{id} } @{ $list->{included} } ], [ $genre->{id} ], 'included');
	is_deeply([ keys %{ $list->{data}[0]{attributes} } ], ['title'], 'sparse');
	like($list->{links}{self}, qr{^/api/v1\Q$path\E\?}, 'self');
	is_deeply($titles->($editor->good(200, GET => $list->{links}{prev})->{json}), [ 'Volume 5', 'Volume 4' ], 'prev leads there');
	is_deeply($titles->($editor->good(200, GET => $list->{links}{first})->{json}), [ 'Volume 5', 'Volume 4' ], 'so does first');
	ok(!defined $list->{links}{next}, 'no next');
	is($list->{data}[0]{links}{self}, $editor->path($works[2]) =~ s{^}{/api/v1}r, 'members have their own address');

	$list = $editor->good(200, GET => $path)->{json};
	is($list->{meta}{pagination}{totalRecords}, 5, 'all of them, and no others');
	is_deeply($editor->good(200, GET => "$path?filter=author.name==Ann")->{json}{data}, [], 'nothing fits');
	is($editor->good(200, GET => "$path?include=")->{json}{included} ? 1 : 0, 1, 'included is there when asked for');
	is_deeply($titles->($editor->good(200, GET => $editor->path($genre, 'works') . '?sort=title')->{json}),
		[ 'Volume 1', 'Volume 3', 'Volume 5' ], 'through a join table');
	is_deeply($titles->($editor->good(200, GET => $editor->path($ann, 'edits') . '?sort=-title')->{json}),
		[ 'Volume 5', 'Volume 3', 'Volume 1' ], 'by another relationship to the same type');
	is_deeply([ map { $_->{id} } @{ $editor->good(200, GET => $editor->path($ann, 'pupils'))->{json}{data} } ],
		[ $author->{id} ], 'of one type');
	is_deeply([ map { $_->{id} } @{ $editor->good(200, GET => $editor->path($works[0], 'genres'))->{json}{data} } ],
		[ $genre->{id} ], 'from the side that has the join table');
	$editor->refused('unknown sort key', 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "$path?sort=name");
	$editor->refused('unknown in a filter', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "$path?filter=name==x");

	my $place = fresh('places');
	my $desk = fresh('desks');
	$editor->relate(PATCH => $desk, 'holder', $author);
	for my $case (
		[ 'to-one',                 $works[0], 'author',   $author ],
		[ 'empty to-one',           $works[1], 'editor',   undef ],
		[ 'empty one-of',           $works[0], 'subject',  undef ],
		[ 'one-to-one',             $desk,     'holder',   $author ],
		[ 'one-to-one, other side', $author,   'desk',     $desk ],
		[ 'empty other side',       $ann,      'desk',     undef ])
	{
		my ($name, $parent, $relationship, $expected) = @$case;
		my $answer = $editor->good(200, GET => $editor->path($parent, $relationship));

		ok(exists $answer->{json}{data}, "$name: data");
		is($answer->{json}{data} && $answer->{json}{data}{id}, $expected && $expected->{id}, "$name: which");
		is($answer->{json}{links}{self}, '/api/v1' . $editor->path($parent, $relationship), "$name: self");
	}
	my $answer = $editor->good(200, GET => $editor->path($works[0], 'author') . '?include=mentor&fields[authors]=name')->{json};
	is_deeply([ $answer->{data}{attributes}, $answer->{included}[0]{id} ], [ { name => 'Prolific' }, $ann->{id} ],
		'a related to-one takes include and fields');
	is_deeply($editor->good(200, GET => $editor->path($works[1], 'editor') . '?include=mentor')->{json}{included}, [],
		'even when it is empty');
};

subtest 'versions grow' => sub {
	my $work = fresh('works');
	my ($one, $two) = map { fresh('notes') } 1 .. 2;
	my $genre = fresh('genres');
	my $place = fresh('places');
	my ($desk, $second) = map { fresh('desks') } 1 .. 2;
	my $author = fresh('authors');
	my @watched = (work => $work, one => $one, two => $two, genre => $genre, place => $place, desk => $desk, second => $second);
	my %resource = @watched;

	# Steps, and by how much which version grows
	for my $step (
		[ 'add a note',                POST   => 'work',   'notes',      [$one],         { work => 1, one => 1 } ],
		[ 'add it again',              POST   => 'work',   'notes',      [$one],         { work => 1 } ],
		[ 'replace it',                PATCH  => 'work',   'notes',      [$two],         { work => 1, one => 1, two => 1 } ],
		[ 'remove one that is not in', DELETE => 'work',   'notes',      [$one],         { work => 1 } ],
		[ 'remove the other',          DELETE => 'work',   'notes',      [$two],         { work => 1, two => 1 } ],
		[ 'add from the other side',   PATCH  => 'one',    'work',       $work,          { one => 1 } ],
		[ 'link',                      POST   => 'work',   'genres',     [$genre],       { work => 1 } ],
		[ 'link from the other side',  POST   => 'genre',  'works',      [$work],        { genre => 1 } ],
		[ 'unlink',                    PATCH  => 'genre',  'works',      [],             { genre => 1 } ],
		[ 'to-one',                    PATCH  => 'work',   'editor',     $ann,           { work => 1 } ],
		[ 'to-one, the same',          PATCH  => 'work',   'editor',     $ann,           { work => 1 } ],
		[ 'one-of',                    PATCH  => 'work',   'subject',    $place,         { work => 1 } ],
		[ 'one-of, other side',        PATCH  => 'place',  'depictions', [],             { place => 1, work => 1 } ],
		[ 'one-to-one',                PATCH  => 'desk',   'holder',     $author,        { desk => 1 } ])
	{
		my ($name, $method, $whose, $relationship, $value, $growth) = @$step;
		my %before = map { $_ => $editor->version($resource{$_}) } keys %resource;
		my $answer = $editor->relate($method, $resource{$whose}, $relationship, $value);

		is($answer->{status}, 204, $name) or diag $answer->{body};
		is_deeply({ map { $_ => $editor->version($resource{$_}) - $before{$_} } keys %resource },
			{ map({ $_ => 0 } keys %resource), %$growth }, "$name: versions");
	}
	my %before = map { $_ => $editor->version($resource{$_}) } qw(desk second);
	$editor->relate(PATCH => $author, 'desk', $second);
	is_deeply([ map { $editor->version($resource{$_}) - $before{$_} } qw(desk second) ], [ 1, 1 ],
		'through the unlocked side of a one-to-one');
};

subtest 'through the resource' => sub {
	my ($one, $two) = map { fresh('notes') } 1 .. 2;
	my $work = $editor->made(works => { title => 'Whole' }, { author => $ann, notes => [$one], genres => [] });

	is($editor->linked($work, 'notes'), $one->{id}, 'created with members');
	is($editor->update($work, {}, { notes => [$two] })->{status}, 200, 'replaced');
	is(join('|', map { $editor->linked($_, 'work') } $one, $two), "|$work->{id}", 'both sides know');
	is($editor->update($work, {}, { notes => [] })->{status}, 200, 'all left out');
	is($editor->linked($two, 'work'), '', 'and cleared');
	my $answer = $editor->update($ann, {}, { works => [] });
	is("$answer->{status} $answer->{json}{errors}[0]{source}{pointer}", '400 /data/relationships/works/data',
		'unless the owning side is required');
	$editor->good(200, PATCH => $editor->path($work) . '?include=author&fields[works]=author&fields[authors]=name',
		data => { type => 'works', id => $work->{id} }, headers => { 'If-Match' => '*' });
};

done_testing;
