# One-of fields: a to-one whose target is of one of several types.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $other = $editor->other;
my $nobody = $EntityApi::Test::Conformance::nobody;

*ids = \&EntityApi::Test::Conformance::ids;

my $ann = $editor->made(authors => { name => 'Ann' });
my $alp = $editor->made(places => { name => 'Alp', height => 2000 });
my $hut = $editor->made(places => { name => 'Hut', height => 1500 });
my $fair = $editor->made(events => { name => 'Fair', year => 1900 });
my $foreign = $other->made(places => { name => 'Abroad' });
my $number = 0;

sub work
{
	my ($subject) = @_;

	$number++;
	return $editor->made(works => { title => "Work $number" },
		{ author => $ann, defined $subject ? (subject => $subject) : () });
}

sub titles
{
	my ($query) = @_;

	return join ' ', map { $_->{attributes}{title} =~ s/Work //r }
	  @{ $editor->good(200, GET => "/works?$query")->{json}{data} };
}

subtest 'each member everywhere' => sub {
	for my $subject ($alp, $fair)
	{
		my $name = $subject->{type};
		my $work = work($subject);

		is_deeply($work->{relationships}{subject}{data}, $editor->identifier($subject), "$name: created");
		is_deeply($editor->current($work)->{relationships}{subject}{data}, $editor->identifier($subject), "$name: read");
		is($editor->linked($work, 'subject'), $subject->{id}, "$name: relationship");
		my $related = $editor->good(200, GET => $editor->path($work, 'subject'))->{json}{data};
		is("$related->{type} $related->{attributes}{name}", "$name $subject->{attributes}{name}", "$name: related");
		is_deeply($editor->good(200, GET => $editor->path($work) . '?include=subject')->{json}{included}[0]{id},
			$subject->{id}, "$name: included");

		for my $next ($fair, $alp, $hut, undef, $subject)
		{
			my $answer = $editor->update($work, {}, { subject => $next });
			is_deeply($answer->{json}{data}{relationships}{subject}{data}, $editor->linkage($next), "$name: updated");
			$editor->relate(PATCH => $work, 'subject', $_) for $fair, $next;
			is($editor->linked($work, 'subject'), defined $next ? $next->{id} : '', "$name: replaced");
		}
	}
};

subtest 'what does not fit' => sub {
	my $work = work($alp);
	my $path = $editor->path($work, 'relationships', 'subject');
	my $poster = $editor->made(posters => { text => 'x' }, { shows => $fair });

	for my $case (
		[ 'a type that is no member',   400, 'TYPE_NOT_ALLOWED', '/type', $editor->identifier($ann) ],
		[ 'the name of the one-of',     400, 'TYPE_NOT_ALLOWED', '/type', { type => 'subjects', id => $alp->{id} } ],
		[ 'an unknown type',            400, 'TYPE_NOT_ALLOWED', '/type', { type => 'nothings', id => $alp->{id} } ],
		[ 'the type in camel case',     400, 'TYPE_NOT_ALLOWED', '/type', { type => 'Places', id => $alp->{id} } ],
		[ 'no member, and nobody',      400, 'TYPE_NOT_ALLOWED', '/type', { type => 'authors', id => $nobody } ],
		[ 'an array',                   400, undef,              '',      [ $editor->identifier($alp) ] ],
		[ 'an empty array',             400, undef,              '',      [] ],
		[ 'nobody',                     404, 'RELATED_NOT_FOUND', '',     { type => 'places', id => $nobody } ],
		[ 'the id of a sibling member', 404, 'RELATED_NOT_FOUND', '',     { type => 'places', id => $fair->{id} } ],
		[ "another tenant's",           404, 'RELATED_NOT_FOUND', '',     $editor->identifier($foreign) ])
	{
		my ($name, $status, $code, $pointer, $value) = @$case;
		my $relationships = { author => { data => $editor->identifier($ann) }, subject => { data => $value } };
		my $before = $editor->total('works');

		$editor->refused("create: $name", $status, $code, [ pointer => "/data/relationships/subject/data$pointer" ],
			POST => '/works', data => { type => 'works', attributes => { title => 'x' }, relationships => $relationships });
		is($editor->total('works'), $before, "create: $name: nothing made");
		$editor->refused("update: $name", $status, $code, [ pointer => "/data/relationships/subject/data$pointer" ],
			PATCH   => $editor->path($work),
			data    => { type => 'works', id => $work->{id}, attributes => { title => 'x' }, relationships => $relationships },
			headers => { 'If-Match' => '*' });
		$editor->refused("relationship: $name", $status, $code, [ pointer => "/data$pointer" ],
			PATCH => $path, data => $value, headers => { 'If-Match' => '*' });
	}
	is_deeply([ @{ $editor->current($work) }{qw(attributes relationships meta)} ], [ @$work{qw(attributes relationships meta)} ],
		'nothing has changed');

	my $answer = $editor->refused('the wrong type comes before other faults are applied', 400, 'TYPE_NOT_ALLOWED',
		[ pointer => '/data/relationships/subject/data/type' ], POST => '/works',
		data => {
			type          => 'works',
			attributes    => { title => 7 },
			relationships => { subject => { data => $editor->identifier($ann) } } });
	is(scalar @{ $answer->{json}{errors} }, 3, 'and all are told: the title, the subject, the missing author');

	$editor->refused('required, and left out', 400, 'REQUIRED', [ pointer => '/data' ],
		POST => '/posters', data => { type => 'posters', attributes => { text => 'x' } });
	$editor->refused('required, and null', 400, 'REQUIRED', [ pointer => '/data/relationships/shows/data' ],
		POST => '/posters', data => { type => 'posters', relationships => { shows => { data => undef } } });
	my $refused = $editor->update($poster, {}, { shows => undef });
	is("$refused->{status} $refused->{json}{errors}[0]{code}", '400 REQUIRED', 'required, and cleared');
	$refused = $editor->relate(PATCH => $poster, 'shows', undef);
	is("$refused->{status} $refused->{json}{errors}[0]{code}", '400 REQUIRED', 'at the relationship, too');
	is($editor->relate(PATCH => $poster, 'shows', $hut)->{status}, 204, 'but changed to the other member');
	is($editor->linked($poster, 'shows'), $hut->{id}, 'and there it is');
};

subtest 'mixed lists' => sub {
	$editor->good(204, DELETE => $editor->path($_), headers => { 'If-Match' => '*' })
	  for @{ $editor->good(200, GET => '/works?page[size]=100')->{json}{data} };
	$number = 0;
	my @works = map { work($_) } $alp, $fair, undef, $hut, $alp;

	my $list = $editor->good(200, GET => '/works?include=subject&sort=title&fields[places]=name,height&fields[events]=year')->{json};
	is(ids(@{ $list->{included} }), ids($alp, $fair, $hut), 'members of both types are included, each once');
	is_deeply([ map { $_->{relationships}{subject}{data} } @{ $list->{data} } ],
		[ map { $editor->linkage($_) } $alp, $fair, undef, $hut, $alp ], 'with their linkage');
	my %attributes = map { $_->{id} => $_->{attributes} } @{ $list->{included} };
	is_deeply([ map { $attributes{ $_->{id} } } $alp, $fair ], [ { name => 'Alp', height => 2000 }, { year => 1900 } ],
		'with the fields asked for their type');

	for my $case (
		[ 'an attribute of both members',  'subject.name==Alp',                     '1 5' ],
		[ 'across the members',            'subject.name=in=(Alp,Fair)',            '1 2 5' ],
		[ 'an attribute of one member',    'subject.height=gt=1600',                '1 5' ],
		[ 'of the other',                  'subject.year==1900',                    '2' ],
		[ 'null on the others',            'subject.height=isnull=true',            '2 3' ],
		[ 'and not null',                  'subject.height=isnull=false',           '1 4 5' ],
		[ 'by id',                         "subject.id==$fair->{id}",               '2' ],
		[ 'none at all',                   'subject=isnull=true',                   '3' ],
		[ 'some',                          'subject=isnull=false',                  '1 2 4 5' ],
		[ 'two attributes',                'subject.height=ge=1500;subject.name==Hut', '4' ],
		[ 'no row twice',                  'subject.name==Alp,subject.height==2000', '1 5' ])
	{
		my ($name, $filter, $expected) = @$case;
		is(titles("sort=title&filter=$filter"), $expected, "filter: $name");
	}
	for my $case (
		[ 'subject.name,title',    '1 5 2 4 3' ], [ '-subject.name,title', '3 4 2 1 5' ],
		[ 'subject.height,title',  '4 1 5 2 3' ], [ '-subject.year,-title', '5 4 3 1 2' ])
	{
		my ($sort, $expected) = @$case;
		is(titles("sort=$sort"), $expected, "sort: $sort");
	}
	for my $case (
		[ 'unknown on all members',  filter => 'subject.depth==1',  'INVALID_FILTER' ],
		[ 'unknown in sort',         sort   => 'subject.depth',     'INVALID_SORT' ],
		[ 'no hop of any member',    include => 'subject.nothing',  'INVALID_INCLUDE' ],
		[ 'a value of another type', filter => 'subject.height==x', 'INVALID_FILTER' ])
	{
		my ($name, $parameter, $value, $code) = @$case;
		$editor->refused($name, 400, $code, [ parameter => $parameter ], GET => "/works?$parameter=$value");
	}

	my $note = $editor->made(notes => { text => 'n' }, { work => $works[1] });
	my $answer = $editor->good(200, GET => $editor->path($note) . '?include=work.subject')->{json};
	is(ids(@{ $answer->{included} }), ids($works[1], $fair), 'at the end of a path');
	$answer = $editor->good(200, GET => $editor->path($works[0]) . '?include=subject.depictions')->{json};
	is(ids(@{ $answer->{included} }), ids($alp, $works[4]), 'a path goes on where a member has the next hop');
	$answer = $editor->good(200, GET => $editor->path($works[1]) . '?include=subject.depictions')->{json};
	is(ids(@{ $answer->{included} }), ids($fair), 'and ends where it has not');
	is($editor->linked($alp, 'depictions'), ids(@works[ 0, 4 ]), 'the other side');
};

subtest 'a member that the roles hide' => sub {
	my $helper = $editor->as($editor->shim->user($editor->{tenant}, 'helper', ['Helper']));
	my $vault = $editor->made(vaults => { place => 'below' });
	my $room = $editor->made(readingRooms => { name => 'North' }, { behind => $vault });
	my $open = $helper->made(readingRooms => { name => 'South' }, { behind => $alp });

	is($helper->linked($open, 'behind'), $alp->{id}, 'the other member can be seen');
	is_deeply($helper->current($room)->{relationships}{behind}{data}, undef, 'not in linkage');
	is($helper->linked($room, 'behind'), '', 'nor at the relationship');
	is($helper->good(200, GET => $helper->path($room, 'behind'))->{json}{data}, undef, 'nor as related resource');
	is(ids(@{ $helper->good(200, GET => '/readingRooms?include=behind')->{json}{included} }), $alp->{id}, 'nor included');
	is_deeply($helper->good(200, GET => "/readingRooms?filter=behind.id==$vault->{id}")->{json}{data}, [], 'nor found');
	for my $target ($vault, { type => 'vaults', id => $nobody })
	{
		for my $answer ($helper->update($open, {}, { behind => $target }), $helper->relate(PATCH => $open, 'behind', $target),
			$helper->call(POST => '/readingRooms', data => $helper->document(readingRooms => { name => 'x' }, { behind => $target })))
		{
			is("$answer->{status} $answer->{json}{errors}[0]{code}", '404 RELATED_NOT_FOUND', 'nor to be referred to');
		}
	}
	is($helper->update($room, { name => 'East' })->{status}, 200, 'a write of something else');
	is($editor->linked($room, 'behind'), $vault->{id}, 'leaves it there');
};

subtest 'deletion of what is pointed at' => sub {
	for my $make (sub { $editor->made(places => { name => 'gone' }) }, sub { $editor->made(events => { name => 'gone' }) })
	{
		my $subject = $make->();
		my $work = work($subject);
		my $ticket = $editor->made(tickets => { text => 't' }, { admits => $subject });
		my $version = $editor->version($work);
		my $poster = $editor->made(posters => { text => 'p' }, { shows => $subject });

		$editor->refused("$subject->{type}: restrict", 409, 'STILL_REFERENCED', undef,
			DELETE => $editor->path($subject), headers => { 'If-Match' => '*' });
		is($editor->linked($work, 'subject'), $subject->{id}, 'then nothing is cleared');
		ok(!$editor->gone($ticket), 'nor deleted');
		$editor->good(204, DELETE => $editor->path($poster));
		$editor->good(204, DELETE => $editor->path($subject), headers => { 'If-Match' => '*' });
		is($editor->current($work)->{relationships}{subject}{data}, undef, "$subject->{type}: setNull");
		is($editor->version($work), $version + 1, 'is a write');
		ok($editor->gone($ticket), "$subject->{type}: cascade");
		is_deeply($editor->good(200, GET => $editor->path($work) . '?include=subject')->{json}{included}, [], 'nothing dangles');
	}
};

done_testing;
