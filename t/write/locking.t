# Optimistic locking: ETag, If-Match, If-None-Match, and writers that meet.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my ($reader, $other) = ($editor->reader, $editor->other);
my $nobody = $EntityApi::Test::Conformance::nobody;
my $ann = $editor->made(authors => { name => 'Ann' });

sub work
{
	return $editor->made(works => { title => 'Work' }, { author => $ann });
}

# A write of a work with such an If-Match: the resource or a relationship of it
my %write = (
	'PATCH'             => sub { (PATCH => $editor->path($_[0]), data => { %{ $editor->identifier($_[0]) }, attributes => { price => 1 } }) },
	'DELETE'            => sub { (DELETE => $editor->path($_[0])) },
	'PATCH to-one'      => sub { (PATCH => $editor->path($_[0], 'relationships', 'editor'), data => $editor->identifier($ann)) },
	'PATCH one-of'      => sub { (PATCH => $editor->path($_[0], 'relationships', 'subject'), data => undef) },
	'PATCH to-many'     => sub { (PATCH => $editor->path($_[0], 'relationships', 'notes'), data => []) },
	'PATCH many-to-many' => sub { (PATCH => $editor->path($_[0], 'relationships', 'genres'), data => []) },
	'DELETE to-many'    => sub { (DELETE => $editor->path($_[0], 'relationships', 'notes'), data => []) },
	'DELETE many-to-many' => sub { (DELETE => $editor->path($_[0], 'relationships', 'genres'), data => []) });
my %add = (
	'POST to-many'      => sub { (POST => $editor->path($_[0], 'relationships', 'notes'), data => []) },
	'POST many-to-many' => sub { (POST => $editor->path($_[0], 'relationships', 'genres'), data => []) });

sub with
{
	my ($match, @request) = @_;

	return (@request, defined $match ? (headers => { 'If-Match' => $match }) : ());
}

subtest 'the version in the document' => sub {
	my $work = work();
	my $path = $editor->path($work);
	my $at = [ pointer => '/data/meta/version' ];
	my $document = sub { (PATCH => $path, data => { %{ $editor->identifier($work) }, attributes => { price => 1 }, meta => { version => $_[0] } }) };
	my $seen = $editor->good(200, GET => $path)->{json}{data};

	$seen = $editor->good(200, PATCH => $path, data => { %{ $editor->identifier($work) }, meta => $seen->{meta} })->{json}{data};
	is($seen->{meta}{version}, 1, 'meta as it was shown');
	$editor->refused('the old one', 412, 'PRECONDITION_FAILED', $at, $document->(0));
	$editor->refused('one to come', 412, 'PRECONDITION_FAILED', $at, $document->(2));
	is($editor->good(200, with('"1"', $document->(1)))->{headers}{etag}, '"2"', 'beside the same in If-Match');
	is($editor->good(200, with('"1", "2"', $document->(2)))->{headers}{etag}, '"3"', 'or one of a list');
	is($editor->good(200, with('*', $document->(3)))->{headers}{etag}, '"4"', 'or any');
	$editor->refused('the old one beside any', 412, 'PRECONDITION_FAILED', [ header => 'If-Match' ], with('*', $document->(3)));
	$editor->refused('one that the list has, and that is old', 412, undef, [ header => 'If-Match' ], with('"3","4"', $document->(3)));
	$editor->refused("If-Match: $_ beside it", 400, 'INVALID_VALUE', $at, with($_, $document->(4))) for '"3"', 'W/"4"', '"3", "5"';
	$editor->refused('no version: ' . ($_ // 'null'), 400, 'INVALID_DOCUMENT', $at, $document->($_)) for '4', -1, 1.5, undef, [4];
	$editor->refused("$_->[0] has none", 428, 'PRECONDITION_REQUIRED', [ header => 'If-Match' ], PATCH => $path,
		data => { %{ $editor->identifier($work) }, meta => $_->[1] }) for [ 'empty meta', {} ], [ 'a number', 4 ], [ 'null', undef ];
	is($editor->current($work)->{meta}{version}, 4, 'and nothing is written');
	is($editor->good(200, PATCH => $editor->path($ann), data => { %{ $editor->identifier($ann) }, meta => { version => 'x' } })->{status}, 200,
		'nothing is asked without locking');
};

subtest 'tags' => sub {
	my $made = $editor->good(201, POST => '/works',
		data => $editor->document(works => { title => 'Tagged' }, { author => $ann }));
	my $work = $made->{json}{data};
	my $path = $editor->path($work);

	is("$made->{headers}{etag} $work->{meta}{version}", '"0" 0', 'POST begins with 0');
	for my $version (1 .. 3)
	{
		my $answer = $editor->good(200, with('"' . ($version - 1) . '"', $write{PATCH}->($work)));
		is("$answer->{headers}{etag} $answer->{json}{data}{meta}{version}", "\"$version\" $version", "PATCH number $version");
		$answer = $editor->good(200, GET => $path);
		is("$answer->{headers}{etag} $answer->{json}{data}{meta}{version}", "\"$version\" $version", 'and GET');
	}
	is($editor->good(200, HEAD => $path)->{headers}{etag}, '"3"', 'HEAD');
	is($editor->good(200, GET => "$path?include=author")->{headers}{etag}, '"3"', 'GET with include');
	is($editor->good(200, GET => $editor->path($work, 'relationships', 'editor'))->{headers}{etag}, '"3"', 'GET of a relationship');
	my $answer = $editor->good(200, PATCH => $path, data => $editor->identifier($work), headers => { 'If-Match' => '"3"' });
	is($answer->{headers}{etag}, '"4"', 'an update of nothing is a write');
	ok(!exists $editor->good(200, GET => $editor->path($ann))->{headers}{etag}, 'no tag without locking');
	ok(!exists $editor->current($ann)->{meta}, 'nor a version');
	is($editor->good(200, GET => '/works?filter=title==Tagged')->{json}{data}[0]{meta}{version}, 4, 'versions in lists');
	is($editor->good(200, GET => $editor->path($ann) . '?include=works')->{json}{included}[0]{meta}{version}, 4, 'and where included');
};

subtest 'If-Match' => sub {
	for my $name (sort keys(%write), keys(%add))
	{
		my $adds = exists $add{$name};
		my $request = $adds ? $add{$name} : $write{$name};
		my $success = $name eq 'PATCH' ? 200 : 204;
		my $work = work();

		if ($adds)
		{
			$editor->good(204, with(undef, $request->($work)));
			is($editor->version($work), 1, "$name needs none");
			$editor->relate(PATCH => $work, 'editor', undef, 'If-Match' => '"1"');
		}
		else
		{
			$editor->refused("$name without", 428, 'PRECONDITION_REQUIRED', undef, with(undef, $request->($work)));
			$editor->relate(PATCH => $work, 'editor', undef, 'If-Match' => '*') for 1 .. 2;
		}
		for my $match ('"0"', '"1"', '"3"', '"02"', 'W/"2"', '"0", "1"', 'W/"2", "3"', '"99999999999999999999"', '"9223372036854775808"')
		{
			$editor->refused("$name with $match", 412, 'PRECONDITION_FAILED', undef, with($match, $request->($work)));
		}
		for my $match ('2', '"x"', '"2', '2"', "'2'", '""', '"-1"', '"2.0"', 'w/"2"', '"2" "3"', '*, "2"', '"2", *', '"2",x', '"2"x', 'null', 'W/2')
		{
			$editor->refused("$name with $match", 400, 'INVALID_HEADER', [ header => 'If-Match' ], with($match, $request->($work)));
		}
		is($editor->version($work), 2, "$name: nothing has changed");
		for my $match ('"2"', '"0", "2"', '"7","2","9"', 'W/"2", "2"', '*')
		{
			next if $name eq 'DELETE';
			my $answer = $editor->good($success, with($match =~ s/2/$editor->version($work)/egr, $request->($work)));
			is($answer->{headers}{etag}, '"' . $editor->version($work) . '"', "$name with $match: the new version");
		}
		is($editor->version($work), $name eq 'DELETE' ? 2 : 7, "$name: five writes");

		$editor->refused("$name of nobody", 404, 'NOT_FOUND', undef, with('"0"', $request->({ type => 'works', id => $nobody })));
		$other->refused("$name of another tenant's with $_", 404, 'NOT_FOUND', undef, with($_, $request->($work)))
		  for '"0"', '"7"', '*';
		$reader->refused("$name without authority", 403, 'FORBIDDEN', undef, with('"0"', $request->($work)));
		$reader->refused("$name without authority and header", 403, 'FORBIDDEN', undef, with(undef, $request->($work)));
		$editor->refused("$name without credential", 401, undef, undef, with('"0"', $request->($work)), plain => 1);
		$editor->good($success, with('"' . $editor->version($work) . '"', $request->($work)));
	}
};

subtest 'order of checks' => sub {
	my $work = work();
	my $path = $editor->path($work);
	my $stale = { 'If-Match' => '"9"' };

	$editor->refused('a bad body comes before 428', 400, undef, undef, PATCH => $path, body => '{');
	$editor->refused('and before 412', 400, undef, undef, PATCH => $path, body => '{', headers => $stale);
	$editor->refused('so does a type that differs', 409, 'TYPE_CONFLICT', undef, PATCH => $path, data => { type => 'notes', id => $work->{id} }, headers => $stale);
	$editor->refused('and an id', 409, 'ID_CONFLICT', undef, PATCH => $path, data => { type => 'works', id => $nobody }, headers => $stale);
	$editor->refused('412 comes before a bad value', 412, 'PRECONDITION_FAILED', undef, PATCH => $path,
		data => { type => 'works', id => $work->{id}, attributes => { price => 'x' } }, headers => $stale);
	$editor->refused('and before a related resource', 412, 'PRECONDITION_FAILED', undef, PATCH => "$path/relationships/editor",
		data => { type => 'authors', id => $nobody }, headers => $stale);
	$editor->refused('404 before a bad value', 404, 'NOT_FOUND', undef, PATCH => "/works/$nobody",
		data => { type => 'works', id => $nobody, attributes => { price => 'x' } }, headers => $stale);
	my $busy = $editor->made(places => { name => 'p' });
	$editor->made(posters => {}, { shows => $busy });
	$editor->refused('412 before what still refers to it', 412, 'PRECONDITION_FAILED', undef, DELETE => $editor->path($busy), headers => $stale);
	is($editor->version($work), 0, 'nothing has changed');

	$editor->good(200, PATCH => $editor->path($ann), data => $editor->identifier($ann), headers => { 'If-Match' => '"77"' });
	$editor->good(200, PATCH => $editor->path($ann), data => $editor->identifier($ann));
	pass('a type without locking takes any and none');

	my $gone = work();
	$editor->good(204, DELETE => $editor->path($gone), headers => { 'If-Match' => '"0"' });
	$editor->refused("$_ of what is gone", 404, 'NOT_FOUND', undef, with('"0"', $write{$_}->($gone))) for sort keys %write;
};

# It is honoured where the version covers every byte, and else passed over
subtest 'If-None-Match' => sub {
	my $work = work();
	my $bare = $editor->path($work);
	my $path = "$bare?fields[works]=title,price";

	for my $case (
		[ '"0"', 304 ], [ 'W/"0"', 304 ], [ '*', 304 ], [ '"5", "0"', 304 ], [ '"1"', 200 ], [ '"00"', 200 ],
		[ '"x", "0"', qr/^(?:200|304)$/ ], [ '"foreign"', 200 ])
	{
		my ($match, $status) = @$case;
		for my $method (qw(GET HEAD))
		{
			my $answer = $editor->call($method => $path, headers => { 'If-None-Match' => $match });
			ref $status ? like($answer->{status}, $status, "$method $match") : is($answer->{status}, $status, "$method $match");
			is($answer->{headers}{etag}, '"0"', 'tag');
			is($answer->{body}, '', 'no body') if $answer->{status} == 304;
		}
	}
	is($editor->call(GET => $path, headers => { 'If-None-Match' => $_ })->{status}, 304, "lines: @$_")
	  for [ '"0"', '"5"' ], [ '"5"', '"0"' ];
	for my $case (
		[ '?fields[works]=', 304 ], [ '?fields[works]=title&fields[authors]=name', 304 ],
		[ '', 200 ], [ '?fields[authors]=name', 200 ], [ '?fields[works]=title,author', 200 ], [ '?fields[works]=notes', 200 ],
		[ '?fields[works]=title&include=author', 200 ], [ '?fields[works]=title&include=', 200 ])
	{
		my ($query, $status) = @$case;

		for my $match ('"0"', '*')
		{
			my $answer = $editor->call(GET => "$bare$query", headers => { 'If-None-Match' => $match });

			is("$answer->{status} $answer->{headers}{etag}", qq($status "0"), "$match with '$query'");
			is($answer->{json}{data}{id}, $work->{id}, 'the resource') if $status == 200;
		}
	}
	my $note = $editor->made(notes => { text => 'n' }, { work => $work });
	is($editor->version($work), 0, 'what refers to it is none of its version');
	is_deeply([ map { $_->{id} } @{ $editor->call(GET => $bare, headers => { 'If-None-Match' => '"0"' })->{json}{data}{relationships}{notes}{data} } ],
		[ $note->{id} ], 'and is shown to who has it');
	is($editor->call(GET => '/works', headers => { 'If-None-Match' => '*' })->{status}, 200, 'not for lists');
	is($editor->call(GET => $editor->path($ann) . '?fields[authors]=name', headers => { 'If-None-Match' => '"0"' })->{status}, 200, 'not without locking');
	is($editor->call(GET => "/works/$nobody?fields[works]=title", headers => { 'If-None-Match' => '*' })->{status}, 404, 'nor for nobody');
	is($other->call(GET => $path, headers => { 'If-None-Match' => '"0"' })->{status}, 404, "nor for another tenant's");
	$editor->update($work, { price => 3 });
	is($editor->call(GET => $path, headers => { 'If-None-Match' => '"0"' })->{status}, 200, 'nor after a write');
};

subtest 'one tag, many writers' => sub {
	for my $name ('PATCH', 'PATCH to-one', 'PATCH to-many', 'PATCH many-to-many', 'DELETE many-to-many', 'POST many-to-many', 'DELETE')
	{
		for my $round (1 .. 3)
		{
			my $work = work();
			my $request = $write{$name} // $add{$name};
			my $lost = $name eq 'DELETE' ? qr/^(?:404|412)$/ : qr/^412$/;
			my @statuses = EntityApi::Test::Conformance::at_once(
				map { sub { $editor->call(with('"0"', $request->($work)))->{status} } } 1 .. 6);
			my @won = grep { /^20[04]$/ } @statuses;

			is(scalar @won, 1, "$name: exactly one wins") or diag "@statuses";
			is(scalar(grep { $_ =~ $lost } @statuses), 5, "$name: the others are told") or diag "@statuses";
			is($editor->version($work), 1, "$name: one write") if $name ne 'DELETE';
		}
	}
};

subtest 'loops' => sub {
	my $work = work();
	my $path = $editor->path($work);
	my $loop = sub {
		my $done = 0;
		for (1 .. 25)
		{
			my $tag = $editor->call(GET => $path)->{headers}{etag};
			my $answer = $_ % 3
			  ? $editor->call(with($tag, $write{PATCH}->($work)))
			  : $editor->call(with($tag, $write{'PATCH to-one'}->($work)));
			die "status $answer->{status}" if $answer->{status} !~ /^(?:200|204|412)$/;
			$done++ if $answer->{status} != 412;
		}
		return $done;
	};
	my @done = EntityApi::Test::Conformance::at_once(($loop) x 4);
	my $sum = 0;

	ok(!grep({ /\D/ } @done), 'all loops ran') or diag "@done";
	$sum += $_ for grep { /^\d+$/ } @done;
	cmp_ok($sum, '>', 0, 'some won');
	is($editor->version($work), $sum, 'the version is the number of writes');
};

done_testing;
