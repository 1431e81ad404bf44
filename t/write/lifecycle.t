# Versions of resources and preconditions, deletions and what they leave, and
# that tenants know nothing of each other.

use strict;
use warnings;

use List::Util qw(sum0);
use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant($_) } qw(acme other);
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenants[0]{id}, 'ed', ['Editor']), '/api/v1');
my $other = $editor->as($shim->user($tenants[1]{id}, 'ted', ['Editor']));
my $nobody = '01980000-0000-7000-8000-000000000000';

sub made
{
	my ($cases, $collection, $attributes, $relationships) = @_;

	return $cases->good(201, POST => "/$collection",
		data => {
			type       => $collection,
			attributes => $attributes,
			$relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to
{
	return { data => { type => $_[0]{type}, id => $_[0]{id} } };
}

sub path
{
	return "/$_[0]{type}/$_[0]{id}";
}

sub patch
{
	my ($data, %change) = @_;
	my $if_match = delete $change{if_match};

	return (PATCH => path($data), data => { type => $data->{type}, id => $data->{id}, %change },
		defined $if_match ? (headers => { 'If-Match' => $if_match }) : ());
}

sub version
{
	my ($data) = @_;

	return $editor->good(200, GET => path($data))->{headers}{etag};
}

my $ann = made($editor, people => { name => 'Ann' });
my $bob = made($editor, people => { name => 'Bob' });

# --- versions ---------------------------------------------------------------

subtest 'versions' => sub {
	my $answer = $editor->good(201, POST => '/boxes',
		data => { type => 'boxes', attributes => { label => 'x' }, relationships => { owner => to($ann) } });
	my $box = $answer->{json}{data};

	is($answer->{headers}{etag}, '"0"', 'the first version is 0');
	is($box->{meta}{version}, 0, 'in the resource, too');
	is(version($box), '"0"', 'on GET');
	$answer = $editor->good(200, patch($box, attributes => { label => 'y' }, if_match => '"0"'));
	is($answer->{headers}{etag}, '"1"', 'one more');
	is($answer->{json}{data}{meta}{version}, 1, 'in the resource, too');
	is($editor->good(200, patch($box, if_match => '"1"'))->{headers}{etag}, '"2"', 'even when nothing changes');
	is($editor->good(200, GET => '/boxes')->{json}{data}[0]{meta}{version}, 2, 'in lists');

	ok(!exists $editor->good(200, GET => path($ann))->{headers}{etag}, 'no tag without locking');
	ok(!exists $editor->good(200, GET => path($ann))->{json}{data}{meta}{version}, 'nor a version');
	is($editor->call(patch($ann, attributes => { name => 'Ann' }, if_match => 'rubbish'))->{status}, 200, 'nor a precondition');

	my $tag = made($editor, tags => { word => 'w' });
	$editor->good(200, patch($box, relationships => { tags => { data => [ to($tag)->{data} ] } }, if_match => '"2"'));
	is(version($box), '"3"', 'a to-many in the document counts once');
	my $slip = made($editor, slips => { text => 's' }, { box => to($box) });
	is(version($slip), '"0"', 'the other side begins');
	is(version($box), '"3"', 'and is no write of this one');
	my $second = made($editor, boxes => { label => 'second' }, { owner => to($ann), slips => { data => [ to($slip)->{data} ] } });
	is(version($slip), '"1"', 'a row whose column changes has been written');
	is(version($second), '"0"', 'the new one is new');
};

subtest 'preconditions' => sub {
	my $box = made($editor, boxes => { label => 'p' }, { owner => to($ann) });
	my $current = 0;

	for my $method (qw(PATCH DELETE))
	{
		my @document = $method eq 'PATCH' ? (data => { type => 'boxes', id => $box->{id}, attributes => { label => 'changed' } }) : ();

		$editor->refused("$method without", 428, 'PRECONDITION_REQUIRED', [ header => 'If-Match' ], $method => path($box), @document);
		for my $case (
			[ 412, '"1"' ], [ 412, '"7"' ], [ 412, '"99999999999999999999999"' ], [ 412, 'W/"0"' ], [ 412, 'W/"0", "5"' ], [ 412, '"5", "6"' ],
			[ 400, '0' ], [ 400, '"x"' ], [ 400, '"0' ], [ 400, '""' ], [ 400, '"-1"' ], [ 400, '"0x0"' ], [ 400, '"0" x' ], [ 400, "'0'" ], [ 400, 'w/"0"' ],
			[ 400, '"0", rubbish' ], [ 400, '**' ], [ 400, '"*"' ], [ 400, '*, "0"' ])
		{
			my ($status, $if_match) = @$case;
			$editor->refused("$method $if_match", $status, $status == 412 ? 'PRECONDITION_FAILED' : undef,
				[ header => 'If-Match' ], $method => path($box), @document, headers => { 'If-Match' => $if_match });
		}
		my $zero = $editor->call($method => path($box), @document, headers => { 'If-Match' => '"00"' });
		ok($zero->{status} == 400 || $zero->{status} == 412, "$method \"00\" is not version 0");
		is(version($box), '"0"', 'nothing was written');
	}
	for my $if_match ('"0"', '"7", "1"', '"2","2"', '*', ' "4" ', '"5" , W/"1"')
	{
		is($editor->call(patch($box, if_match => $if_match))->{status}, 200, "PATCH $if_match");
	}
	is(version($box), '"6"', 'six writes');

	for my $case (
		[ 304, '"6"' ], [ 304, 'W/"6"' ], [ 304, '"1", "6"' ], [ 304, '*' ], [ 200, '"5"' ], [ 200, 'W/"7"' ], [ 200, '"x"' ], [ 200, 'rubbish' ])
	{
		my ($status, $tag) = @$case;
		my $answer = $editor->call(GET => path($box) . '?fields[boxes]=label', headers => { 'If-None-Match' => $tag });

		is($answer->{status}, $status, "If-None-Match: $tag");
		is($answer->{headers}{etag}, '"6"', 'the tag is there');
		is($answer->{body}, '', 'the body is not') if $status == 304;
	}
	is($editor->call(GET => path($box) . '?include=owner&fields[boxes]=label', headers => { 'If-None-Match' => '"6"' })->{status}, 200, 'not with include');
	is($editor->call(GET => path({ %$box, id => $nobody }) . '?fields[boxes]=label', headers => { 'If-None-Match' => '*' })->{status}, 404, 'not of nothing');

	$editor->good(204, DELETE => path($box), headers => { 'If-Match' => '"6"' });
	$editor->refused('an old tag of what is gone', 404, 'NOT_FOUND', undef, patch($box, if_match => '"6"'));
	$editor->refused('of what never was', 404, 'NOT_FOUND', undef, patch({ %$box, id => $nobody }, if_match => '"6"'));
};

# Run functions at the same time, each in a process of its own; returns the
# lists of statuses that they return.
sub at_once
{
	my (@functions) = @_;
	my (@readers, @answers);

	pipe my $gate, my $opener or die "pipe: $!\n";
	for my $function (@functions)
	{
		pipe my $reader, my $writer or die "pipe: $!\n";
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			close $opener;
			sysread $gate, my $nothing, 1;
			syswrite $writer, join ' ', eval { $function->() };
			POSIX::_exit(0);
		}
		close $writer;
		push @readers, [ $pid, $reader ];
	}
	close $opener;
	for (@readers)
	{
		my ($pid, $reader) = @$_;

		push @answers, [ split / /, do { local $/; <$reader> } // '' ];
		waitpid $pid, 0;
	}
	return @answers;
}

subtest 'at the same time' => sub {
	for my $round (1 .. 5)
	{
		my $box = made($editor, boxes => { label => 'r' }, { owner => to($ann) });
		my @statuses = map { @$_ } at_once(map {
				my $label = "client $_";
				sub { $editor->call(patch($box, attributes => { label => $label }, if_match => '"0"'))->{status} }
			} 1 .. 4);

		is(join(' ', sort @statuses), '200 412 412 412', 'one of four with one tag');
		is(version($box), '"1"', 'wrote once');
	}

	my $box = made($editor, boxes => { label => 'l' }, { owner => to($ann) });
	my @statuses = map { @$_ } at_once((sub {
			map {
				my $tag = $editor->call(GET => path($box))->{headers}{etag};
				$editor->call(patch($box, attributes => { weight => $_ }, if_match => $tag))->{status}
			} 1 .. 25
		}) x 4);
	is(scalar @statuses, 100, 'a hundred writes');
	is(scalar(grep { $_ != 200 && $_ != 412 } @statuses), 0, 'each accepted or late');
	is(version($box), '"' . (grep { $_ == 200 } @statuses) . '"', 'the version counts those accepted');

	@statuses = map { @$_ } at_once((sub { $editor->call(POST => '/tags', data => { type => 'tags', attributes => { word => 'same' } })->{status} }) x 4);
	is(join(' ', sort @statuses), '201 409 409 409', 'a unique value is taken once');

	my $person = made($editor, people => { name => 'parallel' });
	@statuses = map { @$_ } at_once(
		sub { $editor->call(DELETE => path($person))->{status} },
		(sub {
			$editor->call(POST => '/boxes',
				data => { type => 'boxes', attributes => { label => 'q' }, relationships => { owner => to($person) } })->{status}
		}) x 2);
	my $deleted = shift @statuses;
	is_deeply([ $deleted, @statuses ], $deleted == 204 ? [ 204, 404, 404 ] : [ 409, sort @statuses ], 'never a dangling reference');
	is($editor->good(200, GET => "/boxes?filter=owner.id==$person->{id}")->{json}{meta}{pagination}{totalRecords},
		scalar(grep { $_ == 201 } @statuses), 'what was accepted is there');
};

# --- deletion ---------------------------------------------------------------

subtest 'deletion' => sub {
	my $owner = made($editor, people => { name => 'owner' });
	my $keeper = made($editor, people => { name => 'keeper' });
	my $book = made($editor, books => { title => 'b' });
	my $tag = made($editor, tags => { word => 'deleted' });
	my $vault = made($editor, vaults => { place => 'p' });
	my $box = made($editor, boxes => { label => 'd' },
		{ owner => to($owner), keeper => to($keeper), content => to($book), vault => to($vault), tags => { data => [ to($tag)->{data} ] } });
	my @slips = map { made($editor, slips => { text => "slip $_" }, { box => to($box) }) } 1 .. 3;
	my $linkage = sub { return $editor->good(200, GET => path($box))->{json}{data}{relationships}{ $_[0] }{data} };

	for my $referred ($owner, $vault)
	{
		$editor->refused("restricted: $referred->{type}", 409, 'STILL_REFERENCED', undef, DELETE => path($referred));
		is($editor->call(GET => path($referred))->{status}, 200, 'is still there');
	}
	is(version($box), '"0"', 'nothing was written');
	$editor->good(204, DELETE => path($keeper));
	is($linkage->('keeper'), undef, 'set to null');
	is(version($box), '"1"', 'is a write');
	$editor->good(204, DELETE => path($book));
	is($linkage->('content'), undef, 'a one-of, too');
	is(version($box), '"2"', 'is a write');
	$editor->good(204, DELETE => path($tag));
	is_deeply($linkage->('tags'), [], 'links of many-to-many go');
	is_deeply($editor->good(200, GET => path($box) . '?include=keeper,content,tags')->{json}{included}, [], 'and nothing dangles');

	my $locker = made($editor, lockers => { number => 77 }, { holder => to($bob) });
	$editor->good(204, DELETE => path($bob));
	is($editor->good(200, GET => path($locker))->{json}{data}{relationships}{holder}{data}, undef, 'one-to-one');

	$editor->good(204, DELETE => path($box), headers => { 'If-Match' => '*' });
	is($editor->call(GET => path($_))->{status}, 404, 'cascaded') for @slips;
	$editor->good(204, DELETE => path($vault));
	$editor->good(204, DELETE => path($owner));
	$editor->refused('twice', 404, 'NOT_FOUND', undef, DELETE => path($owner));

	my $boss = made($editor, people => { name => 'boss' });
	$editor->good(200, patch($boss, relationships => { boss => to($boss) }));
	my $report = made($editor, people => { name => 'report' }, { boss => to($boss) });
	$editor->good(204, DELETE => path($boss));
	is($editor->good(200, GET => path($report))->{json}{data}{relationships}{boss}{data}, undef, 'its own boss');
};

subtest 'soft deletion' => sub {
	my $memo = made($editor, memos => { subject => 'hidden' });
	my $reply = made($editor, memos => { subject => 're: hidden' });

	$editor->good(204, DELETE => path($memo));
	$editor->refused('GET', 404, 'NOT_FOUND', undef, GET => path($memo));
	$editor->refused('PATCH', 404, 'NOT_FOUND', undef, patch($memo));
	$editor->refused('DELETE', 404, 'NOT_FOUND', undef, DELETE => path($memo));
	$editor->refused('as a target', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/relationships/reply/data' ],
		patch($reply, relationships => { reply => to($memo) }));
	is($editor->good(200, GET => '/memos')->{json}{meta}{pagination}{totalRecords}, 1, 'lists and totals');
	is($editor->good(200, GET => "/memos?filter=id==$memo->{id}")->{json}{meta}{pagination}{totalRecords}, 0, 'filters');
	is(made($editor, memos => { subject => 'hidden' })->{attributes}{subject}, 'hidden', 'its unique value is free');
	is($cluster->psql('select count(*) from app.memo where deleted_at is not null'), 1, 'but the row is there');
	my $read = made($editor, memos => { subject => 'read' }, { reply => to($reply) });
	my $answer = $editor->call(DELETE => path($reply));
	if ($answer->{status} == 204)
	{
		my $json = $editor->good(200, GET => path($read) . '?include=reply')->{json};
		is($json->{data}{relationships}{reply}{data}, undef, 'what is hidden is not linked');
		is_deeply($json->{included}, [], 'nor included');
	}
	else { is($answer->{status}, 409, 'restricted as if it went') }
};

# --- tenants ----------------------------------------------------------------

subtest 'tenants' => sub {
	my $theirs = made($other, people => { name => 'theirs' });
	my $their_tag = made($other, tags => { word => 'unique' });
	my $their_box = made($other, boxes => { label => 'theirs' }, { owner => to($theirs) });
	my $mine = made($editor, boxes => { label => 'mine' }, { owner => to($ann) });

	# The same request for the other's id and for nobody's
	my $same = sub {
		my ($name, $status, $request, $real) = @_;
		my @answers = map {
			my ($method, $target, %options) = $request->($_);
			my $answer = $editor->call($method, $target, %options,
				headers => { %{ $options{headers} // {} }, 'X-Request-Id' => 'same' });
			my $id = $_;

			+{ status => $answer->{status}, body => $answer->{body} =~ s/\Q$id\E/ID/gr };
		} ($real, $nobody);

		is($answers[0]{status}, $status, "$name: $status");
		is_deeply($answers[0], $answers[1], 'as if it were not there');
	};
	for my $if_match (undef, '"0"', '"9"', 'W/"0"', '*', '"0", "1"')
	{
		my @headers = defined $if_match ? (headers => { 'If-Match' => $if_match }) : ();
		my $status = defined $if_match ? 404 : 428;
		my $name = $if_match // 'without If-Match';

		$same->("PATCH $name", $status, sub { PATCH => "/boxes/$_[0]", data => { type => 'boxes', id => $_[0] }, @headers }, $their_box->{id});
		$same->("DELETE $name", $status, sub { DELETE => "/boxes/$_[0]", @headers }, $their_box->{id});
	}
	for my $method (qw(GET HEAD))
	{
		for my $tag ('"0"', '*')
		{
			$same->("$method $tag", 404, sub { $method => "/boxes/$_[0]?fields[boxes]=label", headers => { 'If-None-Match' => $tag } }, $their_box->{id});
		}
		$same->("$method with include", 404, sub { $method => "/boxes/$_[0]?include=owner&fields[boxes]=label" }, $their_box->{id});
	}
	$same->('invalid PATCH', 404, sub { PATCH => "/people/$_[0]", data => { type => 'people', id => $_[0], attributes => { nothing => 1 } } }, $theirs->{id});
	$same->('an id of theirs', 403, sub { POST => '/people', data => { type => 'people', id => $_[0], attributes => { name => 'x' } } }, $theirs->{id});
	$same->('to-one target', 404, sub { POST => '/boxes', data => { type => 'boxes', attributes => { label => 'x' }, relationships => { owner => to({ type => 'people', id => $_[0] }) } } }, $theirs->{id});
	$same->('to-many target', 404, sub { PATCH => path($mine), headers => { 'If-Match' => '*' }, data => { type => 'boxes', id => $mine->{id}, relationships => { tags => { data => [ { type => 'tags', id => $_[0] } ] } } } }, $their_tag->{id});
	$same->('filter', 200, sub { GET => "/boxes?filter=id==$_[0],owner.id==$_[0]" }, $their_box->{id});

	for my $member (qw(tenantId tenant_id tenant))
	{
		$editor->refused("attribute $member", 400, 'UNKNOWN_FIELD', undef, patch($ann, attributes => { $member => $tenants[1]{id} }));
		$editor->refused("relationship $member", 400, 'UNKNOWN_FIELD', undef, POST => '/people',
			data => { type => 'people', attributes => { name => 'x' }, relationships => { $member => { data => { type => 'tenants', id => $tenants[1]{id} } } } });
		my $made = $editor->good(201, POST => '/people',
			data    => { type => 'people', $member => $tenants[1]{id}, meta => { $member => $tenants[1]{id} }, attributes => { name => $member } },
			headers => { 'X-Tenant' => $tenants[1]{id}, 'Tenant-Id' => $tenants[1]{id} })->{json}{data};
		is($cluster->psql("select tenant_id from app.person where id = '$made->{id}'"), $tenants[0]{id}, 'elsewhere it is ignored');
	}
	$editor->refused('X-Tenant-Id of the other', 403, undef, undef, GET => '/people', headers => { 'X-Tenant-Id' => $tenants[1]{id} });
	$editor->refused('of nobody', 403, undef, undef, GET => '/people', headers => { 'X-Tenant-Id' => $nobody });
	$editor->refused('that is no id', 403, undef, undef, GET => '/people', headers => { 'X-Tenant-Id' => 'x' });
	is($editor->call(GET => '/people', headers => { 'X-Tenant-Id' => $tenants[0]{id} })->{status}, 200, 'the own one');
	is(made($editor, tags => { word => 'unique' })->{attributes}{word}, 'unique', 'a value that is taken over there');
	is($editor->good(200, GET => '/people?filter=name!=%27x%27,id!=%27' . $nobody . '%27')->{json}{meta}{pagination}{totalRecords},
		$cluster->psql("select count(*) from app.person where tenant_id = '$tenants[0]{id}'"), 'a filter that holds for all does not widen');

	my $root = $editor->as($shim->superadmin);
	$root->refused('SuperAdmin without a tenant', 400, 'TENANT_REQUIRED', [ header => 'X-Tenant-Id' ], GET => '/people');
	$root->refused('with one that is not', 400, undef, [ header => 'X-Tenant-Id' ], GET => '/people', headers => { 'X-Tenant-Id' => $nobody });
	is($root->good(200, GET => '/people', headers => { 'X-Tenant-Id' => $tenants[1]{id} })->{json}{data}[0]{id}, $theirs->{id}, 'with one');
	$root->refused('and sees nobody of another', 404, undef, undef, GET => path($ann), headers => { 'X-Tenant-Id' => $tenants[1]{id} });
	my $country = $root->good(201, POST => '/countries', data => { type => 'countries', attributes => { code => 'AT' } })->{json}{data};
	is($_->good(200, GET => '/countries')->{json}{data}[0]{id}, $country->{id}, 'what is global is seen by all') for $editor, $other;

	my $planted = $cluster->try_psql("update app.box set owner_id = '$theirs->{id}' where id = '$mine->{id}'");
	like($planted->{err}, qr/foreign key/, 'not even SQL makes a reference across');
};

done_testing;
