# Related resources: include paths through a one-of, and that faults of query
# and body come before a resource that is not there.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $nobody = $EntityApi::Test::Conformance::nobody;
my $ann = $editor->made(authors => { name => 'Ann' });
my $place = $editor->made(places => { name => 'Rome' });
my $event = $editor->made(events => { name => 'Fire' });
my %work = map { $_->[0] => $editor->made(works => { title => $_->[0] }, { author => $ann, $_->[1] ? (subject => $_->[1]) : () }) }
  [ there => $place ], [ then => $event ], ['of nothing'];

# An event has no depictions, a place has
subtest 'include behind a one-of' => sub {
	my %found = (there => "$place->{id} $work{there}{id}", then => "$event->{id} ", 'of nothing' => ' ');

	for my $name (sort keys %work)
	{
		my $path = $editor->path($work{$name}, 'subject');
		my $answer = $editor->good(200, GET => "$path?include=depictions")->{json};

		is(($answer->{data}{id} // '') . ' ' . join(' ', map { $_->{id} } @{ $answer->{included} }), $found{$name}, "a work $name");
		is_deeply($editor->good(200, GET => "$path?include=")->{json}{included}, [], 'or nothing');
		$editor->refused('a path that no member has', 400, 'INVALID_INCLUDE', [ parameter => 'include' ], GET => "$path?include=nothing");
		$editor->refused('nor its next hop', 400, 'INVALID_INCLUDE', [ parameter => 'include' ], GET => "$path?include=depictions.nothing");
	}
};

subtest 'faults before what is not there' => sub {
	my @faults = (
		[ 'subject?include=nothing' => 'INVALID_INCLUDE' ], [ 'author?include=nothing' => 'INVALID_INCLUDE' ],
		[ 'author?fields[authors]=nothing' => 'INVALID_FIELDS' ], [ 'author?x=1' => 'UNKNOWN_PARAMETER' ],
		[ 'notes?include=nothing' => 'INVALID_INCLUDE' ], [ 'notes?filter=nothing==1' => 'INVALID_FILTER' ],
		[ 'notes?sort=nothing' => 'INVALID_SORT' ], [ 'notes?page[after]=x' => undef ], [ 'genres?filter=(' => 'INVALID_FILTER' ],
		[ 'relationships/genres?x=1' => 'UNKNOWN_PARAMETER' ]);
	my $foreign = $editor->other->made(works => { title => 'theirs' }, { author => $editor->other->made(authors => { name => 'Ted' }) });

	for my $id ($nobody, $foreign->{id}, 'x')
	{
		$editor->refused("$_->[0] of $id", 400, $_->[1], undef, GET => "/works/$id/$_->[0]") for @faults;
		$editor->refused("$_ of $id", 404, 'NOT_FOUND', undef, GET => "/works/$id/$_")
		  for qw(subject author notes genres relationships/genres relationships/subject), 'notes?filter=text==a&sort=text&include=work', 'subject?include=depictions';
		for my $method (qw(POST PATCH DELETE))
		{
			my @match = (headers => { 'If-Match' => '"0"' });

			$editor->refused("$method of $id", 400, 'INVALID_DOCUMENT', undef, $method => "/works/$id/relationships/genres", data => 1, @match);
			$editor->refused("$method of $id", 400, 'UNKNOWN_PARAMETER', undef, $method => "/works/$id/relationships/genres?x=1", data => [], @match);
			$editor->refused("$method of $id", 404, 'NOT_FOUND', undef, $method => "/works/$id/relationships/genres", data => [], @match);
		}
	}
};

done_testing;
