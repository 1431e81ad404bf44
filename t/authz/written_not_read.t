# Who may write an entity and not read it is not told what is in it.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/letters.json';
my %everybody = ('*' => [qw(create read update delete)]);

open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => {} } qw(Reader Sorter Sender Clerk) } } },
	{ kind => 'Entity', metadata => { name => 'Box' }, spec => { permissions => \%everybody, fields => {
		name => { type => 'string' },
		letters => { type => 'ref', target => 'Letter', relation => 'OneToMany', mappedBy => 'box' } } } },
	{ kind => 'Entity', metadata => { name => 'Letter' }, spec => { optimisticLocking => JSON::PP::true,
		permissions => { Reader => [qw(create read update)], Sorter => ['update'], Sender => ['create'], Clerk => [qw(read update)] }, fields => {
		text => { type => 'string' },
		stamp => { type => 'string', default => 'the usual one' },
		box => { type => 'ref', target => 'Box', relation => 'ManyToOne' },
		copies => { type => 'ref', target => 'Box', relation => 'ManyToMany' } } } } ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my %as = map { $_ => EntityApi::Test::Cases->new($shim, $shim->user($tenant, lc $_, [$_]), '/api/v1') } qw(Reader Sorter Sender Clerk);
my %any = (headers => { 'If-Match' => '*' });

my $box = { type => 'boxes', id => $as{Reader}->good(201, POST => '/boxes', data => { type => 'boxes', attributes => { name => 'red box' } })->{json}{data}{id} };
my $letter = $as{Reader}->good(201, POST => '/letters', data => { type => 'letters', attributes => { text => 'for your eyes' },
	relationships => { box => { data => $box }, copies => { data => [$box] } } })->{json}{data};
my %letter = (type => 'letters', id => $letter->{id});
my $at = "/letters/$letter->{id}";

# -------- what is answered --------

sub says_nothing
{
	my ($answer, $what) = @_;

	unlike($answer->{body}, qr/for your eyes|the usual one|red box|\Q$box->{id}\E|attributes|relationships/, "$what: nothing of the resource");
	return $answer;
}

my $told = says_nothing($as{Sorter}->good(200, PATCH => $at, %any, data => { %letter }), 'update')->{json}{data};
is($told->{id}, $letter->{id}, 'but which it is');
is($told->{meta}{version}, 1, 'and its version');
says_nothing($as{Sender}->good(201, POST => '/letters', data => { type => 'letters', attributes => { text => 'my own' } }), 'create');
says_nothing($as{Sorter}->good(200, POST => '/operations', headers => { Accept => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"',
	'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
	body => JSON::PP->new->canonical->encode({ 'atomic:operations' => [ map { { op => 'update', data => {%letter} } } 1 .. 2 ] })), 'operations');
says_nothing($as{Sorter}->refused("by $_", 403, 'FORBIDDEN', [ parameter => 'include' ], PATCH => "$at?include=$_", %any, data => {%letter}), "include=$_")
  for qw(box copies box.letters);
says_nothing($as{Sorter}->refused('fieldsets', 400, 'INVALID_FIELDS', undef, PATCH => "$at?fields[letters]=text", %any, data => {%letter}), 'fieldsets');
$as{Sorter}->refused("GET $_", 403, 'FORBIDDEN', undef, GET => $_) for '/letters', $at, "$at/box", "$at/relationships/box";

# -------- what is written --------

$as{Sorter}->good(200, PATCH => $at, %any, data => { %letter, attributes => { text => 'changed' }, relationships => { box => { data => undef } } });
$as{Sorter}->good(204, PATCH => "$at/relationships/copies", %any, data => []);
my $now = $as{Reader}->good(200, GET => "$at?include=box,copies")->{json};
is($now->{data}{attributes}{text}, 'changed', 'attributes are');
is_deeply([ $now->{data}{relationships}{box}{data}, $now->{data}{relationships}{copies}{data}, $now->{included} ], [ undef, [], [] ], 'and relationships');
is($as{Clerk}->good(200, PATCH => "$at?include=box", %any, data => {%letter})->{json}{data}{attributes}{text}, 'changed', 'who may read is told');

done_testing;
