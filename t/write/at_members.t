# Members whose names begin with "@" are ignored wherever a document has them
# (JSON:API 1.1, "@-Members"), and nowhere else.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $atomic = $EntityApi::Test::Conformance::atomic;
my @at = ('@context' => { name => 'not this' }, '@' => undef, '@name' => 'nor this');
my ($ann, $bob) = map { $editor->made(authors => { name => $_ }) } qw(Ann Bob);

# An identifier, a relationship, linkage, each with such members
sub identifier { return { @at, %{ $editor->identifier($_[0]) } } }
sub related { return { @at, data => ref $_[0] eq 'ARRAY' ? [ map { identifier($_) } @{ $_[0] } ] : identifier($_[0]) } }

# A request with one place that has them, and what must have come of it
sub is_author
{
	my ($name, $answer, $status, %want) = @_;

	is($answer->{status}, $status, $name) or return diag $answer->{body};
	my $data = $answer->{json}{data} // $answer->{json}{'atomic:results'}[0]{data};
	is($data->{attributes}{name}, $want{name}, "$name: the name") if $want{name};
	is($data->{relationships}{mentor}{data}{id}, $want{mentor}, "$name: the mentor") if $want{mentor};
	unlike($answer->{body}, qr/"\@/, "$name: none comes back");
	return $data;
}

sub resource
{
	my ($name, %more) = @_;

	return { type => 'authors', attributes => { name => $name }, %more };
}

for my $method (qw(POST PATCH))
{
	my ($target, $status, %id) = $method eq 'POST' ? ('/authors', 201) : ("/authors/$bob->{id}", 200, id => $bob->{id});
	my $send = sub { return $editor->call($method => $target, json => $_[0]) };

	is_author("$method, top level", $send->({ @at, data => resource('A', %id) }), $status, name => 'A');
	is_author("$method, meta", $send->({ meta => {@at}, data => resource('A1', %id, meta => {@at}) }), $status, name => 'A1');
	is_author("$method, resource", $send->({ data => resource('B', %id, @at) }), $status, name => 'B');
	is_author("$method, attributes", $send->({ data => { %{ resource('C', %id) }, attributes => { @at, name => 'C' } } }), $status, name => 'C');
	is_author("$method, relationships", $send->({ data => resource('D', %id, relationships => { @at, mentor => { data => $editor->identifier($ann) } }) }),
		$status, name => 'D', mentor => $ann->{id});
	is_author("$method, relationship and identifier", $send->({ data => resource('E', %id, relationships => { mentor => related($ann) }) }),
		$status, mentor => $ann->{id});
	is_author("$method, identifiers of many", $send->({ data => resource('F', %id, relationships => { friends => related([$ann]) }) }), $status, name => 'F');
	$editor->refused("$method, other names", 400, 'UNKNOWN_FIELD', [ pointer => '/data/attributes/a@b' ],
		$method => $target, data => { %{ resource('G', %id) }, attributes => { name => 'G', 'a@b' => 1 } });
	$editor->refused("$method, nor in place of one", 400, 'REQUIRED', [ pointer => '/data/attributes' ],
		POST => '/authors', data => { type => 'authors', attributes => {@at} });
}

for my $case ([ PATCH => 'mentor', $ann ], [ PATCH => 'friends', [$ann] ], [ POST => 'friends', [$ann] ], [ DELETE => 'friends', [$ann] ])
{
	my ($method, $name, $value) = @$case;

	is($editor->call($method => "/authors/$bob->{id}/relationships/$name", json => related($value))->{status}, 204, "$method of $name");
}
is(scalar @{ $editor->good(200, GET => "/authors/$bob->{id}/relationships/friends")->{json}{data} }, 0, 'and it counted');

sub operations
{
	return $editor->shim->http(POST => '/api/v1/operations',
		{ token => $editor->{token}, headers => { 'Content-Type' => $atomic, Accept => $atomic }, json => { @at, 'atomic:operations' => [@_] } });
}

my $answer = operations(
	{ @at, op => 'add', data => { @at, %{ resource('Mia', lid => 'mia') }, attributes => { @at, name => 'Mia' },
		relationships => { @at, mentor => related($ann) } } },
	{ @at, op => 'update', ref => identifier($bob), data => { @at, type => 'authors', id => $bob->{id}, attributes => { @at, name => 'Rob' } } },
	{ @at, op => 'update', ref => { @at, type => 'authors', id => $bob->{id}, relationship => 'mentor' }, data => { @at, type => 'authors', lid => 'mia' } },
	{ @at, op => 'add', data => { @at, type => 'works', attributes => { @at, title => 'T' }, lid => 'work', relationships => { @at } } },
	{ @at, op => 'update', ref => { @at, type => 'works', lid => 'work', relationship => 'author' }, data => { @at, type => 'authors', id => $ann->{id} } });
is($answer->{status}, 200, 'operations') or diag $answer->{body};
is($answer->{json}{'atomic:results'}[0]{data}{relationships}{mentor}{data}{id}, $ann->{id}, 'with what they say');
unlike($answer->{body}, qr/"\@/, 'none comes back');
is($editor->good(200, GET => "/authors/$bob->{id}")->{json}{data}{relationships}{mentor}{data}{id},
	$answer->{json}{'atomic:results'}[0]{data}{id}, 'every one of them');

# /manage and /auth take no documents of JSON:API
$answer = $editor->shim->http(POST => "/manage/tenants/$editor->{tenant}/users",
	{ token => $editor->shim->superadmin, json => { username => 'new', '@context' => 'x' } });
is("$answer->{status} $answer->{json}{errors}[0]{source}{pointer}", '400 /@context', 'a body of /manage');
$answer = $editor->shim->http(POST => '/auth/login', { json => { username => 'new', password => 'x', '@context' => 'x' } });
is("$answer->{status} $answer->{json}{errors}[0]{source}{pointer}", '400 /@context', 'a body of /auth');

done_testing;
