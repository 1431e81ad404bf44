# References out of the ordinary: a type to itself, the inverse of a one-of, to
# what all tenants share, and one-to-one from both sides.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant($_) } qw(acme other);
my $root = EntityApi::Test::Cases->new($shim, $shim->superadmin, '/api/v1');
my $editor = $root->as($shim->user($tenants[0]{id}, 'ed', ['Editor']));
my $other = $root->as($shim->user($tenants[1]{id}, 'ted', ['Editor']));

sub made
{
	my ($cases, $type, $attributes, $relationships) = @_;

	return $cases->good(201, POST => "/$type",
		data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to
{
	return { data => { type => $_[0]{type}, id => $_[0]{id} } };
}

sub to_many
{
	return { data => [ map { to($_)->{data} } @_ ] };
}

sub patched
{
	my ($data, $relationships, $cases) = @_;

	return ($cases // $editor)->good(200, PATCH => "/$data->{type}/$data->{id}",
		headers => { 'If-Match' => '*' },
		data    => { type => $data->{type}, id => $data->{id}, relationships => $relationships })->{json}{data}{relationships};
}

sub linkage
{
	my ($data, $relationship) = @_;
	my $linkage = $editor->good(200, GET => "/$data->{type}/$data->{id}")->{json}{data}{relationships}{$relationship}{data};

	return ref $linkage eq 'ARRAY' ? join ' ', sort map { $_->{id} } @$linkage : $linkage && $linkage->{id};
}

sub ids
{
	return join ' ', sort map { $_->{id} } @_;
}

my ($ann, $bob, $cid) = map { made($editor, people => { name => $_ }) } qw(Ann Bob Cid);

subtest 'many-to-many of a type with itself' => sub {
	patched($ann, { friends => to_many($bob, $ann) });
	is(linkage($ann, 'friends'), ids($ann, $bob), 'one side');
	is(linkage($bob, 'friendOf'), $ann->{id}, 'the other');
	is(linkage($ann, 'friendOf'), $ann->{id}, 'both, by itself');
	is(linkage($bob, 'friends'), '', 'it has a direction');
	my $both = patched($ann, { friends => to_many($bob), friendOf => to_many($cid) });
	is($both->{friendOf}{data}[0]{id}, $cid->{id}, 'both sides in one request');
	is(linkage($cid, 'friends'), $ann->{id}, 'as seen from there');
	for my $case (
		[ 'friends.name==Bob', 'Ann' ], [ 'friendOf.name==Cid', 'Ann' ], [ 'friends.friends.name==Bob', 'Cid' ], [ 'friendOf.friendOf.name==Cid', 'Bob' ])
	{
		my ($filter, $name) = @$case;
		is(join(' ', map { $_->{attributes}{name} } @{ $editor->good(200, GET => "/people?filter=$filter")->{json}{data} }), $name, $filter);
	}
	is(ids(@{ $editor->good(200, GET => "/people/$cid->{id}?include=friends.friends")->{json}{included} }), ids($ann, $bob), 'include');
	is(ids(@{ $editor->good(200, GET => "/people/$bob->{id}?include=friendOf.friendOf")->{json}{included} }), ids($ann, $cid), 'and back');
	$editor->good(204, DELETE => '/people/' . made($editor, people => { name => 'gone' }, { friends => to_many($ann), friendOf => to_many($ann) })->{id});
	is(linkage($ann, 'friends') . linkage($ann, 'friendOf'), $bob->{id} . $cid->{id}, 'links end with an end');
};

subtest 'inverse of a one-of' => sub {
	my ($book, $toy) = (made($editor, books => { title => 'b' }), made($editor, toys => { title => 't' }));
	my ($one, $two) = map { made($editor, boxes => { label => $_ }, { owner => to($ann), content => to($toy) }) } qw(one two);

	is(linkage($book, 'boxes'), '', 'empty');
	patched($book, { boxes => to_many($one) });
	is(linkage($book, 'boxes'), $one->{id}, 'set from the inverse side');
	is(linkage($one, 'content'), $book->{id}, 'is the one content');
	is($editor->good(200, GET => "/boxes/$one->{id}")->{json}{data}{relationships}{content}{data}{type}, 'books', 'of its type');
	is($editor->good(200, GET => "/boxes/$one->{id}")->{json}{data}{meta}{version}, 1, 'a write of that row');
	is(linkage($two, 'content'), $toy->{id}, 'and of no other');
	is($editor->good(200, GET => '/books?filter=boxes.label==one')->{json}{meta}{pagination}{totalRecords}, 1, 'filter');
	is(ids(@{ $editor->good(200, GET => "/books/$book->{id}?include=boxes.owner")->{json}{included} }), ids($one, $ann), 'include');
	is(ids(@{ $editor->good(200, GET => "/boxes/$one->{id}?include=content.boxes")->{json}{included} }), ids($book), 'through the one-of');
	patched($book, { boxes => to_many() });
	is(linkage($one, 'content'), undef, 'cleared');
};

subtest 'one-to-one' => sub {
	my @lockers = map { made($editor, lockers => { number => $_ }) } 1 .. 3;

	patched($lockers[0], { holder => to($ann) });
	is(linkage($ann, 'locker'), $lockers[0]{id}, 'seen from the inverse side');
	patched($ann, { locker => to($lockers[1]) });
	is(linkage($ann, 'locker'), $lockers[1]{id}, 'replaced from there');
	is(linkage($lockers[0], 'holder'), undef, 'the former one is free');
	patched($bob, { locker => to($lockers[1]) });
	is(linkage($ann, 'locker'), undef, 'taken over');
	is(linkage($lockers[1], 'holder'), $bob->{id}, 'by another');
	my $new = made($editor, people => { name => 'new' }, { locker => to($lockers[2]) });
	is(linkage($lockers[2], 'holder'), $new->{id}, 'on create');
	patched($new, { locker => { data => undef } });
	is(linkage($lockers[2], 'holder'), undef, 'cleared');
	$editor->refused('many for one', 400, 'INVALID_DOCUMENT', undef, PATCH => "/people/$ann->{id}",
		data => { type => 'people', id => $ann->{id}, relationships => { locker => to_many(@lockers) } });
	is($editor->good(200, GET => '/people?filter=locker.number==2')->{json}{data}[0]{id}, $bob->{id}, 'filter');
	is($editor->good(200, GET => '/people?filter=locker=isnull=false')->{json}{meta}{pagination}{totalRecords}, 1, 'isnull of the inverse side');
	is($editor->good(200, GET => '/people?sort=locker.number')->{json}{data}[0]{id}, $bob->{id}, 'sort');
	is(ids(@{ $editor->good(200, GET => "/people/$bob->{id}?include=locker")->{json}{included} }), $lockers[1]{id}, 'include');
};

subtest 'shared by all tenants' => sub {
	my @countries = map { made($root, countries => { code => $_ }) } qw(AT BE);
	my $theirs = made($other, people => { name => 'theirs' }, { origin => to($countries[0]), visited => to_many(@countries) });
	my $mine = made($editor, people => { name => 'mine' }, { origin => to($countries[0]), visited => to_many($countries[1]) });

	is(linkage($mine, 'origin'), $countries[0]{id}, 'to one');
	is(linkage($mine, 'visited'), $countries[1]{id}, 'to many');
	is(ids(@{ $editor->good(200, GET => "/people/$mine->{id}?include=origin,visited")->{json}{included} }), ids(@countries), 'include');
	is($editor->good(200, GET => '/people?filter=origin.code==AT')->{json}{meta}{pagination}{totalRecords}, 1, 'filter sees the own tenant only');
	is($editor->good(200, GET => '/people?filter=visited.code==AT')->{json}{meta}{pagination}{totalRecords}, 0, 'also many to many');
	is($editor->good(200, GET => '/people?sort=-origin.code')->{json}{meta}{pagination}{totalRecords}, 5, 'sort leaves nobody out');
	$root->refused('what a tenant refers to stays', 409, 'STILL_REFERENCED', undef, DELETE => "/countries/$countries[0]{id}");
	$editor->refused('tenants cannot delete', 403, 'FORBIDDEN', undef, DELETE => "/countries/$countries[0]{id}");
	$editor->refused('nor change', 403, 'FORBIDDEN', undef, PATCH => "/countries/$countries[0]{id}", data => { type => 'countries', id => $countries[0]{id} });
	$root->refused('unique for all', 409, 'UNIQUE_VIOLATION', undef, POST => '/countries', data => { type => 'countries', attributes => { code => 'AT' } });
	is($root->call(DELETE => "/countries/$countries[1]{id}")->{status}, 204, 'what is only linked many to many goes');
	is(linkage($mine, 'visited'), '', 'links go in all tenants');
	is_deeply($other->good(200, GET => "/people/$theirs->{id}")->{json}{data}{relationships}{visited}{data}, [ to($countries[0])->{data} ], 'only those');
};

subtest 'ids in upper case' => sub {
	my $id = uc $ann->{id};

	is($editor->good(200, PATCH => "/people/$id", data => { type => 'people', id => $ann->{id}, attributes => { name => 'Ann' } })->{json}{data}{id}, $ann->{id}, 'in the URL');
	is($editor->good(200, PATCH => "/people/$ann->{id}", data => { type => 'people', id => $id })->{json}{data}{id}, $ann->{id}, 'in the document');
	is(patched($bob, { boss => { data => { type => 'people', id => $id } } })->{boss}{data}{id}, $ann->{id}, 'in linkage');
	is(patched($bob, { friends => { data => [ { type => 'people', id => $id }, to($ann)->{data} ] } })->{friends}{data}[0]{id}, $ann->{id}, 'twice in linkage');
	is($editor->good(200, GET => "/people?filter=id==$id")->{json}{meta}{pagination}{totalRecords}, 1, 'in a filter');
};

subtest 'authority changes' => sub {
	my $user = $shim->user($tenants[0]{id}, 'temp', ['Editor']);
	my $cases = $root->as($user);
	my $roles = sub {
		$root->good(200, PUT => "/manage/tenants/$tenants[0]{id}/users/$user->{id}/roles", json => { roles => [@_] });
	};

	$cases->good(200, GET => '/vaults');
	$roles->('Reader');
	$cases->refused('a role lost counts at once', 403, 'FORBIDDEN', undef, GET => '/vaults');
	$cases->good(200, GET => '/boxes');
	$roles->();
	$cases->refused('all of them', 403, 'FORBIDDEN', undef, GET => '/boxes');
	$cases->good(200, GET => '/countries');
	$roles->('Editor');
	$cases->good(200, GET => '/vaults');
	pass('and back');
	$root->refused('the SuperAdmin names a tenant', 400, 'TENANT_REQUIRED', undef, GET => '/vaults');
	$root->good(200, GET => '/vaults', headers => { 'X-Tenant-Id' => $tenants[0]{id} });
	$root->good(200, GET => '/countries');
};

done_testing;
