# A request costs a number of statements that does not grow with the number of
# resources: one for each relationship of a level, never one for each row.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library', here => 1, conf => [ 'entityapi.direct_scans = on' ]);
my $cluster = $editor->cluster;
my $json = JSON::PP->new->canonical;
my $plain = $EntityApi::Test::Conformance::type;
my $atomic = $EntityApi::Test::Conformance::atomic;
my @sizes = (1, 20, 100);

# Two resources are the least that have a one-of of each type.
my @mixed_sizes = (2, 20, 100);

# The number of statements of one request, in a session that has seen the same
# request before.  A request must succeed and be told as method, target, document.
sub cost
{
	my (@requests) = @_;
	my $sql = '';

	for my $request (@requests)
	{
		my ($method, $target, $document) = @$request;
		my %headers = (
			authorization => "Bearer $editor->{token}{accessToken}",
			'if-match'    => '*',
			$document ? ('content-type' => $target =~ /operations$/ ? $atomic : $plain) : ());
		my $body = $document ? "convert_to('" . ($json->encode($document) =~ s/'/''/gr) . "', 'UTF8')" : 'null';

		$sql .= sprintf "select entityapi.statement_count() is null;\n"
		  . "select status, length(body) from entityapi.handle('%s', '/api/v1%s', '%s'::jsonb, %s, null);\n"
		  . "select 'cost ' || entityapi.statement_count();\n",
		  $method, $target, $json->encode(\%headers), $body;
	}
	my $out = $cluster->psql($sql);
	my @statuses = $out =~ /^(\d+)\|/mg;

	die "statuses @statuses\n" if @statuses != @requests || grep { $_ !~ /^2/ } @statuses;
	return ($out =~ /^cost (\d+)$/mg)[-1];
}

sub same
{
	my ($name, @costs) = @_;

	is(join(' ', @costs), join(' ', ($costs[0]) x @costs), "$name: does not grow");
	cmp_ok($costs[0], '>', 0, 'which are counted');
	return $costs[0];
}

# Works with all they may have
my $ann = $editor->made(authors => { name => 'Ann' });
my @subjects = ($editor->made(places => { name => 'Alp' }), $editor->made(events => { name => 'Fair' }));
my @genres = map { $editor->made(genres => { name => "g$_" }) } 1 .. 3;
my @batch;
for my $n (1 .. 100)
{
	push @batch,
	  { op => 'add', data => { %{ $editor->document(authors => { name => "a$n" }, { mentor => $ann }) }, lid => "a$n" } },
	  { op => 'add', data => {
			%{ $editor->document(works => { title => "w$n" }, {
					author => { type => 'authors', lid => "a$n" }, editor => $ann, subject => $subjects[ $n % 2 ], genres => [ @genres[ $n % 3, 2 ] ] }) },
			lid => "w$n" } },
	  map({ { op => 'add', data => {
				%{ $editor->document(chapters => { heading => "c$n.$_" }, { work => { type => 'works', lid => "w$n" } }) },
				lid => "c$n.$_" } } } 1 .. 2),
	  map({ { op => 'add', data => $editor->document(paragraphs => { text => "p$n.$_" }, { chapter => { type => 'chapters', lid => "c$n.1" } }) } } 1 .. 2),
	  { op => 'add', data => $editor->document(notes => { text => "n$n" }, { work => { type => 'works', lid => "w$n" } }) };
}
my $answer = $editor->batch(@batch);
is($answer->{status}, 200, 'a hundred works') or BAIL_OUT($answer->{body});

subtest 'lists' => sub {
	my %cost;
	for my $case (
		[ 'plain',              '/works?' ],
		[ 'attributes only',    '/works?fields[works]=title' ],
		[ 'to-one',             '/works?include=author' ],
		[ 'many-to-many',       '/works?include=genres' ],
		[ 'to-many',            '/works?include=chapters' ],
		[ 'one-of, mixed',      '/works?include=subject', 1 ],
		[ 'a chain',            '/works?include=chapters.paragraphs' ],
		[ 'to one and back',    '/works?include=author.works.notes' ],
		[ 'much',               '/works?include=author.mentor,editor,genres,chapters.paragraphs,notes,subject', 1 ],
		[ 'filtered on a path', '/works?include=author&filter=chapters.heading=like=c%25;author.mentor.name==Ann&sort=author.name' ],
		[ 'no totals',          '/works?page[totals]=false' ],
		[ 'filtered',           '/works?filter=title!=x' ],
		[ 'without totals',     '/works?filter=title!=x&page[totals]=false' ],
		[ 'by cursor',          '/works?page[after]=start&sort=-title' ],
		[ 'related',            $editor->path($ann, 'edits') . '?include=genres,subject', 1 ])
	{
		my ($name, $target, $mixed) = @$case;
		my @costs = map { my @request = (GET => "$target&page[size]=$_"); cost(\@request, \@request) } $mixed ? @mixed_sizes : @sizes;
		$cost{$name} = same($name, @costs);
	}
	cmp_ok($cost{'attributes only'}, '<', $cost{plain}, 'a relationship left out costs nothing');
	is($cost{plain}, $cost{'no totals'}, 'totals that an index tells cost no statement');
	is($cost{filtered}, $cost{'without totals'} + 1, 'others cost one');
	is($cost{'by cursor'}, $cost{'no totals'}, 'a cursor costs none');
	cmp_ok($cost{'a chain'} - $cost{'to-many'}, '<=', 4, 'another hop costs its relationships');
	cmp_ok($cost{much}, '<=', 40, 'much is not too much');
};

subtest 'one resource' => sub {
	my @genre = map { my $n = $_; $editor->made(genres => { name => "size $n" }) } @sizes;
	my @works = map { { type => 'works', id => $_->{id} } } @{ $editor->good(200, GET => '/works?page[size]=100')->{json}{data} };

	for my $i (0 .. $#sizes)
	{
		$editor->relate(POST => $genre[$i], 'works', [ @works[ 0 .. $sizes[$i] - 1 ] ]);
	}
	for my $case (
		[ 'with many members',     sub { (GET => $editor->path($_[0])) } ],
		[ 'with members included', sub { (GET => $editor->path($_[0]) . '?include=works.author') } ],
		[ 'its relationship',      sub { (GET => $editor->path($_[0], 'relationships', 'works')) } ])
	{
		my ($name, $request) = @$case;
		same($name, map { my @request = $request->($_); cost(\@request, \@request) } @genre);
	}
};

subtest 'writes' => sub {
	my @works = map { $editor->identifier($_) } @{ $editor->good(200, GET => '/works?page[size]=100')->{json}{data} };
	my @notes = map { $editor->identifier($_) } @{ $editor->good(200, GET => '/notes?page[size]=100')->{json}{data} };
	my $name = 0;
	my $made = sub {
		my ($n) = @_;
		return { data => { type => 'genres', attributes => { name => 'new ' . $name++ },
				relationships => { works => { data => [ @works[ 0 .. $n - 1 ] ] } } } };
	};
	same('creation with members', map { my $n = $_; cost(map { [ POST => '/genres', $made->($n) ] } 1 .. 2) } @sizes);

	my $path = $editor->path($genres[0], 'relationships', 'works');
	same('replacing links', map { my $n = $_; cost(map { [ PATCH => $path, { data => [ @works[ 0 .. $_ - 1 ] ] } ] } 100, $n) } @sizes);
	same('adding links', map { my $n = $_; cost(map({ [ PATCH => $path, { data => [] } ], [ POST => $path, { data => [ @works[ 0 .. $n - 1 ] ] } ] } 1 .. 2)) } @sizes);
	same('removing links', map { my $n = $_; cost(map({ [ POST => $path, { data => \@works } ], [ DELETE => $path, { data => [ @works[ 0 .. $n - 1 ] ] } ] } 1 .. 2)) } @sizes);

	$path = $editor->path($works[0], 'relationships', 'notes');
	same('taking over members', map { my $n = $_; cost(map({ [ PATCH => $path, { data => [] } ], [ POST => $path, { data => [ @notes[ 0 .. $n - 1 ] ] } ] } 1 .. 2)) } @sizes);

	# One add goes in by itself; from two on they go in together.
	my $adds = sub {
		my ($n) = @_;
		return [ POST => '/operations', { 'atomic:operations' => [
					map({ { op => 'add', data => $editor->document(notes => { text => "x$_" }, { work => $works[ $_ % 7 ] }) } } 1 .. $n) ] } ];
	};
	same('adds of one type', map { my $n = $_; cost(map { $adds->($n) } 1 .. 2) } 2, 20, 100);

	my $chapters = sub {
		my ($n) = @_;
		my $work = $editor->made(works => { title => 'cascade' }, { author => $ann });
		my $answer = $editor->batch(map {
				({ op => 'add', data => { %{ $editor->document(chapters => { heading => "h$_" }, { work => $work }) }, lid => "c$_" } },
					{ op => 'add', data => $editor->document(paragraphs => { text => 'p' }, { chapter => { type => 'chapters', lid => "c$_" } }) })
			} 1 .. $n);
		die $answer->{body} if $answer->{status} != 200;
		return [ DELETE => $editor->path($work) ];
	};
	same('a cascade', map { my $n = $_; cost(map { $chapters->($n) } 1 .. 2) } @sizes);
};

done_testing;
