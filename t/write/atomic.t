# Atomic operations: their form, local ids, all or nothing, and what the single
# requests check.

use strict;
use warnings;

use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my ($reader, $other) = ($editor->reader, $editor->other);
my $nobody = $EntityApi::Test::Conformance::nobody;
my $atomic = $EntityApi::Test::Conformance::atomic;
my $plain = $EntityApi::Test::Conformance::type;
my $list = '/atomic:operations';

*ids = \&EntityApi::Test::Conformance::ids;

my $ann = $editor->made(authors => { name => 'Ann' });
my $number = 0;

sub add
{
	my ($type, $attributes, $relationships, $lid) = @_;
	my $data = $editor->document($type, $attributes, $relationships);

	$data->{lid} = $lid if defined $lid;
	return { op => 'add', data => $data };
}

sub update
{
	my ($target, $attributes, $relationships) = @_;

	return {
		op   => 'update',
		ref  => $editor->identifier($target),
		data => { %{ $editor->document($target->{type}, $attributes, $relationships) }, %{ $editor->identifier($target) } } };
}

sub relationship
{
	my ($op, $target, $name, $value) = @_;

	return {
		op   => $op,
		ref  => { %{ $editor->identifier($target) }, relationship => $name },
		data => $editor->linkage($value) };
}

sub remove
{
	my ($target) = @_;

	return { op => 'remove', ref => $editor->identifier($target) };
}

sub lid
{
	my ($type, $lid) = @_;

	return { type => $type, lid => $lid };
}

# A batch that must succeed; returns its results.
sub results
{
	my ($name, @operations) = @_;
	my $answer = $editor->batch(@operations);

	is($answer->{status}, 200, $name) or diag $answer->{body};
	return @{ $answer->{json}{'atomic:results'} // [] };
}

sub unique
{
	$number++;
	return "name $number";
}

subtest 'a whole tree' => sub {
	my $answer = $editor->batch(
		add(authors => { name => 'Tree' }, { mentor => $ann }, 'a'),
		add(places => { name => 'Alp' }, undef, 'a'),
		add(genres => { name => 'Drama' }, undef, 'd'),
		add(genres => { name => 'Farce' }, undef, 'f'),
		add(works => { title => 'First', price => 1.5 },
			{ author => lid(authors => 'a'), subject => lid(places => 'a'), genres => [ lid(genres => 'd'), lid(genres => 'f') ] }, 'w'),
		add(chapters => { heading => 'One' }, { work => lid(works => 'w') }, 'c1'),
		add(chapters => { heading => 'Two' }, { work => lid(works => 'w') }),
		add(paragraphs => { text => 'p' }, { chapter => lid(chapters => 'c1') }));
	my $results = $answer->{json}{'atomic:results'};

	is($answer->{status}, 200, 'made') or diag $answer->{body};
	is($answer->{headers}{'content-type'}, $atomic, 'content type');
	like($answer->{headers}{vary}, qr/Accept/, 'Vary');
	is_deeply([ sort keys %{ $answer->{json} } ], [qw(atomic:results jsonapi)], 'members of the document');
	is_deeply($answer->{json}{jsonapi}, { version => '1.1', ext => ['https://jsonapi.org/ext/atomic'] }, 'jsonapi');
	is_deeply([ map { $_->{data}{type} } @$results ], [qw(authors places genres genres works chapters chapters paragraphs)],
		'results in the order of the operations');
	is_deeply([ map { $_->{data}{attributes}{name} } @$results[ 0 .. 3 ] ], [qw(Tree Alp Drama Farce)], 'each its own');
	is_deeply([ grep { exists $_->{data}{lid} } @$results ], [], 'no local ids');

	my ($author, $place, $drama, $farce, $work, $one, $two, $paragraph) = map { $_->{data} } @$results;
	is($work->{relationships}{author}{data}{id}, $author->{id}, 'to-one by local id');
	is($work->{relationships}{subject}{data}{id}, $place->{id}, 'one-of by local id, the same for another type');
	is(ids(@{ $work->{relationships}{genres}{data} }), ids($drama, $farce), 'to-many by local ids');
	is($editor->linked($work, 'chapters'), ids($one, $two), 'children');
	is($editor->linked($one, 'paragraphs'), $paragraph->{id}, 'grandchildren');
	is_deeply([ map { $_->{meta}{version} } $work, $one ], [ 0, 0 ], 'versions begin at 0');
	is_deeply($editor->current($_)->{attributes}, $_->{attributes}, "$_->{type} as answered")
	  for $author, $place, $drama, $work, $one, $paragraph;
	is($work->{links}{self}, '/api/v1' . $editor->path($work), 'links');
};

subtest 'add, update, remove of one row' => sub {
	my @results = results('through its local id',
		add(authors => { name => 'One' }, undef, 'x'),
		add(works => { title => 'W' }, { author => lid(authors => 'x') }, 'w'),
		update(lid(works => 'w'), { title => 'W2' }),
		{ op => 'update', data => { type => 'works', lid => 'w', attributes => { title => 'W3' } } },
		relationship(update => lid(works => 'w'), 'editor', lid(authors => 'x')),
		relationship(update => lid(works => 'w'), 'editor', undef),
		relationship(add => lid(authors => 'x'), 'edits', [ lid(works => 'w') ]),
		remove(lid(works => 'w')),
		remove(lid(authors => 'x')));
	is_deeply([ map { exists $_->{data} ? 1 : 0 } @results ], [ 1, 1, 1, 1, 0, 0, 0, 0, 0 ], 'data for those that give some');
	is_deeply([ @results[ 4 .. 8 ] ], [ map { {} } 4 .. 8 ], 'and {} for the others');
	is_deeply([ map { "$results[$_]{data}{attributes}{title} $results[$_]{data}{meta}{version}" } 1 .. 3 ],
		[ 'W 0', 'W2 1', 'W3 2' ], 'each as it was then');
	ok($editor->gone($results[$_]{data}), 'gone') for 0, 1;

	my $work = $editor->made(works => { title => 'Two bumps' }, { author => $ann });
	results('two updates', update($work, { title => 'a' }), update($work, { price => 2 }));
	is($editor->version($work), 2, 'two versions');
	is_deeply([ @{ $editor->current($work)->{attributes} }{qw(title price)} ], [ 'a', 2 ], 'both took place');
	is_deeply([ results('only void operations', relationship(add => $work, 'genres', []), remove($work)) ], [ {}, {} ], 'are answered');
};

subtest 'relationships' => sub {
	my $work = $editor->made(works => { title => 'Related' }, { author => $ann });
	my @notes = map { $editor->made(notes => { text => "n$_" }) } 1 .. 3;
	my @genres = map { $editor->made(genres => { name => unique() }) } 1 .. 2;

	results('to-many',
		relationship(add => $work, 'notes', [ @notes[ 0, 1 ] ]),
		relationship(add => $work, 'notes', [ $notes[0] ]),
		relationship(remove => $work, 'notes', [ $notes[1] ]),
		relationship(remove => $work, 'notes', [ $notes[1], { type => 'notes', id => $nobody } ]),
		relationship(update => $work, 'genres', \@genres),
		relationship(remove => $genres[0], 'works', [$work]),
		relationship(add => $work, 'notes', [ $notes[2] ]));
	is($editor->linked($work, 'notes'), ids(@notes[ 0, 2 ]), 'a column of the other side');
	is($editor->linked($work, 'genres'), ids($genres[1]), 'a join table, from both sides');
	is($editor->version($work), 6, 'each was a write');
	results('cleared', relationship(update => $work, 'notes', []), relationship(update => $work, 'genres', []));
	is($editor->linked($work, 'notes') . $editor->linked($work, 'genres'), '', 'all of them');

	for my $op (qw(add remove))
	{
		$editor->batch_refused("$op on a to-one", 403, 'TO_ONE_RELATIONSHIP', undef,
			relationship($op => $work, 'editor', [$ann]));
	}
	for my $case (
		[ 'null for a to-many',          add    => 'notes',  undef,                             400, '/data' ],
		[ 'an object for a to-many',     update => 'notes',  $notes[0],                         400, '/data' ],
		[ 'an array for a to-one',       update => 'editor', [],                                400, '/data' ],
		[ 'null where it is required',   update => 'author', undef,                             400, '/data' ],
		[ 'the wrong type',              add    => 'notes',  [ $notes[0], $ann ],               400, '/data/1/type' ],
		[ 'the wrong type, to-one',      update => 'editor', $notes[0],                         400, '/data/type' ],
		[ 'not in the one-of',           update => 'subject', $ann,                             400, '/data/type' ],
		[ 'nobody',                      update => 'editor', { type => 'authors', id => $nobody }, 404, '/data' ],
		[ "another tenant's",            update => 'editor', $other->made(authors => { name => 'o' }), 404, '/data' ],
		[ 'an unknown local id',         update => 'editor', lid(authors => 'u'),               400, '/data/lid' ],
		[ 'an unknown local id in many', add    => 'notes',  [ $notes[0], lid(notes => 'u') ],  400, '/data/1/lid' ],
		[ 'neither id nor local id',     add    => 'notes',  [ { type => 'notes' } ],           400, '/data/0' ],
		[ 'both',                        add    => 'notes',  [ { %{ $editor->identifier($notes[0]) }, lid => 'x' } ], 400, '/data/0' ])
	{
		my ($name, $op, $relationship, $value, $status, $pointer) = @$case;

		$editor->batch_refused($name, $status, undef, "$list/1$pointer",
			add(authors => { name => 'never' }, undef, 'never'), relationship($op => $work, $relationship, $value));
	}
	$editor->batch_refused('no data', 400, 'INVALID_DOCUMENT', "$list/0",
		{ op => 'update', ref => { %{ $editor->identifier($work) }, relationship => 'editor' } });
	$editor->batch_refused('what is required stays', 400, 'REQUIRED', "$list/0/data", relationship(update => $ann, 'works', []));
	$editor->batch_refused('no such relationship', 404, undef, undef, relationship(update => $work, 'nothing', undef));
	$editor->batch_refused('an attribute is none', 404, undef, undef, relationship(update => $work, 'title', undef));
	is($editor->good(200, GET => '/authors?filter=name==never')->{json}{meta}{pagination}{totalRecords}, 0, 'nothing was made');
};

subtest 'form' => sub {
	my $work = $editor->made(works => { title => 'Form' }, { author => $ann });
	my %work = %{ $editor->identifier($work) };
	my $good = add(authors => { name => 'form' });

	for my $case (
		[ 'no operations',        '',    '{}' ],
		[ 'data instead',         '',    '{"data":null}' ],
		[ 'null',                 $list, '{"atomic:operations":null}' ],
		[ 'an object',            $list, '{"atomic:operations":{}}' ],
		[ 'a string',             $list, '{"atomic:operations":"add"}' ],
		[ 'none',                 $list, '{"atomic:operations":[]}' ],
		[ 'null as operation',    "$list/0", '{"atomic:operations":[null]}' ],
		[ 'a string as operation', "$list/0", '{"atomic:operations":["add"]}' ],
		[ 'an array as operation', "$list/0", '{"atomic:operations":[[]]}' ],
		[ 'an array',             undef, '[]' ],
		[ 'broken JSON',          undef, '{"atomic:operations":[' ],
		[ 'data beside it',       '/data', '{"data":null,"atomic:operations":[{"op":"add","data":{"type":"authors","attributes":{"name":"form"}}}]}' ],
		[ 'included beside it',   '/included', '{"included":[],"atomic:operations":[{"op":"add","data":{"type":"authors","attributes":{"name":"form"}}}]}' ],
		[ 'errors beside it',     '/errors', '{"errors":[],"atomic:operations":[{"op":"add","data":{"type":"authors","attributes":{"name":"form"}}}]}' ],
		[ 'a key twice',          undef, '{"atomic:operations":[{"op":"add","op":"add","data":{"type":"authors","attributes":{"name":"x"}}}]}' ],
		[ 'a blank body',         undef, ' ' ])
	{
		my ($name, $pointer, $body) = @$case;
		$editor->batch_body_refused($name, 400, undef, $pointer, $body);
	}

	# Status, pointer below the operation, operation
	for my $case (
		[ 'no op',                          400, '',          { data => $good->{data} } ],
		[ 'unknown op',                     400, '/op',       { %$good, op => 'replace' } ],
		[ 'upper-case op',                  400, '/op',       { %$good, op => 'ADD' } ],
		[ 'null op',                        400, '/op',       { %$good, op => undef } ],
		[ 'number as op',                   400, '/op',       { %$good, op => 1 } ],
		[ 'ref and href',                   400, '',          { %{ remove($work) }, href => $editor->path($work) } ],
		[ 'ref that is a string',           400, '/ref',      { op => 'remove', ref => 'x' } ],
		[ 'ref that is null',               400, '/ref',      { op => 'remove', ref => undef } ],
		[ 'ref without type',               400, '/ref',      { op => 'remove', ref => { id => $work{id} } } ],
		[ 'ref without id',                 400, '/ref',      { op => 'remove', ref => { type => 'works' } } ],
		[ 'ref with id and lid',            400, '/ref',      { op => 'remove', ref => { %work, lid => 'x' } } ],
		[ 'ref with a number as type',      400, '/ref/type', { op => 'remove', ref => { %work, type => 1 } } ],
		[ 'ref with a number as id',        400, '/ref/id',   { op => 'remove', ref => { %work, id => 1 } } ],
		[ 'ref with a number as lid',       400, '/ref/lid',  { op => 'remove', ref => { type => 'works', lid => 1 } } ],
		[ 'relationship that is a number',  400, '/ref/relationship', { op => 'update', ref => { %work, relationship => 1 }, data => undef } ],
		[ 'href that is an object',         400, '/href',     { op => 'remove', href => {} } ],
		[ 'add with a ref',                 400, '/ref',      { %$good, ref => \%work } ],
		[ 'add without data',               400, '',          { op => 'add' } ],
		[ 'add of null',                    400, '/data',     { op => 'add', data => undef } ],
		[ 'add of an array',                400, '/data',     { op => 'add', data => [ $good->{data} ] } ],
		[ 'add of a string',                400, '/data',     { op => 'add', data => 'x' } ],
		[ 'add without type',               400, '/data',     { op => 'add', data => { attributes => { name => 'x' } } } ],
		[ 'add with an id',                 403, '/data/id',  { op => 'add', data => { %{ $good->{data} }, id => $nobody } } ],
		[ 'add with id and lid',            400, undef,       { op => 'add', data => { %{ $good->{data} }, id => $nobody, lid => 'x' } } ],
		[ 'add with an empty lid',          400, '/data/lid', add(authors => { name => 'x' }, undef, '') ],
		[ 'add with a number as lid',       400, '/data/lid', { op => 'add', data => { %{ $good->{data} }, lid => 5 } } ],
		[ 'attributes that are an array',   400, '/data/attributes', { op => 'add', data => { type => 'authors', attributes => [] } } ],
		[ 'add of what is not declared',    404, undef,       add(nothings => {}) ],
		[ 'add to a collection of another type', 409, '/data/type', { %$good, href => '/works' } ],
		[ 'add to a collection that is not there', 404, undef, { %$good, href => '/nothings' } ],
		[ 'add to a relationship of data',  400, undef,       { %$good, href => $editor->path($work, 'relationships', 'notes') } ],
		[ 'update without a target',        400, '/data',     { op => 'update', data => { type => 'works' } } ],
		[ 'update without data',            400, '',          { op => 'update', ref => \%work } ],
		[ 'update with null',               400, '/data',     { op => 'update', ref => \%work, data => undef } ],
		[ 'update with an array',           400, '/data',     { op => 'update', ref => \%work, data => [] } ],
		[ 'update of a collection',         400, '/href',     { op => 'update', href => '/works', data => \%work } ],
		[ 'another type than its ref',      409, '/data/type', { op => 'update', ref => \%work, data => { %work, type => 'notes' } } ],
		[ 'another id than its ref',        409, '/data/id',  { op => 'update', ref => \%work, data => { %work, id => $nobody } } ],
		[ 'another lid than its ref',       400, '/data/lid', { op => 'update', ref => \%work, data => { type => 'works', lid => 'x' } } ],
		[ 'another type than its href',     409, '/data/type', { op => 'update', href => $editor->path($work), data => { %work, type => 'notes' } } ],
		[ 'another id than its href',       409, '/data/id',  { op => 'update', href => $editor->path($work), data => { %work, id => $nobody } } ],
		[ 'remove without a target',        400, '',          { op => 'remove' } ],
		[ 'remove by data',                 400, '',          { op => 'remove', data => \%work } ],
		[ 'remove of a collection',         400, undef,       { op => 'remove', href => '/works' } ],
		[ 'remove of nobody',               404, undef,       remove({ type => 'works', id => $nobody }) ],
		[ 'remove of no uuid',              404, undef,       remove({ type => 'works', id => '1' }) ],
		[ 'update of nobody',               404, undef,       update({ type => 'works', id => $nobody }, {}) ],
		[ 'ref to an unknown type',         404, undef,       remove({ type => 'nothings', id => $nobody }) ],
		[ 'ref by the collection',          404, undef,       remove({ type => 'Works', id => $work{id} }) ])
	{
		my ($name, $status, $pointer, $operation) = @$case;

		$editor->batch_refused($name, $status, undef, defined $pointer ? "$list/1$pointer" : undef, $good, $operation);
	}
	is($editor->good(200, GET => '/authors?filter=name==form')->{json}{meta}{pagination}{totalRecords}, 0, 'nothing was made');

	for my $parameter (qw(include=author fields[works]=title filter=id==x sort=id page[size]=1 x=1))
	{
		my ($name) = split /=/, $parameter;
		my $answer = $editor->call(POST => "/operations?$parameter",
			body => JSON::PP->new->canonical->encode({ 'atomic:operations' => [$good] }), headers => { 'Content-Type' => $atomic });
		is("$answer->{status} $answer->{json}{errors}[0]{source}{parameter}", "400 $name", "no $name");
	}
	results('unknown members are ignored',
		{ %{ add(authors => { name => 'form' }) }, meta => { x => 1 }, '@x' => 1, other => [] });
};

subtest 'href' => sub {
	my $work = $editor->made(works => { title => 'By address' }, { author => $ann });
	my $path = $editor->path($work);
	my $hex = join '', map { sprintf '%%%02x', ord } split //, 'works';

	for my $href ("/api/v1$path", $path, substr($path, 1), "/$hex/$work->{id}", '/works/' . uc $work->{id})
	{
		$number++;
		my ($result) = results("update by $href", { op => 'update', href => $href,
				data => { %{ $editor->identifier($work) }, attributes => { title => "T$number" } } });
		is($result->{data}{attributes}{title}, "T$number", 'done');
	}
	for my $href ('/api/v1/notes', '/notes', 'notes')
	{
		my ($result) = results("add to $href", { %{ add(notes => { text => 'h' }) }, href => $href });
		results("and a relationship", { op => 'add', href => "$path/relationships/notes", data => [ $editor->identifier($result->{data}) ] });
		like($editor->linked($work, 'notes'), qr/$result->{data}{id}/, 'done');
		results("remove by $href", { op => 'remove', href => "$href/$result->{data}{id}" });
		ok($editor->gone($result->{data}), 'done');
	}
	results('clear a to-one', { op => 'update', href => "/api/v1$path/relationships/editor", data => undef });
	for my $href (
		'', '/', '//works', '/api/v1', '/api/v1/', "/api/v9$path", "/api/v2$path", "http://elsewhere.example/api/v1$path", "$path/", "$path?x=1", "$path#x",
		"$path/author", "$path/relationships", "$path/relationships/", "$path/relationships/editor/more", "$path/links/editor", '/works/%zz', '/works/%00',
		"/api/v1/../v1$path", "../works/$work->{id}")
	{
		my $answer = $editor->batch({ op => 'remove', href => $href });
		like($answer->{status}, qr/^40[04]$/, "not \"$href\"") or diag $answer->{body};
		is($answer->{json}{errors}[0]{source}{pointer}, "$list/0/href", 'pointer') if $answer->{status} == 400;
	}
	ok(!$editor->gone($work), 'nothing was removed');
	is($editor->batch({ op => 'remove', href => $_ })->{status}, 404, "nothing at $_")
	  for "/works/$nobody", '/works/x', "/nothings/$nobody", "/WORKS/$work->{id}";
};

subtest 'local ids' => sub {
	my $author = add(authors => { name => 'lid' }, undef, 'a');
	my $work = sub { add(works => { title => 'lid' }, { author => $_[0] }, $_[1]) };

	for my $case (
		[ 'defined twice',                      "$list/2/data/lid", $author, add(genres => { name => unique() }), $author ],
		[ 'not defined',                        "$list/0/data/relationships/author/data/lid", $work->(lid(authors => 'a')) ],
		[ 'of another type',                    "$list/1/data/relationships/author/data/lid",
			add(genres => { name => unique() }, undef, 'a'), $work->(lid(authors => 'a')) ],
		[ 'defined later',                      "$list/0/data/relationships/author/data/lid", $work->(lid(authors => 'a')), $author ],
		[ 'of the operation itself',            "$list/0/data/relationships/mentor/data/lid",
			add(authors => { name => 'x' }, { mentor => lid(authors => 'x') }, 'x') ],
		[ 'of the operation itself, to-many',   "$list/0/data/relationships/pupils/data/0/lid",
			add(authors => { name => 'x' }, { pupils => [ lid(authors => 'x') ] }, 'x') ],
		[ 'not defined, as a target',           "$list/0/ref/lid", remove(lid(authors => 'a')) ],
		[ 'not defined, in data',               "$list/0/data/lid", { op => 'update', data => { type => 'authors', lid => 'a' } } ],
		[ 'of another type, as a target',       "$list/1/ref/lid", $author, remove(lid(works => 'a')) ],
		[ 'defined later, as a target',         "$list/0/ref/lid", remove(lid(authors => 'a')), $author ],
		[ 'in another case',                    "$list/1/ref/lid", $author, remove(lid(authors => 'A')) ])
	{
		my ($name, $pointer, @operations) = @$case;
		$editor->batch_refused($name, 400, undef, $pointer, @operations);
	}
	is($editor->good(200, GET => '/authors?filter=name==lid')->{json}{meta}{pagination}{totalRecords}, 0, 'nothing was made');
	results('one local id for two types', $author, add(genres => { name => unique() }, undef, 'a'), $work->(lid(authors => 'a'), 'a'));
	results('any text', map { add(authors => { name => 'lid' }, undef, $_) } '0', ' ', "\x{1f600}", 'a/b~c', 'x' x 1000, $nobody);
	$editor->refused('not outside of a batch', 400, undef, undef, POST => '/works',
		data => { type => 'works', attributes => { title => 'x' }, relationships => { author => { data => lid(authors => 'a') } } });
};

subtest 'all or nothing' => sub {
	my $taken = $editor->made(genres => { name => 'Taken' });
	my $work = $editor->made(works => { title => 'Before' }, { author => $ann });
	my $foreign = $other->made(works => { title => 'Abroad' }, { author => $other->made(authors => { name => 'o' }) });
	my $busy = $editor->made(authors => { name => 'Busy' });
	$editor->made(works => { title => 'Keeps' }, { author => $busy });

	for my $case (
		[ 'a value',               400, 'INVALID_VALUE',    '/data/attributes/price', update($work, { price => 'x' }) ],
		[ 'an unknown attribute',  400, 'UNKNOWN_FIELD',    '/data/attributes/nothing', update($work, { nothing => 1 }) ],
		[ 'an unknown relationship', 400, 'UNKNOWN_FIELD',  '/data/relationships/nothing', update($work, {}, { nothing => undef }) ],
		[ 'what is missing',       400, 'REQUIRED',         '/data/attributes', add(works => {}, { author => $ann }) ],
		[ 'a missing relationship', 400, 'REQUIRED',        '/data', add(works => { title => 'x' }) ],
		[ 'the wrong type',        400, 'TYPE_NOT_ALLOWED', '/data/relationships/author/data/type', add(works => { title => 'x' }, { author => $work }) ],
		[ 'no authority',          403, 'FORBIDDEN',        undef, add(countries => { code => 'XX' }) ],
		[ 'nobody',                404, 'NOT_FOUND',        undef, remove({ type => 'works', id => $nobody }) ],
		[ "another tenant's",      404, 'NOT_FOUND',        undef, remove($foreign) ],
		[ "update of another tenant's", 404, 'NOT_FOUND',   undef, update($foreign, { title => 'x' }) ],
		[ 'a relation to nobody',  404, 'RELATED_NOT_FOUND', '/data/relationships/author/data', add(works => { title => 'x' }, { author => { type => 'authors', id => $nobody } }) ],
		[ 'a relation abroad',     404, 'RELATED_NOT_FOUND', '/data/relationships/notes/data', update($work, {}, { notes => [ $other->made(notes => { text => 'o' }) ] }) ],
		[ 'a value taken',         409, 'UNIQUE_VIOLATION', '/data/attributes/name', add(genres => { name => 'Taken' }) ],
		[ 'what is referred to',   409, 'STILL_REFERENCED', undef, remove($busy) ],
		[ 'another version',       412, 'PRECONDITION_FAILED', undef, { %{ update($work, {}) }, ref => { %{ $editor->identifier($work) }, meta => { version => 99 } } } ])
	{
		my ($name, $status, $code, $pointer, $operation) = @$case;
		my $before = join ' ', map { $editor->total($_) } qw(authors genres works notes);

		$editor->batch_refused($name, $status, $code, defined $pointer ? "$list/3$pointer" : undef,
			add(genres => { name => 'Rolled back' }),
			update($work, { title => 'After' }),
			relationship(update => $work, 'editor', $ann),
			$operation,
			add(genres => { name => 'Never reached' }));
		my $answer = $editor->batch(add(genres => { name => 'Rolled back' }), $operation, add(authors => { name => 'x' }));
		like($answer->{json}{errors}[0]{source}{pointer} // '', qr{^$list/1(?:/|$)}, "$name: the operation is named");
		is(join(' ', map { $editor->total($_) } qw(authors genres works notes)), $before, "$name: nothing was made");
	}
	my $now = $editor->current($work);
	is("$now->{attributes}{title} $now->{meta}{version}", 'Before 0', 'nor changed');

	# Adds to one entity go in together; the one at fault is named all the same.
	my @genres = map { add(genres => { name => unique() }) } 1 .. 20;
	for my $at (0, 7, 19)
	{
		my @operations = @genres;
		$operations[$at] = add(genres => { name => 'Taken' });
		$editor->batch_refused("the taken one is number $at", 409, 'UNIQUE_VIOLATION', "$list/$at/data/attributes/name", @operations);
		$operations[$at] = add(genres => { name => 7 });
		$editor->batch_refused("the wrong one is number $at", 400, 'INVALID_VALUE', "$list/$at/data/attributes/name", @operations);
		$operations[$at] = add(genres => { name => unique() }, { works => [ { type => 'works', id => $nobody } ] });
		$editor->batch_refused("what refers to nobody is number $at", 404, 'RELATED_NOT_FOUND', "$list/$at/data/relationships/works/data", @operations);
	}
	$editor->batch_refused('the first fault counts', 409, 'UNIQUE_VIOLATION', "$list/2/data/attributes/name",
		@genres[ 0, 1 ], add(genres => { name => 'Taken' }), $genres[2], add(genres => { name => 7 }));
	$editor->batch_refused('taken within the batch', 409, 'UNIQUE_VIOLATION', "$list/2/data/attributes/name", @genres[ 0, 1, 0 ]);
	$editor->batch_refused('two values swapped', 409, 'UNIQUE_VIOLATION', "$list/0/data/attributes/name",
		update($taken, { name => 'Other' }), update($editor->made(genres => { name => 'Other' }), { name => 'Taken' }));
	results('freed before it is taken', update($taken, { name => 'Free' }), add(genres => { name => 'Taken' }));
	my ($one, $two) = map { $editor->made(genres => { name => $_ }) } qw(One Two);
	results('swapped by way of a third value', update($one, { name => unique() }), update($two, { name => 'One' }), update($one, { name => 'Two' }));
	is(join(' ', map { $editor->current($_)->{attributes}{name} } $one, $two), 'Two One', 'each has that of the other');
};

subtest 'who may' => sub {
	my $work = $editor->made(works => { title => 'x' }, { author => $ann });

	$reader->batch_refused('no right to create', 403, 'FORBIDDEN', undef, add(authors => { name => 'x' }));
	$reader->batch_refused('no right to update', 403, 'FORBIDDEN', undef, update($work, {}));
	$reader->batch_refused('no right to relate', 403, 'FORBIDDEN', undef, relationship(add => $work, 'genres', []));
	$reader->batch_refused('no right to remove', 403, 'FORBIDDEN', undef, remove($work));
	$other->batch_refused("another tenant's, by local id of the relation", 404, undef, undef,
		add(authors => { name => 'x' }, undef, 'a'), relationship(update => $work, 'author', lid(authors => 'a')));
	is($editor->call(POST => '/operations', plain => 1, body => '{}', headers => { 'Content-Type' => $atomic })->{status}, 401,
		'nobody without a credential');
};

subtest 'versions of resources' => sub {
	my $work = $editor->made(works => { title => 'v' }, { author => $ann });
	my $ref = $editor->identifier($work);
	my $seen = sub { return { %$ref, meta => { version => $_[0] } } };

	results('none is needed', update($work, {}));
	results('in ref', { op => 'update', ref => $seen->(1), data => $ref });
	results('in data', { op => 'update', data => $seen->(2) });
	results('in data beside href', { op => 'update', href => $editor->path($work), data => $seen->(3) });
	results('on a relationship', { op => 'add', ref => { %{ $seen->(4) }, relationship => 'genres' }, data => [] });
	results('of the batch itself', { op => 'update', ref => $seen->(5), data => $ref }, { op => 'update', ref => $seen->(6), data => $ref });
	is($editor->version($work), 7, 'each counted');
	for my $version (0, 6, 8, 2**31, '9223372036854775807')
	{
		my $stale = { %$ref, meta => { version => $version + 0 } };
		$editor->batch_refused("$_->{op} with version $version", 412, 'PRECONDITION_FAILED', undef, $_)
		  for { op => 'update', ref => $stale, data => $ref },
		  { op => 'update', data => $stale }, { op => 'remove', ref => $stale },
		  { op => 'update', ref => { %$stale, relationship => 'editor' }, data => undef };
	}
	for my $version ('7', 7.5, -1, undef, [], {}, JSON::PP::true())
	{
		$editor->batch_refused('a version that is none: ' . JSON::PP->new->allow_nonref->encode($version), 400, undef,
			"$list/0/ref/meta/version", { op => 'update', ref => { %$ref, meta => { version => $version } }, data => $ref });
	}
	for my $pair ([ 7, 6 ], [ 6, 7 ])
	{
		$editor->batch_refused("ref says $pair->[0] and data $pair->[1]", 400, 'INVALID_VALUE', "$list/0/data/meta/version",
			{ op => 'update', ref => $seen->($pair->[0]), data => $seen->($pair->[1]) });
	}
	is($editor->version($work), 7, 'none of them did anything');
	$editor->batch_refused('404 comes before 412', 404, undef, undef,
		{ op => 'remove', ref => { type => 'works', id => $nobody, meta => { version => 0 } } });
	results('ignored without locking', { op => 'update', ref => { %{ $editor->identifier($ann) }, meta => { version => 9 } }, data => $editor->identifier($ann) });
	results('the same in both', { op => 'update', ref => $seen->(7), data => $seen->(7) });
	results('remove', { op => 'remove', ref => $seen->(8) });
	ok($editor->gone($work), 'gone');
};

subtest 'required relationships completed later' => sub {
	my $work = add(works => { title => 'late' }, undef, 'w');
	my $author = add(authors => { name => 'late' }, undef, 'a');
	my $w = lid(works => 'w');
	my $a = lid(authors => 'a');
	my $place = $editor->made(places => { name => 'late' });

	for my $case (
		[ 'by the relationship, known target',   $work, relationship(update => $w, 'author', $ann) ],
		[ 'by the relationship',                 $work, $author, relationship(update => $w, 'author', $a) ],
		[ 'by an update',                        $work, $author, update($w, { price => 1 }, { author => $a }) ],
		[ 'from the other side',                 $work, $author, relationship(add => $a, 'works', [$w]) ],
		[ 'from the other side, replaced',       $work, $author, relationship(update => $a, 'works', [$w]) ],
		[ 'from a known other side',             $work, relationship(add => $ann, 'works', [$w]) ],
		[ 'by the creation of the other side',   $work, add(authors => { name => 'late' }, { works => [$w] }, 'a') ],
		[ 'with other work between',             $work, $author, add(chapters => { heading => 'c' }, { work => $w }), relationship(update => $w, 'author', $a) ])
	{
		my ($name, @operations) = @$case;
		my @results = results($name, @operations);
		my ($made) = map { $_->{data} } grep { ($_->{data}{type} // '') eq 'works' } @results;
		my ($other_side) = map { $_->{data} } grep { ($_->{data}{type} // '') eq 'authors' } @results;

		is($made && $editor->linked($made, 'author'), ($other_side // $ann)->{id}, 'and there it is');
	}
	my ($poster) = results('a one-of', add(posters => { text => 'x' }, undef, 'p'), relationship(update => lid(posters => 'p'), 'shows', $place));
	is($editor->linked($poster->{data}, 'shows'), $place->{id}, 'and there it is');
	my ($passport) = results('a one-to-one', add(passports => { number => 'L1' }, undef, 'p'),
		$author, relationship(update => $a, 'passport', lid(passports => 'p')));
	like($editor->linked($passport->{data}, 'owner'), qr/^\S+$/, 'and there it is');

	my $before = $editor->total('works');
	$editor->batch_refused('never completed', 400, 'REQUIRED', "$list/0/data", $work, $author);
	$editor->batch_refused('completed for another one', 400, 'REQUIRED', "$list/0/data", $work,
		add(works => { title => 'x' }, { author => $ann }, 'other'), relationship(update => lid(works => 'other'), 'author', $ann));
	$editor->batch_refused('completed by nobody', 404, undef, "$list/1/data", $work,
		relationship(update => $w, 'author', { type => 'authors', id => $nobody }));
	$editor->batch_refused('completed abroad', 404, undef, "$list/1/data", $work,
		relationship(update => $w, 'author', $other->made(authors => { name => 'o' })));
	$editor->batch_refused('completed, but then it fails', 400, undef, "$list/3/data/attributes/name",
		$work, $author, relationship(update => $w, 'author', $a), add(authors => { name => 7 }));
	$editor->batch_refused('null never completes', 400, 'REQUIRED', undef, $work, relationship(update => $w, 'author', undef));
	is($editor->total('works'), $before, 'nothing is left');
};

subtest 'media type and methods' => sub {
	my $body = JSON::PP->new->canonical->encode({ 'atomic:operations' => [ add(authors => { name => 'm' }) ] });
	my $ext = 'https://jsonapi.org/ext/atomic';

	for my $case (
		[ 200, $atomic ],
		[ 200, "$plain; ext=\"$ext\"" ],
		[ 200, "$plain;profile=\"http://example.org/p\";ext=\"$ext\"" ],
		[ 200, "Application/VND.API+json;EXT=\"$ext\"" ],
		[ 200, $atomic, $atomic ],
		[ 200, $atomic, '*/*' ],
		[ 200, $atomic, 'application/*;q=0.1' ],
		[ 200, $atomic, "$plain, $atomic" ],
		[ 200, $atomic, "text/html, $atomic;q=0.5" ],
		[ 415, $plain ],
		[ 415, 'application/json' ],
		[ 415, undef ],
		[ 415, "$atomic;charset=utf-8" ],
		[ 415, "$plain;ext=\"https://jsonapi.org/ext/other\"" ],
		[ 415, "$plain;ext=\"https://jsonapi.org/EXT/atomic\"" ],
		[ 415, "$plain;ext=\"$ext https://jsonapi.org/ext/other\"" ],
		[ 406, $atomic, $plain ],
		[ 406, $atomic, 'text/html' ],
		[ 406, $atomic, "$plain;ext=\"https://jsonapi.org/ext/other\"" ],
		[ 406, $atomic, "$atomic;q=0" ])
	{
		my ($status, $content, $accept) = @$case;
		my $answer = $editor->shim->http(POST => '/api/v1/operations', {
				token => $editor->{token}, body => $body,
				headers => {
					'Content-Type' => $content // '', defined $accept ? (Accept => $accept) : () } });
		is($answer->{status}, $status, sprintf 'Content-Type %s, Accept %s', map { $_ // 'none' } $content, $accept);
		is($answer->{headers}{'content-type'}, $atomic, 'and answered so');
	}
	for my $method (qw(GET PUT PATCH DELETE))
	{
		my $answer = $editor->call($method => '/operations', body => $body, headers => { 'Content-Type' => $atomic });
		is("$answer->{status} $answer->{headers}{allow}", '405 POST', $method);
	}
	is($editor->call(POST => '/api/v7/operations', body => $body, headers => { 'Content-Type' => $atomic })->{status}, 404, 'undeclared version');
};

subtest 'size' => sub {
	my $before = $editor->total('authors');
	my $start = $editor->cluster->processor;
	my @results = results('1000 operations', map { add(authors => { name => "big $_", rank => $_ }) } 1 .. 1000);

	cmp_ok($editor->cluster->processor - $start, '<', 10, 'in reasonable time');
	is(scalar @results, 1000, '1000 results');
	is_deeply([ map { $_->{data}{attributes}{rank} } @results ], [ 1 .. 1000 ], 'in order');
	is($editor->total('authors'), $before + 1000, '1000 rows');
	@results = results('1000 of all kinds',
		map { (add(authors => { name => "chain $_" }, $_ > 1 ? { mentor => lid(authors => 'a' . ($_ - 1)) } : undef, "a$_"),
				update(lid(authors => "a$_"), { rank => $_ })) } 1 .. 500);
	is_deeply([ map { $results[ 2 * $_ + 1 ]{data}{relationships}{mentor}{data}{id} } 1 .. 499 ],
		[ map { $results[ 2 * $_ ]{data}{id} } 0 .. 498 ], 'a chain of local ids');
	$editor->batch_refused('1001 operations', 400, undef, $list, map { add(authors => { name => "big $_" }) } 1 .. 1001);
	is($editor->batch(add(authors => { name => 'x' x 1_100_000 }))->{status}, 413, 'more than 1 MiB');
	is($editor->total('authors'), $before + 1500, 'no more rows');
};

subtest 'opposite orders' => sub {
	my @works = map { $editor->made(works => { title => "d$_" }, { author => $ann }) } 1 .. 6;
	my $rounds = 15;
	my $run = sub {
		my (@order) = @_;
		my @statuses = map { $editor->batch(map { update($_, { price => 1 }) } @order)->{status} } 1 .. $rounds;
		return join ' ', @statuses;
	};
	my @statuses = map { split / / } EntityApi::Test::Conformance::at_once(
		sub { $run->(@works) }, sub { $run->(reverse @works) }, sub { $run->(@works[ 3 .. 5, 0 .. 2 ]) });
	my $done = grep { $_ eq '200' } @statuses;

	is(scalar @statuses, 3 * $rounds, 'all were answered');
	is_deeply([ grep { !/^(?:200|409|503)$/ } @statuses ], [], 'none with 500');
	cmp_ok($done, '>', 0, 'some succeeded');
	is_deeply([ map { $editor->version($_) } @works ], [ ($done) x 6 ], 'and only those count');
};

done_testing;
