# Relationship endpoints and related resources.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/entities');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant($_) } qw(acme other);
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenants[0]{id}, 'ed', ['Editor']), '/api/v1');
my $reader = $editor->as($shim->user($tenants[0]{id}, 'rea', ['Reader']));
my $other = $editor->as($shim->user($tenants[1]{id}, 'ted', ['Editor']));
my $nobody = '01980000-0000-7000-8000-000000000000';
my @any = (headers => { 'If-Match' => '*' });

sub made
{
	my ($cases, $type, $attributes, $relationships) = @_;

	return $cases->good(201, POST => "/$type",
		data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub identifier
{
	return { type => $_[0]{type}, id => $_[0]{id} };
}

sub to
{
	return { data => identifier($_[0]) };
}

sub path
{
	my ($data, $relationship) = @_;

	return "/$data->{type}/$data->{id}/relationships/$relationship";
}

sub linkage
{
	my ($data, $relationship) = @_;

	return $editor->good(200, GET => path($data, $relationship))->{json}{data};
}

sub ids
{
	return join ' ', sort map { $_->{id} } @{ $_[0] };
}

sub version
{
	return $editor->good(200, GET => "/$_[0]{type}/$_[0]{id}")->{json}{data}{meta}{version};
}

my ($ann, $bob, $cid) = map { made($editor, people => { name => $_ }) } qw(Ann Bob Cid);
my @tags = map { made($editor, tags => { word => "tag $_" }) } 1 .. 3;
my ($book, $toy) = (made($editor, books => { title => 'b' }), made($editor, toys => { title => 't' }));
my $vault = made($editor, vaults => { place => 'below' });
my $box = made($editor, boxes => { label => 'one' }, { owner => to($ann), vault => to($vault) });
my $second = made($editor, boxes => { label => 'two' }, { owner => to($ann) });
my @slips = map { made($editor, slips => { text => "slip $_" }, { box => to($box) }) } 1 .. 2;
my $theirs = made($other, people => { name => 'theirs' });
my $their_tag = made($other, tags => { word => 'theirs' });
my $their_box = made($other, boxes => { label => 'theirs' }, { owner => to($theirs) });

subtest 'reading' => sub {
	my $answer = $editor->good(200, GET => path($box, 'owner'));

	is_deeply($answer->{json}{data}, identifier($ann), 'to one');
	is($answer->{json}{links}{self}, '/api/v1' . path($box, 'owner'), 'self');
	is($answer->{json}{links}{related}, "/api/v1/boxes/$box->{id}/owner", 'related');
	is($answer->{headers}{'content-type'}, 'application/vnd.api+json', 'content type');
	ok(exists $editor->good(200, GET => path($box, 'keeper'))->{json}{data}, 'an empty to-one has data');
	is(linkage($box, 'keeper'), undef, 'which is null');
	is_deeply(linkage($box, 'tags'), [], 'an empty to-many is an array');
	is(ids(linkage($box, 'slips')), ids(\@slips), 'to many');
	for my $case (
		[ 'of nobody', 404, path({ type => 'boxes', id => $nobody }, 'owner') ],
		[ 'of the other tenant', 404, path($their_box, 'owner') ],
		[ 'of no uuid', 404, path({ type => 'boxes', id => 1 }, 'owner') ],
		[ 'unknown', 404, path($box, 'nothing') ], [ 'an attribute', 404, path($box, 'label') ],
		[ 'white space', 404, path($box, '%20') ], [ 'empty', 404, path($box, '') ],
		[ 'a column', 404, path($box, 'owner_id') ], [ 'more', 404, path($box, 'owner/name') ],
		[ 'with a filter', 400, path($box, 'owner') . '?filter=name==Ann' ])
	{
		my ($name, $status, $target) = @$case;
		$editor->refused($name, $status, undef, undef, GET => $target);
	}
	my $unknown = $reader->refused('what may not be read', 404, undef, undef, GET => path($box, 'xault'));
	my $hidden = $reader->refused('is unknown', 404, undef, undef, GET => path($box, 'vault'));
	is($hidden->{json}{errors}[0]{detail} =~ s/vault/xault/r, $unknown->{json}{errors}[0]{detail}, 'in the same words');
};

subtest 'to one' => sub {
	my $keeper = path($box, 'keeper');

	$editor->good(204, PATCH => $keeper, data => identifier($bob), @any);
	is_deeply(linkage($box, 'keeper'), identifier($bob), 'set');
	$editor->good(204, PATCH => $keeper, data => identifier($cid), @any);
	is_deeply(linkage($box, 'keeper'), identifier($cid), 'replaced');
	$editor->good(204, PATCH => $keeper, data => undef, @any);
	is(linkage($box, 'keeper'), undef, 'cleared');
	for my $method (qw(POST DELETE))
	{
		$editor->refused("$method of a to-one", 403, 'TO_ONE_RELATIONSHIP', undef, $method => $keeper, data => [ identifier($bob) ], @any);
	}
	for my $case (
		[ 400, undef, {} ], [ 400, undef, [] ], [ 400, undef, [ identifier($bob) ] ], [ 400, undef, 'x' ],
		[ 400, 'TYPE_NOT_ALLOWED', identifier($tags[0]) ], [ 400, 'TYPE_NOT_ALLOWED', { type => 'nothings', id => $nobody } ],
		[ 404, 'RELATED_NOT_FOUND', { type => 'people', id => $nobody } ], [ 404, 'RELATED_NOT_FOUND', identifier($theirs) ],
		[ 404, 'RELATED_NOT_FOUND', { type => 'people', id => $box->{id} } ])
	{
		my ($status, $code, $data) = @$case;
		$editor->refused("$status " . JSON::PP->new->canonical->allow_nonref->encode($data), $status, $code, undef, PATCH => $keeper, data => $data, @any);
	}
	$editor->refused('null on a required one', 400, 'REQUIRED', undef, PATCH => path($box, 'owner'), data => undef, @any);
	for my $body ('', '{}', 'null', '[]', '{"data":')
	{
		$editor->refused("body '$body'", 400, undef, undef, PATCH => $keeper, body => $body, headers => { 'If-Match' => '*', 'Content-Type' => 'application/vnd.api+json' });
	}
	is(linkage($box, 'keeper'), undef, 'nothing has changed');
	is_deeply(linkage($box, 'owner'), identifier($ann), 'there neither');

	$editor->good(204, PATCH => path($ann, 'locker'), data => identifier(made($editor, lockers => { number => 1 })));
	my $locker = linkage($ann, 'locker');
	is_deeply(linkage($locker, 'holder'), identifier($ann), 'one-to-one from its inverse side');
	$editor->good(204, PATCH => path($ann, 'locker'), data => undef);
	is(linkage($locker, 'holder'), undef, 'and cleared from there');
};

subtest 'to many' => sub {
	my $target = path($box, 'tags');
	my @both = map { identifier($_) } @tags[ 0, 1 ];

	$editor->good(204, POST => $target, data => [@both]);
	is(ids(linkage($box, 'tags')), ids([@both]), 'added');
	$editor->good(204, POST => $target, data => [ $both[0], identifier($tags[2]), $both[0] ]);
	is(ids(linkage($box, 'tags')), ids(\@tags), 'once each');
	is(ids(linkage($tags[2], 'boxes')), $box->{id}, 'seen from the other side');
	$editor->good(204, DELETE => $target, data => [ identifier($tags[1]) ], @any);
	is(ids(linkage($box, 'tags')), ids([ @tags[ 0, 2 ] ]), 'removed');
	for my $absent ($tags[1], { type => 'tags', id => $nobody }, $their_tag)
	{
		$editor->good(204, DELETE => $target, data => [ identifier($absent) ], @any);
	}
	$editor->good(204, $_ => $target, data => [], @any) for qw(POST DELETE);
	is(ids(linkage($box, 'tags')), ids([ @tags[ 0, 2 ] ]), 'what is no member cannot be removed');
	$editor->good(204, PATCH => $target, data => [ identifier($tags[1]), identifier($tags[1]) ], @any);
	is(ids(linkage($box, 'tags')), $tags[1]{id}, 'replaced');

	for my $method (qw(POST PATCH DELETE))
	{
		for my $case (
			[ undef, undef ], [ undef, {} ], [ undef, 'x' ], [ undef, identifier($tags[0]) ], [ undef, [undef] ], [ undef, [ [] ] ],
			[ undef, [ { type => 'tags' } ] ], [ undef, [ { id => $tags[0]{id} } ] ], [ 'TYPE_NOT_ALLOWED', [ identifier($ann) ] ],
			[ 'TYPE_NOT_ALLOWED', [ identifier($tags[0]), identifier($ann) ] ])
		{
			my ($code, $data) = @$case;
			$editor->refused("$method " . JSON::PP->new->canonical->allow_nonref->encode($data), 400, $code, undef, $method => $target, data => $data, @any);
		}
		$editor->refused("$method, empty body", 400, undef, undef, $method => $target, body => '', headers => { 'If-Match' => '*', 'Content-Type' => 'application/vnd.api+json' });
		$editor->refused("$method, another media type", 415, undef, undef, $method => $target, json => { data => [] }, headers => { 'If-Match' => '*', 'Content-Type' => 'application/json' });
		$editor->refused("$method of nobody", 404, 'NOT_FOUND', undef, $method => path({ type => 'boxes', id => $nobody }, 'tags'), data => [], @any);
		$editor->refused("$method of the other tenant", 404, 'NOT_FOUND', undef, $method => path($their_box, 'tags'), data => [], @any);
		$reader->refused("$method without authority", 403, 'FORBIDDEN', undef, $method => $target, data => [], @any);
	}
	for my $method (qw(POST PATCH))
	{
		for my $absent ({ type => 'tags', id => $nobody }, $their_tag, { type => 'tags', id => $ann->{id} })
		{
			$editor->refused("$method of what is not there", 404, 'RELATED_NOT_FOUND', undef, $method => $target, data => [ identifier($tags[0]), identifier($absent) ], @any);
		}
	}
	$editor->refused('PUT', 405, undef, undef, PUT => $target, json => {});
	is(ids(linkage($box, 'tags')), $tags[1]{id}, 'nothing has changed');
	$editor->good(204, PATCH => $target, data => [], @any);
	is_deeply(linkage($box, 'tags'), [], 'cleared');

	$editor->good(204, POST => path($second, 'slips'), data => [ identifier($slips[0]) ]);
	is(ids(linkage($box, 'slips')) . ids(linkage($second, 'slips')), "$slips[1]{id}$slips[0]{id}", 'a member of one only');
	$editor->refused('members whose side is required stay', 400, 'REQUIRED', undef, DELETE => path($second, 'slips'), data => [ identifier($slips[0]) ], @any);
	$editor->refused('also when replaced', 400, 'REQUIRED', undef, PATCH => path($second, 'slips'), data => [], @any);
	$editor->good(204, POST => path($ann, 'team'), data => [ identifier($ann), identifier($bob) ]);
	is_deeply(linkage($ann, 'boss'), identifier($ann), 'the own boss');
	$editor->good(204, DELETE => path($ann, 'team'), data => [ identifier($ann), identifier($cid) ]);
	is(ids(linkage($ann, 'team')), $bob->{id}, 'no longer');
};

subtest 'one-of' => sub {
	my $target = path($box, 'content');

	for my $member ($book, $toy)
	{
		$editor->good(204, PATCH => $target, data => identifier($member), @any);
		is_deeply(linkage($box, 'content'), identifier($member), $member->{type});
		is($editor->good(200, GET => "/boxes/$box->{id}/content")->{json}{data}{type}, $member->{type}, 'related');
	}
	for my $case (
		[ 400, 'TYPE_NOT_ALLOWED', identifier($ann) ], [ 400, 'TYPE_NOT_ALLOWED', { type => 'people', id => $nobody } ],
		[ 400, 'TYPE_NOT_ALLOWED', { type => 'content', id => $book->{id} } ], [ 400, undef, [ identifier($book) ] ],
		[ 404, 'RELATED_NOT_FOUND', { type => 'books', id => $toy->{id} } ], [ 404, 'RELATED_NOT_FOUND', { type => 'books', id => $nobody } ])
	{
		my ($status, $code, $data) = @$case;
		$editor->refused("$status " . JSON::PP->new->canonical->encode($data), $status, $code, undef, PATCH => $target, data => $data, @any);
	}
	is_deeply(linkage($box, 'content'), identifier($toy), 'nothing has changed');
	$editor->good(204, PATCH => $target, data => undef, @any);
	is(linkage($box, 'content'), undef, 'cleared');
};

subtest 'versions' => sub {
	my $locked = made($editor, boxes => { label => 'v' }, { owner => to($ann) });
	my $tags = path($locked, 'tags');
	my $tag = [ identifier($tags[0]) ];

	for my $case ([ PATCH => 'keeper', undef ], [ PATCH => 'tags', [] ], [ DELETE => 'tags', [] ])
	{
		my ($method, $relationship, $data) = @$case;
		my $target = path($locked, $relationship);

		$editor->refused("$method $relationship without", 428, 'PRECONDITION_REQUIRED', undef, $method => $target, data => $data);
		$editor->refused("$method $relationship stale", 412, 'PRECONDITION_FAILED', undef, $method => $target, data => $data, headers => { 'If-Match' => '"9"' });
		$editor->refused("$method $relationship weak", 412, undef, undef, $method => $target, data => $data, headers => { 'If-Match' => 'W/"0"' });
		$editor->refused("$method $relationship malformed", 400, undef, undef, $method => $target, data => $data, headers => { 'If-Match' => '0' });
	}
	is(version($locked), 0, 'nothing was written');
	$editor->good(204, POST => $tags, data => $tag);
	is(version($locked), 1, 'POST needs none, and is a write');
	$editor->refused('but honours one', 412, undef, undef, POST => $tags, data => $tag, headers => { 'If-Match' => '"0"' });
	$editor->good(204, POST => $tags, data => $tag, headers => { 'If-Match' => '"1"' });
	is(version($locked), 2, 'even when nothing changes');
	$editor->good(204, PATCH => path($locked, 'keeper'), data => identifier($bob), headers => { 'If-Match' => '"2"' });
	is(version($locked), 3, 'a to-one');
	$editor->good(204, DELETE => $tags, data => $tag, headers => { 'If-Match' => '"3"' });
	is(version($locked), 4, 'a removal');
	my $slip = made($editor, slips => { text => 'v' }, { box => to($second) });
	my $before = version($second);
	$editor->good(204, POST => path($locked, 'slips'), data => [ identifier($slip) ]);
	is(version($locked), 5, 'the inverse side');
	is(version($slip), 1, 'and the row whose column changes');
	is(version($second), $before, 'not the former owner');
};

subtest 'related' => sub {
	is($editor->good(200, GET => "/boxes/$box->{id}/owner")->{json}{data}{attributes}{name}, 'Ann', 'to one');
	my $empty = $editor->good(200, GET => "/boxes/$box->{id}/keeper")->{json};
	ok(exists $empty->{data} && !defined $empty->{data}, 'an empty to-one is null');
	my $list = $editor->good(200, GET => "/people/$ann->{id}/boxes?filter=label==two&sort=-label&page[size]=1&include=owner&fields[boxes]=label")->{json};
	is_deeply([ map { $_->{attributes}{label} } @{ $list->{data} } ], ['two'], 'to many, filtered');
	is($list->{meta}{pagination}{totalRecords}, 1, 'counted');
	is($list->{included}[0]{id}, $ann->{id}, 'with what is included');
	like($list->{links}{first}, qr{^/api/v1/people/$ann->{id}/boxes\?}, 'links stay there');
	is($editor->good(200, GET => "/people/$ann->{id}/boxes?page[size]=1&page[number]=2&sort=label")->{json}{meta}{pagination}{number}, 2, 'pages');
	$editor->good(204, POST => path($box, 'tags'), data => [ map { identifier($_) } @tags ]);
	is($editor->good(200, GET => "/boxes/$box->{id}/tags?sort=-word")->{json}{data}[0]{attributes}{word}, 'tag 3', 'many to many');
	$editor->refused('sort of a to-one', 400, undef, [ parameter => 'sort' ], GET => "/boxes/$box->{id}/owner?sort=name");
	$editor->refused('of nobody', 404, undef, undef, GET => "/boxes/$nobody/owner");
	$editor->refused('of the other tenant', 404, undef, undef, GET => "/boxes/$their_box->{id}/owner");
	$editor->refused('unknown', 404, undef, undef, GET => "/boxes/$box->{id}/nothing");
	$editor->refused('an attribute', 404, undef, undef, GET => "/boxes/$box->{id}/label");
	$reader->refused('what may not be read', 404, undef, undef, GET => "/boxes/$box->{id}/vault");
	$editor->refused('POST', 405, undef, undef, POST => "/boxes/$box->{id}/tags", data => {});
};

done_testing;
